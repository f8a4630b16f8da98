"""What the fixed-confidence policies share: the chance of error that they are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from lastarm.errors import InvalidArgument
from lastarm.policies.budgeted import InRounds


@dataclass(eq=False)
class Confidence(InRounds):
    """A policy that stops when it is sure: wrong with a chance of at most delta, on random arms.

    The budget is a bound on top: where it is reached first, the lowest latest loss is recommended.
    """

    adaptive: ClassVar[bool] = True
    delta: float = 0.05

    def __post_init__(self) -> None:
        if not isinstance(self.delta, Real) or not 0 < self.delta < 1:
            raise InvalidArgument(
                f"delta={self.delta!r} will not do: delta is the chance of error that is allowed. "
                "Give a number between 0 and 1."
            )
        super().__post_init__()
