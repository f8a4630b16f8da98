"""How busy the workers of a search were, and who worked when.

`Timesheet` is told when each event happens, so it measures. `Timeline` has only a journal, which
has no clock: it says in which order pulls were begun and answered, by which worker, and for how
many seconds each was trained and looked at. The timeline is the earliest that agrees with all of
this. It leaves out the time of the search itself, pauses between two sessions, and attempts that
were lost with their worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import accumulate
from math import ceil
from typing import Any

from lastarm.events import Event, Failure, Loss, Pull

LEAST = 1e-9  # seconds; less cannot be measured


@dataclass(frozen=True)
class Utilisation:
    """The time from the first pull to the last result, and how much of it the workers worked.

    >>> print(Utilisation(workers=2, seconds=10.0, busy_seconds=17.0))
    2 workers were busy 85 % of 10 s (idle 3 s in all)
    """

    workers: int
    """How many workers there were."""
    seconds: float
    """The time from the first pull to the last result."""
    busy_seconds: float
    """How long the workers worked, all together."""

    @property
    def share(self) -> float:
        """The share of the workers' time in which they train or look; the rest they wait."""
        return self.busy_seconds / (self.workers * self.seconds) if self.seconds else 1.0

    @property
    def idle_seconds(self) -> float:
        """The time that workers wait, all together: for the last arm of a round, mostly."""
        return max(0.0, self.workers * self.seconds - self.busy_seconds)

    def as_dict(self) -> dict[str, Any]:
        """The figures by name, as the command prints them."""
        return {**asdict(self), "utilisation": self.share}

    def __str__(self) -> str:
        who = "1 worker was" if self.workers == 1 else f"{self.workers:,} workers were"
        share = f"{100 * self.share:.0f} %"
        return f"{who} busy {share} of {_s(self.seconds)} (idle {_s(self.idle_seconds)} in all)"


class Timesheet:
    """The fold: add events with the times at which they happened, read the utilisation so far.

    :param workers: how many workers there are at the beginning. If more work at the same time
        later, as on a cluster that grows, their greatest number counts.
    :param known: how many of the first events are from an earlier session, and took no time.

    A worker is busy for as long as its results say that it trained and looked. A pull in flight
    counts since it was started. The work of an attempt that was lost with its worker is not known,
    and does not count. Results that name no worker were performed in this process, by one.

    >>> from lastarm.events import Work
    >>> sheet = Timesheet(workers=2)
    >>> for arm in (0, 1):
    ...     sheet.add(Pull(arm, 4), now=100.0)
    >>> sheet.utilisation
    >>> sheet.add(Loss(Pull(0, 4), 0.5, Work(4, 2.0, 1.0, worker="a")), now=103.0)
    >>> sheet.add(Loss(Pull(1, 4), 0.5, Work(4, 3.0, 1.0, worker="b")), now=104.0)
    >>> sheet.utilisation
    Utilisation(workers=2, seconds=4.0, busy_seconds=7.0)
    """

    def __init__(self, workers: int, known: int = 0) -> None:
        self._workers = max(1, workers)
        self._known = known
        self._there: dict[str, tuple[float, float]] = {}  # worker → at work since then, until then
        self._began: float | None = None
        self._ended: float | None = None
        self._busy = 0.0
        self._in_flight: dict[int, float] = {}  # arm → when its pull was started

    def add(self, event: Event, now: float) -> None:
        """Account for one event that happened now."""
        if self._known > 0:
            self._known -= 1
            return
        match event:
            case Pull(arm):
                self._began = now if self._began is None else self._began
                self._in_flight[arm] = now
            case Loss(pull, work=work) | Failure(pull, work=work):
                self._ended = now
                self._in_flight.pop(pull.arm, None)
                seconds = work.train_seconds + work.loss_seconds
                self._busy += seconds
                if work.worker:
                    since, until = self._there.get(work.worker, (now - seconds, now))
                    # News of a lost worker may come when another is already in its place.
                    self._there[work.worker] = since, now if seconds else until

    @property
    def began(self) -> bool:
        """Whether a pull has been started."""
        return self._began is not None

    @property
    def utilisation(self) -> Utilisation | None:
        """From the first pull to the last result so far; None as long as there is none."""
        if self._began is None or self._ended is None:
            return None
        seconds = self._ended - self._began
        if not self._there:
            return Utilisation(1, seconds, self._busy)
        under_way = sum(max(0.0, self._ended - since) for since in self._in_flight.values())
        workers = max(self._workers, self._most_at_once(seconds))
        most = workers * seconds - self._busy  # pulls may wait for the worker of their arm
        return Utilisation(workers, seconds, self._busy + max(0.0, min(under_way, most)))

    def _most_at_once(self, seconds: float) -> int:
        """How many there must have been: by their names, and by how much they did in that time."""
        changes = [(since, 1) for since, _ in self._there.values()]
        changes += [(until, -1) for _, until in self._there.values()]
        by_name = max(accumulate(change for _, change in sorted(changes)))
        # One name may have many threads. Clocks differ a little.
        return max(by_name, ceil(self._busy / seconds - 0.05) if seconds else 1)


@dataclass(frozen=True, slots=True)
class Stint:
    """A worker's work at one pull: training from `since`, looking from `trained` to `until`."""

    worker: str
    arm: int
    since: float
    trained: float
    until: float


class Timeline:
    """The fold: add events in their order, then read the stints.

    >>> from lastarm.events import Work
    >>> timeline = Timeline([
    ...     Pull(0, 1),
    ...     Pull(1, 1),
    ...     Loss(Pull(0, 1), 0.5, Work(1, train_seconds=2.0, loss_seconds=1.0, worker="a")),
    ...     Loss(Pull(1, 1), 0.4, Work(1, train_seconds=5.0, worker="b")),
    ...     Pull(1, 2),
    ...     Loss(Pull(1, 2), 0.3, Work(1, train_seconds=1.0, worker="a")),
    ... ])
    >>> [(stint.worker, stint.since, stint.until) for stint in timeline.stints]
    [('a', 0.0, 3.0), ('b', 0.0, 5.0), ('a', 5.0, 6.0)]
    >>> timeline.seconds, timeline.idle_seconds  # a waited from 3 to 5, b from 5 to 6
    (6.0, 3.0)
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self.stints: list[Stint] = []
        self.seconds = 0.0  # from the first pull to the last result
        begun: dict[int, float] = {}  # arm → when its pull was begun, at the earliest
        free: dict[str, float] = {}  # worker → until when it has worked
        for event in events:
            match event:
                case Pull(arm):
                    begun[arm] = self.seconds
                case Loss(pull, work=work) | Failure(pull, work=work):
                    if work.train_seconds + work.loss_seconds < LEAST:
                        continue  # the work of a lost attempt is not known
                    # A worker does one thing at a time.
                    since = max(begun.get(pull.arm, 0.0), free.get(work.worker, 0.0))
                    trained = since + work.train_seconds
                    until = free[work.worker] = trained + work.loss_seconds
                    self.seconds = max(self.seconds, until)
                    self.stints.append(Stint(work.worker, pull.arm, since, trained, until))
        self.workers = sorted(free, key=lambda name: (len(name), name))  # process 10 after 9

    @property
    def idle_seconds(self) -> float:
        """Of all workers together: mostly they wait for the last arm of a rung."""
        busy = sum(stint.until - stint.since for stint in self.stints)
        return max(0.0, len(self.workers) * self.seconds - busy)


def _s(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.3g} s"
