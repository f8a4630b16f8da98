"""The doubling trick: Jamieson & Talwalkar (2015), §3, of any policy with a fixed budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from lastarm.errors import InvalidArgument
from lastarm.events import Pull
from lastarm.integers import ceil_log
from lastarm.policies.budgeted import InRounds
from lastarm.policies.successive_halving import SuccessiveHalving
from lastarm.policies.successive_rejects import SuccessiveRejects
from lastarm.policies.uniform_allocation import UniformAllocation
from lastarm.policy import Algorithm, NoHealthyArm

FIXED_BUDGET = {
    policy.name: policy for policy in (UniformAllocation, SuccessiveHalving, SuccessiveRejects)
}


def doubling(algorithm: Callable[[int], Algorithm], first: int, total: int) -> Algorithm:
    """Run `algorithm(B)` for B ← first, B ← 2B, …, each going on from where the last one was."""
    B, winner = first, None
    level: dict[int, int] = {}  # arm → pulls it has had, so that only new ones are counted
    while True:
        try:
            winner = yield from _noting(algorithm(B), level)
        except NoHealthyArm:
            winner = None
        left = total - sum(level.values())
        if min(2 * B, left) <= B:
            break
        B = min(2 * B, left)
    if winner is None:
        raise NoHealthyArm
    return winner


def _noting(algorithm: Algorithm, level: dict[int, int]) -> Algorithm:
    """The same algorithm; the levels that it asks for are noted."""
    go_on: Callable[[], list[Pull]] = partial(next, algorithm)
    while True:
        try:
            pulls = go_on()
        except StopIteration as end:
            return int(end.value)
        for pull in pulls:
            level[pull.arm] = max(pull.upto, level.get(pull.arm, 0))
        try:
            losses = yield pulls
            go_on = partial(algorithm.send, losses)
        except NoHealthyArm as lost:
            go_on = partial(algorithm.throw, lost)


@dataclass(eq=False)
class Doubling(InRounds):
    """Run a policy with a small budget, then with twice that, and so on, until told to stop.

    The budgets are n·⌈log₂ n⌉, twice that, four times that, …; the last is what is left of
    `budget`, the total. Every arm goes on from where it was, and an arm that is already far enough
    is neither pulled nor looked at, so only what is new is spent. Stop it at any moment: the
    recommendation is the lowest latest loss.

    >>> policy = Doubling(arms=4, budget=100)
    >>> policy.ask(4)
    [Pull(arm=0, upto=1), Pull(arm=1, upto=1), Pull(arm=2, upto=1), Pull(arm=3, upto=1)]

    If a budget of B′ is enough, the first of these budgets to reach it is below 2B′, as the paper
    says. The pulls spent up to its end are another matter: the budgets add up to less than 4B′,
    which is what starting anew each time costs at most; going on costs no more, and mostly much
    less, but can exceed 2B′ too (docs/theory.md).

    `of` names the policy: successive-halving, successive-rejects or uniform.

    Source: Jamieson & Talwalkar (2015), §3, after the figure of Successive Halving.
    """

    name: ClassVar[str] = "doubling"
    adaptive: ClassVar[bool] = True
    of: str = SuccessiveHalving.name

    def __post_init__(self) -> None:
        if self.of not in FIXED_BUDGET:
            raise InvalidArgument(
                f"of={self.of!r} will not do: it is the policy whose budget is doubled. "
                f"Give one of {', '.join(FIXED_BUDGET)}."
            )
        super().__post_init__()

    def algorithm(self) -> Algorithm:
        """The policy's algorithm, again and again."""

        def once(budget: int) -> Algorithm:
            return FIXED_BUDGET[self.of](self.arms, budget).algorithm()

        return doubling(once, self.least_budget(self.arms), self.budget)

    def least_budget(self, arms: int) -> int:
        """The first of the budgets."""
        return max(arms * ceil_log(arms, 2), FIXED_BUDGET[self.of](1, 1).least_budget(arms))
