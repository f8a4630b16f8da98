"""EXP3: Auer, Cesa-Bianchi, Freund & Schapire (2002)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import e, exp, log, sqrt
from random import Random
from typing import ClassVar

from lastarm.events import Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.parts.scaled import Scaled, known_range
from lastarm.policy import Algorithm, added_later


def exp3(arms: range, budget: int, seed: int, seen: Scaled) -> Algorithm:
    """Their figure 1; a reward is 1 less the scaled loss."""
    live, random = list(arms), Random(seed)
    K, w = len(live), SumTree([1.0] * len(live))
    gamma = min(1.0, sqrt(K * log(K) / ((e - 1) * budget)))  # corollary 3.2 with g = B
    for _ in range(budget):
        total = w.total
        if random.random() < gamma:  # p_i is a mixture: uniform, or by weight
            i = live[int(random.random() * len(live))]
        else:
            i = w.at(random.random() * total)
        p = (1 - gamma) * w[i] / total + gamma / len(live)
        yield from seen.look([Pull(i, upto=seen.pulls.get(i, 0) + 1)])
        if i in seen.pulls:
            w[i] *= exp(gamma * (1 - seen.mean(i)) / (p * K))
        else:  # it failed
            w[i] = 0.0
            del live[bisect_left(live, i)]
            if not live:
                break
        if total > 1e100:  # only the shares matter
            w = w.divided(total)
    return seen.best()


@dataclass(eq=False)
class EXP3(InRounds):
    """Draw arms at random, more and more often those whose losses were low.

    Arm i is drawn with chance p_i = (1 − γ)·w_i / Σw + γ/K, and then w_i is multiplied by
    exp(γ·x / (p_i·K)), where x is 1 less its scaled loss. γ = min(1, √(K·ln K / ((e − 1)·B))) is
    best for a known horizon B. Its aim is to lose little on the way, not to find the best arm. As
    in the paper that compares it, the lowest latest loss is recommended. Every pull is looked at:
    at most B observations.

    >>> EXP3(arms=3, budget=100, seed=1).ask(1)
    [Pull(arm=2, upto=1)]

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.
    - `seed`: all draws are derived from it.
    - `low`, `high`: the range of the losses, if it is known. Otherwise they are scaled by the
      least and the greatest told so far.

    Source: Auer, Cesa-Bianchi, Freund & Schapire, "The Nonstochastic Multiarmed Bandit Problem"
    (SIAM Journal on Computing, 2002), figure 1 and corollary 3.2.
    """

    name: ClassVar[str] = "exp3"
    adaptive: ClassVar[bool] = True
    has_rungs: ClassVar[bool] = False
    drops: ClassVar[bool] = False
    seed: int = 0
    low: float | None = added_later(None)
    high: float | None = added_later(None)

    def __post_init__(self) -> None:
        self.low, self.high = known_range(self.low, self.high)
        super().__post_init__()

    def algorithm(self) -> Algorithm:
        """Their algorithm."""
        return exp3(range(self.arms), self.budget, self.seed, Scaled(self.low, self.high))


class SumTree:
    """Weights to draw by, in a binary tree: each node has the sum of the two below it.

    >>> weights = SumTree([1.0, 2.0, 4.0])
    >>> weights.total, [weights.at(point) for point in (0.5, 1.0, 2.9, 3.0, 7.0)]
    (7.0, [0, 1, 1, 2, 2])
    >>> weights[1] = 0.0
    >>> weights.total, weights.at(1.0)
    (5.0, 2)
    """

    def __init__(self, weights: Sequence[float]) -> None:
        self._count = len(weights)
        self._first = 1 << (self._count - 1).bit_length()  # the leaves begin here
        self._sums = [0.0] * self._first + [*weights] + [0.0] * (self._first - self._count)
        for node in reversed(range(1, self._first)):
            self._sums[node] = self._sums[2 * node] + self._sums[2 * node + 1]

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return self._sums[1]

    def __getitem__(self, i: int) -> float:
        return self._sums[self._first + i]

    def __setitem__(self, i: int, weight: float) -> None:
        sums, node = self._sums, self._first + i
        sums[node] = weight
        while node > 1:  # added anew from below, so that no error of rounding is kept
            node //= 2
            sums[node] = sums[2 * node] + sums[2 * node + 1]

    def at(self, point: float) -> int:
        """The first i such that the weights up to and with it are more than `point`."""
        sums, node = self._sums, 1
        while node < self._first:
            node *= 2
            if point >= sums[node] and sums[node + 1]:  # rounding must not lead to a weight of 0
                point -= sums[node]
                node += 1
        return node - self._first

    def divided(self, by: float) -> SumTree:
        """The same shares of another total."""
        leaves = self._sums[self._first : self._first + self._count]
        return SumTree([weight / by for weight in leaves])
