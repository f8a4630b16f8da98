"""A trainer whose value is better when it is higher, turned into one with a loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lastarm.trainers.losses import loss_in
from lastarm.trainers.protocol import Config, Trainer


class Maximized:
    """The same arms, with the value to maximize turned into a loss to minimize.

    - `trainer`: the trainer whose `loss` and `test` return a value to maximize.

    Only the sign changes. Metrics and everything else that the trainer has stay the same.

    >>> from lastarm.trainers.recorded import RecordedCurves
    >>> accuracies = Maximized(RecordedCurves([[0.5, 0.8]], test=[0.75]))
    >>> arm = accuracies.train(accuracies.start({"row": 0}, seed=0), pulls=2)
    >>> accuracies.loss(arm), accuracies.test(arm)
    (-0.8, -0.75)
    """

    def __init__(self, trainer: Trainer[Any]) -> None:
        self._trainer: Any = trainer

    @property
    def trainer(self) -> Any:
        """The trainer inside, whose value is better when it is higher."""
        return self._trainer

    def start(self, config: Config, seed: int) -> Any:
        """The trainer's own arm."""
        return self._trainer.start(config, seed)

    def train(self, state: Any, pulls: int) -> Any:
        """The trainer's own arm, trained further."""
        return self._trainer.train(state, pulls)

    def loss(self, state: Any) -> Any:
        """What the trainer returns, with the other sign."""
        return negated(self._trainer.loss(state))

    def fingerprint(self) -> dict[str, Any]:
        """The trainer's fingerprint and its kind."""
        theirs = self._trainer.fingerprint() if hasattr(self._trainer, "fingerprint") else {}
        return {"maximized": type(self._trainer).__qualname__, **theirs}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # else unpickling would ask for `_trainer` before there is one
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        theirs = getattr(self._trainer, name)
        return self._test if name == "test" else theirs

    def _test(self, state: Any) -> Any:
        return negated(self._trainer.test(state))


def negated(value: Any) -> Any:
    """A value that is better when it is higher, as a loss. Other metrics stay as they are."""
    if value is None:
        return None
    loss = 0.0 - loss_in(value)  # -0.0 would be shown, and 0 - 0 has no sign
    return {**value, "loss": loss} if isinstance(value, Mapping) else loss
