"""Adapters: a batched trainer as an ordinary one, and an ordinary trainer as a batched one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lastarm.batched.protocol import BatchedTrainer, SomeFailed
from lastarm.errors import InvalidArgument
from lastarm.trainers import Config, Trainer, as_loss


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


class NotBegun(NamedTuple):
    """An arm that will be started when it is first trained, so that its errors are its own."""

    config: Config
    seed: int


class Together:
    """The arms of an ordinary trainer in a batch, with nothing gained but the contract.

    >>> from lastarm.trainers import RecordedCurves
    >>> curves = Together(RecordedCurves([[0.9, 0.5, 0.4], [0.8, 0.7, 0.6]]))
    >>> batch = curves.start([{"row": 0}, {"row": 1}], seeds=[0, 1])
    >>> curves.train(batch, arms=[0, 1], pulls=2)
    >>> curves.train(batch, arms=[0], pulls=1)
    >>> curves.losses(batch, arms=[0, 1])
    [0.4, 0.7]
    """

    def __init__(self, trainer: Trainer[Any]) -> None:
        self._trainer: Any = trainer
        self.restores = bool(getattr(trainer, "restores", False))
        if hasattr(trainer, "test"):
            self.tests = self._tests  # without test losses there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> list[Any]:
        """Settings and seeds, to begin with when the time comes."""
        return list(map(NotBegun, configs, seeds))

    def train(self, batch: list[Any], arms: Sequence[int], pulls: int) -> None:
        """Arm by arm; one that raises does not keep the others from being trained."""
        causes: dict[int, BaseException] = {}
        for arm in arms:
            try:
                batch[arm] = self._trainer.train(self.take(batch, arm), pulls)
            except (Exception, SystemExit) as error:
                causes[arm] = error
        if causes:
            raise SomeFailed(causes)

    def losses(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        """What the trainer sees, or the error that it raises."""
        return [_tried(self._trainer.loss, batch[arm]) for arm in arms]

    def _tests(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        return [_tried(self._trainer.test, batch[arm]) for arm in arms]

    def take(self, batch: list[Any], arm: int) -> Any:
        """The trainer's own state, which it may change: it is not copied."""
        if isinstance(batch[arm], NotBegun):
            batch[arm] = self._trainer.start(*batch[arm])
        return batch[arm]

    def gather(self, ones: Sequence[Any]) -> list[Any]:
        """A list of them."""
        return list(ones)

    def fingerprint(self) -> dict[str, Any]:
        """That of the trainer, and its kind."""
        theirs = self._trainer.fingerprint() if hasattr(self._trainer, "fingerprint") else {}
        return {"together": type(self._trainer).__qualname__, **theirs}


def as_batched(trainer: Any) -> BatchedTrainer[Any, Any]:
    """A batched trainer from whatever trainer there is: itself, the one inside, or in turn.

    >>> from lastarm.trainers import RecordedCurves
    >>> together = Together(RecordedCurves([[0.5]]))
    >>> as_batched(together) is as_batched(Single(together)) is together
    True
    """
    inner = trainer.batched if isinstance(trainer, Single) else trainer
    batched: BatchedTrainer[Any, Any] = inner if is_batched(inner) else Together(inner)
    return batched


def is_batched(trainer: Any) -> bool:
    """Whether it trains many arms together: by its methods, as no other trainer has them."""
    return all(hasattr(trainer, name) for name in ("losses", "take", "gather"))


def _tried(look: Callable[[Any], Any], state: Any) -> Any:
    try:
        value = look(state)
        return as_loss(value) if isinstance(value, BaseException) else value
    except (Exception, SystemExit) as error:
        return error


def _given(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value
