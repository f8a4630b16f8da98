"""Adapters between batched trainers and ordinary ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lastarm.batched.protocol import BatchedTrainer, SomeFailed
from lastarm.errors import InvalidArgument
from lastarm.system.offspring import ThisProcess
from lastarm.trainers import Config, Maximized, Trainer, as_loss
from lastarm.trainers.maximized import negated
from lastarm.trainers.metric import LOSS


class Single:
    """A batched trainer as an ordinary one, which trains one arm at a time.

    `search` takes it wherever it takes a trainer. The runner `Batched` finds the batched trainer
    inside and trains many arms in one call; every other runner trains each arm alone, with the
    same losses.

    :param batched: the batched trainer.

    >>> from lastarm.batched import OneByOne
    >>> from lastarm.trainers import RecordedCurves
    >>> curves = Single(OneByOne(RecordedCurves([[0.9, 0.5, 0.4]])))
    >>> arm = curves.train(curves.start({"row": 0}, seed=0), pulls=2)
    >>> curves.loss(arm)
    0.5
    """

    def __init__(self, batched: BatchedTrainer[Any, Any]) -> None:
        needed = ("start", "train", "losses", "take", "gather")
        if missing := [name for name in needed if not callable(getattr(batched, name, None))]:
            rule = f"a batched trainer has {', '.join(missing)}, and this has not"
            way_out = "Pass a batched trainer, or use an ordinary trainer as it is"
            raise InvalidArgument.of("batched", batched, rule, way_out)
        self.batched: Any = batched
        self.version = getattr(batched, "version", 1)
        self.shown_as = getattr(batched, "shown_as", LOSS)
        self.restores = bool(getattr(batched, "restores", False))
        self.restarts = bool(getattr(batched, "restarts", False))
        if hasattr(batched, "tests"):
            self.test = self._test  # without test losses there is no such method
        if hasattr(batched, "on_all_rows"):
            self.on_all_rows = batched.on_all_rows

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
        """The arm's loss, in a batch of one."""
        return _raised_or_given(self.batched.losses(self.batched.gather([state]), [0])[0])

    def _test(self, state: Any) -> Any:
        return _raised_or_given(self.batched.tests(self.batched.gather([state]), [0])[0])

    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the batched trainer, and the name of its class.

        A class that was renamed has its first name as `recorded_as`, so that journals with that
        name still resume.
        """
        kind = type(self.batched)
        name = vars(kind).get("recorded_as", kind.__qualname__)  # a subclass has its own name
        theirs = self.batched.fingerprint() if hasattr(self.batched, "fingerprint") else {}
        return {"batched": name, **theirs}


class OneByOne:
    """An ordinary trainer as a batched one: it keeps the contract, but trains one arm at a time.

    This gains no speed. It is for code that takes batched trainers only, such as the runner
    `Batched`.

    :param trainer: the ordinary trainer.

    >>> from lastarm.trainers import RecordedCurves
    >>> curves = OneByOne(RecordedCurves([[0.9, 0.5, 0.4], [0.8, 0.7, 0.6]]))
    >>> batch = curves.start([{"row": 0}, {"row": 1}], seeds=[0, 1])
    >>> curves.train(batch, arms=[0, 1], pulls=2)
    >>> curves.train(batch, arms=[0], pulls=1)
    >>> curves.losses(batch, arms=[0, 1])
    [0.4, 0.7]
    """

    recorded_as = "Together"  # its name in journals of version 0.1

    def __init__(self, trainer: Trainer[Any]) -> None:
        self._trainer: Any = trainer
        self.version = getattr(trainer, "version", 1)
        self.shown_as = getattr(trainer, "shown_as", LOSS)
        self.restores = bool(getattr(trainer, "restores", False))
        self.restarts = bool(getattr(trainer, "restarts", False))
        if hasattr(trainer, "test"):
            self.tests = self._tests  # without test losses there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> list[Any]:
        """Configs and seeds only: each arm is started when it is first trained."""
        return list(map(_NotStarted, configs, seeds))

    def train(self, batch: list[Any], arms: Sequence[int], pulls: int) -> None:
        """Train one arm after another. If an arm raises, the others are trained all the same."""
        causes: dict[int, BaseException] = {}
        for arm in arms:
            try:
                with ThisProcess():
                    batch[arm] = self._trainer.train(self.take(batch, arm), pulls)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                causes[arm] = error
        if causes:
            raise SomeFailed(causes)

    def losses(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        """The trainer's losses; for an arm that raises, the error."""
        return [value_or_error(self._trainer.loss, batch[arm]) for arm in arms]

    def _tests(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        return [value_or_error(self._trainer.test, batch[arm]) for arm in arms]

    def take(self, batch: list[Any], arm: int) -> Any:
        """The trainer's own state. It is not copied, and the trainer may change it."""
        if isinstance(batch[arm], _NotStarted):
            batch[arm] = self._trainer.start(*batch[arm])
        return batch[arm]

    def gather(self, ones: Sequence[Any]) -> list[Any]:
        """A list of the states."""
        return list(ones)

    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the trainer, and the name of its class."""
        theirs = self._trainer.fingerprint() if hasattr(self._trainer, "fingerprint") else {}
        return {"together": type(self._trainer).__qualname__, **theirs}


class _NotStarted(NamedTuple):
    """An arm that is started when it is first trained, so that its errors are its own."""

    config: Config
    seed: int


class _MaximizedBatch:
    """A batched trainer whose figures are better when they are higher, turned into losses."""

    def __init__(self, batched: Any) -> None:
        self._batched = batched
        self.start, self.train = batched.start, batched.train
        self.take, self.gather = batched.take, batched.gather
        self.restores = bool(getattr(batched, "restores", False))

    def losses(self, batch: Any, arms: Sequence[int]) -> list[Any]:
        """The figures with the other sign; for an arm that has none, the error."""
        return [
            value if isinstance(value, BaseException) else value_or_error(negated, value)
            for value in self._batched.losses(batch, arms)
        ]


def as_batched(trainer: Any) -> BatchedTrainer[Any, Any]:
    """A batched trainer from any trainer: itself, the one inside, or `OneByOne`.

    The one inside is that of a `Single`, or of another trainer that has one as `batched`, also if
    its figures are maximized.

    >>> from lastarm.trainers import RecordedCurves
    >>> curves = OneByOne(RecordedCurves([[0.5]]))
    >>> as_batched(curves) is as_batched(Single(curves)) is curves
    True
    """
    inside = getattr(trainer, "batched", None)
    if isinstance(trainer, Maximized) and inside is not None:
        return _MaximizedBatch(inside)
    inner = trainer if inside is None else inside
    batched: BatchedTrainer[Any, Any] = inner if is_batched(inner) else OneByOne(inner)
    return batched


def is_batched(trainer: Any) -> bool:
    """Whether it has the methods that only a batched trainer has."""
    return all(hasattr(trainer, name) for name in ("losses", "take", "gather"))


def _raised_or_given(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value


def value_or_error(look: Callable[[Any], Any], state: Any) -> Any:
    """What a look at an arm gives, or the error that it raises."""
    try:
        with ThisProcess():
            value = look(state)
        return as_loss(value) if isinstance(value, BaseException) else value
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
