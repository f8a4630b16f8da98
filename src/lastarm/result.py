"""Result: what a search gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lastarm.events import Failure
from lastarm.ledger import Spent
from lastarm.trainers import Config


@dataclass(frozen=True)
class Result:
    """The recommended arm and what finding it took.

    `complete` says that the policy came to its end; if it was stopped before, the recommendation
    is the arm with the lowest latest loss, and running the same line again goes on. Without any
    finite loss so far, `arm`, `config` and `loss` are None. `state` is the arm's trained state, or
    None where it is not at hand, as when the search had been finished before.
    """

    arm: int | None
    config: Config | None
    loss: float | None
    test_loss: float | None
    complete: bool
    spent: Spent
    digest: str
    curves: dict[int, list[tuple[int, float]]] = field(repr=False)
    failures: dict[int, Failure] = field(repr=False)
    state: Any = field(repr=False, default=None)
    stopped_by: int | None = None  # the number of the signal that stopped it

    def as_dict(self) -> dict[str, Any]:
        """The answer as one flat object, as the command prints it."""
        spent = {name: getattr(self.spent, name) for name in Spent.__slots__}
        answer = ("arm", "config", "loss", "test_loss", "complete", "digest")
        return {name: getattr(self, name) for name in answer} | spent
