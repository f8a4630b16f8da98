"""What the fixed-confidence policies share: the chance of error that they are allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar

from lastarm.arguments import as_float
from lastarm.errors import InvalidArgument
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.parts.scaled import Scaled

LEAST_DELTA = 1e-12  # below it, sums in floating point are no longer sure of anything


@dataclass(eq=False)
class Confidence(InRounds):
    """A policy that stops when it is sure: wrong with a chance of at most delta, on random arms.

    That holds where an arm's loss is the mean of independent draws that lie between `low` and
    `high`. Without these, losses are scaled by the least and greatest told so far; where that
    range is much narrower than that of the draws, it is sure too soon.

    The budget is a bound on top: where it is reached first, the lowest latest loss of the arms
    that are still in the race is recommended.
    """

    adaptive: ClassVar[bool] = True
    delta: float = field(default=0.05, metadata={"help": "The chance of error that is allowed."})
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not LEAST_DELTA <= as_float(self.delta) < 1:
            raise InvalidArgument(
                f"delta={self.delta!r} will not do: delta is the chance of error that is allowed. "
                f"Give a number from {LEAST_DELTA} to below 1."
            )
        self.delta = float(self.delta)
        bounds = [as_float(bound) for bound in (self.low, self.high) if bound is not None]
        if not all(map(isfinite, bounds)) or (len(bounds) == 2 and bounds[0] >= bounds[1]):
            raise InvalidArgument(
                f"low={self.low!r}, high={self.high!r} will not do: they are the range that draws "
                "lie in. Give two numbers, the lower one first, or leave them out."
            )
        self.low, self.high = (None if b is None else float(b) for b in (self.low, self.high))
        self._seen: Scaled | None = None
        super().__post_init__()

    def scaled(self) -> Scaled:
        """Losses on the scale from 0 to 1; run again, on that of all that was told before."""
        low, high = self._seen.scale if self._seen else (self.low, self.high)
        self._seen = Scaled(low, high)
        return self._seen
