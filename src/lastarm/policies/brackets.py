"""Small brackets of halving, one after another, for arms that are chosen as the search goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lastarm.arguments import whole_number
from lastarm.policies.hyperband import Bracket, halving_to_levels
from lastarm.policies.parts.as_many import AsMany
from lastarm.policies.parts.integers import floor_log
from lastarm.policy import Algorithm, NoHealthyArm, added_later, ranking

RUNGS = 4  # of the first brackets: many arms, of which each is trained a little
FEWER_RUNGS = 3  # of later ones, where arms are chosen: what comes of them is known sooner
WIDE = 8  # full trainings after which brackets have fewer rungs
MOST_BRACKETS = 128  # with a larger budget they are wider: to choose arms takes time too


@dataclass(eq=False, repr=False)
class Brackets(AsMany):
    """Halving in small brackets, one after another, until the budget is spent.

    Each bracket begins with new arms. With R = `max_pulls` and eta = 3, 27 arms are brought to
    R/27, the best nine of them to R/9, the best three of these to R/3, and the best one to R. What
    is learnt from a bracket can decide which arms the next one has: a sampler chooses them when it
    begins.

    >>> print(Brackets(budget=162, max_pulls=27).plan())
    rung    arms  pulls each  brought to  pulls in all
       1      27           1           1            27
       2       9           2           3            45
       3       3           6           9            63
       4       1          18          27            81
       5      27           1           1           108
       6       9           2           3           126
       7       3           6           9           144
       8       1          18          27           162

    A bracket takes about three full trainings. When eight have been spent, much is known, and
    brackets are smaller: nine arms begin at R/9. The budget is divided evenly among as many
    brackets as fit into it, and each has as many arms as its share allows for. So a budget below
    that of one bracket has a smaller one. What is left over in the end brings the most promising
    arms that were dropped further: those at the highest level first, and of these the lowest loss.

    Arms are numbered as they begin. How many there are follows from the budget, unless `arms` is
    given, which is the most that are begun. Once all of these have begun, the budget that is left
    brings the others to R, too, the most promising first.

    The arm with the lowest loss at the highest level that any arm was brought to is recommended.
    Ties go to the lower arm number. An arm that fails or diverges is dropped, and the pulls that
    it would have used are for later arms. A budget too small for a bracket of eta arms up to R has
    brackets up to R/eta, or R/eta², and so on.

    With `at_once` = k, brackets are k times as wide: as if k of them ran side by side, and the
    best of all their arms went on. So k workers are busy also with the last arms of a bracket.

    If the trainer `restarts`, every level is trained from zero, and a bracket costs the sum of all
    its arms times their levels.

    - `arms`: the most arms that are begun. Left out, as many as the budget allows for.
    - `budget`: the total of pulls over all of them.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a rung go on; a whole number of at least 2.
    - `at_once`: how many times as wide a bracket is.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: ours; the brackets are those of Li et al. (JMLR 2018), cut to four and three rungs.
    """

    name: ClassVar[str] = "brackets"
    eta: int = 3
    at_once: int = added_later(1)
    restarts: bool = added_later(False, kw_only=True)

    def __post_init__(self) -> None:
        self.eta = whole_number("eta", self.eta, 2, "the part of a rung that is kept, as 1/eta")
        meaning = "how many brackets run side by side"
        self.at_once = whole_number("at_once", self.at_once, 1, meaning)
        super().__post_init__()

    def algorithm(self) -> Algorithm:
        """Brackets while they fit, then what is left over; the best at the highest level."""
        while bracket := self._next(self.left, self.arms - self.tried):
            first = self.tried
            try:
                yield from halving_to_levels([*range(first, first + bracket.arms)], bracket)
            except NoHealthyArm:
                continue  # the next bracket has other arms
        yield from self.spend_what_is_left()
        if not (at := self.reached):
            raise NoHealthyArm
        highest = max(at.values())
        return ranking({arm: self._losses[arm] for arm in at if at[arm] == highest})[0]

    def better(self, now: int, before: int) -> int:
        """What was recommended before an extension is among the arms that are compared now."""
        return now

    def least_level(self, budget: int) -> int:
        """The first of a bracket."""
        return self._levels(self._highest(budget), RUNGS)[0]

    def _levels(self, highest: int, rungs: int) -> tuple[int, ...]:
        """Of a bracket: at most so many, of which each is about eta times the one before."""
        s = min(rungs - 1, floor_log(highest, self.eta))
        return tuple(-(-highest // self.eta ** (s - i)) for i in range(s + 1))

    def _cost(self, arms: int, levels: tuple[int, ...]) -> int:
        """What a bracket costs if no arm fails."""
        bracket = Bracket(arms, levels, self.eta)
        return bracket.pulls_from_zero if self.restarts else bracket.pulls

    def _highest(self, budget: int) -> int:
        """`max_pulls`, lowered by factors of eta until a bracket fits into the budget."""
        highest = self.max_pulls
        few = min(self.eta, getattr(self, "_most", self.arms))
        while highest > 1 and self._cost(few, self._levels(highest, RUNGS)) > budget:
            highest //= self.eta
        return max(1, highest)

    def _next(self, left: int, new: int) -> Bracket | None:
        """The next bracket: none if too little is left, or no new arms.

        - `left`: how many pulls are.
        - `new`: how many arms have not begun.
        """
        rungs = RUNGS if self.budget - left < WIDE * self.max_pulls else FEWER_RUNGS
        levels = self._levels(self._highest(self.budget), rungs)
        s = len(levels) - 1
        usual = -(-rungs * self.eta**s // (s + 1))  # so that with fewer levels it costs as much
        wide = max(self.at_once, -(-self.budget // (MOST_BRACKETS * self._cost(usual, levels))))
        share = left // max(1, left // self._cost(usual * wide, levels))
        low, high = 0, min(new, share)
        while low < high:
            n = (low + high + 1) // 2
            low, high = (n, high) if self._cost(n, levels) <= share else (low, n - 1)
        enough = low and (low >= min(self.eta, new) or levels == (1,))
        return Bracket(low, levels, self.eta) if enough else None

    def plan_details(self) -> dict[str, Any]:
        """The brackets, if no arm fails."""
        left, new, planned = self.budget, self.arms, []
        while bracket := self._next(left, new):
            cost = self._cost(bracket.arms, bracket.levels)
            planned.append({"arms": bracket.arms, "levels": bracket.levels, "pulls": cost})
            left, new = left - cost, new - bracket.arms
        return {"brackets": planned}
