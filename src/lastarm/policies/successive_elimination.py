"""Successive Elimination: Even-Dar, Mannor & Mansour (2006)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

from lastarm.events import Pull
from lastarm.policies.parts.confidence import Confidence
from lastarm.policies.parts.scaled import Scaled
from lastarm.policy import Algorithm


def successive_elimination(
    arms: Iterable[int], budget: int, delta: float, seen: Scaled
) -> Algorithm:
    """Their algorithm 3, looking only when every live arm has 1, 2, 4, … pulls."""
    S, t, left = list(arms), 0, budget
    n = len(S)
    while len(S) > 1:
        more = min(t or 1, left // len(S))  # to the next power of two, or as far as it goes
        if not more:
            break
        t, left = t + more, left - more * len(S)
        yield from seen.look(Pull(arm, upto=t) for arm in S)
        alpha = sqrt(log(4 * n * t * t / delta) / t)
        best = seen.mean(seen.best(S))
        S = [arm for arm in S if arm in seen.pulls and seen.mean(arm) - best < 2 * alpha]
    return seen.best(S)


@dataclass(eq=False)
class SuccessiveElimination(Confidence):
    """Pull all live arms equally often; drop those that are surely not the best.

    After t pulls each, an arm is dropped when its scaled loss is at least 2·α_t above the lowest,
    where α_t = √(ln(4nt²/δ) / t). The constant is their c, which has to exceed 2·π²/6 for all
    bounds to hold at once with chance 1 − δ; they ask for 4. Looking only at t = 1, 2, 4, …, and
    once more when the budget ends in between, makes at most n·log₂(2B) observations.

    >>> policy = SuccessiveElimination(arms=3, budget=100)
    >>> policy.ask(3)
    [Pull(arm=0, upto=1), Pull(arm=1, upto=1), Pull(arm=2, upto=1)]

    - `arms`, `budget`: how many arms there are, and the most pulls over all of them.
    - `delta`: the chance of error that is allowed.
    - `low`, `high`: the range of the draws whose mean an arm's loss is, if it is known.

    Source: Even-Dar, Mannor & Mansour, "Action Elimination and Stopping Conditions for the
    Multi-Armed Bandit and Reinforcement Learning Problems" (JMLR 2006), algorithm 3.
    """

    name: ClassVar[str] = "successive-elimination"
    ends_when_sure: ClassVar[bool] = True

    def algorithm(self) -> Algorithm:
        """Their algorithm."""
        return successive_elimination(range(self.arms), self.budget, self.delta, self.scaled())

    def most_observations(self) -> int:
        """n·⌊log₂(2B)⌋."""
        return self.arms * self.budget.bit_length()
