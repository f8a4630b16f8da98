"""The doubling trick: Jamieson & Talwalkar (2015), §3, of any policy with a fixed budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from lastarm.arguments import one_of
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policies.parts.integers import ceil_log
from lastarm.policies.successive_halving import SuccessiveHalving
from lastarm.policies.successive_rejects import SuccessiveRejects
from lastarm.policies.uniform_allocation import UniformAllocation
from lastarm.policy import Algorithm, NoHealthyArm

FIXED_BUDGET = {
    policy.name: policy for policy in (UniformAllocation, SuccessiveHalving, SuccessiveRejects)
}


def doubling(
    algorithm: Callable[[int], Algorithm], first: int, total: int, healthy: Callable[[], bool]
) -> Algorithm:
    """Run `algorithm(B)` for B ← first, B ← 2B, …, each continuing where the last one ended."""
    B = first
    while True:
        try:
            winner = yield from algorithm(B)
            if total == B:
                return winner
        except NoHealthyArm:  # all survivors of this run failed, but others may be left
            if total == B or not healthy():
                raise
        B = min(2 * B, total)


@dataclass(eq=False)
class Doubling(InRounds):
    """Run a policy with a small budget, then with twice that, and so on, until it is stopped.

    The budgets are n·⌈log₂ n⌉, twice that, four times that, …, up to `budget`, the total of all
    pulls. Every arm continues from where it was, and an arm that is already far enough is neither
    pulled nor looked at, so only what is new is spent. A round that would exceed the total is not
    begun, and ends the search. It can be stopped at any moment: then the lowest latest loss is
    recommended.

    >>> policy = Doubling(arms=4, budget=100)
    >>> policy.ask(4)
    [Pull(arm=0, upto=1), Pull(arm=1, upto=1), Pull(arm=2, upto=1), Pull(arm=3, upto=1)]

    If a budget of B′ is enough and no less than the first, then the first of these budgets to
    reach it is below 2B′, as the paper says. The pulls that are spent until then can be more: the
    budgets add up to less than 4B′, which is the most that starting anew each time would cost.
    Continuing costs no more than that, and mostly much less, but can exceed 2B′ (docs/theory.md).

    - `arms`, `budget`: how many arms there are, and the total of pulls over all of them.
    - `of`: the policy that is run: successive-halving, successive-rejects or uniform.

    Source: Jamieson & Talwalkar (2015), §3, after the figure of Successive Halving.
    """

    name: ClassVar[str] = "doubling"
    begins_anew: ClassVar[bool] = True
    adaptive: ClassVar[bool] = True
    of: str = field(
        default=SuccessiveHalving.name,
        metadata={"help": f"The policy whose budget is doubled: {', '.join(FIXED_BUDGET)}."},
    )

    def __post_init__(self) -> None:
        self.of = one_of("of", self.of, FIXED_BUDGET, "the policy whose budget is doubled")
        super().__post_init__()

    def algorithm(self, first: int = 0) -> Algorithm:
        """The policy's algorithm, again and again."""

        def once(budget: int) -> Algorithm:
            return FIXED_BUDGET[self.of](self.arms, budget).algorithm()

        first = first or self.least_budget(self.arms)
        return doubling(once, first, self.budget, healthy=lambda: bool(self._healthy()))

    def run_again(self, before: int) -> Algorithm:
        """The budgets that follow."""
        return self.algorithm(first=min(2 * before, self.budget))

    def least_budget(self, arms: int) -> int:
        """The first of the budgets."""
        return max(arms * ceil_log(arms, 2), FIXED_BUDGET[self.of](1, 1).least_budget(arms))
