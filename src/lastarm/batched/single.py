"""A batched trainer as an ordinary one, which trains an arm at a time."""

from __future__ import annotations

from typing import Any

from lastarm.batched.protocol import BatchedTrainer, SomeFailed
from lastarm.errors import InvalidArgument
from lastarm.trainers import Config


class Single:
    """The arms of a batched trainer, one at a time: what `search` takes.

    The runner `Batched` finds the batched trainer in it and trains the arms together; any other
    runner trains each alone, and finds the same.

    >>> from lastarm.batched import Together
    >>> from lastarm.trainers import RecordedCurves
    >>> curves = Single(Together(RecordedCurves([[0.9, 0.5, 0.4]])))
    >>> arm = curves.train(curves.start({"row": 0}, seed=0), pulls=2)
    >>> curves.loss(arm)
    0.5
    """

    def __init__(self, batched: BatchedTrainer[Any, Any]) -> None:
        missing = [
            name
            for name in ("start", "train", "losses", "take", "gather")
            if not callable(getattr(batched, name, None))
        ]
        if missing:
            raise InvalidArgument(
                f"{repr(batched)[:200]} is no batched trainer: it has no {', '.join(missing)}. "
                "Give one that has, or use an ordinary trainer as it is."
            )
        self.batched: Any = batched
        self.restores = bool(getattr(batched, "restores", False))
        if hasattr(batched, "tests"):
            self.test = self._test  # without test losses there is no such method

    def start(self, config: Config, seed: int) -> Any:
        """An arm, taken out of a batch of one."""
        return self.batched.take(self.batched.start([config], [seed]), 0)

    def train(self, state: Any, pulls: int) -> Any:
        """The arm, trained in a batch of one."""
        batch = self.batched.gather([state])
        try:
            self.batched.train(batch, [0], pulls)
        except SomeFailed as failed:
            raise failed.causes[0] from None
        return self.batched.take(batch, 0)

    def loss(self, state: Any) -> Any:
        """What is observed of it."""
        return _given(self.batched.losses(self.batched.gather([state]), [0])[0])

    def _test(self, state: Any) -> Any:
        return _given(self.batched.tests(self.batched.gather([state]), [0])[0])

    def fingerprint(self) -> dict[str, Any]:
        """That of the batched trainer, and its kind."""
        theirs = self.batched.fingerprint() if hasattr(self.batched, "fingerprint") else {}
        return {"batched": type(self.batched).__qualname__, **theirs}


def _given(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value
