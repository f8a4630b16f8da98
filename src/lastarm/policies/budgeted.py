"""What the fixed-budget policies share: their two arguments, the check of them, and the plan."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from lastarm.errors import require_budget, whole_number
from lastarm.plan import Plan
from lastarm.policy import Algorithm, Rounds


@dataclass(eq=False)
class FixedBudget(Rounds):
    """A policy that is told beforehand how many arms there are and how many pulls in all."""

    name: ClassVar[str]
    arms: int
    budget: int

    def __post_init__(self) -> None:
        self.arms = whole_number("arms", self.arms, 1, "the number of settings to choose from")
        self.budget = whole_number("budget", self.budget, 1, "the total of pulls over all arms")
        require_budget(self.budget, self.arms, self.least_budget)
        super().__init__(self.algorithm())

    @abstractmethod
    def algorithm(self) -> Algorithm:
        """The rounds, from the beginning."""

    @abstractmethod
    def least_budget(self, arms: int) -> int:
        """The least budget with which every one of `arms` arms is pulled in the first round."""

    def plan(self) -> Plan:
        """What will be spent, rung by rung, if no arm fails."""
        return Plan.of(dataclasses.replace(self))
