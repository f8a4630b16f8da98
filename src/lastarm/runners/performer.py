"""Performing a pull: the only place where a trainer is called, on every runner but the batched."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

from lastarm.errors import (
    CheckpointLost,
    CheckpointNotWritten,
    EndedEarly,
    LastarmError,
    LastarmWarning,
    StateNotSaved,
)
from lastarm.events import Failure, Loss, Pull, Saved, Told, Work
from lastarm.runners.asides import Aside
from lastarm.runners.states import States
from lastarm.system.offspring import ThisProcess
from lastarm.trainers import Config, Trainer, arm_seed, observation

MOST_LOST = 2  # times that a state may be lost while it is trained further; then its arm failed


class Task(NamedTuple):
    """An attempt at a pull, with all that a worker needs to perform it."""

    pull: Pull
    attempt: int
    config: Config
    seed: int  # of the search
    known: tuple[int, Saved] | None = None  # the level of the arm's furthest checkpoint, the file
    pickled: bytes | None = None  # the config, on the way to another process
    restarts: bool = False  # whether the trainer trains every level from zero

    @property
    def saved_level(self) -> int:
        """The level of the arm's furthest checkpoint; 0 if there is none."""
        return self.known[0] if self.known else 0

    def can_use(self, level: int) -> bool:
        """Whether a state of that level can be trained further, or need not be."""
        return level == self.pull.upto if self.restarts else level <= self.pull.upto


class ConfigNotLoaded(LastarmError):
    """A config that was sent to a worker cannot be loaded there. That arm has failed."""


class Performer:
    """Trains arms and looks at their losses.

    With `apart`, it does so in another process than the one that searches. There an interrupt is
    an arm's own, because Ctrl-C is for the process that searches.

    `aside` is what there is to say of the last pull besides its loss.
    """

    def __init__(self, trainer: Trainer[Any], states: States, *, apart: bool = False) -> None:
        self._trainer = trainer
        self._states = states
        self._here = ThisProcess()
        self.aside = Aside()
        self._ends_all = (
            CheckpointNotWritten if apart else (CheckpointNotWritten, KeyboardInterrupt)
        )

    def perform(self, task: Task, worker: str = "") -> Told:
        """Train and look. Anything that the trainer raises is the failure of this arm alone."""
        trainer, pull, here = self._trainer, task.pull, self._here
        self.aside = Aside()  # an error in it holds on to the state of its arm
        trained, level, state, states = 0, 0, None, self._states
        began = trained_at = perf_counter()
        try:
            for attempts_left in reversed(range(MOST_LOST + 1)):
                state, level = states.take(pull, task.known, restarts=task.restarts)
                if level == 0:
                    with here:
                        state = trainer.start(_config(task), arm_seed(task.seed, pull.arm))
                if level == pull.upto:
                    break
                trained = pull.upto - level
                try:
                    with here:
                        state = trainer.train(state, trained)
                    break
                except CheckpointLost:
                    level = 0
                    if not attempts_left:
                        raise
            trained_at, level, loading = perf_counter(), pull.upto, states.move_seconds
            with here:
                loss, metrics = observation(trainer.loss(state), pull.arm)
            looked_at = perf_counter()
            with here:
                saved = states.keep(pull, state, loss)
            self.aside = Aside(tuple(self._warnings(pull, state)))
        except self._ends_all:
            raise
        except BaseException as error:
            # Looking changes nothing, so a state that was trained need not be trained again.
            if level == pull.upto or (level and getattr(trainer, "restores", False)):
                states.put_back(Pull(pull.arm, level), state)
            self.aside = Aside(error=error)
            moved = states.moves, states.move_seconds
            work = Work(trained, perf_counter() - began, 0.0, worker, task.attempt, *moved)
            return Failure(pull, said(error), last_lines(traceback.format_exc()), work)
        training = trained_at - began + states.move_seconds - loading
        moved = states.moves, states.move_seconds
        work = Work(trained, training, looked_at - trained_at, worker, task.attempt, *moved)
        return Loss(pull, loss, work, metrics, saved)

    def let_go(self) -> None:
        """End what arms have left running in this process, where nothing else is trained."""
        if hasattr(self._trainer, "let_go"):
            with self._here:
                self._trainer.let_go()

    def _warnings(self, pull: Pull, state: Any) -> Iterator[LastarmWarning]:
        if self._states.unsaved:
            yield StateNotSaved(pull.arm, self._states.unsaved)
        ended = self._trainer.ended(state) if hasattr(self._trainer, "ended") else None
        if ended is not None:
            yield EndedEarly(pull.arm, ended, pull.upto)


def _config(task: Task) -> Config:
    if task.pickled is None:
        return task.config
    try:
        config: Config = pickle.loads(task.pickled)
    except BaseException as error:
        raise ConfigNotLoaded(said(error)) from error
    return config


def last_lines(told: str) -> str:
    """The end of a traceback, from the beginning of a line: a half password cannot be masked."""
    end = told[-65536:]
    return end if end == told else end.partition("\n")[2]


def said(error: BaseException) -> str:
    """An error in one line; if even its message raises, its class."""
    try:
        message = str(error)
    except BaseException:
        message = "its message cannot be read"
    return f"{type(error).__name__}: {message}".removesuffix(": ")[:1000]
