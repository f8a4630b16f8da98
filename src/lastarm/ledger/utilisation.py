"""How busy the workers of a search are, or would be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import accumulate
from math import ceil
from typing import Any

from lastarm.events import Event, Failure, Loss, Pull


@dataclass(frozen=True)
class Utilisation:
    """The time from the first pull to the last result, and how much of it the workers worked.

    >>> print(Utilisation(workers=2, seconds=10.0, busy_seconds=17.0))
    2 workers were busy 85 % of 10 s (idle 3 s in all)
    """

    workers: int
    seconds: float
    busy_seconds: float  # of all workers together

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

    `workers` is how many there are when it begins; if more are seen at work at once later, as on a
    cluster that grows, it is the most of these. One is busy for as long as its results say that
    it trained and looked; a pull in flight counts since it was started. What a worker did that was
    lost with it, nobody knows. Results that name no worker were performed in this process, by one.
    The first `known` events are from before, and took no time.

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
                    # Of a worker that was lost one hears when another may be in its place.
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
        """How many must have been there: by their names, and by what they did in so much time."""
        changes = [(since, 1) for since, _ in self._there.values()]
        changes += [(until, -1) for _, until in self._there.values()]
        by_name = max(accumulate(change for _, change in sorted(changes)))
        # One name may have many threads. Clocks differ a little.
        return max(by_name, ceil(self._busy / seconds - 0.05) if seconds else 1)


def _s(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.3g} s"
