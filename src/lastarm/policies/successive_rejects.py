"""Successive Rejects: Audibert & Bubeck (2010)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

from lastarm.events import Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import Algorithm, ranking


def log_bar(n: int) -> Fraction:
    """Their loḡ(n) = 1/2 + Σ_{i=2…n} 1/i, exactly."""
    return Fraction(1, 2) + _sum_of_inverses(2, n + 1)


def _sum_of_inverses(start: int, stop: int) -> Fraction:
    """By halves, since adding many fractions one by one is slow."""
    if stop - start < 20:
        return sum((Fraction(1, i) for i in range(start, stop)), Fraction(0))
    middle = (start + stop) // 2
    return _sum_of_inverses(start, middle) + _sum_of_inverses(middle, stop)


def successive_rejects(arms: Iterable[int], budget: int) -> Algorithm:
    """Their figure 3: phase k brings the arms left to n_k pulls each, and drops the worst."""
    A, level = list(arms), 0  # A_1 = {1, …, K}; their K is our n
    n = len(A)
    scale = (budget - n) / log_bar(n)
    for k in range(1, n):
        n_k = ceil(scale / (n + 1 - k))
        if n_k > level:
            losses = yield [Pull(arm, upto=n_k) for arm in A]
            A, level = ranking(losses), n_k
        A = A[: n - k]  # A_{k+1}: without the worst
    return A[0]


@dataclass(eq=False)
class SuccessiveRejects(InRounds):
    """Drop the worst arm, n − 1 times, at levels that rise as fewer arms are left.

    Phase k of n − 1 brings each of the n + 1 − k arms left to
    n_k = ⌈(B − n) / (loḡ(n)·(n + 1 − k))⌉ pulls, where loḡ(n) = 1/2 + Σ_{i=2…n} 1/i. The total is
    at most B. Every phase looks at every arm left: n(n + 1)/2 − 1 observations, fewer where a
    level did not rise, because then no arm is pulled or looked at.

    >>> plan = SuccessiveRejects(arms=10, budget=1000).plan()
    >>> [rung.upto for rung in plan.rungs]
    [41, 46, 51, 59, 68, 82, 102, 136, 204]
    >>> plan.pulls, plan.observations
    (993, 54)

    Ties go to the lower arm number. An arm that fails or diverges is the one that its phase drops;
    if several do, the next phases drop no arm until the count is right again.

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.

    Source: Audibert & Bubeck, "Best Arm Identification in Multi-Armed Bandits" (COLT 2010),
    figure 3.
    """

    name: ClassVar[str] = "successive-rejects"

    def algorithm(self) -> Algorithm:
        """The figure."""
        return successive_rejects(range(self.arms), self.budget)

    def least_budget(self, arms: int) -> int:
        """n + 1, where n_1 becomes 1."""
        return arms + 1 if arms > 1 else 1
