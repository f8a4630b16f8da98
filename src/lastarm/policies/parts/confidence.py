"""What the fixed-confidence policies share: the chance of error that they are allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from lastarm.arguments import as_float
from lastarm.errors import InvalidArgument
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.parts.scaled import Scaled, known_range

LEAST_DELTA = 1e-12  # below it, sums in floating point are no longer sure of anything


@dataclass(eq=False)
class Confidence(InRounds):
    """A policy that stops when it is sure; its chance to be wrong is at most delta.

    This is so if an arm's loss is the mean of independent draws between `low` and `high`. Without
    these, losses are scaled by the least and the greatest told so far. If that range is much
    narrower than that of the draws, it is sure too soon.

    The budget is an additional bound: if it is reached first, the lowest latest loss of the arms
    that have not been dropped is recommended.
    """

    adaptive: ClassVar[bool] = True
    delta: float = field(default=0.05, metadata={"help": "The chance of error that is allowed."})
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not LEAST_DELTA <= as_float(self.delta) < 1:
            rule = "delta is the chance of error that is allowed"
            way_out = f"Use a number of at least {LEAST_DELTA} and below 1"
            raise InvalidArgument.of("delta", self.delta, rule, way_out)
        self.delta = float(self.delta)
        self.low, self.high = known_range(self.low, self.high)
        self._seen: Scaled | None = None
        super().__post_init__()

    def scaled(self) -> Scaled:
        """Losses on the scale from 0 to 1. If it is run again, all earlier losses count for it."""
        low, high = self._seen.scale if self._seen else (self.low, self.high)
        self._seen = Scaled(low, high)
        return self._seen
