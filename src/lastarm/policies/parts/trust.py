"""Who goes on: half by their losses and half by where their curves lead, while falls last."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

from lastarm.policy import ranking


class Trust:
    """What a search has shown of its arms' curves, rung by rung, and how far it trusts them.

    Of n arms that go on, the ⌈n/2⌉ with the lowest losses always do. The other ⌊n/2⌋ are those
    that are expected lowest at the horizon, if each falls on as between its last two looks, by
    as much whenever its pulls are multiplied by as much. Early ranks are right about some losses,
    and slopes about others: curves that cross late are found by their slopes.

    Whether slopes last is learnt. In each rung, arms that were looked at three times are ranked by
    their last fall and by the fall before it; d is how far the two ranks of an arm are apart. The
    sum of m³ − m − 6·Σd² over rungs of m such arms, whole numbers, is positive if those that fell
    most then fell most again (it has the sign of Spearman's ρ). As long as it is negative, as it
    is where looks are noisy, all go on by their losses.

    >>> trust = Trust(max_pulls=16)
    >>> trust.choice({0: 0.9, 1: 0.5, 2: 0.6, 3: 0.7}, 4, level=2)
    [1, 2, 3, 0]
    >>> trust.choice({0: 0.7, 1: 0.5, 2: 0.6, 3: 0.65}, 2, level=4)  # arm 0 leads to 0.3
    [1, 0]
    >>> trust.choice({1: 0.3, 0: 0.7}, 1, level=8)
    [1]
    """

    def __init__(self, max_pulls: int) -> None:
        self._max_pulls = max_pulls
        self._level = 0  # of the last look
        self._losses: Mapping[int, float] = {}  # then
        self._falls: Mapping[int, float] = {}  # before it, of arms that were looked at twice
        self._agreement = 0

    def choice(self, losses: Mapping[int, float], n: int, level: int) -> list[int]:
        """The n arms that go on from a rung of this level, the lowest loss first."""
        # Halves, since a difference may overflow.
        falls = {
            arm: self._losses[arm] / 2 - loss / 2
            for arm, loss in losses.items()
            if arm in self._losses
        }
        self._agreement += agreement(self._falls, falls)
        before, self._level, self._losses, self._falls = self._level, level, losses, falls
        ranked = ranking(losses)
        if n == 1 or not falls or self._agreement < 0:
            return ranked[:n]
        # Rounded, since the last bit of a logarithm is not the same on every machine.
        steps = round(log(self._max_pulls / level) / log(level / before), 9)
        sure = n - n // 2
        expected = {
            arm: losses[arm] / 2 - max(0.0, falls.get(arm, 0.0)) * steps for arm in ranked[sure:]
        }
        return ranked[:sure] + sorted(expected, key=expected.__getitem__)[: n // 2]  # stable


def agreement(before: Mapping[int, float], after: Mapping[int, float]) -> int:
    """m³ − m − 6·Σd² for the ranks of the m arms that are in both: Spearman's ρ times m³ − m.

    >>> agreement({0: 1, 1: 2, 2: 3}, {0: 2, 1: 3, 2: 5}), agreement({0: 1, 1: 2}, {0: 2, 1: 1})
    (24, -6)
    """
    both = before.keys() & after.keys()
    ranks = {arm: rank for rank, arm in enumerate(ranking({arm: before[arm] for arm in both}))}
    again = ranking({arm: after[arm] for arm in both})
    m = len(both)
    return m**3 - m - 6 * sum((ranks[arm] - rank) ** 2 for rank, arm in enumerate(again))
