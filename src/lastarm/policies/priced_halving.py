"""Halving where looking has a price."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import ClassVar

from lastarm.arguments import Number, plain_fraction, rational
from lastarm.policies.horizon_halving import Choice, HorizonHalving, lowest_losses
from lastarm.policies.parts.budgeted import Facts
from lastarm.policies.parts.expectation import CHOSEN


@dataclass(eq=False, repr=False)
class PricedHalving(HorizonHalving):
    """Halving up to a horizon where a look costs as much as `look_cost` pulls.

    Looks are paid for out of the budget: pulls + look_cost·looks is never more than that. A model
    of learning curves says how many arms to draw and which part of them goes on (see
    `expected_rank`). If looks are free, there are many, and few arms are dropped at a time, nearly
    as Successive Rejects does. The more a look costs, the fewer rungs there are and the more arms
    each of them drops, down to one look at each of a few arms.

    >>> for look_cost in (0, 1, 10, 100):
    ...     policy = PricedHalving(64, budget=1000, max_pulls=51, look_cost=look_cost)
    ...     rungs = policy.plan().rungs
    ...     print(*(f"{rung.arms} to {rung.upto}" for rung in rungs[:5]), sep=", ")
    64 to 5, 56 to 6, 49 to 7, 38 to 8, 33 to 10
    64 to 4, 42 to 7, 28 to 10, 18 to 15, 12 to 22
    45 to 6, 5 to 51
    7 to 42

    If `eta` is given, only the number of arms is chosen. No arm is brought past `max_pulls`. Ties
    go to the lower arm number. The pulls that a failed arm would have used raise the next levels.

    - `arms`, `budget`: how many arms there are, and the total of pulls and looks, in pulls.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a rung go on. "chosen" leaves it to the model.
    - `seed`: the draw of arms is derived from it.
    - `look_cost`: what a look costs, in pulls; a number of at least 0, or a fraction.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: ours; docs/decisions.md says why it is as it is.
    """

    name: ClassVar[str] = "priced-halving"
    version: ClassVar[int] = 1
    who_goes_on: ClassVar[str] = Facts.who_goes_on
    why_higher: ClassVar[str] = Facts.why_higher
    eta: Number = CHOSEN
    look_cost: Number = field(default=0, metadata={"help": "What a look costs, in pulls."})

    def __post_init__(self) -> None:
        cost = rational("look_cost", self.look_cost, 0, "what a look costs, in pulls")
        self.look_cost = plain_fraction(cost)
        super().__post_init__()

    def price_of_a_look(self) -> Fraction:
        """That which was given."""
        return Fraction(self.look_cost)

    def choice(self) -> Choice:
        """The arms with the lowest losses go on."""
        return lowest_losses

    def least_budget(self, arms: int) -> int:
        """One pull of one arm, and one look at it."""
        return 1 + ceil(self.price_of_a_look())
