"""EXP3: Auer, Cesa-Bianchi, Freund & Schapire (2002)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import e, exp, log, sqrt
from random import Random
from typing import ClassVar

from lastarm.arguments import whole_number
from lastarm.events import Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.parts.scaled import Scaled
from lastarm.policies.sum_tree import SumTree
from lastarm.policy import Algorithm


def exp3(arms: range, budget: int, seed: int) -> Algorithm:
    """Their figure 1; a reward is 1 less the scaled loss."""
    live, seen, random = list(arms), Scaled(), Random(seed)
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
    """Draw arms at random, ever more often those whose losses were low.

    Arm i is drawn with chance p_i = (1 − γ)·w_i / Σw + γ/K, and then w_i is multiplied by
    exp(γ·x / (p_i·K)), where x is 1 less its scaled loss. γ = min(1, √(K·ln K / ((e − 1)·B))) is
    best for a known horizon B. It is made to lose little on the way, not to find the best arm; as
    in the paper that compares it, the lowest latest loss is recommended. Every pull is looked at:
    at most B observations.

    >>> EXP3(arms=3, budget=100, seed=1).ask(1)
    [Pull(arm=2, upto=1)]

    All its draws are a function of `seed`.

    Source: Auer, Cesa-Bianchi, Freund & Schapire, "The Nonstochastic Multiarmed Bandit Problem"
    (SIAM Journal on Computing, 2002), figure 1 and corollary 3.2.
    """

    name: ClassVar[str] = "exp3"
    adaptive: ClassVar[bool] = True
    seed: int = 0

    def __post_init__(self) -> None:
        self.seed = whole_number("seed", self.seed, 0, "what all its draws are derived from")
        super().__post_init__()

    def algorithm(self) -> Algorithm:
        """Their algorithm."""
        return exp3(range(self.arms), self.budget, self.seed)
