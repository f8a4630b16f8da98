"""Whose turn it is: which pull starts next, and which worker performs it.

A runner whose workers keep states has a `Turns`, and obeys it: nothing else decides where a pull
runs. The loop adds the pulls that the policy asks for, and starts the `next` one. The runner adds
each pull that was started, and sends those that can `begin` to the workers that are named.

Only times depend on this, never the answer of a search.

The rule for suspects is the same for all runners with workers. When a worker is lost, its pull may
be the cause or a victim: one pull can use up the memory of a machine and bring down the workers of
others. So the pull is tried again, `ATTEMPTS_OF_LOST` times in all, and from the last of these
attempts on it runs alone. If its worker is lost then, no other pull can be the cause, and the
failure counts (`loop.py`).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from lastarm.columns import reserve
from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.policy import price
from lastarm.runners.performer import Task

ATTEMPTS_OF_LOST = 3
"""How often a pull is tried whose worker is lost every time. What fails for other reasons may be
tried more often, and runs alone from this attempt on."""

W = TypeVar("W", bound=Hashable)


def is_suspect(task: Task) -> bool:
    """Whether this attempt has to run alone."""
    return task.attempt >= ATTEMPTS_OF_LOST


def failed(
    task: Task, worker: str, why: str, *, level: int, details: str = "", lost: bool = False
) -> Failure:
    """The failure of a pull that its worker could not report; the arm had reached `level` before.

    How much of the pull was done is not known, so all of it is booked.
    """
    level = level if task.can_use(level) else 0
    if lost and is_suspect(task):
        why += ", running alone"
    work = Work(task.pull.upto - level, worker=worker, attempt=task.attempt)
    return Failure(task.pull, why, details[-65536:], work, lost=lost)


class Turns(Generic[W]):
    """Pulls that may start in any order, pulls that were started, and the rule for both.

    A runner says, by functions, what it knows of its workers:

    - `home`: the worker that has an arm's state in memory, or None
    - `slots`: the workers that can perform pulls now, and how many each can perform at once
    - `starting`: how many workers are on their way, so that pulls can be started for them
    - `under_way`: the workers that perform pulls now, each with the pull
    - `only_home`: whether a pull would lose progress on any other worker than the arm's home
    - `alone_on_worker`: whether a suspect needs one worker for itself, or else all of them
    - `switch_seconds`: how long it takes to move a state; by default, as long as moves took so far
    - `restarts`: whether arms are trained from zero at every level. Then a home is only for
      another attempt, which may find the state that a failed look has left

    A worker that has room goes on with an arm whose state it has. If it has none, it begins with
    one that is in no worker's memory. If all pulls that wait are of arms with busy workers, it
    takes the last of the longest queue, unless moving its state takes longer than waiting for its
    turn there: that is the time of those before it, and half of its own for the one under way.
    Where a runner says nothing of its workers, pulls start in the order in which they were added.

    >>> turns = Turns(home={0: "a", 2: "b"}.get, slots=lambda: {"b": 1})
    >>> turns.add([Pull(0, 4), Pull(1, 4), Pull(2, 4)])
    >>> [turns.next() for _ in range(3)]
    [(Pull(arm=2, upto=4), 1), (Pull(arm=1, upto=4), 1), (Pull(arm=0, upto=4), 1)]
    """

    def __init__(
        self,
        *,
        home: Callable[[int], W | None] | None = None,
        slots: Callable[[], Mapping[W, int]] = dict,
        starting: Callable[[], int] = int,
        under_way: Callable[[], Iterable[tuple[W, Task]]] = tuple,
        only_home: Callable[[Task], bool] = lambda task: False,
        alone_on_worker: bool = False,
        switch_seconds: float | None = None,
        restarts: bool = False,
    ) -> None:
        self._home, self._slots, self._starting = home, slots, starting
        self._under_way, self._only_home = under_way, only_home
        self._alone_on_worker = alone_on_worker
        self._switch_seconds = switch_seconds
        self._restarts = restarts
        self._far: deque[Pull] = deque()  # of arms that are in no worker's memory
        self._near: dict[W, deque[Pull]] = {}  # worker → of arms that it has
        self._attempts: dict[Pull, int] = {}  # pull → its attempt, if that is not the first
        self._queued: dict[W, float] = {}  # worker → seconds that these take
        self._ready = 0  # how many pulls may start
        self._started: deque[Task] = deque()  # those that were, and wait for a worker
        self._level = array("q")  # by arm: how far it came
        self._pace = array("d")  # by arm: seconds for each of its pulls
        self._moves, self._move_seconds = 0, 0.0

    # For the loop ------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many pulls may start that were not started yet."""
        return self._ready

    def add(self, pulls: Iterable[Pull], attempt: int = 1) -> None:
        """Take pulls that may start now, in the order in which they were asked for."""
        for pull in pulls:
            worker = self._home_of(pull.arm, attempt)
            if worker is None:
                self._far.append(pull)
            else:
                self._near.setdefault(worker, deque()).append(pull)
                self._queued[worker] = self._queued.get(worker, 0.0) + self._seconds(pull)
            if attempt > 1:
                self._attempts[pull] = attempt
            self._ready += 1

    def next(self, *, patient: bool = False) -> tuple[Pull, int] | None:
        """The pull to start now, and the number of the attempt.

        None if there is none; or, when `patient`, if it is better to wait for a busy worker.
        """
        if not self._ready:
            return None
        here = None
        if self._near:
            here = next((worker for worker in self._room()[0] if self._near.get(worker)), None)
        if here is not None:
            pull = self._near[here].popleft()
            self._queued[here] -= self._seconds(pull)
        elif self._far:
            pull = self._far.popleft()
        else:
            queues = (worker for worker, queue in self._near.items() if queue)
            there = max(queues, key=self._queued.__getitem__)
            if patient and not self._worth_moving(there):
                return None
            pull = self._near[there].pop()
            self._queued[there] -= self._seconds(pull)
        self._ready -= 1
        return pull, self._attempts.pop(pull, 1) if self._attempts else 1

    def learn(self, told: Told) -> None:
        """Learn from what became of a pull: how long its arm takes, and how long a move does."""
        if self._home is None:
            return
        work = told.work
        self._moves += work.moves
        self._move_seconds += work.move_seconds
        if isinstance(told, Loss):
            seconds = work.train_seconds - work.move_seconds + work.loss_seconds
            arm = told.pull.arm
            reserve(self._level, arm, 0)
            reserve(self._pace, arm, 0.0)
            self._level[arm], self._pace[arm] = told.pull.upto, seconds / max(1, work.trained)

    def _seconds(self, pull: Pull) -> float:
        """What a pull is expected to take; the same from when it is added until it is told."""
        arm = pull.arm
        if arm >= len(self._pace):
            return 0.0
        return price(self._level[arm], pull.upto, restarts=self._restarts) * self._pace[arm]

    def _home_of(self, arm: int, attempt: int) -> W | None:
        """The worker that has a state of the arm which an attempt can use, if any has."""
        return self._home(arm) if self._home and (attempt > 1 or not self._restarts) else None

    def _worth_moving(self, worker: W) -> bool:
        last = self._near[worker][-1]
        if (
            self._home_of(last.arm, self._attempts.get(last, 1)) != worker
        ):  # its state was lost meanwhile
            return True
        measured = self._move_seconds / self._moves if self._moves else 0.0
        price = measured if self._switch_seconds is None else self._switch_seconds
        return self._queued[worker] - self._seconds(last) / 2 >= price

    # For the runner ----------------------------------------------------------------------------

    @property
    def free(self) -> int:
        """How many more pulls can be started now: none while a suspect waits to be alone, or is.

        A pull that waits for its arm's home takes no place of another.
        """
        room, _, closed = self._room()
        if closed or any(map(is_suspect, self._started)):
            return 0
        for_any = sum(not self._waits_for_home(task) for task in self._started)
        return max(0, sum(room.values()) + self._starting() - for_any)

    def start(self, task: Task) -> None:
        """Take a pull that was started, until it can begin."""
        self._started.append(task)

    def begin(self) -> Iterator[tuple[Task, W]]:
        """The pulls that begin now, each with its worker, where it is to be under way at once."""
        only_suspects = not self._alone_on_worker and any(map(is_suspect, self._started))
        for _ in range(len(self._started)):
            task = self._started.popleft()
            worker = None
            if is_suspect(task) or not only_suspects:
                worker = self.place(task, alone=is_suspect(task))
            if worker is None:
                self._started.append(task)
            else:
                yield task, worker

    def place(self, task: Task, *, alone: bool = False) -> W | None:
        """The worker for a pull: the arm's home, or else the one with most room, or else none.

        It is none, too, while the home is busy and no other worker may go on with the arm.
        """
        room, load, _ = self._room()
        if alone and load and not self._alone_on_worker:
            return None
        if alone:
            room = {worker: places for worker, places in room.items() if worker not in load}
        home = self._home_of(task.pull.arm, task.attempt)
        if home is not None and home in room:
            return home
        if self._waits_for_home(task):
            return None
        return max(room, key=room.__getitem__, default=None)

    def expected(self, task: Task) -> W | None:
        """The worker that will perform a pull which is started now, as far as can be foreseen."""
        worker = self.place(task, alone=is_suspect(task))
        return self._home_of(task.pull.arm, task.attempt) if worker is None else worker

    def _waits_for_home(self, task: Task) -> bool:
        """Whether a pull has to wait for its arm's home if that has no room."""
        home = self._home_of(task.pull.arm, task.attempt)
        return home is not None and self._only_home(task)

    def _room(self) -> tuple[Mapping[W, int], dict[W, int], bool]:
        """The workers that can begin a pull and how many, and how many are under way on each.

        Last, whether a suspect runs for which all other workers have to wait.
        """
        load: dict[W, int] = {}
        reserved: set[W] = set()  # for a suspect
        for worker, task in self._under_way():
            load[worker] = load.get(worker, 0) + 1
            if is_suspect(task):
                reserved.add(worker)
        if reserved and not self._alone_on_worker:
            return {}, load, True
        room = self._slots()
        if load:
            left = ((worker, places - load.get(worker, 0)) for worker, places in room.items())
            room = {worker: n for worker, n in left if n > 0 and worker not in reserved}
        return room, load, False
