"""The course of a search: which arms were brought to which level together, and who went on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice, pairwise
from math import inf, isfinite
from typing import Any

from lastarm.events import Closed, Event, Extended, Failure, Loss, Opened, Pull
from lastarm.integers import ceil_log
from lastarm.policy import ranking

NO_RUNGS = ("lucb", "lil-ucb", "exp3")  # they pull an arm or two at a time
NO_WAITING = (*NO_RUNGS, "asha")  # they do not go round by round, and never begin anew
BRACKETED = ("hyperband", "doubling")  # they begin anew, at levels that they had before
SOME_ARMS = ("hyperband",)  # and those of them that do so with arms that they draw


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

    def find(self, arm: int, level: int, loss: float) -> None:
        """Count an arm that is there already."""
        self.arms[arm], self.losses[arm] = level, loss
        self.already.add(arm)

    def lose(self, arm: int) -> None:
        """Count it no more."""
        del self.arms[arm], self.losses[arm]
        self.already.remove(arm)


class Course:
    """The fold: add events in their order, then read the rungs.

    A rung is a level; where a policy begins anew, a new bracket begins, with rungs of its own, and
    where a search is extended, a new stretch. That is when the larger budget is first used, which
    may be long after it was given: what the smaller one began is finished first.

    >>> seen = [(0, 1, 0.5), (1, 1, 0.4), (1, 3, 0.3)]
    >>> course = Course(
    ...     event
    ...     for arm, upto, loss in seen
    ...     for event in (Pull(arm, upto), Loss(Pull(arm, upto), loss))
    ... )
    >>> [(rung.level, list(rung.arms), rung.went_on, rung.pulls) for rung in course.rungs]
    [(1, [0, 1], [1], 2), (3, [1], [], 2)]

    A journal tells only of arms that are pulled. Those that are past a rung already are found by
    what is known of the policy: it begins anew with all arms, unless it draws some, and the best
    go on. Where the last to go on are among those, and the policy does not say how many it keeps,
    they are taken for dropped.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.rungs: list[Rung] = []  # as they began
        self.rungs_of: dict[int, list[Rung]] = {}  # arm → where it was, in order
        self.under_way: dict[int, int] = {}  # arm → the level that it is being brought to
        self.waiting: deque[int] = deque()  # larger budgets that were given and not yet used
        self.retried = 0  # attempts that failed and were made again
        self._policy = ""
        self._arms = 0
        self._eta = 0  # of a rung the best 1/eta are kept, if that is known
        self._most_rungs: float = inf  # of a bracket
        self._budget: float = inf
        self._ended = False
        self._spent = 0
        self._booked: dict[int, int] = {}  # arm → the level it has been started for
        self._latest: dict[int, tuple[int, float]] = {}  # arm → level and loss, of healthy arms
        self._rung_of: dict[int, Rung] = {}  # arm → where it was brought to last
        self._at: dict[int, Rung] = {}  # level → its rung in this bracket
        self._ladder: list[Rung] = []  # these rungs, as they began
        self._entering: dict[tuple[int, int], Rung] = {}  # bracket → all arms as it found them
        self._stretch, self._bracket = 1, 1
        self._extended = 0  # how many rungs there were when the search was
        for event in events:
            self._add(event)
        brackets = groupby(self.rungs, key=lambda rung: (rung.stretch, rung.bracket))
        for bracket in [list(rungs) for _, rungs in brackets]:
            self._settle(sorted(bracket, key=lambda rung: rung.level))

    def _add(self, event: Event) -> None:
        match event:
            case Opened(policy=policy):
                self._policy = str(policy.get("name"))
                budget = policy.get("budget")
                self._budget = budget if isinstance(budget, int) else inf
                self._know_halving(policy)
            case Closed():
                self._ended = True
            case Extended(budget):
                self.waiting.append(budget)
                self._extended = len(self.rungs)
            case Pull(arm, upto):
                self.under_way[arm] = upto
                booked = self._booked.get(arm, 0)
                if upto > booked:  # else it was started again
                    self._spent += upto - booked
                    self._enter(arm, upto).pulls += upto - booked
                    self._booked[arm] = upto
            case Loss(pull, work=work) | Failure(pull, work=work):
                self._add(pull)  # it was written before, but nobody vouches for that
                self.under_way.pop(pull.arm, None)
                self._latest.pop(pull.arm, None)
                rung = self._rung_of[pull.arm]
                rung.train_seconds += work.train_seconds
                rung.loss_seconds += work.loss_seconds
                if isinstance(event, Loss):
                    rung.losses[pull.arm] = event.value
                    if isfinite(event.value):
                        self._latest[pull.arm] = pull.upto, event.value
                else:
                    self.retried += event.retried

    def _know_halving(self, policy: Mapping[str, Any]) -> None:
        """Take down what halving keeps of a rung, if that is the policy."""
        arms, eta = policy.get("arms"), policy.get("eta", 2)
        halving = "successive-halving" in (policy.get("name"), policy.get("of"))
        if halving and isinstance(arms, int) and isinstance(eta, int) and arms > 0 and eta > 1:
            self._arms, self._eta, self._most_rungs = arms, eta, ceil_log(arms, eta)

    def _kept(self, rung: Rung) -> float:
        """How many arms go on from a rung; without end, if that is not known."""
        if not self._eta:
            return inf
        entered = len(rung.arms) if rung.number > 1 else self._arms  # those that are out count
        return max(1, entered // self._eta)

    def _enter(self, arm: int, level: int) -> Rung:
        """The rung that an arm is brought to."""
        if self._policy in BRACKETED or (self.waiting and self._policy not in NO_WAITING):
            leaves = self._leaves(arm, level)
            if self.waiting and (leaves or self._ended or self._spent > self._budget):
                self._begin_stretch(level)
            elif leaves:
                self._bracket += 1
                self._at, self._ladder = {}, []
        if level not in self._at:
            rung = Rung(self._stretch, self._bracket, len(self._at) + 1, level)
            self.rungs.append(rung)
            self._step_on(rung)
        rung = self._at[level]
        rung.arms[arm] = level
        self._rung_of[arm] = rung
        if self._policy in SOME_ARMS and arm in self._latest:  # so it was drawn
            for lower in islice(reversed(self._ladder), 1, None):
                if arm in lower.arms:
                    break
                lower.find(arm, *self._latest[arm])
        return rung

    def _leaves(self, arm: int, level: int) -> bool:
        """Whether bringing that arm there is not a part of this bracket.

        Within a bracket levels rise, who comes to a rung was at the one before, and where it
        is known how many are kept, there can be no more.
        """
        if not self._ladder:
            return False
        now = self._ladder[-1]
        if level != now.level:
            below, full = now, now.number >= self._most_rungs
        elif now.number > 1:
            below = self._ladder[-2]
            full = len(now.arms) >= self._kept(below)
        else:
            return False
        known = self._rung_of if self._policy in SOME_ARMS else below.arms
        return level < now.level or full or arm not in known

    def _begin_stretch(self, level: int) -> None:
        """Begin with the next budget; and with the rung under way, if that is its first.

        The first arms of a stretch may look as if they went on within the one before.
        """
        while self.waiting:
            self._budget = self.waiting.popleft()
            self._stretch += 1
            if self._spent <= self._budget:
                break
        self._bracket = 1
        rung = None if self._ended else self._at.get(level)
        self._at, self._ladder, self._ended = {}, [], False
        if rung and rung is self.rungs[-1] and len(self.rungs) > self._extended:
            rung.stretch, rung.bracket, rung.number = self._stretch, 1, 1
            self._step_on(rung)

    def _step_on(self, rung: Rung) -> None:
        """Take a rung for that under way, and count the arms that are past it already."""
        bracket = (rung.stretch, rung.bracket)
        below = self._ladder[-1] if self._ladder else None
        self._at[rung.level] = rung
        self._ladder.append(rung)
        if bracket == (1, 1) or (below is None and self._policy in SOME_ARMS):
            return
        if below is None:
            below = self._entering[bracket] = Rung(*bracket, number=0, level=0)
            for arm, (reached, loss) in self._latest.items():
                below.find(arm, reached, loss)
        for arm in below.arms:
            reached, loss = self._latest.get(arm, (0, inf))
            if reached >= rung.level and arm not in rung.arms:
                rung.find(arm, reached, loss)

    def _settle(self, bracket: list[Rung]) -> None:
        """Say who was where, and who went on, now that all of a bracket is known."""
        entering = self._entering.get((bracket[0].stretch, bracket[0].bracket))
        over = self._ended or bracket[-1] is not self.rungs[-1] or len(bracket) > 1
        steps = list(pairwise(bracket))
        if entering and over and entering.arms.keys() - bracket[0].arms.keys():
            # All arms were past the rungs before this one, which therefore left no trace.
            steps.insert(0, (entering, bracket[0]))
        last = {  # arm → the last level that it was brought to: up to there it surely was
            arm: rung.level for rung in bracket for arm in rung.arms.keys() - rung.already
        }
        for below, rung in steps:
            if rung.already:
                sure = [below.places.get(a, 0) for a in rung.arms if last.get(a, 0) >= rung.level]
                most = max([1, *sure, self._kept(below) if self._eta else 0])
                for arm in [a for a in rung.already if below.places.get(a, inf) > most]:
                    rung.lose(arm)
        further: set[int] = set()
        for rung in reversed(bracket):
            rung.went_on = [arm for arm in rung.arms if arm in further]
            further.update(rung.arms)
        for rung in bracket:
            for arm in rung.arms:
                self.rungs_of.setdefault(arm, []).append(rung)
