"""The paper's theory as code: what a budget guarantees.

The paper's words: ν_i is the limit of arm i's losses, with the arms numbered so that
ν_1 < ν_2 ≤ … ≤ ν_n; γ̄(t) bounds how far any arm's loss after t pulls is from its limit; and
γ̄⁻¹(α) is the time by which that is at most α.
"""

from __future__ import annotations

from lastarm.integers import ceil_log


def tolerated_settling(arms: int, budget: int) -> dict[int, float]:
    """For each rank i ≥ 2, the time before which losses must settle for the best arm to win.

    Theorem 1 turned round: Successive Halving returns the best of n arms if, for every rank i,
    γ̄⁻¹((ν_i − ν_1)/2) < B / (2i⌈log₂ n⌉) − 1. That is, all losses must be within half the gap
    between rank i and the best sooner than this; the further behind a rank is, the wider its gap
    and the less time it is given.

    >>> tolerated_settling(arms=4, budget=64)
    {2: 7.0, 3: 4.333333333333333, 4: 3.0}

    The condition is sufficient, not necessary. Nobody knows γ̄ beforehand: read the numbers as
    what this budget can stand.

    Source: Jamieson & Talwalkar (2015), Theorem 1.
    """
    rounds = ceil_log(arms, 2)
    return {i: budget / (2 * i * rounds) - 1 for i in range(2, arms + 1)}
