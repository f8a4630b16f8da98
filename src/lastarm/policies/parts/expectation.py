"""A model of learning curves: how many arms to draw, and which part of them should go on."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf, sqrt
from statistics import NormalDist

from lastarm.arguments import Number
from lastarm.policies.parts.rungs import Cost, entering, levels

NORMAL = NormalDist()
CHOSEN = "chosen"
ETAS = tuple(Fraction(eta) for eta in ("9/8", "5/4", "3/2", "2", "3", "4", "8"))


def variance_left(t: int, max_pulls: int) -> float:
    """v(t) = (√((M − 1)/(t − 1)) − 1) / 5: how far a loss after t pulls may be from that after M.

    In units of the variance of losses after M pulls. It is a rule of thumb, the mean of curves of
    several kinds (docs/decisions.md). The first pull shows where an arm begins, not where it goes.

    >>> [round(variance_left(t, max_pulls=51), 2) for t in (1, 2, 6, 26, 51)]
    [inf, 1.21, 0.43, 0.08, 0.0]
    """
    if t >= max_pulls:
        return 0.0
    return (sqrt((max_pulls - 1) / (t - 1)) - 1) / 5 if t > 1 else inf


def expected_rank(sizes: Sequence[int], reached: Sequence[int], max_pulls: int) -> float:
    """Where the arm that rungs find stands among all arms, from 0, the best, to 1: q / p.

    In a model of curves. Losses at the horizon M are normal; after t pulls they are off by what is
    left of a random walk, of variance v(t). The lowest of n losses in the last rung, of level t,
    then belongs to an arm that stands at q = Φ(Φ⁻¹(1/(n + 1)) / √(1 + 2v(t))), and p is the
    chance that the riskiest rung before has not dropped that arm. (The errors of one arm are one
    walk, so an arm that passes the riskiest rung mostly passes the others.)

    >>> expected_rank([4], [51], max_pulls=51)  # the best of four
    0.2
    >>> round(expected_rank([64, 32, 16, 8, 4], [4, 7, 13, 26, 51], max_pulls=51), 4)
    0.0158
    """
    n, v_last = sizes[0], variance_left(reached[-1], max_pulls)
    if variance_left(reached[0], max_pulls) == inf:
        return 0.5  # the arms that go on are random
    best = NORMAL.inv_cdf(1 / (n + 1))
    q = NORMAL.cdf(best / sqrt(1 + 2 * v_last))
    p = 1.0
    for level, kept in zip(reached[:-1], sizes[1:], strict=True):
        v = variance_left(level, max_pulls)
        margin = sqrt(1 + v) * NORMAL.inv_cdf(kept / n) - sqrt(1 + v_last) * best
        p = min(p, NORMAL.cdf(margin / sqrt(v - v_last)))
    return q / p if p else 1.0


@lru_cache(maxsize=4096)
def worth_drawing(
    arms: int,
    budget: Cost,
    max_pulls: int,
    eta: Number,
    look_cost: Cost = 0,
    *,
    restarts: bool = False,
) -> tuple[int, Fraction]:
    """How many of the arms to draw, and with which eta, for the lowest expected rank.

    >>> [worth_drawing(64, budget, max_pulls=51, eta=2)[0] for budget in (65, 163, 326)]
    [17, 36, 64]

    If eta is "chosen" and looks are free, it is the least: more looks cannot hurt. Where arms are
    trained from zero at every level (`restarts`), a look is not free, because it takes a rung.

    >>> [str(worth_drawing(64, 1000, 51, CHOSEN, look_cost)[1]) for look_cost in (0, 1, 10)]
    ['9/8', '3/2', '8']
    >>> worth_drawing(64, 1000, 51, CHOSEN, restarts=True)
    (64, Fraction(4, 1))
    """
    etas = (ETAS if look_cost or restarts else ETAS[:1]) if eta == CHOSEN else (Fraction(eta),)
    found = inf, -1, etas[0]
    n = arms
    while n:
        for each in etas:
            sizes = entering(n, each)
            planned = levels(sizes, budget, max_pulls, look_cost=look_cost, restarts=restarts)
            # Of rungs with one level only the first is played.
            played = dict(zip(reversed(planned), reversed(sizes), strict=True))
            reached = sorted(played)
            if reached[0]:
                rank = expected_rank([played[level] for level in reached], reached, max_pulls)
                found = min(found, (rank, -n, each))
        n = min(n - 1, 9 * n // 10)
    return -found[1], found[2]
