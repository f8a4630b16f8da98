"""What reports need to know of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lastarm.events import Failure
from lastarm.ledger import LevelCost, Spent


class Seen(Protocol):
    """What is known of a search. A `Result` has all of it, and says more about each."""

    @property
    def arm(self) -> int | None:
        """The recommended arm, if any has a finite loss."""

    @property
    def loss(self) -> float | None:
        """Its loss, where it is recommended."""

    @property
    def test_loss(self) -> float | None:
        """Its test loss, if there is one."""

    @property
    def complete(self) -> bool:
        """Whether the policy came to its end."""

    @property
    def digest(self) -> str:
        """The answer in one string."""

    @property
    def configs(self) -> Sequence[Mapping[str, Any]]:
        """The settings of each arm."""

    @property
    def curves(self) -> Mapping[int, Sequence[tuple[int, float]]]:
        """What was seen of each arm: (level, loss)."""

    @property
    def metrics(self) -> Mapping[int, Mapping[int, Mapping[str, Any]]]:
        """What else was seen: arm → level → name → value."""

    @property
    def failures(self) -> Mapping[int, Failure]:
        """The arms that failed."""

    @property
    def spent(self) -> Spent:
        """What it took in all."""

    @property
    def rungs(self) -> Mapping[int, LevelCost]:
        """What it took to bring arms to each level."""

    @property
    def best_so_far(self) -> Sequence[tuple[int, float]]:
        """(pulls by then, lowest loss so far), each time that it fell."""

    @property
    def policy(self) -> Mapping[str, Any]:
        """The policy, as a journal describes it."""

    @property
    def space(self) -> Mapping[str, Any]:
        """What the configs were drawn from, as a journal describes it."""

    @property
    def maximized(self) -> bool:
        """Whether the losses are the negatives of figures that are better when higher."""
