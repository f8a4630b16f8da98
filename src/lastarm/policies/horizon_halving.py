"""Successive Halving that knows how far an arm can be trained at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from lastarm.arguments import Number, plain_fraction, rational
from lastarm.events import Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.parts.expectation import CHOSEN, worth_drawing
from lastarm.policies.parts.rungs import Cost, entering, levels
from lastarm.policies.parts.trust import Trust
from lastarm.policies.plan import Plan
from lastarm.policy import Algorithm, NoHealthyArm, added_later, price, ranking

Purse = Callable[[int, int], tuple[Cost, Cost]]
"""From the numbers of pulls and looks so far: what is left, and what a look costs."""

Choice = Callable[[Mapping[int, float], int, int], list[int]]
"""From the losses of a rung, a number n, and its level: the n arms that go on, the best first."""


def lowest_losses(losses: Mapping[int, float], n: int, level: int) -> list[int]:
    """The n arms with the lowest losses."""
    return ranking(losses)[:n]


def horizon_halving(
    arms: Iterable[int],
    max_pulls: int,
    eta: Fraction,
    purse: Purse,
    choice: Choice = lowest_losses,
    at: int = 0,
    *,
    restarts: bool = False,
) -> Algorithm:
    """Plan all rungs to come with what is left, play the first of them, then plan again.

    The arms have had `at` pulls. If that is more than none, the best of them comes first. If the
    trainer `restarts`, each rung trains its arms from zero.
    """
    S, R, pulls, looks = list(arms), at, 0, 0
    while True:
        left, look_cost = purse(pulls, looks)
        sizes = entering(len(S), eta)
        planned = levels(sizes, left, max_pulls, at=R, look_cost=look_cost, restarts=restarts)
        if planned[0] == R:  # nothing is left for another look
            if not R:
                raise NoHealthyArm
            return S[0]
        pulls += len(S) * price(R, planned[0], restarts=restarts)
        looks, R = looks + len(S), planned[0]
        losses = yield [Pull(arm, upto=R) for arm in sorted(S)]
        higher = (size for size, level in zip(sizes, planned, strict=True) if level > R)
        S = choice(losses, next(higher, 1), R)
        if len(S) == 1:
            return S[0]


@dataclass(eq=False, repr=False)
class HorizonHalving(InRounds):
    """Successive Halving with levels up to a horizon: the most pulls that one arm may get.

    Successive Halving gives its last survivors more pulls than a curve is long. Here no arm is
    brought past M = `max_pulls`, and what this saves raises the levels of all rungs: n_k arms are
    brought to R_k = min(M, ⌈s / n_k⌉) pulls, with the greatest s that the budget allows. What
    rounding leaves over raises the next rungs. Of n_k arms ⌊n_k / eta⌋ go on, at least one and at
    most n_k − 1, for any rational eta above 1, such as "3/2". When arms reach M, the best of them
    is the answer.

    Half of those that go on, rounded up, are the arms with the lowest losses. The other half are
    those that are expected lowest at the horizon, if their curves fall on as they did since the
    look before. If the search shows that falls do not last, and in the first rung, all go on by
    their losses (`Trust`).

    >>> print(HorizonHalving(arms=64, budget=652, max_pulls=51).plan())
    rung    arms  pulls each  brought to  pulls in all
       1      64           4           4           256
       2      32           3           7           352
       3      16           6          13           448
       4       8          13          26           552
       5       4          25          51           652

    With eta = 2 there are at most 2n observations. A small budget is better spent on fewer arms:
    how many are `drawn`, by `seed`, is decided by a model of learning curves (`expected_rank`).
    More than n·M pulls are never spent: then every arm is brought to M, and the rest of the budget
    is left.

    >>> HorizonHalving(arms=64, budget=65, max_pulls=51).drawn
    17
    >>> HorizonHalving(arms=4, budget=1000, max_pulls=51).plan().pulls
    204

    Of the arms drawn, the one that is best at the horizon is found with every budget of at least
    `lastarm.theory.horizon_budget`, which is never more than n·M. With any budget, the arm that is
    found is at most Σ_k 2γ̄(R_k) worse: `lastarm.theory.horizon_regret` (docs/theory.md).

    Not only the ranking of losses matters, their differences do: a loss and its logarithm may be
    answered differently. Version 1, of lastarm 0.1, went by losses alone.

    Ties go to the lower arm number. An arm that fails or diverges is dropped and never
    recommended. The pulls that it would have used raise the next levels.

    If the trainer `restarts`, every level is trained from zero. A rung then costs n_k·R_k pulls,
    and s is the greatest share for which this sum fits into the budget.

    >>> print(HorizonHalving(arms=64, budget=652, max_pulls=51, restarts=True).plan())
    rung    arms  pulls each  brought to  pulls in all
       1      64           2           2           128
       2      32           3           3           224
       3      16           7           7           336
       4       8          13          13           440
       5       4          51          51           644

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.
    - `max_pulls`: the most pulls that one arm may get.
    - `eta`: the best 1/eta of a rung go on; a number above 1, or a fraction such as "3/2".
    - `seed`: the draw of arms is derived from it.
    - `restarts`: whether the trainer trains every level from zero. `search` asks the trainer.

    Source: ours, after Jamieson & Talwalkar (2015); docs/decisions.md says why it is as it is.
    """

    name: ClassVar[str] = "horizon-halving"
    version: ClassVar[int] = 2
    who_goes_on: ClassVar[str] = (
        "Half of those that go on have the lowest losses. The other half are expected lowest in "
        "the end, by how their curves fell since the look before; if falls did not last in this "
        "search, they too have the lowest losses."
    )
    why_higher: ClassVar[str] = (
        "horizon-halving lets half of the arms go on by where their curves lead, and that one had "
        "fallen more since the rung before."
    )
    max_pulls: int
    eta: Number = 2
    seed: int = 0
    restarts: bool = added_later(False, kw_only=True)

    def __post_init__(self) -> None:
        if not (isinstance(self.eta, str) and self.eta == CHOSEN):
            meaning = "the part of a rung that is kept, as 1/eta"
            self.eta = plain_fraction(rational("eta", self.eta, 1, meaning, more=True))
        super().__post_init__()

    @property
    def drawn(self) -> int:
        """How many of the arms are worth drawing with this budget."""
        return self._worth_drawing()[0]

    def _worth_drawing(self, before: int = 0) -> tuple[int, Fraction]:
        """How many arms, and which eta, if some pulls are booked before."""
        left, look_cost = self.purse(before, 0)
        return worth_drawing(
            self.arms, left, self.max_pulls, self.eta, look_cost, restarts=self.restarts
        )

    def plan_remarks(self, plan: Plan) -> list[str]:
        """Whether it leaves out arms, or some of the budget."""
        said = []
        if plan.exact and self.drawn < self.arms:
            said.append(
                f"It draws {self.drawn:,} of {self.arms:,} arms: with this budget, more of them, "
                "each trained less, would probably give a worse answer."
            )
        if plan.exact and plan.pulls == self.arms * self.max_pulls < self.budget:
            said.append(
                f"Every arm is trained for the full {self.max_pulls:,} pulls; "
                f"{self.budget - plan.pulls:,} pulls stay unspent."
            )
        return said

    def plan_details(self) -> dict[str, Any]:
        """How many arms are drawn."""
        return {"drawn": self.drawn}

    def algorithm(self) -> Algorithm:
        """Halving, with all of the budget for pulls."""
        n, eta = self._worth_drawing()
        arms, choice = self.draw(n), self.choice()
        return horizon_halving(
            arms, self.max_pulls, eta, self.purse, choice, restarts=self.restarts
        )

    def draw(self, n: int) -> list[int]:
        """`n` of the arms, drawn by the seed."""
        if n == self.arms:
            return list(range(n))
        random = Random(self.seed)
        return sorted(range(self.arms), key=lambda _: random.random())[:n]  # on every Python

    def purse(self, pulls: int, looks: int) -> tuple[Cost, Cost]:
        """What pulls and looks have left of the budget, and what a look costs."""
        look_cost = self.price_of_a_look()
        return self.budget - pulls - look_cost * looks, look_cost

    def choice(self) -> Choice:
        """Half go on by their losses, half by where their curves lead."""
        return Trust(self.max_pulls).choice

    def only_arm(self) -> Algorithm:
        """One arm too gets no more than `max_pulls`."""
        return self.algorithm()

    def least_budget(self, arms: int) -> int:
        """One pull of one arm."""
        return 1
