"""The contract of batched trainers: many arms are started, trained and judged in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from lastarm.errors import LastarmError
from lastarm.trainers import Config

Batch = TypeVar("Batch")
One = TypeVar("One")


class BatchedTrainer(Protocol[Batch, One]):
    """Trains the arms of a batch in one call; in a batch they are numbered from 0.

    What an arm becomes depends on its config, its seed and its pulls, never on the other arms of
    the batch: training some arms leaves the rest as they were, and training a + b pulls is
    training a, then b. An arm has the losses that it would have alone, to 1e-9 of themselves.
    Equal arms have equal losses, so that ties stay ties. Optional:

    - `tests(batch, arms)`, like `losses`, on data that no policy sees;
    - `fingerprint() → dict`, what a journal should remember of the data;
    - `restores = True`, if a `train` that raises leaves the arms that failed as they were;
    - `restarts = True`, if `train` trains every level from zero, as in `lastarm.trainers.Trainer`.

    If single arms fail, `train` trains the others and then raises `SomeFailed`; a loss may be the
    exception that computing it raised. If anything else is raised, it is not known which arm is
    at fault, and each arm is tried again, alone.
    """

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Batch:
        """A batch of new arms with these configs."""

    def train(self, batch: Batch, arms: Sequence[int], pulls: int) -> None:
        """Train these arms by `pulls` pulls. They have had equally many before."""

    def losses(self, batch: Batch, arms: Sequence[int]) -> Sequence[Any] | NDArray[Any]:
        """The losses of these arms, in this order; lower is better."""

    def take(self, batch: Batch, arm: int) -> One:
        """A copy of one arm, on its own. Later changes of the batch do not change it."""

    def gather(self, ones: Sequence[One]) -> Batch:
        """A batch of arms that were on their own. The caller does not use these again."""


class SomeFailed(LastarmError):
    """Some arms of a batch could not be trained; the others are trained.

    `causes` is the error of each arm that failed, by its number in the batch.
    """

    def __init__(self, causes: Mapping[int, BaseException]) -> None:
        self.causes = dict(causes)
        listed = "; ".join(f"{arm}: {cause!r}" for arm, cause in self.causes.items())
        super().__init__(f"some arms of the batch failed, by their numbers in it: {listed}")
