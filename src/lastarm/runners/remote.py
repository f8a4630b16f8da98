"""Pulls on their way to other processes, where the trainer is loaded once and called for each."""

from __future__ import annotations

import pickle
import threading
import traceback
import uuid
import warnings
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from lastarm.arguments import as_float
from lastarm.checkpoints import Folder
from lastarm.errors import CheckpointNotWritten, InvalidArgument, Stuck
from lastarm.events import Failure, Pull, Told, Work
from lastarm.journal.disk import make_folder
from lastarm.runners.performer import Performer, Task
from lastarm.runners.protocol import Arms
from lastarm.runners.sending import by_value, pickled_trainer, unpickled_trainer
from lastarm.runners.states import States, packed, size_of


class Order(NamedTuple):
    """A task on its way; its config apart, so that one that cannot be loaded can be named."""

    task: Task
    config: bytes


def order(task: Task) -> Order | Failure:
    """The task, ready to be sent; or its arm's failure, if its config cannot be."""
    try:
        return Order(task._replace(config={}), by_value(task.config))
    except Exception as error:
        why = f"its config cannot be sent to a worker: {type(error).__name__}: {error}"
        return Failure(task.pull, why[:1000], work=Work(attempt=task.attempt))


def obeyed(performer: Performer, order: Order, worker: str) -> Told:
    """Perform a task that was sent here."""
    task = order.task
    try:
        task = task._replace(config=pickle.loads(order.config))
    except BaseException as error:
        why = f"its config cannot be loaded here: {type(error).__name__}: {error}"
        work = Work(worker=worker, attempt=task.attempt)
        return Failure(task.pull, why[:1000], traceback.format_exc()[-65536:], work)
    return performer.perform(task, worker)


class Kit(NamedTuple):
    """What the workers of an engine have to know before any pull: the trainer, by value.

    States are saved in `folder` where there is one and a worker sees it: a file by the name of the
    kit's `identity` is in it, as long as the kit is used.
    """

    identity: str
    trainer: bytes
    folder: Path | None
    durable: bool

    @classmethod
    def of(cls, arms: Arms) -> Kit:
        """The kit for the arms of a search."""
        identity, trainer = f"lastarm-{uuid.uuid4().hex}", pickled_trainer(arms.trainer)
        folder = arms.folder if arms.always else None
        if folder is None:
            return cls(identity, trainer, None, durable=False)
        try:
            make_folder(folder.path)
            for left in folder.path.glob("lastarm-*"):  # by a search that was killed
                left.unlink(missing_ok=True)
            (folder.path / identity).touch(mode=0o600)
        except OSError as error:
            raise CheckpointNotWritten(folder.path, error) from error
        return cls(identity, trainer, folder.path, folder.durable)

    def warn_of_unseen_folder(self) -> None:
        """Say that states are not saved."""
        warnings.warn(
            f"the workers do not see {self.folder}: states stay in their memory, and what is lost "
            "there is trained again. Put the journal, or `checkpoints`, into a folder that all "
            "workers see.",
            stacklevel=2,
        )

    def put_away(self) -> None:
        """Nobody needs it any more."""
        if self.folder:
            with suppress(OSError):
                (self.folder / self.identity).unlink(missing_ok=True)


class Carried(NamedTuple):
    """The state of an arm between two pulls, where the engine keeps it."""

    level: int
    state: Any
    movable: bool = True  # to another process


class Boxed:
    """A state that an engine may move: it comes out as it went in, to the last bit of its losses.

    An engine's own way of moving arrays leaves them read-only, or not aligned in memory, and then
    their sums are rounded otherwise.

    It is taken out once, since a pull may change it in place.
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


def carried_on(
    kit: Kit, order: Order, carried: Carried | None, worker: str
) -> tuple[Told, Carried | None]:
    """On a worker: train and look, going on from the state that was carried here, if any.

    What is given back is what became of it, and the state for the next pull to go on from.
    """
    trainer, folder = unpacked(kit)
    states = States(folder, memory=inf, always=True)
    arm = order.task.pull.arm
    if carried:
        states.put_back(Pull(arm, carried.level), carried.state)
    told = obeyed(Performer(trainer, states), order, worker)
    held = states.held(arm)
    if held is None:
        return told, None
    movable = carried.movable if carried else size_of(held.state) > 0
    return told, Carried(held.level, held.state, movable)


class _Kits(threading.local):
    """The last few that were unpacked in a thread: a trainer may use itself as scratch space."""

    def __init__(self) -> None:
        self.last: dict[str, tuple[Any, Folder | None]] = {}


_kits = _Kits()


def unpacked(kit: Kit) -> tuple[Any, Folder | None]:
    """The trainer, loaded once in a thread, and the folder of states, if it is seen from here."""
    identity, pickled, path, durable = kit
    if identity not in _kits.last:
        try:
            trainer = unpickled_trainer(pickled)
        except BaseException:
            raise Stuck(
                f"a worker could not load the trainer:\n{traceback.format_exc()}"
            ) from None
        seen = path is not None and (path / identity).exists()
        folder = Folder(path, trainer, durable=durable) if path and seen else None
        while len(_kits.last) > 3:
            del _kits.last[next(iter(_kits.last))]
        _kits.last[identity] = trainer, folder
    return _kits.last[identity]


def amounts(given: Any) -> dict[str, float]:
    """What a pull takes of an engine's resources: names, and numbers of more than 0."""
    taken = {} if given is None else given
    fit = isinstance(taken, Mapping) and all(
        isinstance(name, str) and 0 < as_float(amount) < inf for name, amount in taken.items()
    )
    if not fit:
        raise InvalidArgument(
            f"resources={given!r} will not do: give what a pull takes of each, by name and more "
            'than 0, such as {"GPU": 1}.'
        )
    return dict(taken)
