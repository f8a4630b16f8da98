"""ASHA: Li, Jamieson, Rostamizadeh, Gonina, Hardt, Recht & Talwalkar (2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from itertools import pairwise
from math import isfinite
from typing import ClassVar

from lastarm.arguments import whole_number
from lastarm.errors import NotAsked
from lastarm.events import Failure, Loss, Pull, Told
from lastarm.policies.parts.budgeted import Budgeted, Curves
from lastarm.policies.parts.integers import floor_log
from lastarm.policy import is_healthy, lowest, ranking


class Promotions:
    """The arms that came to one level, and which of them can be promoted to the next.

    These are the best 1/eta, without those that were promoted before. Heaps hold the best, the
    rest, and the ones to promote, so that adding a loss and finding the next arm are O(log n).
    """

    def __init__(self, eta: int) -> None:
        # Best first; some may no longer be among the best.
        self.ready: list[tuple[float, int]] = []
        self._eta = eta
        self._arrived = 0
        self._top: list[tuple[float, int]] = []  # the best ⌊arrived / eta⌋, negated: worst first
        self._rest: list[tuple[float, int]] = []  # all others, best first
        self._promoted: set[int] = set()

    def take(self, arm: int, loss: float) -> None:
        """Rank a new arrival."""
        if self._top and (-loss, -arm) > self._top[0]:  # it pushes out the worst of the best
            worst = heapreplace(self._top, (-loss, -arm))
            heappush(self._rest, (-worst[0], -worst[1]))
            heappush(self.ready, (loss, arm))
        else:
            heappush(self._rest, (loss, arm))
        self.arrive()

    def arrive(self) -> None:
        """Count one more arrival; the best become one more if that makes room."""
        self._arrived += 1
        if self._rest and len(self._top) < self._arrived // self._eta:
            loss, arm = heappop(self._rest)
            heappush(self._top, (-loss, -arm))
            if arm not in self._promoted:
                heappush(self.ready, (loss, arm))

    def promotable(self) -> int | None:
        """The best arm that can be promoted."""
        while self.ready:
            loss, arm = self.ready[0]
            if arm not in self._promoted and (-loss, -arm) >= self._top[0]:
                return arm
            heappop(self.ready)  # promoted, or pushed out since; it may come back
        return None

    def promote(self, arm: int) -> None:
        """Note that this arm, the first of those that are ready, goes up."""
        heappop(self.ready)
        self._promoted.add(arm)


@dataclass(eq=False)
class ASHA(Budgeted):
    """Successive Halving that never waits: it promotes an arm that is good enough, or begins one.

    The levels are ⌊R / eta^s⌋, …, ⌊R / eta⌋, R, where R = `max_pulls`, s = ⌊log_eta R⌋. Asked for
    a pull, it looks from the top level downwards for an arm that is among the best 1/eta of its
    level and was not promoted yet. If there is none, it begins the next arm. An arm that is not
    promoted is only paused: as more arms arrive, it may come back. A pull that no longer fits into
    the budget is left out.

    >>> policy = ASHA(arms=9, budget=30, max_pulls=9)
    >>> for pull in policy.ask(3):
    ...     policy.tell(Loss(pull, 1.0 + pull.arm))
    >>> policy.ask(2)  # one of the three is promoted, then the fourth arm begins
    [Pull(arm=0, upto=3), Pull(arm=3, upto=1)]

    With one worker it decides in the order of the arms. With several, what it does depends on
    which pull finishes first, and only the journal says in which order that was. Ties go to the
    lower arm number. A decision is O(log n).

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a level are promoted; a whole number of at least 2.

    Source: Li, Jamieson, Rostamizadeh, Gonina, Hardt, Recht & Talwalkar, "A System for Massively
    Parallel Hyperparameter Tuning" (MLSys 2020), algorithm 2.
    """

    name: ClassVar[str] = "asha"
    adaptive: ClassVar[bool] = True
    drops: ClassVar[bool] = False
    why_higher: ClassVar[str] = "asha does not wait: it had gone on when fewer arms had been seen."
    max_pulls: int
    eta: int = 3

    def __post_init__(self) -> None:
        meaning = "the part of a level that is promoted, as 1/eta"
        eta = self.eta = whole_number("eta", self.eta, 2, meaning)
        super().__post_init__()
        R = self.max_pulls
        s = floor_log(R, eta)
        levels = [R // eta ** (s - k) for k in range(s + 1)]
        if self.arms == 1:  # there is nothing to compare, so it is trained as far as possible
            levels = [min(R, self.budget)]
        self._take_levels(levels)
        self._begun = 0  # arms 0 … begun − 1 have been pulled
        self._left = self.budget
        self._asked: dict[int, int] = {}  # arm → level, of pulls given out and not yet told
        self._latest: dict[int, float] = {}  # arm → latest loss, of healthy arms

    def _take_levels(self, levels: list[int], reached: int = 0) -> None:
        self._levels = levels
        self._costs = [b - a for a, b in pairwise([reached, *levels])]
        self._rungs = [Promotions(self.eta) for _ in levels]
        self._at = dict(zip(levels, self._rungs, strict=True))
        self._below = list(enumerate(self._rungs[:-1], start=1))[::-1]  # from the top

    def extend(self, budget: int) -> None:
        """Continue with what did not fit into the budget; the levels stay as they are."""
        before = self.raise_budget(budget)
        self._left += budget - before
        highest = self._levels[-1]
        if self.arms == 1 and self._latest and (level := min(self.max_pulls, budget)) > highest:
            self._take_levels([level], reached=highest)
            self._begun = 0

    def ask(self, n: int = 1) -> list[Pull]:
        """Promotions first, from the top; then arms that have not begun."""
        pulls: list[Pull] = []
        while len(pulls) < n and (choice := self._choice()):
            arm, k = choice
            if k:
                self._rungs[k - 1].promote(arm)
            else:
                self._begun += 1
            self._left -= self._costs[k]
            upto = self._asked[arm] = self._levels[k]
            pulls.append(Pull(arm, upto))
        return pulls

    def _choice(self) -> tuple[int, int] | None:
        """The arm to pull next, and the rung it goes to."""
        for k, below in self._below:
            if below.ready and self._costs[k] <= self._left:
                arm = below.promotable()
                if arm is not None:
                    return arm, k
        if self._begun < self.arms and self._costs[0] <= self._left:
            return self._begun, 0
        return None

    def tell(self, event: Told) -> None:
        """Rank an arm at the level it came to."""
        arm, upto, healthy = event.pull.arm, event.pull.upto, is_healthy(event)
        if self._asked.get(arm) != upto:
            raise NotAsked(event.pull)
        del self._asked[arm]
        if isinstance(event, Loss) and healthy:
            self._latest[arm] = event.value
            self._at[upto].take(arm, event.value)
        else:
            self._latest.pop(arm, None)
            self._at[upto].arrive()  # it counts, but has no rank

    @property
    def finished(self) -> bool:
        """Whether nothing is in flight and nothing is left to ask."""
        return not self._asked and self._choice() is None

    @property
    def recommendation(self) -> int | None:
        """The arm with the lowest latest loss, at every moment."""
        return lowest(self._latest)

    def most_observations(self) -> int:
        """Each arm once at each level, where the budget allows that."""
        return min(self.budget, self.arms * len(self._levels))

    def least_budget(self, arms: int) -> int:
        """One arm at the first level; arms that do not fit do not begin."""
        first: int = self.max_pulls // self.eta ** floor_log(self.max_pulls, self.eta)
        return first

    def nothing_left(
        self, curves: Curves, failures: Mapping[int, Failure], pulls: int
    ) -> str | None:
        """Perhaps all arms have begun, and the best of each level were promoted."""
        if (reason := super().nothing_left(curves, failures, pulls)) or self.arms == 1:
            return reason
        reached = {arm: curve[-1][0] for arm, curve in curves.items()}
        reached |= {arm: failure.pull.upto for arm, failure in failures.items()}
        losses: dict[int, dict[int, float]] = {}
        for arm, curve in curves.items():
            for level, loss in curve:
                losses.setdefault(level, {})[arm] = loss
        failed = Counter(failure.pull.upto for failure in failures.values())
        for level, there in losses.items():
            finite = {arm: loss for arm, loss in there.items() if isfinite(loss)}
            best = ranking(finite)[: (len(there) + failed[level]) // self.eta]
            if level < self.max_pulls and any(reached[arm] <= level for arm in best):
                return None
        return "no arm is left to begin or to promote" if len(reached) == self.arms else None
