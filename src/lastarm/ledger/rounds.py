"""The rounds of a search: its policy is walked once more through what was seen.

A journal tells only of arms that are pulled. Who was compared besides, because they were past a
level already, the policy knows: it is deterministic in what it is told.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastarm.errors import InvalidArgument
from lastarm.events import Event, Extended, Failure, Loss, Pull, Told
from lastarm.policies.named import from_header
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import is_healthy


@dataclass(frozen=True)
class Round:
    """Arms that were compared: some were brought to a level, others had come past it already."""

    stretch: int  # from 1
    level: int
    pulls: Sequence[Pull]
    already: Mapping[int, tuple[int, float]]  # arm → its level and loss

    @property
    def arms(self) -> set[int]:
        """All of them."""
        return {pull.arm for pull in self.pulls} | self.already.keys()


def rounds_of(policy: Mapping[str, Any], events: Sequence[Event]) -> list[Round]:
    """The rounds that have begun; none, if the policy is not known or would have done otherwise.

    `policy` is as a journal describes it. The order of events does not matter.

    >>> seen = [Loss(Pull(arm, upto=2), arm / 4) for arm in range(4)] + [Loss(Pull(0, 6), 0.1)]
    >>> halving = {"name": "successive-halving", "arms": 4, "budget": 16}
    >>> [(one.level, one.arms) for one in rounds_of(halving, seen)]
    [(2, {0, 1, 2, 3}), (6, {0, 1})]
    """
    walked = from_header(policy)
    told: dict[Pull, Told] = {
        event.pull: event
        for event in events
        if isinstance(event, Loss) or (isinstance(event, Failure) and not event.retried)
    }
    begun = told.keys() | {event for event in events if isinstance(event, Pull)}
    budgets = [event.budget for event in events if isinstance(event, Extended)]
    rounds: list[Round] = []
    latest: dict[int, tuple[int, float]] = {}  # arm → level and loss, of healthy arms
    stretch = 1

    def note(asked: list[Pull], news: list[Pull]) -> None:
        standing = {pull.arm for pull in asked} - {pull.arm for pull in news}
        already = {arm: latest[arm] for arm in sorted(standing & latest.keys())}
        level = max((pull.upto for pull in news or asked), default=0)
        rounds.append(Round(stretch, level, news, already))

    if not isinstance(walked, InRounds):
        return []
    walked.watch = note
    try:
        while True:
            known = [told[pull] for pull in walked.ask(sys.maxsize) if pull in told]
            for event in known:
                latest.pop(event.pull.arm, None)
                if isinstance(event, Loss) and is_healthy(event):
                    latest[event.pull.arm] = event.pull.upto, event.value
                walked.tell(event)
            if not known:
                if not walked.finished or stretch > len(budgets):
                    break
                stretch += 1
                walked.extend(budgets[stretch - 2])
    except InvalidArgument:  # a budget that does not grow
        return []
    if rounds and rounds[-1].pulls and begun.isdisjoint(rounds[-1].pulls):
        del rounds[-1]
    asked = {pull for one in rounds for pull in one.pulls}
    return rounds if begun <= asked else []
