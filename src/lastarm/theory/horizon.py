"""What a budget guarantees where the horizon is known: Theorems 1 and 4 for `HorizonHalving`.

Limits are the losses at the horizon M, ν_i = ℓ_{i,M}, so that γ̄(M) = 0: what is compared there is
compared for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from numpy.typing import ArrayLike

from lastarm.arguments import Number
from lastarm.policies import HorizonHalving
from lastarm.policies.parts.rungs import cost, entering, shared
from lastarm.theory.theorems import bound_at


def horizon_budget(settling: Sequence[float], max_pulls: int, eta: Number = 2) -> int:
    """With this budget or more, `HorizonHalving` returns the best of its arms, if it draws all.

    Of n_k arms n_{k+1} go on, and the best is sure to be among them if the rung brings them to
    τ_k = γ̄⁻¹((ν_{n_{k+1}+1} − ν_1)/2) pulls, or to M. Let s be the least share for which all rungs
    do, ⌈s / n_k⌉ ≥ min(M, τ_k). It takes z = Σ_k (n_k − n_{k+1})·min(M, ⌈s / n_k⌉) pulls, where
    nobody goes on from the last rung. This is at most n·M.

    >>> horizon_budget([100, 1], max_pulls=200), horizon_budget([100, 1], max_pulls=50)
    (300, 150)

    `settling` is γ̄⁻¹((ν_i − ν_1)/2) for i = 2, …, n, as `Envelopes.gaps_settle` gives it.
    """
    sizes = entering(len(settling) + 1, Fraction(eta))
    share = 1
    if settling:
        for size, kept in zip(sizes, (*sizes[1:], 1), strict=True):
            least = int(min(max_pulls, settling[kept - 1]))
            share = max(share, (least - 1) * size + 1)
    return int(cost(sizes, shared(sizes, share, max_pulls), max_pulls))


def horizon_regret(
    gamma: ArrayLike, arms: int, budget: int, max_pulls: int, eta: Number = 2
) -> float:
    """ν of the arm that `HorizonHalving` returns is at most this above the least that it draws.

    Σ_k 2γ̄(R_k): whoever goes on from a rung in place of the best is no more than 2γ̄(R_k) behind.
    All that this takes is that the lowest loss of every rung goes on, so it is also a bound for
    `EnvelopeHalving`. Where all arms are drawn and eta is 2, it is at most that of Theorem 4.
    """
    plan = HorizonHalving(arms, budget, max_pulls, eta).plan()
    return sum(2 * bound_at(gamma, rung.upto) for rung in plan.rungs)
