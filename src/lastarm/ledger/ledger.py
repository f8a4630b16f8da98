"""The ledger: what was spent and seen, folded from the events of a search and nothing else."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from operator import itemgetter
from typing import Any

from lastarm.arguments import MOST
from lastarm.columns import reserve
from lastarm.errors import ImpossibleValue
from lastarm.events import Changed, Closed, Event, Extended, Failure, Loss, Opened, Pull
from lastarm.journal.sanity import MOST_ARMS
from lastarm.policy import has_restarts, price


@dataclass(slots=True)
class Spent:
    """What a search has cost so far."""

    pulls: int = 0
    """Pulls booked when they start, also those of an arm that then fails. The budget bounds them.
    If the trainer restarts, all pulls of a level are booked, because they are trained from zero.
    """
    repeated: int = 0
    """Pulls trained again because progress was lost in a crash or a failed attempt. They come on
    top of `pulls`. It is the most that they can be: how much of a lost attempt was done is not
    known."""
    observations: int = 0
    """Looks at a loss."""
    train_seconds: float = 0.0
    """Time spent training, of all workers together."""
    loss_seconds: float = 0.0
    """Time spent looking at losses, of all workers together."""
    switches: int = 0
    """How many times a worker turned to another arm."""
    moves: int = 0
    """States that were loaded from the disk or fetched from another worker."""
    move_seconds: float = 0.0
    """The part of `train_seconds` that moving states took."""

    @property
    def moving(self) -> str:
        """How many states were moved and how long that took, in a line; empty if none were.

        >>> print(Spent(moves=32, move_seconds=1.6).moving)
        32 states moved, in 1.6 s
        """
        if not self.moves:
            return ""
        moved = "1 state moved" if self.moves == 1 else f"{self.moves:,} states moved"
        return f"{moved}, in {self.move_seconds:.3g} s" if self.move_seconds else moved


@dataclass(slots=True)
class Stretch:
    """A part of a search: from its beginning, or from where it was extended, to what it came to.

    A search that is extended before a stretch has ended finishes that stretch first, within the
    next one, and closes nothing in between.
    """

    budget: int
    """Pulls in all, also those of earlier stretches."""
    event: int
    """How many events came before."""
    before: Spent
    """What had been spent by then."""
    closed: Closed | None = None
    """What it came to, if it has ended."""


@dataclass(frozen=True, slots=True)
class CodeChange:
    """From `event` on, arms were trained by other code than before."""

    event: int
    """The number of the event in the journal, from 1: what comes after it is of the new code."""
    pulls: int
    """The pulls that had been booked by then."""
    names: tuple[str, ...]
    """The functions, methods, classes or files that differed."""


@dataclass(slots=True)
class LevelCost:
    """What it took to bring arms to one level; those that failed on the way count too."""

    arms: int = 0
    """How many arms were brought there."""
    pulls: int = 0
    """The pulls that were booked for it."""
    train_seconds: float = 0.0
    """Time spent training, of all workers together."""
    loss_seconds: float = 0.0
    """Time spent looking at losses, of all workers together."""


class Curves(Mapping[int, list[tuple[int, float]]]):
    """Arm → its observations in order, each (level, loss); the arms as they were first seen.

    A view of arrays: an observation takes 24 bytes. A curve is made when it is asked for.

    >>> curves = Curves()
    >>> for arm, level, loss in [(7, 1, 0.5), (0, 1, 0.75), (7, 3, 0.25)]:
    ...     curves.add(arm, level, loss)
    >>> curves
    {7: [(1, 0.5), (3, 0.25)], 0: [(1, 0.75)]}
    """

    def __init__(self) -> None:
        self._levels, self._losses = array("q"), array("d")  # of all observations
        self._before = array("q")  # of each, the number of the one before it of its arm, or 0
        self._latest = array("q")  # by arm: the number of its latest observation, from 1, or 0
        self._arms = array("q")  # as they were first seen

    def add(self, arm: int, level: int, loss: float) -> None:
        """Add an observation."""
        if arm >= len(self._latest):
            reserve(self._latest, arm, 0)
        before = self._latest[arm]
        if not before:
            self._arms.append(arm)
        self._levels.append(level)
        self._losses.append(loss)
        self._before.append(before)
        self._latest[arm] = len(self._losses)

    def latest(self) -> dict[int, tuple[int, float]]:
        """Arm → the last of its observations."""
        levels, losses, latest = self._levels, self._losses, self._latest
        return {arm: (levels[at], losses[at]) for arm in self._arms for at in [latest[arm] - 1]}

    def __getitem__(self, arm: int) -> list[tuple[int, float]]:
        if arm not in self:
            raise KeyError(arm)
        levels, losses, before = self._levels, self._losses, self._before
        curve, at = [], self._latest[arm]
        while at:
            curve.append((levels[at - 1], losses[at - 1]))
            at = before[at - 1]
        curve.reverse()
        return curve

    def __contains__(self, arm: object) -> bool:
        return isinstance(arm, int) and 0 <= arm < len(self._latest) and self._latest[arm] > 0

    def __iter__(self) -> Iterator[int]:
        return iter(self._arms)

    def __len__(self) -> int:
        return len(self._arms)

    def __repr__(self) -> str:
        return repr(dict(self))


class Ledger:
    """The fold: add events in their order, read the sums at any moment.

    >>> ledger = Ledger([Pull(0, 4), Loss(Pull(0, 4), 0.5), Pull(0, 6), Loss(Pull(0, 6), 0.25)])
    >>> ledger.spent.pulls, ledger.spent.observations
    (6, 2)
    >>> ledger.curves
    {0: [(4, 0.5), (6, 0.25)]}
    >>> ledger.rungs[6].pulls, ledger.best_so_far
    (2, [(4, 0.5), (6, 0.25)])

    The `stretches` of a search with a journal are told apart by what opened and extended it.

    If the trainer `restarts`, every level is trained from zero, and costs as many pulls as it has.
    A journal says so where it describes the policy.

    >>> Ledger([Pull(0, 4), Loss(Pull(0, 4), 0.5), Pull(0, 6)], restarts=True).spent.pulls
    10
    """

    def __init__(self, events: Iterable[Event] = (), *, restarts: bool = False) -> None:
        self._restarts = restarts
        self.spent = Spent()
        self.curves = Curves()
        self.metrics: dict[int, dict[int, Mapping[str, Any]]] = {}  # arm → level → what else
        self.failures: dict[int, Failure] = {}
        self.rungs: dict[int, LevelCost] = defaultdict(LevelCost)  # level → what it took
        # (pulls booked by then, lowest loss so far), each time that it fell
        self.best_so_far: list[tuple[int, float]] = []
        self.closed: Closed | None = None
        self.stretches: list[Stretch] = []
        self.code_changes: list[CodeChange] = []
        self.events = 0  # how many there were
        self._booked = array("q")  # by arm: the level it has been started for
        self._level = array("q")  # by arm: the level it is known to have reached
        self._in_flight: set[int] = set()
        self._trained: dict[int, int] = {}  # arm → pulls performed since it reached its level
        self._arm_of: dict[str, int] = {}  # worker → the arm it worked on last
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Account for one event."""
        match event:
            case Pull():
                arm, upto = event.arm, event.upto
                self._reserve(arm, upto)
                if arm in self._in_flight:  # a crash; how much of it was done is not known
                    self._trained[arm] = self._trained.get(arm, 0) + self._price(arm, upto)
                self._in_flight.add(arm)
                before = self._booked[arm]
                if upto > before:
                    booked = upto if self._restarts else upto - before
                    self.spent.pulls += booked
                    self.rungs[upto].pulls += booked
                    self._booked[arm] = upto
            case Loss() | Failure():
                self._reserve(event.pull.arm, event.pull.upto)
                self._add_work(event)
            case Closed(trained=trained):
                self.closed = event
                self.spent.repeated += trained
                if self.stretches:
                    self.stretches[-1].closed = event
            case Opened(policy=policy):
                self._restarts = has_restarts(policy)
                if isinstance(budget := policy.get("budget"), int):
                    self._begin_stretch(budget)
            case Extended(budget):
                self._begin_stretch(budget)
            case Changed(code):
                change = CodeChange(self.events + 1, self.spent.pulls, tuple(code))
                self.code_changes.append(change)
        self.events += 1

    def _begin_stretch(self, budget: int) -> None:
        self.closed = None
        self.stretches.append(Stretch(budget, self.events, replace(self.spent)))

    def _price(self, arm: int, upto: int) -> int:
        """The pulls that bring an arm from where it is known to be to a level."""
        return price(self._level[arm], upto, restarts=self._restarts)

    def _add_work(self, event: Loss | Failure) -> None:
        (arm, upto), work, spent = (event.pull.arm, event.pull.upto), event.work, self.spent
        rung, trained, worker = self.rungs[upto], work.trained, work.worker
        self._in_flight.discard(arm)
        trained += self._trained.pop(arm, 0)
        for total in (spent, rung):
            total.train_seconds += work.train_seconds
            total.loss_seconds += work.loss_seconds
        spent.moves += work.moves
        spent.move_seconds += work.move_seconds
        spent.switches += self._arm_of.get(worker, arm) != arm
        self._arm_of[worker] = arm
        if isinstance(event, Failure) and event.retried:
            self._trained[arm] = trained
            return
        spent.repeated += max(0, trained - self._price(arm, upto))
        self._level[arm] = upto
        rung.arms += 1
        if isinstance(event, Loss):
            spent.observations += 1
            value, best = event.value, self.best_so_far
            if isfinite(value) and (not best or value < best[-1][1]):
                best.append((spent.pulls, value))
            self.curves.add(arm, upto, value)
            if event.metrics:
                self.metrics.setdefault(arm, {})[upto] = event.metrics
        else:
            self.failures[arm] = event

    def _reserve(self, arm: int, upto: int) -> None:
        """Make room for an arm. A few bytes of a journal must not take all memory."""
        if upto > MOST:
            raise ImpossibleValue(self.events + 1, "upto", upto, f"it is from 0 to {MOST:,}")
        if arm >= len(self._booked):
            if arm >= MOST_ARMS + 2 * len(self._booked):
                rule = f"it is from 0 to {MOST_ARMS - 1:,}"
                raise ImpossibleValue(self.events + 1, "arm", arm, rule)
            reserve(self._booked, arm, 0)
            reserve(self._level, arm, 0)

    def level_of(self, arm: int) -> int:
        """The level that an arm is known to have reached."""
        return self._level[arm] if arm < len(self._level) else 0

    def causes(self) -> dict[int, str]:
        """Why each arm that is out of the race is out."""
        return causes(self.curves, self.failures)

    def best(self) -> Pull | None:
        """The arm and the level with the lowest loss that was seen of arms that are in the race.

        >>> ledger = Ledger([Loss(Pull(0, 2), 0.25), Loss(Pull(0, 4), 0.5), Loss(Pull(1, 2), 0.5)])
        >>> ledger.best()
        Pull(arm=0, upto=2)
        """
        out = self.causes()
        seen = [
            (loss, arm, upto)
            for arm, curve in self.curves.items()
            if arm not in out
            for upto, loss in curve
            if isfinite(loss)
        ]
        return Pull(*min(seen)[1:]) if seen else None

    def digest(self, recommendation: int | None) -> str:
        """The search's answer in one string: the same for any order, workers and times.

        It is the sha256 of all (arm, level, loss in hex), sorted, and the recommendation.
        """
        answer = hashlib.sha256()
        by_level = itemgetter(0)
        for arm in sorted(self.curves):
            points = sorted(self.curves[arm], key=by_level)
            text = "".join([f"{arm} {upto} {loss.hex()}\n" for upto, loss in points])
            answer.update(text.encode())
        answer.update(f"recommendation {recommendation}\n".encode())
        return answer.hexdigest()


def causes(curves: Curves, failures: Mapping[int, Failure]) -> dict[int, str]:
    """Why each arm that is out of the race is out: its error, or that its loss diverged."""
    diverged = {
        arm: f"its loss became {loss}"
        for arm, (_, loss) in curves.latest().items()
        if not isfinite(loss)
    }
    return diverged | {arm: failure.error for arm, failure in failures.items()}
