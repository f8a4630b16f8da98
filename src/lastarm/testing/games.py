"""Small games for the laws of policies: losses often tie, fail and diverge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsInt

import numpy as np

from lastarm.errors import BudgetTooSmall
from lastarm.events import Failure, Loss, Pull, Told
from lastarm.policy import Policy

MakePolicy = Callable[[int, int], Policy]
"""`make(arms, budget)`; a policy class is one."""

FINITE = (0.0, 0.25, 0.5, 1.0)
ANY = FINITE * 4 + (math.inf, -math.inf, math.nan, None)  # None is a failure
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 27)


@dataclass(frozen=True)
class Game:
    """Some arms, a budget, and a table with the outcome of every pull."""

    make: MakePolicy
    arms: int
    budget: int
    outcomes: Sequence[Sequence[float | None]]

    def __repr__(self) -> str:
        return f"arms={self.arms}, budget={self.budget}, outcomes={self.outcomes}"

    def begin(self) -> Policy:
        """A policy that has not begun."""
        return self.make(self.arms, self.budget)

    def answer(self, pull: Pull) -> Told:
        """What the policy is told about a pull."""
        row = self.outcomes[pull.arm]
        loss = row[pull.upto % len(row)]
        return Failure(pull, "it fails in this game") if loss is None else Loss(pull, loss)

    def play(
        self,
        policy: Policy,
        *,
        width: int = 3,
        pick: Callable[[int], SupportsInt] = lambda _: 0,
        begun: Sequence[Pull | Told] = (),
    ) -> list[Pull | Told]:
        """Everything asked and told to the end, with `width` pulls in flight at a time.

        `pick(k)` says which of k pulls in flight is told next; `begun` is the beginning of a game
        that continues here.
        """
        history = list(begun)
        told = {event.pull for event in history if not isinstance(event, Pull)}
        in_flight = [event for event in history if isinstance(event, Pull) and event not in told]
        while True:
            asked = policy.ask(width - len(in_flight))
            in_flight += asked
            history += asked
            if not in_flight:
                return history
            answer = self.answer(in_flight.pop(int(pick(len(in_flight)))))
            policy.tell(answer)
            history.append(answer)


def games(make: MakePolicy, outcomes: Sequence[float | None] = ANY) -> Iterator[Game]:
    """Many small games for a policy, with its least budget and larger ones."""
    for seed, arms in enumerate(SIZES):
        try:
            make(arms, 1)
            least = 1
        except BudgetTooSmall as error:
            least = error.least
        random = np.random.default_rng(seed)
        for budget in (least, least + 1, 2 * least + 1, 7 * least):
            table = random.integers(0, len(outcomes), (arms, 23)).tolist()
            yield Game(make, arms, budget, [[outcomes[k] for k in row] for row in table])
