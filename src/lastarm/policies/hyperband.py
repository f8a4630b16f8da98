"""Hyperband: Li, Jamieson, DeSalvo, Rostamizadeh & Talwalkar (2018)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, ClassVar, NamedTuple

from lastarm.arguments import whole_number
from lastarm.events import Pull
from lastarm.policies.parts.as_many import AsMany
from lastarm.policies.parts.integers import floor_log
from lastarm.policies.plan import Plan
from lastarm.policy import Algorithm, NoHealthyArm, ranking


class Bracket(NamedTuple):
    """A run of Successive Halving: how many arms begin, and the levels that the best come to."""

    arms: int
    levels: tuple[int, ...]
    eta: int

    @property
    def sizes(self) -> list[int]:
        """How many arms are brought to each level."""
        return [max(1, self.arms // self.eta**rung) for rung in range(len(self.levels))]

    @property
    def pulls(self) -> int:
        """What it costs if no arm was pulled before."""
        steps = [after - before for before, after in pairwise([0, *self.levels])]
        return sum(size * step for size, step in zip(self.sizes, steps, strict=True))

    @property
    def pulls_from_zero(self) -> int:
        """What it costs if every level is trained from zero."""
        return sum(size * level for size, level in zip(self.sizes, self.levels, strict=True))


def brackets(max_pulls: int, eta: int) -> list[Bracket]:
    """All brackets, the most daring first: algorithm 1's n, and its r_i in integers.

    >>> [bracket.arms for bracket in brackets(max_pulls=243, eta=3)]
    [243, 98, 41, 18, 9, 6]
    >>> brackets(max_pulls=9, eta=3)[0]
    Bracket(arms=9, levels=(1, 3, 9), eta=3)
    """
    R, s_max = max_pulls, floor_log(max_pulls, eta)
    return [
        Bracket(
            arms=-(-(s_max + 1) * eta**s // (s + 1)),  # rounded up
            levels=tuple(R // eta ** (s - i) for i in range(s + 1)),
            eta=eta,
        )
        for s in range(s_max, -1, -1)
    ]


def hyperband(
    draw: Callable[[int], list[int]], opened: Iterable[Bracket]
) -> Generator[list[Pull], dict[int, float], set[int]]:
    """Their algorithm 1: Successive Halving from daring to cautious, each with arms of its own.

    The winners of the brackets.
    """
    winners: set[int] = set()
    for bracket in opened:
        try:
            winners.add((yield from halving_to_levels(draw(bracket.arms), bracket)))
        except NoHealthyArm:
            continue  # the next bracket has other arms
    return winners


def halving_to_levels(
    arms: list[int], bracket: Bracket
) -> Generator[list[Pull], dict[int, float], int]:
    """One bracket: its best arm."""
    T = arms
    for i, level in enumerate(bracket.levels):
        losses = yield [Pull(arm, upto=level) for arm in T]
        T = ranking(losses)[: max(1, len(arms) // bracket.eta ** (i + 1))]  # their top_k
    return T[0]


@dataclass(eq=False, repr=False)
class Hyperband(AsMany):
    """Successive Halving several times: from many arms and short training to few and long.

    With R = `max_pulls`, the most one arm may get, and s_max = ⌊log_eta R⌋, bracket s begins with
    ⌈(s_max + 1)·eta^s / (s + 1)⌉ arms at level ⌊R / eta^s⌋, keeps the best 1/eta and multiplies
    the level by eta, up to R. Which of them pays is not known beforehand, so all are run.

    >>> print(Hyperband(budget=69, max_pulls=9).plan())
    rung    arms  pulls each  brought to  pulls in all
       1       9           1           1             9
       2       3           2           3            15
       3       1           6           9            21
       4       5           3           3            36
       5       1           6           9            42
       6       3           9           9            69

    When all brackets have been run, they are run again, until the budget is spent. A bracket that
    does not fit into what is left is passed over. When none fits, what is left is spent on the
    most promising of the arms that were dropped: those at the highest level first, and of these
    the lowest loss. If none fits from the beginning, `max_pulls` is lowered by factors of eta until
    one does.

    The best of the brackets' winners is recommended. (Their algorithm returns the smallest loss
    seen at any level. But the lowest loss after little training may not be the lowest after much.)

    Each bracket has arms that no other bracket has had, as many as the budget allows for. If
    `arms` is given, they are drawn from so many, by `seed`. When there are none left, all of them
    can be drawn again, and continue from where they are, until all have had R pulls.

    If the trainer `restarts`, every level is trained from zero, and a bracket costs the sum of all
    its arms times their levels. Their algorithm counts in this way: about (s_max + 1)·R a bracket.

    >>> Hyperband(budget=78, max_pulls=9, restarts=True).plan().pulls
    78

    - `arms`: how many arms there are. Left out, as many as the budget allows for.
    - `budget`: the total of pulls over all of them.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a rung go on; a whole number of at least 2.
    - `seed`: the draw of arms is derived from it.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: Li, Jamieson, DeSalvo, Rostamizadeh & Talwalkar, "Hyperband: A Novel Bandit-Based
    Approach to Hyperparameter Optimization" (JMLR 2018), algorithm 1, repeated as in their section
    3.1 on an infinite horizon.
    """

    name: ClassVar[str] = "hyperband"
    version: ClassVar[int] = 2  # 1 ran its brackets once, and left the rest of the budget
    eta: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        self.eta = whole_number("eta", self.eta, 2, "the part of a rung that is kept, as 1/eta")
        super().__post_init__()

    @classmethod
    def completed(cls, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """If the budget is left out, it is what all brackets need once, with no arm twice."""
        if "max_pulls" not in numbers:
            return dict(numbers)
        known = {name: numbers[name] for name in ("eta", "restarts") if name in numbers}
        one = cls(1, 1, numbers["max_pulls"], **known)
        return {"budget": sum(map(one._cost, brackets(one.max_pulls, one.eta))), **numbers}

    @property
    def in_order(self) -> bool:
        """If arms are given, they are drawn."""
        return self.open_ended

    def brackets(self) -> list[Bracket]:
        """Those that are opened if no arm fails, as long as there are arms that no other had."""
        opened: list[Bracket] = []
        left, new = self.budget, self.arms
        for number, bracket in enumerate(self._fitting(lambda: left)):
            if new <= 0 and number >= len(brackets(self.max_pulls, self.eta)):
                break
            opened.append(bracket)
            left, new = left - self._cost(bracket), new - bracket.arms
        return opened

    def _fitting(self, left: Callable[[], int]) -> Iterator[Bracket]:
        """One bracket after another that fits into what is left, again and again."""
        highest = self._highest(self.budget)
        published = [
            bracket._replace(arms=min(bracket.arms, self.arms))
            for bracket in brackets(highest, self.eta)
        ]
        while any(self._cost(bracket) <= left() for bracket in published):
            for bracket in published:
                if self._cost(bracket) <= left():
                    yield bracket

    def _highest(self, budget: int) -> int:
        """`max_pulls`, lowered by factors of eta until a bracket fits into the budget."""
        highest = self.max_pulls
        while highest > 1 and all(
            self._cost(bracket._replace(arms=min(bracket.arms, self.arms))) > budget
            for bracket in brackets(highest, self.eta)
        ):
            highest //= self.eta
        return max(1, highest)

    def _cost(self, bracket: Bracket) -> int:
        """What a bracket costs if no arm was pulled before."""
        return bracket.pulls_from_zero if self.restarts else bracket.pulls

    def least_level(self, budget: int) -> int:
        """That of the most daring bracket."""
        return brackets(self._highest(budget), self.eta)[0].levels[0]

    def plan(self) -> Plan:
        """What will be spent, or the most that may be, if arms have to be drawn again."""
        if sum(bracket.arms for bracket in self.brackets()) <= self.arms:
            return super().plan()
        looks = floor_log(self.max_pulls, self.eta) + 2  # one arm may end between two levels
        most = self.max_pulls * (looks if self.restarts else 1)
        pulls = min(self.budget, self.arms * most)
        return Plan((), pulls, min(pulls, self.arms * looks), exact=False)

    def plan_details(self) -> dict[str, Any]:
        """The brackets that are opened, as long as there are arms that no other had."""
        opened = [
            {"arms": bracket.arms, "levels": bracket.levels, "pulls": self._cost(bracket)}
            for bracket in self.brackets()
        ]
        return {"brackets": opened}

    def algorithm(self) -> Algorithm:
        """Their algorithm, again and again; then what is left over."""
        random = Random(self.seed)
        deck: list[int] = []

        def draw(n: int) -> list[int]:
            nonlocal deck
            drawn, deck = deck[:n], deck[n:]
            if len(drawn) < n:
                rest = sorted(set(range(self.arms)) - set(drawn))
                deck = sorted(rest, key=lambda _: random.random())  # shuffled, on every Python
                missing = n - len(drawn)
                drawn, deck = drawn + deck[:missing], deck[missing:]
            return sorted(drawn)

        def take(n: int) -> list[int]:
            return [*range(self.tried, self.tried + n)]

        winners = yield from hyperband(take if self.in_order else draw, self._until_all_is_done())
        yield from self.spend_what_is_left()
        at = self.reached
        ends = {arm for arm in at if arm in winners or at[arm] == self.max_pulls}
        if not ends:
            raise NoHealthyArm
        return ranking({arm: self._losses[arm] for arm in ends})[0]

    def _until_all_is_done(self) -> Iterator[Bracket]:
        """Brackets that fit, until no arm can be brought further by them."""
        highest = self._highest(self.budget)
        for bracket in self._fitting(lambda: self.left):
            if self.tried == self.arms and min(self.reached.values(), default=highest) >= highest:
                return
            yield bracket
