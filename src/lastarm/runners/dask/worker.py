"""What the Dask runner does on the cluster's workers: pulls, and states between them.

A worker process may work for many searches, in many threads.
"""

from __future__ import annotations

import pickle
import threading
import traceback
from math import inf
from typing import Any, NamedTuple

from dask.sizeof import sizeof
from distributed import get_worker

from lastarm.checkpoints import StateFolder
from lastarm.errors import WorkersNotStarted
from lastarm.events import Pull, Told
from lastarm.runners.dask import compat
from lastarm.runners.performer import Performer, Task
from lastarm.runners.remote import Kit, Report, load_trainer
from lastarm.runners.states import States, packed, size_of


class Errand(NamedTuple):
    """How a pull tells of itself: the keys of its task and of the state, and the client's name."""

    key: str
    state: str
    client: str
    timed: bool  # whether it is to say when it begins


class Begun:
    """What a timed pull sends first: the trainer is loaded, the state is here, now it trains."""


class Carried(NamedTuple):
    """The state of an arm between two pulls."""

    level: int
    state: Any
    movable: bool = True  # to another process


class Boxed:
    """A state that Dask may move: it comes out as it went in, to the last bit of its losses.

    Dask's own way of moving arrays leaves them read-only, or not aligned in memory, and then their
    sums are rounded differently.

    It is taken out once, because a pull may change it in place.
    """

    def __init__(self, state: Any, size: int, *, taken: bool = False) -> None:
        self.state, self.taken = state, taken
        self._size = size

    def take(self) -> Any:
        """The state, for a pull to go on from."""
        self.taken, state, self.state = True, self.state, None
        return state

    def __sizeof__(self) -> int:
        return self._size

    def __reduce__(self) -> tuple[Any, ...]:
        pickled = packed(self.state)
        if pickled is None:
            raise pickle.PicklingError("the state cannot leave this process")
        # If it was taken meanwhile, in another thread, what was pickled may be half changed.
        return _unboxed, (pickled, self._size, self.taken)


def _unboxed(pickled: bytes, size: int, taken: bool) -> Boxed:
    return Boxed(pickle.loads(pickled), size, taken=taken)


def perform(
    kit: Kit,
    sent: bytes,
    boxed: Boxed | None,
    carried: tuple[int, bool] | None,
    errand: Errand,
) -> None:
    """Train and look, leave the state here for the client, and tell it what became of the pull."""
    worker = get_worker()
    before = None
    if boxed and carried and not boxed.taken:
        before = Carried(carried[0], boxed.take(), carried[1])
    if errand.timed:
        loaded(kit)
        worker.log_event(kit.identity, pickle.dumps((errand.key, Begun())))
    told, after = carried_on(kit, pickle.loads(sent), before, worker.id)
    if not compat.is_wanted(worker, errand.key):
        return
    report = Report(told)
    if after is not None:
        boxed = Boxed(after.state, sizeof(after.state))
        compat.leave(worker, errand.state, boxed, errand.client)
        report = Report(told, after.level, after.movable)
    worker.log_event(kit.identity, pickle.dumps((errand.key, report)))


def carried_on(
    kit: Kit, task: Task, carried: Carried | None, worker: str
) -> tuple[Told, Carried | None]:
    """Train and look, going on from the state that was carried here, if any.

    Returned are what became of the pull, and the state for the next pull to go on from.
    """
    trainer, folder = loaded(kit)
    states = States(folder, memory=inf, always=True)
    arm = task.pull.arm
    if carried:
        states.put_back(Pull(arm, carried.level), carried.state)
    told = Performer(trainer, states).perform(task, worker)
    held = states.held(arm)
    if held is None:
        return told, None
    movable = carried.movable if carried else size_of(held.state) > 0
    return told, Carried(held.level, held.state, movable)


class _Kits(threading.local):
    """The last few that were loaded in a thread: a trainer may use itself as scratch space."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[Any, StateFolder | None]] = {}


_kits = _Kits()


def loaded(kit: Kit) -> tuple[Any, StateFolder | None]:
    """The trainer, loaded once in each thread, and the folder of states, if it is seen here."""
    if kit.identity not in _kits.last:
        try:
            trainer, script = load_trainer(kit.trainer)
        except BaseException:
            what, details = "a worker could not load the trainer", traceback.format_exc()
            raise WorkersNotStarted(what, details) from None
        script.keep()
        path = kit.seen_folder
        folder = StateFolder(path, trainer, durable=kit.durable) if path else None
        while len(_kits.last) > 3:
            del _kits.last[next(iter(_kits.last))]
        _kits.last[kit.identity] = trainer, folder
    return _kits.last[kit.identity]
