"""Performing a pull: the one place where a trainer is called, whoever the runner is."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.trainers import Config, Trainer, arm_seed, as_loss


class Performer:
    """Trains the arms of a search and keeps their states."""

    def __init__(self, trainer: Trainer[Any], configs: Sequence[Config], seed: int) -> None:
        self._trainer = trainer
        self._configs = configs
        self._seed = seed
        self._states: dict[int, tuple[Any, int]] = {}  # arm → its state, and the state's level

    def perform(self, pull: Pull, attempt: int = 1, worker: str = "") -> Told:
        """Train and look. Whatever the trainer raises is the arm's failure, and only its own."""
        began = trained_at = perf_counter()
        trained = 0
        try:
            # Taken out first: a state that a failed pull left half changed is never used again.
            state, level = self._states.pop(pull.arm, (None, 0))
            if level == 0 or level > pull.upto:
                state, level = (
                    self._trainer.start(self._configs[pull.arm], arm_seed(self._seed, pull.arm)),
                    0,
                )
            if level < pull.upto:
                trained = pull.upto - level
                state = self._trainer.train(state, trained)
            trained_at = perf_counter()
            loss = as_loss(self._trainer.loss(state))
        except (Exception, SystemExit) as error:
            work = Work(trained, perf_counter() - began, 0.0, worker, attempt)
            return Failure(pull, _said(error), traceback.format_exc()[-65536:], work)
        self._states[pull.arm] = state, pull.upto
        seconds = trained_at - began, perf_counter() - trained_at
        return Loss(pull, loss, Work(trained, *seconds, worker, attempt))

    def state(self, pull: Pull) -> Any:
        """The state of an arm at that level, or None if it is not at hand."""
        state, level = self._states.get(pull.arm, (None, 0))
        return state if level == pull.upto else None


def _said(error: BaseException) -> str:
    """An error in a line; one whose own message raises is still named."""
    try:
        message = str(error)
    except Exception:
        message = "its message cannot be read"
    return f"{type(error).__name__}: {message}".removesuffix(": ")[:1000]
