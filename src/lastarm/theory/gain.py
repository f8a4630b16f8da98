"""What more budget is likely to buy: a range, and never a promise.

The curves of a search say how fast its arms still fall. If each went on as it did last, one of
them would come lowest with twice the pulls: how far that is below the answer is the potential. How
far arms usually move between two looks says how sure that is. The gain of twice the budget was
compared with the sum of the two on recorded curves (`benchmarks/worth.py`), and 90 % of these
gains were from `LOW` to `HIGH` times as large.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from math import isfinite, log2
from statistics import median
from typing import NamedTuple

from lastarm.theory.audit import Curve

LOW, HIGH = -0.0842, 1.81
MEASURED = ("successive-halving", "horizon-halving")  # the policies that were compared


class Gain(NamedTuple):
    """By how much the recommended loss would fall with twice the budget, in 9 of 10 cases.

    A negative number means that it would rise.
    """

    low: float
    high: float


def likely_gain(
    curves: Mapping[int, Curve], recommended: int, out: Collection[int] = ()
) -> Gain | None:
    """What twice the budget is likely to buy; None if no arm was looked at twice.

    :param curves: what the search saw of each arm: arm → (level, loss).
    :param recommended: the arm that it recommends.
    :param out: arms that failed.

    >>> seen = {0: [(1, 0.9), (4, 0.2)], 1: [(1, 0.8), (4, 0.3)], 2: [(1, 1.0)], 3: [(1, 5.0)]}
    >>> low, high = likely_gain(seen, recommended=0)
    >>> round(low, 4), round(high, 4)
    (-0.08, 1.7195)
    """
    scale = scale_of_gain(curves, recommended, out)
    return None if scale is None else Gain(LOW * scale, HIGH * scale)


def scale_of_gain(
    curves: Mapping[int, Curve], recommended: int, out: Collection[int] = ()
) -> float | None:
    """How much there is to gain if all goes on as it did: the potential, and the usual move.

    :param curves: as for `likely_gain`.
    :param recommended: the arm that is recommended.
    :param out: arms that failed.
    """
    healthy = {
        arm: [at for at in curve if isfinite(at[1])]
        for arm, curve in curves.items()
        if arm not in out and isfinite(curve[-1][1])
    }
    seen_twice = {arm: curve[-2:] for arm, curve in healthy.items() if len(curve) > 1}
    if recommended not in healthy or not seen_twice:
        return None
    falls = {arm: _fall_each_doubling(*ends) for arm, ends in seen_twice.items()}
    usual = max(0.0, median(falls.values()))
    deepest = max(curve[-1][0] for curve in healthy.values())
    ahead = (
        curve[-1][1] - max(0.0, falls.get(arm, usual)) * log2(2 * deepest / curve[-1][0])
        for arm, curve in healthy.items()
    )
    potential = max(0.0, healthy[recommended][-1][1] - min(ahead))
    moves = [
        abs(loss - before)
        for curve in healthy.values()
        for (_, before), (level, loss) in pairwise(curve)
        if 4 * level >= deepest
    ]
    scale = potential + median(moves or [0.0])
    return scale if isfinite(scale) and scale > 0 else None


def _fall_each_doubling(before: tuple[int, float], last: tuple[int, float]) -> float:
    return (before[1] - last[1]) / log2(last[0] / before[0])
