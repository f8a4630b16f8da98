"""What the Dask runner does on the cluster's workers: pulls, and states between them.

A worker process may work for many searches, in many threads.
"""

from __future__ import annotations

import pickle
import threading
import traceback
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from dask.sizeof import sizeof
from distributed import get_worker

from lastarm.checkpoints import StateFolder
from lastarm.errors import WorkersNotStarted
from lastarm.events import Failure, Pull, Saved
from lastarm.runners.dask import compat
from lastarm.runners.performer import Performer
from lastarm.runners.remote import Kit, Report, Script, load_trainer
from lastarm.runners.states import States, packed, size_of

MAY_NOT = "daemonic processes are not allowed to have children"  # as multiprocessing says it
SETTING = (
    "Dask's workers are such processes. Use dask.config.set({'distributed.worker.daemon': False}) "
    "before they are started"
)


class Errand(NamedTuple):
    """How a pull tells of itself: the keys of its task and of the state, and the client's name."""

    key: str
    state: str
    client: str
    timed: bool  # whether it is to say when it begins


class Boxed:
    """A state that Dask may move: it comes out as it went in, to the last bit of its losses.

    Dask's own way of moving arrays leaves them read-only, or not aligned in memory, and then their
    sums are rounded differently. So it is moved as a pickle, which is loaded when it is taken out,
    with the classes of its script. It is taken out once, because a pull may change it in place.
    A copy that does not continue is only good to predict, also if Dask has made it by itself, to
    move the state or to make room.
    """

    def __init__(self, state: Any, size: int, script: Script, *, continues: bool) -> None:
        self.taken, self._continues = False, continues
        self._state, self._size, self._script = state, size, script
        self._pickled: bytes | None = None

    @property
    def can_be_trained(self) -> bool:
        """Whether a pull can go on from it."""
        return not self.taken and (self._continues or self._pickled is None)

    def take(self, script: Script) -> Any:
        """The state, for a pull to go on from."""
        self.taken, self._script = True, script
        state, pickled = self._state, self._pickled
        self._state = self._pickled = None
        if pickled is None:
            return state
        with script.alone():
            return pickle.loads(pickled)

    def __sizeof__(self) -> int:
        return self._size

    def __getstate__(self) -> dict[str, Any]:
        pickled = self._pickled
        if pickled is None:
            with self._script.alone():
                pickled = packed(self._state)
        if pickled is None:
            raise pickle.PicklingError("the state cannot leave this process")
        # If it was taken meanwhile, in another thread, what was pickled may be half changed.
        kept = {"taken": self.taken, "_size": self._size, "_continues": self._continues}
        return {**kept, "_state": None, "_pickled": pickled}


class SharedFolder(StateFolder):
    """A folder of states in a process that works for many searches."""

    def __init__(self, path: Path, trainer: Any, script: Script, kit: Kit) -> None:
        super().__init__(path, trainer, durable=kit.durable, sync=kit.sync)
        self._script = script

    def write(self, pull: Pull, state: Any) -> Saved | None:
        """Write a state."""
        with self._script.alone():
            return super().write(pull, state)

    def load(self, pull: Pull, saved: Saved) -> Any:
        """The state that was saved."""
        with self._script.alone():
            return super().load(pull, saved)


def perform(
    kit: Kit, sent: bytes, boxed: Boxed | None, carried: tuple[int, bool] | None, errand: Errand
) -> None:
    """Train and look, leave the state here for the client, and tell it what became of the pull.

    The pull goes on from what is `boxed`, if anything is, whose level and whether it is movable
    were `carried` here with it.
    """
    worker, loaded, task = get_worker(), load(kit), pickle.loads(sent)
    arm, movable = task.pull.arm, None
    states = States(loaded.folder, loaded.trainer, memory=inf, always=True)
    if boxed and carried and boxed.can_be_trained:
        with suppress(BaseException):  # a state that cannot be loaded here is trained again
            states.put_back(Pull(arm, carried[0]), boxed.take(loaded.script))
            movable = carried[1]
    if errand.timed:  # the trainer is loaded, the state is here, now it trains
        worker.log_event(kit.identity, pickle.dumps((errand.key, None)))
    with loaded.script.present():
        performer = Performer(loaded.trainer, states, apart=True)
        told = performer.perform(task, worker.id)
        aside = performer.aside.sendable()
        if isinstance(told, Failure) and told.error.endswith(MAY_NOT):
            told = told._replace(error=f"{told.error}. {SETTING}")
        held = states.held(arm)
        if held and movable is None:
            movable = size_of(held.state) > 0
    if not compat.is_wanted(worker, errand.key):
        return
    report = Report(told, aside=aside)
    if held:
        size = held.size or sizeof(held.state)
        boxed = Boxed(held.state, size, loaded.script, continues=held.continues)
        compat.leave(worker, errand.state, boxed, errand.client)
        report = Report(told, held.level, bool(movable), held.continues, size, aside=aside)
    worker.log_event(kit.identity, pickle.dumps((errand.key, report)))


class Loaded(NamedTuple):
    """A kit in a thread of a worker: the trainer, and the folder of states if it is seen here."""

    trainer: Any
    script: Script
    folder: StateFolder | None


class _Kits(threading.local):
    """The last few that were loaded in a thread: a trainer may use itself as scratch space."""

    def __init__(self) -> None:
        self.last: dict[str, Loaded] = {}


_kits = _Kits()


def load(kit: Kit) -> Loaded:
    """What is in a kit, loaded once in each thread."""
    if kit.identity not in _kits.last:
        try:
            trainer, script = load_trainer(kit.trainer)
        except BaseException:
            what, details = "a worker could not load the trainer", traceback.format_exc()
            raise WorkersNotStarted(what, details) from None
        compat.draw_apart()
        path = kit.seen_folder
        folder = SharedFolder(path, trainer, script, kit) if path else None
        while len(_kits.last) > 3:
            del _kits.last[next(iter(_kits.last))]
        _kits.last[kit.identity] = Loaded(trainer, script, folder)
    return _kits.last[kit.identity]
