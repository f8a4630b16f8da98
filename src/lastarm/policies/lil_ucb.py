"""lil'UCB: Jamieson, Malloy, Nowak & Bubeck (2014)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf, log, sqrt
from typing import ClassVar, NamedTuple

from lastarm.arguments import one_of
from lastarm.events import Pull
from lastarm.policies.parts.confidence import Confidence
from lastarm.policies.parts.scaled import Scaled
from lastarm.policy import Algorithm

VARIANCE = 1 / 4  # their σ²: losses in [0, 1] are sub-Gaussian with this


class Constants(NamedTuple):
    """Their ε, β and λ, and the δ of one bound that makes the whole wrong with chance ν."""

    epsilon: float
    beta: float
    lambda_: float
    delta: float

    @classmethod
    def heuristic(cls, n: int, nu: float) -> Constants:
        """Those of "lil'UCB Heuristic" in their experiments: not proven, and much faster."""
        return cls(epsilon=0.0, beta=0.5, lambda_=1 + 10 / n, delta=nu / 5)

    @classmethod
    def proven(cls, n: int, nu: float) -> Constants:
        """Those of their theorem 2, which gives an error with chance 4√(c·δ) + 4c·δ, here ν."""
        epsilon, beta = 0.01, 1.0
        c = (2 + epsilon) / epsilon * (1 / log(1 + epsilon)) ** (1 + epsilon)
        delta = (nu / (sqrt(1 + nu) + 1)) ** 2 / (4 * c)  # that is (√(1 + ν) − 1)² / 4c
        square = ((2 + beta) / beta) ** 2
        lambda_ = square * (1 + log(2 * log(square * n / delta)) / log(n / delta))
        return cls(epsilon, beta, lambda_, delta)


CONSTANTS = {"heuristic": Constants.heuristic, "proven": Constants.proven}


def lil_ucb(arms: Iterable[int], budget: int, constants: Constants, seen: Scaled) -> Algorithm:
    """Their figure 1, with losses in place of rewards."""
    epsilon, beta, lambda_, delta = constants
    arms = list(arms)

    def radius(T: int) -> float:
        doubt = log((1 + epsilon) * T) / delta
        if doubt <= 1:  # the bound says nothing yet
            return inf
        return (
            (1 + beta) * (1 + sqrt(epsilon)) * sqrt(2 * VARIANCE * (1 + epsilon) * log(doubt) / T)
        )

    yield from seen.look(Pull(arm, upto=1) for arm in arms)
    T, total, scale = seen.pulls, len(arms), None
    bounds: list[tuple[float, int]] = []
    while len(T) > 1 and total < budget:
        if scale != seen.scale:  # all means have moved
            scale = seen.scale
            bounds = [(seen.mean(arm) - radius(T[arm]), arm) for arm in T]
            heapify(bounds)
        _, arm = heappop(bounds)
        yield from seen.look([Pull(arm, upto=T[arm] + 1)])
        total += 1
        if arm in T:
            if T[arm] >= 1 + lambda_ * (total - T[arm]):
                return arm
            heappush(bounds, (seen.mean(arm) - radius(T[arm]), arm))
    return seen.best()


@dataclass(eq=False)
class LilUCB(Confidence):
    """Pull the arm whose loss could be the lowest; end when one arm has nearly all the pulls.

    An arm with T pulls has the radius (1+β)(1+√ε)·√(2σ²(1+ε)·ln(ln((1+ε)T)/δ) / T), after the law
    of the iterated logarithm, and σ² = 1/4. It ends when some arm has T ≥ 1 + λ·(pulls of all
    others). `constants` is "heuristic", as in their experiments, or "proven", as in their theorem.
    Every pull is looked at: at most B observations.

    >>> LilUCB(arms=3, budget=100).ask(3)
    [Pull(arm=0, upto=1), Pull(arm=1, upto=1), Pull(arm=2, upto=1)]

    - `arms`, `budget`: how many arms there are, and the most pulls over all of them.
    - `delta`: the chance of error that is allowed.
    - `low`, `high`: the range of the draws whose mean an arm's loss is, if it is known.
    - `constants`: "heuristic" or "proven".

    Source: Jamieson, Malloy, Nowak & Bubeck, "lil' UCB: An Optimal Exploration Algorithm for
    Multi-Armed Bandits" (COLT 2014), figure 1, theorem 2 and section 5.
    """

    name: ClassVar[str] = "lil-ucb"
    has_rungs: ClassVar[bool] = False
    drops: ClassVar[bool] = False
    ends_when_sure: ClassVar[bool] = True
    constants: str = field(
        default="heuristic",
        metadata={"help": "heuristic, as in their experiments, or proven, as in their theorem."},
    )

    def __post_init__(self) -> None:
        meaning = "the choice of constants in its bounds"
        self.constants = one_of("constants", self.constants, CONSTANTS, meaning)
        super().__post_init__()

    def algorithm(self) -> Algorithm:
        """Their algorithm."""
        constants = CONSTANTS[self.constants](self.arms, self.delta)
        return lil_ucb(range(self.arms), self.budget, constants, self.scaled())
