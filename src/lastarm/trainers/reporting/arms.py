"""The arms of loops that report, and how many of them wait in a process."""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import weakref
from collections.abc import Callable
from contextlib import suppress
from math import inf
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import cloudpickle

from lastarm.errors import CheckpointLost
from lastarm.trainers.losses import loss_in
from lastarm.trainers.protocol import Config
from lastarm.trainers.reporting.global_random import States, belonging_to
from lastarm.trainers.reporting.loops import DropIgnored, Loop, Reporter

MOST_ALIVE = 64  # arms that wait in a process, if a search does not say how many
# What makes a state when it is called. A model can be called, too, and is a state.
MAKERS = (FunctionType, MethodType, BuiltinFunctionType, functools.partial)


class WaitingArm:
    """An arm, with its loop if that waits in this process, and what it reported last.

    Without its loop, an arm is its state: the one that was given with the last report, as a pickle
    if it has left the loop's memory, and the global generators beside it.
    """

    def __init__(self, config: Config, seed: int) -> None:
        self.config, self.seed = config, seed
        self.reports = 0
        self.observed: Any = None
        self.state: Any = None
        self.packed: bytes | None = None  # a pickle of the state
        self.generators: States = {}
        self.ended = False  # whether the function has returned
        self.loss = inf  # as it was seen last
        self.since = 0  # which of the arms that wait came when
        self.works = False  # whether its loop runs now
        self.is_lost: BaseException | None = None  # why there is nothing to continue from
        self.owner = 0  # the id of the trainer, in this process
        self._loop: Loop | None = None
        self._name = ""  # of the function
        self._abandon: weakref.finalize[Any, Any] | None = None

    def advance(self, pulls: int, call: Callable[[Reporter], Any], name: str, most: int) -> None:
        """Let the loop make further reports, and others make room for it.

        :param pulls: how many times.
        :param call: begins the loop, if it is not there.
        :param name: that of the function, for errors.
        :param most: how many arms may have their loops, with this one.
        """
        if self.is_lost:
            raise self.is_lost
        if self._loop is None:
            make_room(most - 1)
            self._name = name
            self._loop = Loop(
                call,
                name,
                self.seed,
                reports=self.reports,
                restored=self.unpacked() if self.reports else None,
                generators=self.generators,
            )
            self._abandon = weakref.finalize(self, _abandon, self._loop, self.owner)
        self.works, self.since = True, next(_counter)
        _with_loops.add(self)
        loop = self._loop
        try:
            loop.advance(pulls)
        except BaseException:
            self._let_go_of_loop()
            self.is_lost = CheckpointLost("its loop has failed")
            raise
        finally:
            self.works = False
        self.packed = None
        self.reports, self.generators = loop.reports, loop.generators
        self.observed, self.state = loop.observed, loop.state
        if loop.returned:
            self.ended = True
            self._let_go_of_loop()

    def look(self) -> Any:
        """The loss. A function that computes it is called by the first look at each level."""
        if callable(self.observed):
            with belonging_to(dict(self.generators), self.seed):  # looking changes nothing
                self.observed = self.observed()
        self.loss = inf
        with suppress(Exception):
            self.loss = loss_in(self.observed)
        return self.observed

    def unpacked(self) -> Any:
        """The user's state; None if there is none."""
        if self.packed is not None:
            return pickle.loads(self.packed)
        if not isinstance(self.state, MAKERS):
            return self.state
        # Not within `belonging_to`: Dask asks for it while another arm of the process trains.
        made = self.state()
        if made is None:
            raise TypeError("the function that was given to `report` as its state returned None")
        return made

    def drop(self, *, keep: bool = True) -> bool:
        """End the loop, and keep the state, unless nothing comes after. Whether it has ended."""
        loop = self._loop
        if loop is None:
            return True
        if keep:
            self._keep()
        else:
            self.is_lost = CheckpointLost("its search has ended")
        self._let_go_of_loop()
        ended = loop.drop()
        if loop.ignores:
            self.is_lost = DropIgnored(self._name)
        return ended

    def _keep(self) -> None:
        """Have the loss and the state without the loop.

        What the user's functions raise here is this arm's own, and not of the one that needs the
        room.
        """
        try:
            with suppress(Exception):
                self.look()
            if self.state is None:
                self.is_lost = CheckpointLost("its loop has left the memory, and gave no state")
                return
            state = self.unpacked()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.is_lost = error
            return
        with suppress(Exception):  # what cannot be pickled is kept as it is
            self.packed = _pickled(state)
        self.state = None if self.packed is not None else state

    def _let_go_of_loop(self) -> None:
        self._loop = None
        if self._abandon:
            self._abandon.detach()
        _with_loops.discard(self)

    def __getstate__(self) -> dict[str, Any]:
        if self.state is None and self.packed is None and not self.ended:
            raise TypeError(
                "a loop that waits cannot be pickled. Give its state with every report, "
                "`report(loss, state=…)`, and continue from `report.restore()`"
            )
        return {
            "config": self.config,
            "seed": self.seed,
            "reports": self.reports,
            "observed": self.look(),
            "state": None if self.packed is not None else self.unpacked(),
            "packed": self.packed,
            "generators": self.generators,
            "ended": self.ended,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["config"], state["seed"])  # type: ignore[misc]
        self.__dict__.update(state)


_counter = itertools.count()
_with_loops: weakref.WeakSet[WaitingArm] = weakref.WeakSet()  # all of this process
_abandoned: weakref.WeakKeyDictionary[Loop, int] = weakref.WeakKeyDictionary()  # → the trainer

if hasattr(os, "register_at_fork"):  # a child has none of the threads
    os.register_at_fork(after_in_child=_with_loops.clear)
    os.register_at_fork(after_in_child=_abandoned.clear)


def make_room(most: int) -> None:
    """Drop the loops of arms that wait until at most so many are left: first the worst."""
    waiting = [arm for arm in _with_loops if not arm.works]
    waiting.sort(key=lambda arm: (-arm.loss, arm.since))
    for arm in waiting[: max(0, len(_with_loops) - max(0, most))]:
        arm.drop()


def drop_all(owner: int) -> int:
    """End the loops of a trainer that are in this process; how many did not end."""
    ours = [arm for arm in _with_loops if arm.owner == owner and not arm.works]
    left = sum(not arm.drop(keep=False) for arm in ours)
    loops = [loop for loop, trainer in list(_abandoned.items()) if trainer == owner]
    return left + sum(not loop.wait_until_over() for loop in loops)


def _abandon(loop: Loop, owner: int) -> None:
    _abandoned[loop] = owner
    loop.abandon()


def _pickled(state: Any) -> bytes:
    try:
        return pickle.dumps(state, protocol=5)
    except Exception:
        return bytes(cloudpickle.dumps(state, protocol=5))
