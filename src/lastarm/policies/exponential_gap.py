"""Exponential-Gap Elimination: Karnin, Koren & Somekh (2013)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from math import ceil, log
from typing import ClassVar

from lastarm.events import Pull
from lastarm.policies.parts.confidence import Confidence
from lastarm.policies.parts.scaled import Scaled
from lastarm.policy import Algorithm


def exponential_gap(arms: Iterable[int], budget: int, delta: float, seen: Scaled) -> Algorithm:
    """Their algorithm 3, with pulls counted in all, not afresh in every phase."""
    S, r = list(arms), 1
    T = dict.fromkeys(S, 0)
    while len(S) > 1:
        epsilon, delta_r = 2**-r / 4, delta / (50 * r**3)
        t = ceil(2 / epsilon**2 * log(2 / delta_r))
        halves = list(_halves(len(S), epsilon / 2, delta_r))
        left = budget - sum(T.values())
        if _cost(S, T, t, halves) > left:  # spend it evenly and be done
            yield from seen.look(Pull(arm, T[arm] + left // len(S)) for arm in S)
            break
        S = yield from _brought(S, t, seen, T)
        reference = yield from median_elimination(S, halves, seen, T)
        bound = seen.mean(reference) + epsilon
        S = [arm for arm in S if arm in seen.pulls and seen.mean(arm) <= bound]
        r += 1
    return seen.best(S)


def median_elimination(
    arms: Iterable[int], halves: list[tuple[int, int]], seen: Scaled, T: dict[int, int]
) -> Generator[list[Pull], dict[int, float], int]:
    """Even-Dar et al. (2006): a nearly best arm, by dropping the worse half again and again."""
    S = list(arms)
    for _, level in halves:
        S = yield from _brought(S, level, seen, T)
        S = sorted(S, key=lambda arm: (seen.mean(arm), arm))[: (len(S) + 1) // 2]
    return seen.best(S)


def _halves(size: int, epsilon: float, delta: float) -> Iterator[tuple[int, int]]:
    """How many arms Median Elimination brings to which level, until one is left."""
    epsilon, delta = epsilon / 4, delta / 2
    while size > 1:
        yield size, ceil(4 / epsilon**2 * log(3 / delta))
        size, epsilon, delta = (size + 1) // 2, 3 / 4 * epsilon, delta / 2


def _cost(S: list[int], T: dict[int, int], t: int, halves: list[tuple[int, int]]) -> int:
    """The most pulls that a phase can take: all arms to the first level, then ever fewer."""
    level = max(t, halves[0][1])
    cost = sum(max(0, level - T[arm]) for arm in S)
    for size, next_level in halves[1:]:
        cost += size * max(0, next_level - level)
        level = max(level, next_level)
    return cost


def _brought(
    arms: list[int], level: int, seen: Scaled, T: dict[int, int]
) -> Generator[list[Pull], dict[int, float], list[int]]:
    """Bring arms to a level, and note it; those that are still healthy."""
    yield from seen.look(Pull(arm, upto=level) for arm in arms)
    T.update((arm, max(level, T[arm])) for arm in arms)
    return [arm for arm in arms if arm in seen.pulls]


@dataclass(eq=False)
class ExponentialGap(Confidence):
    """Find a nearly best arm, drop all that are surely worse, then repeat more precisely.

    Phase r has ε = 2⁻ʳ/4 and δ_r = δ/(50r³). It brings every live arm to (2/ε²)·ln(2/δ_r) pulls,
    finds an arm within ε/2 of the best by Median Elimination, and drops what is more than ε above
    it. The constants are theirs and large: at δ = 0.05 the first phase alone takes over 140,000
    pulls of every arm. A phase that does not fit into the budget is not begun; instead, what is
    left is spent evenly on the arms that were not dropped. With a modest budget, this is uniform
    allocation.

    >>> ExponentialGap(arms=3, budget=100).ask(3)
    [Pull(arm=0, upto=33), Pull(arm=1, upto=33), Pull(arm=2, upto=33)]

    - `arms`, `budget`: how many arms there are, and the most pulls over all of them.
    - `delta`: the chance of error that is allowed.
    - `low`, `high`: the range of the draws whose mean an arm's loss is, if it is known.

    Source: Karnin, Koren & Somekh, "Almost Optimal Exploration in Multi-Armed Bandits" (ICML
    2013), algorithm 3; Median Elimination is of Even-Dar, Mannor & Mansour (JMLR 2006).
    """

    name: ClassVar[str] = "exponential-gap"

    def algorithm(self) -> Algorithm:
        """Their algorithm."""
        return exponential_gap(range(self.arms), self.budget, self.delta, self.scaled())
