"""The course of a search: which arms were brought to which level together, and who went on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from math import isfinite

from lastarm.events import Event, Extended, Failure, Loss, Opened, Pull
from lastarm.policy import ranking

BRACKETED = ("hyperband", "doubling")  # they begin anew, at levels that they had before


@dataclass
class Rung:
    """Arms that were brought to one level, and what was seen of them there.

    `went_on` are those that came to a later rung of the same bracket.
    """

    bracket: int  # from 1
    number: int  # from 1, in its bracket
    level: int
    arms: list[int] = field(default_factory=list)  # as they were begun
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
    """The fold: add events in their order, then read the rungs.

    A rung is a level; where a policy begins anew, or a search is extended, a new bracket begins,
    with rungs of its own.

    >>> seen = [(0, 1, 0.5), (1, 1, 0.4), (1, 3, 0.3)]
    >>> course = Course(
    ...     event
    ...     for arm, upto, loss in seen
    ...     for event in (Pull(arm, upto), Loss(Pull(arm, upto), loss))
    ... )
    >>> [(rung.level, rung.arms, rung.went_on, rung.pulls) for rung in course.rungs]
    [(1, [0, 1], [1], 2), (3, [1], [], 2)]
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.rungs: list[Rung] = []
        self.rungs_of: dict[int, list[Rung]] = {}  # arm → where it was, in order
        self.under_way: dict[int, int] = {}  # arm → the level that it is being brought to
        self.retried = 0  # attempts that failed and were made again
        self._bracketed = False
        self._booked: dict[int, int] = {}  # arm → the level it has been started for
        self._at: dict[int, Rung] = {}  # level → its rung in this bracket
        for event in events:
            self._add(event)
        for _, bracket in groupby(self.rungs, key=lambda rung: rung.bracket):
            further: set[int] = set()
            for rung in sorted(bracket, key=lambda rung: rung.level, reverse=True):
                rung.went_on = [arm for arm in rung.arms if arm in further]
                further.update(rung.arms)

    def _add(self, event: Event) -> None:
        match event:
            case Opened(policy=policy):
                self._bracketed = policy.get("name") in BRACKETED
            case Extended():
                self._at = {}
            case Pull(arm, upto):
                self.under_way[arm] = upto
                booked = self._booked.get(arm, 0)
                if upto > booked:  # else it was started again
                    self._enter(arm, upto).pulls += upto - booked
                    self._booked[arm] = upto
            case Loss(pull, work=work) | Failure(pull, work=work):
                self._add(pull)  # it was written before, but nobody vouches for that
                self.under_way.pop(pull.arm, None)
                rung = self.rungs_of[pull.arm][-1]
                rung.train_seconds += work.train_seconds
                rung.loss_seconds += work.loss_seconds
                if isinstance(event, Loss):
                    rung.losses[pull.arm] = event.value
                else:
                    self.retried += event.retried

    def _enter(self, arm: int, level: int) -> Rung:
        if self._bracketed and self._begins_anew(arm, level):
            self._at = {}
        rung = self._at.get(level)
        if rung is None:
            last = self.rungs[-1] if self.rungs else None
            bracket = last.bracket if last and self._at else (last.bracket if last else 0) + 1
            rung = self._at[level] = Rung(bracket, len(self._at) + 1, level)
            self.rungs.append(rung)
        rung.arms.append(arm)
        self.rungs_of.setdefault(arm, []).append(rung)
        return rung

    def _begins_anew(self, arm: int, level: int) -> bool:
        """Whether an arm that is brought to a level is the first of another bracket.

        Within a bracket levels rise, and only its first rung has arms that have been nowhere yet.
        """
        if not self._at:
            return True
        now = self.rungs[-1]
        fresh = arm not in self.rungs_of
        return level < now.level or (fresh and (level > now.level or now.number > 1))
