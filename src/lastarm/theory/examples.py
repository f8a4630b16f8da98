"""The closed forms of the paper's Examples 1 and 2: least squares by stochastic gradient descent.

Each of n arms is a subset of features, and σ a constant of its conditioning. The envelope is
γ(t) = σ·log(nt/δ)/t with a chance of at least 1 − δ.
"""

from __future__ import annotations

from math import log

from lastarm.policies.parts.integers import ceil_log


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
    """Example 2, ν_a = a/n: the budget that uniform allocation needs.

    n·4σ·log(2nσ/(δ(ν_2 − ν_1)))/(ν_2 − ν_1) is 4n²·σ·log(2n²σ/δ). The paper prints
    2n²·σ·log(n²σ/δ): both constants are off by the same factor, so that the ratio of the two
    budgets, 4⌈log₂ n⌉ against n, stands.
    """
    factor, inside = (2, arms**2) if as_printed else (4, 2 * arms**2)
    return factor * arms**2 * sigma * log(inside * sigma / delta)
