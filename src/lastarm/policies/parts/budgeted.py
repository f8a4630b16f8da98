"""What all policies share: their arms and their budget, the plan, and what a reader has to know.

All that is particular to one policy stands in its file. What the command and the report have to
know of it is an attribute or a method here, with what is true of most policies as the default.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import inf, isfinite
from typing import Any, ClassVar, Self

from lastarm.arguments import require_budget, whole_number
from lastarm.arguments.other_tools import OnlyKnown
from lastarm.errors import InvalidArgument
from lastarm.events import Failure, Pull
from lastarm.policies.plan import Plan
from lastarm.policy import Algorithm, Policy, Rounds, describe, fresh

WHOLE_NUMBERS = {
    "arms": (1, "the number of settings to choose from"),
    "budget": (1, "the total of pulls over all arms"),
    "max_pulls": (1, "the most pulls that one arm may get"),
    "seed": (0, "what its draws are derived from"),
}
"""Arguments of policies that mean the same everywhere: the least that they may be, and what."""

NEEDED = "needed"  # in a field's metadata: it has no default, though fields before it do

YES_OR_NO = {
    "open_ended": "it says whether arms is only the most that may be drawn",
    "restarts": "it says whether the trainer trains every level from zero",
}
"""Arguments that are True or False, and what they say."""

Curves = Mapping[int, Sequence[tuple[int, float]]]
"""What was seen of each arm: (level, loss), in order."""


class Facts:
    """What the report and the command have to know of a policy; the defaults hold for most."""

    has_rungs: ClassVar[bool] = True  # whether it compares arms that it brought to one level
    drops: ClassVar[bool] = True  # whether an arm that others pass is out, and cannot come back
    begins_anew: ClassVar[bool] = False  # whether it returns to low levels, in another bracket
    draws_anew: ClassVar[bool] = False  # and whether only arms that it then draws take part
    counts_arms: ClassVar[bool] = True  # whether a header has to say how many arms there are
    ends_when_sure: ClassVar[bool] = False  # whether it may end before its budget does
    measures: ClassVar[bool] = False  # whether it decides by how long pulls and looks take
    who_goes_on: ClassVar[str] = "The best go on."
    why_higher: ClassVar[str] = ""  # why an arm may go on in place of one with a lower loss


@dataclass(eq=False, repr=False)
class Budgeted(OnlyKnown, Facts, Policy):
    """A policy that is told beforehand how many arms there are and how many pulls in all."""

    name: ClassVar[str]
    version: ClassVar[int] = 1  # goes up when it does something else with the same arguments
    adaptive: ClassVar[bool] = False  # whether what it looks at depends on what it sees
    arms: int
    budget: int

    def __post_init__(self) -> None:
        for name, (least, meaning) in WHOLE_NUMBERS.items():
            if name in self.__dataclass_fields__:
                setattr(self, name, whole_number(name, getattr(self, name), least, meaning))
        for name, rule in YES_OR_NO.items():
            if not isinstance(given := getattr(self, name, False), bool):
                raise InvalidArgument.of(name, given, rule, "Use True or False")
        require_budget(self.budget, self.arms, self.least_budget)

    @classmethod
    def completed(cls, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The numbers that were given, with those that were left out and follow from them."""
        return dict(numbers)

    def arguments(self) -> dict[str, Any]:
        """What it was made with, by name."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}

    def __reduce__(self) -> tuple[partial[Self], tuple[()]]:
        """A copy is a policy that has not begun: a generator under way cannot be copied."""
        return partial(type(self), **self.arguments()), ()

    def __repr__(self) -> str:
        """Its arguments, as a header has them: without those that say nothing new."""
        said = describe(self).items()
        listed = (f"{name}={value!r}" for name, value in said if name not in ("name", "version"))
        return f"{type(self).__name__}({', '.join(listed)})"

    def raise_budget(self, budget: int) -> int:
        """Take a larger budget; how large it was before."""
        before = self.budget
        meaning = f"what a budget of {before} is raised to"
        self.budget = whole_number("budget", budget, before + 1, meaning)
        return before

    def least_budget(self, arms: int) -> int:
        """The least budget for this number of arms: one pull each, unless a policy says more."""
        return arms

    def plan(self) -> Plan:
        """What will be spent, rung by rung, if no arm fails; of an adaptive policy, the most."""
        if self.adaptive:
            return Plan((), self.budget, self.most_observations(), exact=False)
        return Plan.of(fresh(self))

    def most_observations(self) -> int:
        """How many losses it may look at. This is the number of pulls, or a bound of its own."""
        return self.budget

    def plan_remarks(self, plan: Plan) -> list[str]:
        """Sentences for people who read its plan."""
        return []

    def plan_details(self) -> dict[str, Any]:
        """What its plan has besides, for programs that read it."""
        return {}

    @property
    def has_no_budget(self) -> bool:
        """Whether only seconds bound what it does. It then has `seconds` and `at_once`."""
        return False

    @property
    def theorem_1_holds(self) -> bool:
        """Whether it is the algorithm that Theorem 1 of the paper is about, without a change."""
        return False

    def nothing_left(
        self, curves: Curves, failures: Mapping[int, Failure], pulls: int
    ) -> str | None:
        """Why a search that has ended would do nothing with more budget, where that is known.

        `curves` and `failures` are what it has seen, and `pulls` what it has booked in all.
        """
        if self.ends_when_sure and self.budget - pulls >= self.arms:
            return "it ended by itself, before its budget did"
        most: int | None = getattr(self, "max_pulls", None)
        if (
            most
            and len(curves.keys() | failures.keys()) == self.arms
            and all(
                curve[-1][0] >= most or not isfinite(curve[-1][1])
                for arm, curve in curves.items()
                if arm not in failures
            )
        ):
            return f"every arm has had its {most:,} pulls"
        return None


@dataclass(eq=False, repr=False)
class InRounds(Rounds, Budgeted):
    """A policy whose algorithm goes round by round."""

    def __post_init__(self) -> None:
        Budgeted.__post_init__(self)
        algorithm = self.algorithm() if self.arms > 1 else self.only_arm()
        total = self.budget if self.adaptive else inf
        restarts = getattr(self, "restarts", False)
        Rounds.__init__(self, algorithm, total, self.price_of_a_look(), restarts=restarts)

    def extend(self, budget: int) -> None:
        """Run the algorithm again, now that it has ended, with a larger budget.

        Arms continue from where they are, and one that is already far enough is neither pulled nor
        looked at. What was booked before counts, also for arms that are dropped earlier this time.
        If a round would therefore exceed the budget, what is left is spent on it, and it ends.

        >>> from lastarm import Loss, SuccessiveHalving
        >>> policy = SuccessiveHalving(arms=2, budget=8)
        >>> for pull in policy.ask(2):
        ...     policy.tell(Loss(pull, 1 / (pull.arm + 1)))
        >>> policy.finished, policy.recommendation
        (True, 1)
        >>> policy.extend(20)
        >>> policy.ask(2)
        [Pull(arm=0, upto=10), Pull(arm=1, upto=10)]
        """
        before = self.raise_budget(budget)
        algorithm = self.run_again(before) if self.arms > 1 else self.only_arm()
        self.go_on_with(algorithm, left=budget - self.booked)

    def price_of_a_look(self) -> Fraction | int:
        """What a look takes of the budget, in pulls."""
        return 0

    def run_again(self, before: int) -> Algorithm:
        """The algorithm for the new budget, when one with the budget `before` has ended."""
        return self.algorithm()

    @abstractmethod
    def algorithm(self) -> Algorithm:
        """The rounds, from the beginning, for two arms or more."""

    def only_arm(self) -> Algorithm:
        """There is nothing to choose, so the arm gets the whole budget."""
        yield [Pull(0, upto=self.budget)]
        return 0
