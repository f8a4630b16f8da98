"""Whose turn it is: ready pulls in the order that leaves states where they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from lastarm.events import Loss, Pull, Told


class Ready(NamedTuple):
    """A pull that may be started, the number of the attempt, and what it is expected to take."""

    pull: Pull
    attempt: int
    seconds: float


class Waiting:
    """Pulls that may be started in any order, and whose turn it is.

    `home` is the worker that has an arm's state in memory, if one has; `idle` are the workers that
    could take on a pull. An idle worker goes on with an arm that it has. If it has none, it begins
    with one that nobody has. If all that wait are with workers that are busy, it takes the last of
    the longest queue, unless moving its state takes longer than waiting for its turn there: that
    is the time of those before it, and half of its own for the one under way. Without any that
    say where states are, it is first come, first served.

    >>> waiting = Waiting(home={0: "a", 2: "b"}.get, idle=lambda: ["b"])
    >>> waiting.add([Pull(0, 4), Pull(1, 4), Pull(2, 4)])
    >>> [waiting.next() for _ in range(3)]
    [(Pull(arm=2, upto=4), 1), (Pull(arm=1, upto=4), 1), (Pull(arm=0, upto=4), 1)]

    A move takes `switch_seconds`; where that was not said, as long as moves took so far.
    """

    def __init__(
        self,
        *,
        home: Callable[[int], Hashable | None] = lambda arm: None,
        idle: Callable[[], Iterable[Hashable]] = tuple,
        switch_seconds: float | None = None,
    ) -> None:
        self._home, self._idle = home, idle
        self._switch_seconds = switch_seconds
        self._far: deque[Ready] = deque()  # in nobody's memory
        self._near: dict[Hashable, deque[Ready]] = {}  # worker → what it has
        self._queued: dict[Hashable, float] = {}  # worker → seconds that these take
        self._waiting = 0
        self._course: dict[int, tuple[int, float]] = {}  # arm → its level, seconds a pull
        self._moves, self._move_seconds = 0, 0.0

    def __len__(self) -> int:
        return self._waiting

    def add(self, pulls: Iterable[Pull], attempt: int = 1) -> None:
        """Take on pulls, in the order in which they were asked for."""
        for pull in pulls:
            worker = self._home(pull.arm)
            level, pace = self._course.get(pull.arm, (0, 0.0))
            ready = Ready(pull, attempt, (pull.upto - level) * pace)
            if worker is None:
                self._far.append(ready)
            else:
                self._near.setdefault(worker, deque()).append(ready)
                self._queued[worker] = self._queued.get(worker, 0.0) + ready.seconds
            self._waiting += 1

    def next(self, *, patient: bool = False) -> tuple[Pull, int] | None:
        """What to start now, and which attempt at it that is.

        None if nothing waits; or, if one is `patient`, if it is better to wait.
        """
        here = next((worker for worker in self._idle() if self._near.get(worker)), None)
        if here is not None:
            ready = self._near[here].popleft()
            self._queued[here] -= ready.seconds
        elif self._far:
            ready = self._far.popleft()
        else:
            queues = (worker for worker, queue in self._near.items() if queue)
            there = max(queues, key=self._queued.__getitem__, default=None)
            if there is None or (patient and not self._worth_moving(there)):
                return None
            ready = self._near[there].pop()
            self._queued[there] -= ready.seconds
        self._waiting -= 1
        return ready.pull, ready.attempt

    def _worth_moving(self, worker: Hashable) -> bool:
        last = self._near[worker][-1]
        if self._home(last.pull.arm) != worker:  # lost meanwhile
            return True
        measured = self._move_seconds / self._moves if self._moves else 0.0
        price = measured if self._switch_seconds is None else self._switch_seconds
        return self._queued[worker] - last.seconds / 2 >= price

    def noted(self, told: Told) -> None:
        """Learn from what became of a pull: how long the arm takes, and how long a move does."""
        arm, work = told.pull.arm, told.work
        self._moves += work.moves
        self._move_seconds += work.move_seconds
        if isinstance(told, Loss):
            seconds = work.train_seconds - work.move_seconds + work.loss_seconds
            self._course[arm] = told.pull.upto, seconds / max(1, work.trained)
