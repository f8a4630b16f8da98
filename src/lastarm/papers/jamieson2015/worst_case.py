"""The losses that the theorems are tried on, and how a policy is played on them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from typing import Any, NamedTuple

from lastarm.events import Loss
from lastarm.policy import Policy, Rounds
from lastarm.theory import sgd_envelope

Row = dict[str, Any]
LATEST = 2**50  # by then all envelopes here have settled
ALL = 2**31  # the pulls of a round
SIGMA, DELTA = 1.0, 0.05  # of Example 1


@dataclass(frozen=True)
class Adversary:
    """Theorem 3's losses on the limits of Example 2, ν_a = a/n.

    The best arm comes down to its limit, 1/n, along β; all others come up to theirs. It is the
    last arm, so that it also loses ties. As `theory.adversary`, without a table.

    >>> two = Adversary(2, lambda t: 0.5 / t)
    >>> two.loss(0, pulls=2), two.loss(two.best, pulls=2), two.settling
    (0.75, 0.75, [3])
    """

    n: int
    beta: Callable[[int], float]

    @property
    def best(self) -> int:
        """The arm of the least limit."""
        return self.n - 1

    def limit(self, arm: int) -> float:
        """ν of an arm."""
        return (1 if arm == self.best else arm + 2) / self.n

    def loss(self, arm: int, pulls: int) -> float:
        """ν + β for the best arm, ν − β for any other."""
        return self.limit(arm) + (1 if arm == self.best else -1) * self.beta(pulls)

    @cached_property
    def settling(self) -> list[int]:
        """γ̄⁻¹((ν_i − ν_1)/2) for i = 2, …, n, exactly."""
        return [self._settled(gap / self.n / 2) for gap in range(1, self.n)]

    def _settled(self, alpha: float) -> int:
        """The least t for which β(t) < α: β decreases."""
        times = range(1, LATEST)
        return times[bisect_left(times, True, key=lambda t: self.beta(t) < alpha)]


ENVELOPES: dict[str, Callable[[int], Callable[[int], float]]] = {
    "1/t": lambda n: lambda t: 1 / t,
    "1/√t": lambda n: lambda t: 1 / sqrt(t),
    "σ·log(nt/δ)/t": lambda n: lambda t: sgd_envelope(t, n, SIGMA, DELTA),
}
"""β by its name, for n arms; the last is that of Example 1."""


class Played(NamedTuple):
    """The arm that a policy returned, and what it spent: pulls, and losses observed."""

    arm: int | None
    pulls: int
    observed: int


def played(policy: Policy | Rounds, loss: Callable[[int, int], float]) -> Played:
    """Play a policy to its end where the loss of an arm is a function of its pulls."""
    level: dict[int, int] = {}
    observed = 0
    while pulls := policy.ask(ALL):
        for pull in pulls:
            level[pull.arm] = pull.upto
            policy.tell(Loss(pull, loss(pull.arm, pull.upto)))
        observed += len(pulls)
    return Played(policy.recommendation, sum(level.values()), observed)


def log_factor(n: int) -> float:
    """Example 2's log(2n²σ/δ)."""
    return log(2 * n**2 * SIGMA / DELTA)
