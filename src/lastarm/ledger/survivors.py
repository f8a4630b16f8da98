"""Which arms were compared at which level, and which of them went on.

A journal tells only of arms that are pulled. Which arms were compared besides, because they were
past a level already, the policy knows. It is deterministic in what it is told, so it is walked
through what was seen once more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby, zip_longest
from math import isfinite
from typing import Any

from lastarm.errors import InvalidArgument
from lastarm.events import Event, Extended, Failure, Loss, Opened, Pull, Told
from lastarm.policies.named import facts_of, from_header
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import has_restarts, is_healthy, price, ranking


@dataclass
class RungOutcome:
    """Arms that were compared at one level, and what was seen of them.

    Most were brought there. When a search starts again from low levels, some are past the level
    `already`: they are neither pulled nor looked at, and their latest loss stands. `asked` are all
    arms that the policy asked for there, also before they are begun; none, if it is not known.
    `went_on` are the arms that came to a later rung of the same bracket, or were asked for there.
    """

    stretch: int  # from 1
    bracket: int  # from 1, in its stretch
    number: int  # from 1, in its bracket
    level: int
    arms: dict[int, int] = field(default_factory=dict)  # arm → its pulls there
    already: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    losses: dict[int, float] = field(default_factory=dict)  # of those that were seen
    went_on: list[int] = field(default_factory=list)
    pulls: int = 0
    train_seconds: float = 0.0
    loss_seconds: float = 0.0

    @cached_property
    def ranking(self) -> list[int]:
        """The arms with a finite loss, the best first."""
        return ranking({arm: loss for arm, loss in self.losses.items() if isfinite(loss)})

    @cached_property
    def places(self) -> dict[int, int]:
        """Arm → its place in the ranking, from 1."""
        return {arm: place for place, arm in enumerate(self.ranking, start=1)}

    @cached_property
    def last_to_go_on(self) -> int | None:
        """Of those that went on, the arm with the highest loss here."""
        on = set(self.went_on)
        return next((arm for arm in reversed(self.ranking) if arm in on), None)


class Survivors:
    """The fold: what a search did, as rungs.

    A rung is a round of the policy. Where the policy starts again from a low level, a new bracket
    begins, with rungs of its own. Where the larger budget of an extended search is first used, a
    new stretch begins.

    >>> seen = [(0, 1, 0.5), (1, 1, 0.4), (1, 3, 0.3)]
    >>> survivors = Survivors(
    ...     event
    ...     for arm, upto, loss in seen
    ...     for event in (Pull(arm, upto), Loss(Pull(arm, upto), loss))
    ... )
    >>> [(rung.level, list(rung.arms), rung.went_on, rung.pulls) for rung in survivors.rungs]
    [(1, [0, 1], [1], 2), (3, [1], [], 2)]

    For policies that have no rounds, that are unknown here, or that would have asked for other
    pulls than these, a rung is a level.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        events = list(events)
        self.rungs: list[RungOutcome] = []  # as they began
        self.rungs_of: dict[int, list[RungOutcome]] = {}  # arm → where it was, in order
        self.under_way: dict[int, int] = {}  # arm → the level that it is being brought to
        self.retried = 0  # attempts that failed and were made again
        self._booked: dict[int, int] = {}  # arm → the level it has been started for
        self._rung_of: dict[Pull, RungOutcome] = {}
        self._at: dict[int, RungOutcome] = {}  # level → its rung, where no rounds are known
        budgets = [event.budget for event in events if isinstance(event, Extended)]
        policy = next((event.policy for event in events if isinstance(event, Opened)), {})
        self._price = partial(price, restarts=has_restarts(policy))
        facts = facts_of(str(policy.get("name")))
        if facts.has_rungs:
            rounds = rounds_of(policy, events)
            self._lay_out(rounds, begins_anew=facts.begins_anew)
            budgets = budgets[rounds[-1].stretch - 1 :] if rounds else budgets
        self.waiting = budgets  # that were given and not yet used
        for event in events:
            self._add(event)
        for _, rungs in groupby(self.rungs, key=lambda rung: (rung.stretch, rung.bracket)):
            self._settle(sorted(rungs, key=lambda rung: rung.level))

    def _lay_out(self, rounds: Sequence[Round], begins_anew: bool) -> None:
        """Make the rungs of these rounds, with the arms that are past them already."""
        busy = {one.stretch for one in rounds if one.pulls}
        kept = [
            one
            for one, then in zip_longest(rounds, rounds[1:])
            # Else nothing was done, and no arm was dropped.
            if one.stretch in busy and (one.pulls or not then or one.arms != then.arms)
        ]
        rung = RungOutcome(0, 0, 0, 0)
        before: Round | None = None
        for one in kept:
            bracket, number = 1, 1
            if before and before.stretch == one.stretch:
                within = one.level > before.level and one.arms <= before.arms
                bracket = rung.bracket + (begins_anew and not within)
                number = rung.number + 1 if bracket == rung.bracket else 1
            rung = RungOutcome(one.stretch, bracket, number, one.level)
            for arm, (level, loss) in one.already.items():
                rung.arms[arm], rung.losses[arm] = level, loss
            rung.already.update(one.already)
            rung.asked.update(one.arms)
            self._rung_of.update(dict.fromkeys(one.pulls, rung))
            self.rungs.append(rung)
            before = one

    def _add(self, event: Event) -> None:
        match event:
            case Pull(arm, upto):
                self.under_way[arm] = upto
                booked = self._booked.get(arm, 0)
                if upto > booked:  # else it was started again
                    rung = self._enter(event)
                    rung.arms[arm] = upto
                    rung.pulls += self._price(booked, upto)
                    self._booked[arm] = upto
            case Loss(pull, work=work) | Failure(pull, work=work):
                if pull.upto > self._booked.get(pull.arm, 0):
                    self._add(pull)  # not written before: the journal is not of lastarm
                self.under_way.pop(pull.arm, None)
                rung = self._rung_of[Pull(pull.arm, self._booked[pull.arm])]
                rung.train_seconds += work.train_seconds
                rung.loss_seconds += work.loss_seconds
                if isinstance(event, Loss):
                    rung.losses[pull.arm] = event.value
                else:
                    self.retried += event.retried

    def _enter(self, pull: Pull) -> RungOutcome:
        """The rung that an arm is brought to: that of its round, or else of its level."""
        if pull not in self._rung_of:
            if pull.upto not in self._at:
                self._at[pull.upto] = RungOutcome(1, 1, len(self._at) + 1, pull.upto)
                self.rungs.append(self._at[pull.upto])
            self._rung_of[pull] = self._at[pull.upto]
        return self._rung_of[pull]

    def _settle(self, bracket: Sequence[RungOutcome]) -> None:
        """Say which arms went on, now that all of a bracket is known."""
        further: set[int] = set()
        for rung in reversed(bracket):
            rung.went_on = [arm for arm in rung.arms if arm in further]
            further.update(rung.arms, rung.asked)
        for rung in bracket:
            for arm in rung.arms:
                self.rungs_of.setdefault(arm, []).append(rung)


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
    """The rounds that have begun; none, if the policy is unknown or would have done otherwise.

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
