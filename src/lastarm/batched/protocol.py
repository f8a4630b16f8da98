"""What a batched trainer is: how many arms are begun, trained further and looked at together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from lastarm.errors import LastarmError
from lastarm.trainers import Config

Batch = TypeVar("Batch")
One = TypeVar("One")


class BatchedTrainer(Protocol[Batch, One]):
    """A batch of arms, numbered from 0 by their places in it, and arms on their own.

    What an arm becomes depends on its config, its seed and its pulls, and not on which others are
    in the batch: training some of them leaves the rest as they were, and training a + b pulls is
    training a, then b. Each arm's losses are those that it would have alone, to 1e-9 of
    themselves, and equal arms have equal losses, so that ties stay ties. Optional:

    - `tests(batch, arms)`, as `losses`, on what no policy sees;
    - `fingerprint() → dict`, what a journal should remember of the data;
    - `restores = True`, if a `train` that raises leaves the arms that failed as they were.

    An error of one arm is told as its own: `train` raises `SomeFailed` when it has trained the
    others, and a loss may be the exception that looking raised. Any other error is taken to be
    of nobody in particular; then each arm is tried again, alone.
    """

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Batch:
        """A batch of arms with these settings, not pulled yet."""

    def train(self, batch: Batch, arms: Sequence[int], pulls: int) -> None:
        """Change the batch: these arms, which have had equally many pulls, get `pulls` more."""

    def losses(self, batch: Batch, arms: Sequence[int]) -> Sequence[Any] | NDArray[Any]:
        """What is observed of these arms, in their order; lower is better."""

    def take(self, batch: Batch, arm: int) -> One:
        """The arm on its own, as it is now: what the batch becomes later does not change it."""

    def gather(self, ones: Sequence[One]) -> Batch:
        """A batch of arms that were on their own; they are given away and not used again."""


class SomeFailed(LastarmError):
    """Some arms of a batch failed to train, each for its own cause; the others are trained."""

    def __init__(self, causes: Mapping[int, BaseException]) -> None:
        self.causes = dict(causes)
        listed = "; ".join(f"{arm}: {cause!r}" for arm, cause in self.causes.items())
        super().__init__(f"some arms of the batch failed, by their places in it: {listed}")
