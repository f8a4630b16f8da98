"""What there is to say of a pull besides its loss: warnings, and the error that its arm raised.

Both come from where the arm is trained, which may be another process. Warnings are given in the
process that searches, and of each kind only the first: if one arm has cause for it, most have. Of
errors the first is kept as it is, so that `AllArmsFailed` can be raised from it.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from contextlib import suppress
from math import isfinite
from typing import NamedTuple

from lastarm.errors import ArmRaised, LastarmWarning
from lastarm.events import Failure, Loss, Pull, Told

MOST_BYTES = 2**16  # of an error that is sent: it may hold anything


class Aside(NamedTuple):
    """What there is to say of one pull."""

    warnings: tuple[LastarmWarning, ...] = ()
    error: BaseException | bytes | None = None  # bytes: on the way to another process

    def sendable(self) -> Aside:
        """The same for another process; without an error that cannot be sent, or is large."""
        pickled = None
        with suppress(BaseException):  # its class may raise anything
            pickled = pickle.dumps(self.error)
        return Aside(self.warnings, pickled if pickled and len(pickled) < MOST_BYTES else None)


class Asides:
    """What was said in a search, as its runner hears it."""

    def __init__(self) -> None:
        self._given: set[type[LastarmWarning]] = set()
        # An error holds on to all that its functions had. It is not needed once an arm is healthy.
        self._none_is_healthy = True
        self._first: tuple[Pull, BaseException] | None = None

    def take(self, told: Told, aside: Aside) -> None:
        """Give the warnings that are new, and keep the error if it is the first."""
        for warning in aside.warnings:
            if type(warning) not in self._given:
                self._given.add(type(warning))
                warnings.warn(warning, stacklevel=_depth_of_the_caller())
        if isinstance(told, Loss):
            if isfinite(told.value):
                self._none_is_healthy, self._first = False, None
        elif self._none_is_healthy and not self._first and aside.error is not None:
            with suppress(BaseException):  # it may not be possible to load it here
                self._first = told.pull, _here(told, aside.error)

    def cause(self, failure: Failure) -> BaseException:
        """The error of a failure: itself if it was kept, else one that shows its traceback."""
        if self._first and self._first[0] == failure.pull:
            return self._first[1]
        return ArmRaised(failure.pull.arm, failure.pull.upto, failure.traceback)


def _depth_of_the_caller() -> int:
    """How far up the code is that called lastarm: a warning belongs there, not to our own line."""
    depth, frame = 1, inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == "lastarm":
        depth, frame = depth + 1, frame.f_back
    return depth - 1


def _here(failure: Failure, error: BaseException | bytes) -> BaseException:
    """The error in this process. One of another process has lost its traceback on the way."""
    if isinstance(error, BaseException):
        return error
    loaded: BaseException = pickle.loads(error)
    loaded.__cause__ = ArmRaised(failure.pull.arm, failure.pull.upto, failure.traceback)
    return loaded
