"""Plans: what a policy will spend, as data, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

from lastarm.errors import InvalidArgument
from lastarm.events import Loss
from lastarm.policy import Policy, price

MOST_OBSERVATIONS = 5_000_000


@dataclass(frozen=True, slots=True)
class PlannedRung:
    """`arms` arms take `pulls` pulls each, up to `upto`; then their losses are looked at."""

    arms: int
    pulls: int
    upto: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy will spend, before anything is spent.

    >>> from lastarm import SuccessiveHalving
    >>> print(SuccessiveHalving(arms=16, budget=256).plan())
    rung    arms  pulls each  brought to  pulls in all
       1      16           4           4            64
       2       8           8          12           128
       3       4          16          28           192
       4       2          32          60           256

    If what a policy does depends on the losses it sees, there are no rungs, the plan is not
    `exact`, and its pulls and observations are the most that there can be.
    """

    rungs: tuple[PlannedRung, ...]
    pulls: int  # over all arms and rungs
    observations: int
    exact: bool = True

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """The plan of a policy that has not begun, found by playing it where all losses tie."""
        rungs: list[PlannedRung] = []
        level: dict[int, int] = {}
        total = observations = 0
        cost = partial(price, restarts=getattr(policy, "restarts", False))
        while max(observations, policy.arms) <= MOST_OBSERVATIONS:
            pulls = policy.ask(policy.arms)
            if not pulls:
                return cls(tuple(rungs), total, observations)
            first = pulls[0]
            each = cost(level.get(first.arm, 0), first.upto)
            rungs.append(PlannedRung(len(pulls), each, first.upto))
            for pull in pulls:
                total += cost(level.get(pull.arm, 0), pull.upto)
                level[pull.arm] = pull.upto
                policy.tell(Loss(pull, 0.0))
            observations += len(pulls)
        rule = f"at most {MOST_OBSERVATIONS:,} losses can be planned one by one"
        raise InvalidArgument.of("arms", policy.arms, rule, "Draw fewer arms")

    def __str__(self) -> str:
        lines = ["rung    arms  pulls each  brought to  pulls in all"]
        total = 0
        for number, rung in enumerate(self.rungs, start=1):
            total += rung.arms * rung.pulls
            lines.append(
                f"{number:>4}  {rung.arms:>6}  {rung.pulls:>10}  {rung.upto:>10}  {total:>12}"
            )
        return "\n".join(lines)
