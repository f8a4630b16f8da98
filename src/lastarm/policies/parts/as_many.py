"""What policies share that begin new arms as long as there is budget."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar, TypeGuard, cast

from lastarm.events import Pull
from lastarm.policies.parts.budgeted import NEEDED, InRounds
from lastarm.policy import Algorithm, NoHealthyArm, Policy, added_later, price

AS_MANY = 10**12  # arms: as many as the budget allows for


@dataclass(eq=False, repr=False)
class AsMany(InRounds):
    """A policy that begins arms as long as there is budget; how many there are follows from it.

    - `arms`: the most arms that are begun. Left out, as many as the budget allows for.
    - `budget`: the total of pulls over all of them.
    - `max_pulls`: the most pulls that one arm may get.

    `arms` is then the number of arms that there may be. A copy of the policy, and the header of a
    journal, have what was given, so that a larger budget has more arms.
    """

    begins_anew: ClassVar[bool] = True
    draws_anew: ClassVar[bool] = True
    counts_arms: ClassVar[bool] = False
    arms: int = added_later(AS_MANY)
    budget: int = field(default=cast(int, None), metadata={NEEDED: True})
    max_pulls: int = field(default=cast(int, None), metadata={NEEDED: True})

    def __post_init__(self) -> None:
        super().__post_init__()
        self._most = self.arms
        self.arms = self.most_arms([self.budget])

    def arguments(self) -> dict[str, Any]:
        """As they were given."""
        return super().arguments() | {"arms": getattr(self, "_most", self.arms)}

    @property
    def open_ended(self) -> bool:
        """Whether it begins as many arms as the budget allows for."""
        return self._most == AS_MANY

    @property
    def in_order(self) -> bool:
        """Whether arms begin in the order of their numbers."""
        return True

    @property
    def batch(self) -> int:
        """How many arms begin together, in a rung in which any begin: all of that rung."""
        return len(self._round)

    def most_arms(self, budgets: Sequence[int]) -> int:
        """How many arms there may be, even if all fail, with one budget after another."""
        if not self.in_order:
            return self._most
        return min(self._most, sum(budget // self.least_level(budget) + 1 for budget in budgets))

    @abstractmethod
    def least_level(self, budget: int) -> int:
        """The least level at which arms are compared with such a budget."""

    def extend(self, budget: int) -> None:
        """Continue with a larger budget, and so with more arms."""
        self.arms = min(self._most, self.arms + self.most_arms([budget]))
        super().extend(budget)

    def only_arm(self) -> Algorithm:
        """One arm too gets no more than `max_pulls`."""
        return self.algorithm()

    def least_budget(self, arms: int) -> int:
        """One pull of one arm."""
        return 1

    # What the algorithms ask between two rounds --------------------------------------------------

    @property
    def left(self) -> int:
        """How many pulls of the budget are left."""
        return self.budget - int(self.booked)

    @property
    def reached(self) -> dict[int, int]:
        """Arm → its level, of all healthy arms."""
        return {arm: at for arm, at in enumerate(self._level) if isfinite(self._losses[arm])}

    @property
    def tried(self) -> int:
        """How many arms have begun."""
        return sum(level > 0 for level in self._level)

    def spend_what_is_left(self) -> Generator[list[Pull], dict[int, float], None]:
        """Spend what is not enough for a bracket on the most promising arms that were dropped.

        Those at the highest level come first, and of these the lowest loss. As many as possible
        are brought to the highest level of all, and the next one as far as possible. If all arms
        are there, new ones begin, unless arms begin in an order that is drawn.
        """
        while pulls := self._for_what_is_left():
            try:
                yield pulls
            except NoHealthyArm:
                continue

    def _for_what_is_left(self) -> list[Pull]:
        left, R, at = self.left, self.max_pulls, self.reached
        if not left:
            return []
        dropped = [arm for arm in at if at[arm] < R]
        dropped.sort(key=lambda arm: (-at[arm], self._losses[arm], arm))
        fully: list[Pull] = []
        for arm in dropped:
            cost = price(at[arm], R, restarts=self._restarts)
            if cost > left or at[arm] < at[dropped[0]]:  # those of one level are a rung
                break
            fully.append(Pull(arm, upto=R))
            left -= cost
        if fully:
            return sorted(fully, key=lambda pull: pull.arm)
        for arm in dropped:
            upto = left if self._restarts else at[arm] + left
            if upto > at[arm]:
                return [Pull(arm, upto)]
        new = self.tried
        return [Pull(new, upto=min(R, left))] if self.in_order and new < self.arms else []


def grows(policy: Policy) -> TypeGuard[AsMany]:
    """Whether arms begin in the order of their numbers, so that a larger budget adds some."""
    return isinstance(policy, AsMany) and policy.in_order
