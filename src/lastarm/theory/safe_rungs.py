"""Theorem 1, sharper: which rungs of Successive Halving are safe, and the budget for all of them.

Rung k brings its |S_k| arms to R_k pulls and keeps ⌊|S_k| / 2⌋ of them. It is safe, so that it
does not drop the best arm, if R_k ≥ γ̄⁻¹((ν_{⌊|S_k|/2⌋+1} − ν_1)/2). Theorem 1 asks for this by a
bound of R_k that is simple and "almost a factor of 2" too low; here R_k itself is used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import inf
from typing import NamedTuple

from lastarm.policies.parts.integers import ceil_log
from lastarm.policies.parts.rungs import entering


class SafeRung(NamedTuple):
    """A rung of `arms` arms: it is safe if losses have settled by `upto` pulls for one rank.

    That is γ̄⁻¹((ν_rank − ν_1)/2) ≤ upto, where `rank` is one more than the arms that are kept.
    """

    arms: int
    rank: int
    upto: int


def safe_rungs(arms: int, budget: int, *, restarts: bool = False) -> list[SafeRung]:
    """What is asked of each rung in which arms are dropped; if all hold, the best arm is returned.

    >>> for rung in safe_rungs(arms=10, budget=1000):
    ...     print(rung)
    SafeRung(arms=10, rank=6, upto=25)
    SafeRung(arms=5, rank=3, upto=75)
    SafeRung(arms=2, rank=2, upto=200)
    """
    return _rungs(arms, budget // ceil_log(arms, 2), restarts) if arms > 1 else []


def _rungs(arms: int, share: int, restarts: bool) -> list[SafeRung]:
    """The same for what a rung may take, ⌊B / ⌈log₂ n⌉⌋, on which all levels depend."""
    sizes = entering(arms, Fraction(2))
    more = [share // size for size in sizes]
    levels = more if restarts else accumulate(more)
    return [SafeRung(n, n // 2 + 1, upto) for n, upto in zip(sizes, levels, strict=True)]


def halving_budget_by_rung(settling: Sequence[float], *, restarts: bool = False) -> float:
    """Theorem 1, sharper: with this budget or more, Successive Halving returns the best arm.

    It is the least budget with which every rung is safe, R_k ≥ γ̄⁻¹((ν_{⌊|S_k|/2⌋+1} − ν_1)/2).
    It is below `halving_budget`, and no lower one is enough for all losses that settle so. If the
    trainer `restarts`, R_k is the last summand alone, and the budget is
    ⌈log₂ n⌉·max_k |S_k|·γ̄⁻¹((ν_{⌊|S_k|/2⌋+1} − ν_1)/2).

    >>> from lastarm.theory import halving_budget
    >>> halving_budget([100, 1]), halving_budget_by_rung([100, 1])
    (808, 600)
    >>> settling = [40, 20, 10, 5, 5, 2, 2]
    >>> halving_budget(settling), halving_budget_by_rung(settling)
    (492, 168)
    >>> halving_budget_by_rung(settling, restarts=True)
    240
    """
    n = len(settling) + 1
    if n == 1:
        return 0
    rounds = ceil_log(n, 2)
    asked = [settling[rung.rank - 2] for rung in _rungs(n, n, restarts)]
    if inf in asked:
        return inf

    def all_safe(share: int) -> bool:
        reached = _rungs(n, share, restarts)
        return all(rung.upto >= time for rung, time in zip(reached, asked, strict=True))

    enough = n * max(int(time) for time in asked)
    return rounds * bisect_left(range(enough), True, key=all_safe)
