"""Who worked when, as far as a journal tells.

A journal has no clock: it says in which order pulls were begun and answered, who answered them,
and for how many seconds each was trained and looked at. The earliest times that agree with all of
that are given. What the search itself took, pauses between two sessions, and attempts that were
lost with their worker, are not in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lastarm.events import Event, Failure, Loss, Pull

LEAST = 1e-9  # seconds, that anybody can measure


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
                        continue  # of a lost attempt nobody knows
                    # A worker does one thing at a time.
                    since = max(begun.get(pull.arm, 0.0), free.get(work.worker, 0.0))
                    trained = since + work.train_seconds
                    until = free[work.worker] = trained + work.loss_seconds
                    self.seconds = max(self.seconds, until)
                    self.stints.append(Stint(work.worker, pull.arm, since, trained, until))
        self.workers = sorted(free, key=lambda name: (len(name), name))  # process 10 after 9

    @property
    def busy_seconds(self) -> float:
        """Of all workers together."""
        return sum(stint.until - stint.since for stint in self.stints)

    @property
    def idle_seconds(self) -> float:
        """Of all workers together: mostly they wait for the last arm of a rung."""
        return max(0.0, len(self.workers) * self.seconds - self.busy_seconds)
