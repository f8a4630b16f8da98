"""The course of a search: which arms were brought to which level together, and who went on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, zip_longest
from math import isfinite

from lastarm.events import Event, Extended, Failure, Loss, Opened, Pull
from lastarm.ledger.rounds import Round, rounds_of
from lastarm.policies.named import facts_of
from lastarm.policy import ranking


@dataclass
class Rung:
    """Arms that were compared at one level, and what was seen of them.

    Most were brought there. When a search has begun anew, some are past it `already`: they are
    neither pulled nor looked at, and their latest loss stands. `went_on` are those that came to a
    later rung of the same bracket.
    """

    stretch: int  # from 1
    bracket: int  # from 1, in its stretch
    number: int  # from 1, in its bracket
    level: int
    arms: dict[int, int] = field(default_factory=dict)  # arm → its pulls there
    already: set[int] = field(default_factory=set)
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


class Course:
    """The fold: what a search did, as rungs.

    A rung is a round of the policy, which is walked through what was seen once more to know them;
    where it begins anew, a new bracket begins, with rungs of its own, and where the larger budget
    of an extended search is first used, a new stretch.

    >>> seen = [(0, 1, 0.5), (1, 1, 0.4), (1, 3, 0.3)]
    >>> course = Course(
    ...     event
    ...     for arm, upto, loss in seen
    ...     for event in (Pull(arm, upto), Loss(Pull(arm, upto), loss))
    ... )
    >>> [(rung.level, list(rung.arms), rung.went_on, rung.pulls) for rung in course.rungs]
    [(1, [0, 1], [1], 2), (3, [1], [], 2)]

    Of policies that have no rounds, that are not lastarm's, or that would have asked for other
    pulls than these, a rung is a level.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        events = list(events)
        self.rungs: list[Rung] = []  # as they began
        self.rungs_of: dict[int, list[Rung]] = {}  # arm → where it was, in order
        self.under_way: dict[int, int] = {}  # arm → the level that it is being brought to
        self.retried = 0  # attempts that failed and were made again
        self._booked: dict[int, int] = {}  # arm → the level it has been started for
        self._rung_of: dict[Pull, Rung] = {}
        self._at: dict[int, Rung] = {}  # level → its rung, where no rounds are known
        budgets = [event.budget for event in events if isinstance(event, Extended)]
        policy = next((event.policy for event in events if isinstance(event, Opened)), {})
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
            # Else nothing was done, and nobody was dropped.
            if one.stretch in busy and (one.pulls or not then or one.arms != then.arms)
        ]
        rung = Rung(0, 0, 0, 0)
        before: Round | None = None
        for one in kept:
            bracket, number = 1, 1
            if before and before.stretch == one.stretch:
                within = one.level > before.level and one.arms <= before.arms
                bracket = rung.bracket + (begins_anew and not within)
                number = rung.number + 1 if bracket == rung.bracket else 1
            rung = Rung(one.stretch, bracket, number, one.level)
            for arm, (level, loss) in one.already.items():
                rung.arms[arm], rung.losses[arm] = level, loss
            rung.already.update(one.already)
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
                    rung.pulls += upto - booked
                    self._booked[arm] = upto
            case Loss(pull, work=work) | Failure(pull, work=work):
                self._add(pull)  # it was written before, but nobody vouches for that
                self.under_way.pop(pull.arm, None)
                rung = self._rung_of[Pull(pull.arm, self._booked[pull.arm])]
                rung.train_seconds += work.train_seconds
                rung.loss_seconds += work.loss_seconds
                if isinstance(event, Loss):
                    rung.losses[pull.arm] = event.value
                else:
                    self.retried += event.retried

    def _enter(self, pull: Pull) -> Rung:
        """The rung that an arm is brought to: that of its round, or else of its level."""
        if pull not in self._rung_of:
            if pull.upto not in self._at:
                self._at[pull.upto] = Rung(1, 1, len(self._at) + 1, pull.upto)
                self.rungs.append(self._at[pull.upto])
            self._rung_of[pull] = self._at[pull.upto]
        return self._rung_of[pull]

    def _settle(self, bracket: Sequence[Rung]) -> None:
        """Say who went on, now that all of a bracket is known."""
        further: set[int] = set()
        for rung in reversed(bracket):
            rung.went_on = [arm for arm in rung.arms if arm in further]
            further.update(rung.arms)
        for rung in bracket:
            for arm in rung.arms:
                self.rungs_of.setdefault(arm, []).append(rung)
