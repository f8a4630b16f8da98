"""Hyperband: Li, Jamieson, DeSalvo, Rostamizadeh & Talwalkar (2018)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, ClassVar, NamedTuple

from lastarm.arguments import whole_number
from lastarm.events import Failure, Pull
from lastarm.policies.parts.budgeted import Curves, InRounds
from lastarm.policies.parts.integers import floor_log
from lastarm.policies.plan import Plan
from lastarm.policy import Algorithm, NoHealthyArm, added_later, ranking


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


def hyperband(draw: Callable[[int], list[int]], opened: list[Bracket]) -> Algorithm:
    """Their algorithm 1: Successive Halving from daring to cautious, each with arms of its own."""
    winners: dict[int, float] = {}
    for bracket in opened:
        try:
            winners |= yield from halving_to_levels(draw(bracket.arms), bracket)
        except NoHealthyArm:
            continue  # the next bracket has other arms
    if not winners:
        raise NoHealthyArm
    return ranking(winners)[0]


def halving_to_levels(
    arms: list[int], bracket: Bracket
) -> Generator[list[Pull], dict[int, float], dict[int, float]]:
    """One bracket: its best arm, and that arm's loss."""
    T, losses = arms, {}
    for i, level in enumerate(bracket.levels):
        losses = yield [Pull(arm, upto=level) for arm in T]
        T = ranking(losses)[: max(1, len(arms) // bracket.eta ** (i + 1))]  # their top_k
    return {T[0]: losses[T[0]]}


@dataclass(eq=False, repr=False)
class Hyperband(InRounds):
    """Successive Halving several times: from many arms and short training to few and long.

    With R = `max_pulls`, the most one arm may get, and s_max = ⌊log_eta R⌋, bracket s begins with
    ⌈(s_max + 1)·eta^s / (s + 1)⌉ arms at level ⌊R / eta^s⌋, keeps the best 1/eta and multiplies
    the level by eta, up to R. Which of them pays is not known beforehand, so all are run.

    >>> print(Hyperband(arms=17, budget=69, max_pulls=9).plan())
    rung    arms  pulls each  brought to  pulls in all
       1       9           1           1             9
       2       3           2           3            15
       3       1           6           9            21
       4       5           3           3            36
       5       1           6           9            42
       6       3           9           9            69

    The best of the brackets' winners is recommended. (Their algorithm returns the smallest loss
    seen at any level. But the lowest loss after little training may not be the lowest after much.)

    Only brackets that fit into the budget are opened. If none does, `max_pulls` is lowered by
    factors of eta until one does. Each bracket draws, by `seed`, arms that no other bracket has
    had. When there are none left, all arms can be drawn again, and continue from where they are.

    If the trainer `restarts`, every level is trained from zero, and a bracket costs the sum of all
    its arms times their levels. Their algorithm counts in this way: about (s_max + 1)·R a bracket.

    >>> Hyperband(arms=17, budget=78, max_pulls=9, restarts=True).plan().pulls
    78

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a rung go on; a whole number of at least 2.
    - `seed`: the draw of arms is derived from it.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: Li, Jamieson, DeSalvo, Rostamizadeh & Talwalkar, "Hyperband: A Novel Bandit-Based
    Approach to Hyperparameter Optimization" (JMLR 2018), algorithm 1.
    """

    name: ClassVar[str] = "hyperband"
    begins_anew: ClassVar[bool] = True
    draws_anew: ClassVar[bool] = True
    max_pulls: int
    eta: int = 3
    seed: int = 0
    restarts: bool = added_later(False, kw_only=True)

    def __post_init__(self) -> None:
        self.eta = whole_number("eta", self.eta, 2, "the part of a rung that is kept, as 1/eta")
        super().__post_init__()

    @classmethod
    def completed(cls, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """If arms or budget are left out, they are what all brackets need, with no arm twice."""
        if "max_pulls" not in numbers:
            return dict(numbers)
        known = {name: numbers[name] for name in ("eta", "restarts") if name in numbers}
        one = cls(1, 1, numbers["max_pulls"], **known)
        every = brackets(one.max_pulls, one.eta)
        arms, budget = sum(each.arms for each in every), sum(map(one._cost, every))
        return {"arms": arms, "budget": budget, **numbers}

    def brackets(self) -> list[Bracket]:
        """Those that are opened: they fit into the budget, one after the other."""
        opened: list[Bracket] = []
        max_pulls, left = self.max_pulls, self.budget
        while not opened:
            for published in brackets(max_pulls, self.eta):
                bracket = published._replace(arms=min(published.arms, self.arms))
                if self._cost(bracket) <= left:
                    opened.append(bracket)
                    left -= self._cost(bracket)
            max_pulls = max(1, max_pulls // self.eta)
        return opened

    def _cost(self, bracket: Bracket) -> int:
        """What a bracket costs if no arm was pulled before."""
        return bracket.pulls_from_zero if self.restarts else bracket.pulls

    def plan(self) -> Plan:
        """What will be spent, or the most that may be, if arms have to be drawn again."""
        opened = self.brackets()
        if sum(bracket.arms for bracket in opened) <= self.arms:
            return super().plan()
        pulls = sum(map(self._cost, opened))
        observations = sum(sum(bracket.sizes) for bracket in opened)
        return Plan((), pulls, observations, exact=False)

    def plan_details(self) -> dict[str, Any]:
        """The brackets that are opened."""
        opened = [
            {"arms": bracket.arms, "levels": bracket.levels, "pulls": self._cost(bracket)}
            for bracket in self.brackets()
        ]
        return {"brackets": opened}

    def nothing_left(
        self, curves: Curves, failures: Mapping[int, Failure], pulls: int
    ) -> str | None:
        """Perhaps its budget was enough for all brackets."""
        if reason := super().nothing_left(curves, failures, pulls):
            return reason
        every = (
            self._cost(bracket._replace(arms=min(bracket.arms, self.arms)))
            for bracket in brackets(self.max_pulls, self.eta)
        )
        return "all brackets have been run" if sum(every) <= self.budget else None

    def algorithm(self) -> Algorithm:
        """Their algorithm."""
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

        return hyperband(draw, self.brackets())

    def only_arm(self) -> Algorithm:
        """One arm too gets no more than `max_pulls`."""
        return self.algorithm()

    def least_budget(self, arms: int) -> int:
        """One pull of one arm, where `max_pulls` has been lowered to 1."""
        return 1
