"""Uniform allocation: the baseline that Jamieson & Talwalkar (2015) compare with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lastarm.events import Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import Algorithm, ranking


def uniform_allocation(arms: Iterable[int], budget: int) -> Algorithm:
    """Pull every arm equally often, then return the one with the lowest loss: §3.2."""
    arms = list(arms)
    losses = yield [Pull(arm, upto=budget // len(arms)) for arm in arms]
    return ranking(losses)[0]


@dataclass(eq=False)
class UniformAllocation(InRounds):
    """Pull every arm equally often, then recommend the lowest loss: the baseline to beat.

    Each of the n arms gets ⌊B / n⌋ pulls and is looked at once, so there are n observations.

    >>> print(UniformAllocation(arms=10, budget=1000).plan())
    rung    arms  pulls each  brought to  pulls in all
       1      10         100         100          1000

    Ties go to the lower arm number; an arm whose loss is not finite is never recommended.

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.

    Source: Jamieson & Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
    Optimization" (2015), §3.2.
    """

    name: ClassVar[str] = "uniform"

    def algorithm(self) -> Algorithm:
        """The one round there is."""
        return uniform_allocation(range(self.arms), self.budget)
