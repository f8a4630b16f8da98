"""Budgets and bounds: the four theorems, the same where the horizon is known, and the examples.

Where a function takes `settling`, it is the list of γ̄⁻¹((ν_i − ν_1)/2) for i = 2, …, n, as
`Envelopes.gaps_settle` gives it.

With a known horizon M (`HorizonHalving`), limits are the losses at the horizon, ν_i = ℓ_{i,M}, so
that γ̄(M) = 0: two arms compared there are compared for certain.

Examples 1 and 2 of the paper are least squares by stochastic gradient descent. Each of n arms is a
subset of features, and σ a constant of its conditioning. The envelope is γ(t) = σ·log(nt/δ)/t with
a chance of at least 1 − δ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from lastarm.arguments import Number
from lastarm.policies import HorizonHalving
from lastarm.policies.parts.integers import ceil_log
from lastarm.policies.parts.rungs import cost, entering, shared
from lastarm.theory.envelopes import Array


def halving_budget(settling: Sequence[float]) -> float:
    """Theorem 1: with any budget above this, Successive Halving returns the best arm.

    z = 2⌈log₂ n⌉ · max_{i=2…n} i·(1 + γ̄⁻¹((ν_i − ν_1)/2)). It holds for a trainer that restarts,
    too, whose R_k is ⌊B / (|S_k|⌈log₂ n⌉)⌋: the proof uses no more of R_k than that.

    >>> halving_budget([100, 1])
    808
    """
    n = len(settling) + 1
    latest = max((i * (1 + time) for i, time in enumerate(settling, start=2)), default=0)
    return 2 * ceil_log(n, 2) * latest


def halving_budget_by_sum(settling: Sequence[float], *, as_printed: bool = False) -> float:
    """Theorem 1's second, looser form: 2⌈log₂ n⌉ · (n + Σ γ̄⁻¹((ν_i − ν_1)/2)).

    The sum has to run over i = 1, …, n, where the term of i = 1 is that of i = 2. As printed it
    begins at 2, and is then not an upper bound of the first form:

    >>> halving_budget_by_sum([100, 1]), halving_budget_by_sum([100, 1], as_printed=True)
    (816, 416)
    """
    n = len(settling) + 1
    first = 0 if as_printed else max(settling, default=0)
    return 2 * ceil_log(n, 2) * (n + first + sum(settling))


def tolerated_settling(arms: int, budget: int) -> dict[int, float]:
    """For each rank i ≥ 2, the time before which losses must settle for the best arm to win.

    Theorem 1 turned round: Successive Halving returns the best of n arms if, for every rank i,
    γ̄⁻¹((ν_i − ν_1)/2) < B / (2i⌈log₂ n⌉) − 1. That is, all losses must be within half the gap
    between rank i and the best sooner than this; the further behind a rank is, the wider its gap
    and the less time it is given.

    >>> tolerated_settling(arms=4, budget=64)
    {2: 7.0, 3: 4.333333333333333, 4: 3.0}

    The condition is sufficient, not necessary. γ̄ is not known beforehand: read the numbers as
    what this budget tolerates.
    """
    rounds = ceil_log(arms, 2)
    return {i: budget / (2 * i * rounds) - 1 for i in range(2, arms + 1)}


def uniform_budget(settling: Sequence[float]) -> float:
    """Theorem 2: with any budget above this, uniform allocation returns the best arm.

    z = n · max_{i=2…n} γ̄⁻¹((ν_i − ν_1)/2), which is the term of i = 2. Theorem 3: there are losses
    for which no smaller budget does; `adversary` makes them.
    """
    return (len(settling) + 1) * max(settling, default=0)


def adversary(limits: Sequence[float], beta: Callable[[int], float], steps: int) -> Array:
    """Theorem 3's losses: the best arm comes down to its limit, all others come up to theirs.

    ℓ_{1,t} = ν_1 + β(t) and ℓ_{i,t} = ν_i − β(t), so that γ_i = γ̄ = β, for a β that decreases
    to 0. While β(t) ≥ (ν_2 − ν_1)/2, some other arm looks at least as good as the best. The best
    arm, of the least limit, is put last, so that it also loses ties; the losses end at the limits.

    >>> adversary([0.0, 1.0], beta=lambda t: 1 / t, steps=4).tolist()
    [[0.0, 0.5, 0.6666666666666667, 1.0], [1.0, 0.5, 0.3333333333333333, 0.0]]
    """
    best, *others = sorted(limits)
    nu = np.array([*others, best])[:, np.newaxis]
    sign = np.array([-1.0] * len(others) + [1.0])[:, np.newaxis]
    shrinking = np.array([beta(t) for t in range(1, steps)] + [0.0])
    losses: Array = nu + sign * shrinking
    return losses


def halving_regret(gamma: ArrayLike, arms: int, budget: int) -> float:
    """Theorem 4: ν of the arm that Successive Halving returns is at most this above ν_1.

    ⌈log₂ n⌉ · 2γ̄(⌊B / (n⌈log₂ n⌉)⌋). Below one pull for each arm there is no bound: inf.
    """
    rounds = ceil_log(arms, 2)
    return rounds * 2 * bound_at(gamma, budget // (arms * rounds)) if rounds else 0.0


def uniform_regret(gamma: ArrayLike, arms: int, budget: int) -> float:
    """Theorem 4: ν of the arm that uniform allocation returns is at most this above ν_1.

    2γ̄(⌊B/n⌋).
    """
    return 2 * bound_at(gamma, budget // arms)


def bound_at(gamma: ArrayLike, t: int) -> float:
    """γ(t), counted from 1; past its end it stays as it is, and before it begins there is none."""
    bounds = np.asarray(gamma, dtype=float)
    return float(bounds[min(t, len(bounds)) - 1]) if t else inf


def hoeffding_envelope(arms: int, pulls: int, delta: float) -> float:
    """§2: the mean of `pulls` draws in [0, 1] is this close to its expectation, for all arms.

    √(ln(4nT²/δ) / 2T), for all n arms and all T at once, with a chance of at least 1 − δ: by
    Hoeffding's inequality each pair (i, T) is wrong with a chance of at most δ/(2nT²), and these
    add up to δ·π²/12. The paper prints it without δ, as if δ were 1.

    >>> round(hoeffding_envelope(arms=10, pulls=1000, delta=0.05), 4)
    0.1012
    """
    return sqrt(log(4 * arms * pulls**2 / delta) / (2 * pulls))


def sgd_envelope(t: float, arms: int, sigma: float, delta: float) -> float:
    """Example 1's γ(t) = σ·log(nt/δ) / t."""
    return sigma * log(arms * t / delta) / t


def inverse_of_example_1(alpha: float, arms: int, sigma: float, delta: float) -> float:
    """A time by which Example 1's envelope is below α: (2σ/α)·log(nσ/(αδ)).

    With α = (ν_a − ν_1)/2 this is the paper's 4σ·log(2nσ/(δ(ν_a − ν_1)))/(ν_a − ν_1). It holds
    because 2·log x < x for every x, here x = nσ/(αδ), as long as that is above 1.
    """
    return 2 * sigma / alpha * log(arms * sigma / (alpha * delta))


def halving_budget_of_example_2(
    arms: int, sigma: float, delta: float, *, as_printed: bool = False
) -> float:
    """Example 2, ν_a = a/n: a sufficient budget of Successive Halving, without Theorem 1's "1 +".

    Example 1's maximum of a·4σ·log(2nσ/(δ(ν_a − ν_1)))/(ν_a − ν_1) is at a = 2, where it gives
    16n⌈log₂ n⌉·σ·log(2n²σ/δ). The paper prints 8n⌈log₂ n⌉·σ·log(n²σ/δ).
    """
    factor, inside = (8, arms**2) if as_printed else (16, 2 * arms**2)
    return factor * arms * ceil_log(arms, 2) * sigma * log(inside * sigma / delta)


def uniform_budget_of_example_2(
    arms: int, sigma: float, delta: float, *, as_printed: bool = False
) -> float:
    """Example 2, ν_a = a/n: a budget that is enough for uniform allocation.

    n·4σ·log(2nσ/(δ(ν_2 − ν_1)))/(ν_2 − ν_1) is 4n²·σ·log(2n²σ/δ). The paper prints
    2n²·σ·log(n²σ/δ): both constants are off by the same factor, so that the ratio of the two
    budgets, 4⌈log₂ n⌉ against n, stands. The paper calls it what uniform allocation must have at
    least. But `inverse_of_example_1` is an upper bound of γ⁻¹, so less may do: with σ = 1 and
    δ = 0.05, what Theorem 3's losses need is `uniform_budget` of their settling times, and this is
    1.5 to 1.7 times that from n = 4 to 1024.
    """
    factor, inside = (2, arms**2) if as_printed else (4, 2 * arms**2)
    return factor * arms**2 * sigma * log(inside * sigma / delta)


def horizon_budget(
    settling: Sequence[float], max_pulls: int, eta: Number = 2, *, restarts: bool = False
) -> int:
    """With this budget or more, `HorizonHalving` returns the best of its arms, if it draws all.

    Of n_k arms n_{k+1} go on, of which h_k = ⌈n_{k+1}/2⌉ by their losses alone, in the first rung
    h_k = n_{k+1}. The best is sure to be among them if the rung brings them to
    τ_k = γ̄⁻¹((ν_{h_k+1} − ν_1)/2) pulls, or to M. Let s be the least share for which all rungs
    do, ⌈s / n_k⌉ ≥ min(M, τ_k). It takes z = Σ_k (n_k − n_{k+1})·min(M, ⌈s / n_k⌉) pulls, where
    no arm goes on from the last rung. This is at most n·M. If the trainer `restarts`, rungs are
    trained from zero, and it takes z = Σ_k n_k·min(M, ⌈s / n_k⌉) up to the first rung at M, or
    n·M where that is less.

    >>> horizon_budget([100, 1], max_pulls=200), horizon_budget([100, 1], max_pulls=50)
    (300, 150)
    >>> settling = [40, 20, 10, 5, 5, 2, 2]
    >>> horizon_budget(settling, max_pulls=200), horizon_budget(settling, 200, restarts=True)
    (318, 478)

    `settling` is γ̄⁻¹((ν_i − ν_1)/2) for i = 2, …, n, as `Envelopes.gaps_settle` gives it.
    """
    sizes = entering(len(settling) + 1, Fraction(eta))
    share = 1
    if settling:
        by_loss = [kept - kept // 2 for kept in (*sizes[1:], 1)]
        by_loss[0] = (*sizes[1:], 1)[0]  # there are no slopes yet
        for size, kept in zip(sizes, by_loss, strict=True):
            least = int(min(max_pulls, settling[kept - 1]))
            share = max(share, (least - 1) * size + 1)
    price = cost(sizes, shared(sizes, share, max_pulls), max_pulls, restarts=restarts)
    return min(int(price), sizes[0] * max_pulls)


def horizon_regret(
    gamma: ArrayLike,
    arms: int,
    budget: int,
    max_pulls: int,
    eta: Number = 2,
    *,
    restarts: bool = False,
) -> float:
    """ν of the arm that `HorizonHalving` returns is at most this above the least that it draws.

    Σ_k 2γ̄(R_k): an arm that goes on from a rung in place of the best is at most 2γ̄(R_k) behind.
    The bound only needs that the lowest loss of every rung goes on, so it also holds for
    `EnvelopeHalving`. Where all arms are drawn and eta is 2, it is at most that of Theorem 4. If
    the trainer `restarts`, the levels are those of such a plan.
    """
    plan = HorizonHalving(arms, budget, max_pulls, eta, restarts=restarts).plan()
    return sum(2 * bound_at(gamma, rung.upto) for rung in plan.rungs)
