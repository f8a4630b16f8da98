"""The processes runner: pulls on worker processes of this machine.

States stay with the worker that trained them, and go to others through the checkpoints' folder;
they never pass through here. Workers are started afresh, not forked, and are given the trainer by
cloudpickle, so that one from a notebook or a script without a guard will do.
"""

from __future__ import annotations

import math
import os
import queue
import tempfile
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from lastarm.arguments import time_limit, whole_number
from lastarm.errors import CheckpointNotWritten, Stuck
from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.runners.performer import Task
from lastarm.runners.processes.handle import Worker
from lastarm.runners.processes.settling import Settled, Settling
from lastarm.runners.processes.worker import Broken, Done, Ready, Setup
from lastarm.runners.protocol import ATTEMPTS_OF_LOST, Arms
from lastarm.runners.sending import write_trainer
from lastarm.runners.turns import Waiting

MOST_FALSE_STARTS = 3
STARTING = 60.0  # seconds that a worker may take for it, where pulls have a limit of time


class Processes:
    """Performs pulls on so many worker processes.

    A worker that dies is replaced, and its pull comes back as a failure whose worker was `lost`;
    from the third attempt on, such an arm runs while no other does, so that only one that brings
    its worker down by itself is blamed. A pull that takes longer than `pull_seconds` is a failure,
    and its worker is replaced. So is a worker that uses more than `worker_memory` bytes, once its
    pull is done; unless said otherwise, that is an even share of nine tenths of the machine's.

    Where states have to be durable, their workers only write them; they are synced here, and a
    loss comes back when its state is. The worker goes on meanwhile, unless it is the only one: its
    next pull is one that the policy could ask for without that loss. A crash in these few
    milliseconds costs a worker two pulls, the one that it has just done and the one just begun.
    """

    def __init__(
        self,
        arms: Arms,
        *,
        workers: int = 2,
        pull_seconds: float | None = None,
        worker_memory: int | None = None,
    ) -> None:
        self._number = whole_number("workers", workers, 1, "how many pulls can be under way")
        self._limit = time_limit("pull_seconds", pull_seconds, "the most that a pull may take")
        self._arms = arms
        self._worker_memory = worker_memory or _share_of_memory(workers)
        self._messages: queue.SimpleQueue[tuple[Worker, Any]] = queue.SimpleQueue()
        self._alone: deque[Task] = deque()
        self._solo: Worker | None = None  # the worker that runs such a task now
        # arm → the worker that has its state in memory, and the level it is at
        self._home: dict[int, tuple[Worker, int]] = {}
        self._pinned: set[int] = set()  # arms whose states cannot leave their workers
        self.waiting = Waiting(
            home=lambda arm: self._home[arm][0].name if arm in self._home else None,
            idle=lambda: [worker.name for worker in self._workers if worker.task is None],
            switch_seconds=arms.switch_seconds,
        )
        self._false_starts = 0
        self._scratch = tempfile.TemporaryDirectory(prefix="lastarm-", ignore_cleanup_errors=True)
        try:
            write_trainer(arms.trainer, Path(self._scratch.name) / "trainer")
        except BaseException:
            self._scratch.cleanup()
            raise
        self._settling: Settling | None = None
        if arms.folder and arms.folder.durable:
            self._settling = Settling(arms.folder, self._messages)
        self._unsettled = 0  # losses whose states are not durable yet
        self._workers = [self._worker(number) for number in range(workers)]

    @property
    def free(self) -> int:
        """How many workers are idle, as long as the disk keeps up with them."""
        if self._alone or self._solo:
            return 0
        idle = sum(worker.task is None for worker in self._workers)
        return max(0, min(idle, self._number - self._unsettled))

    def start(self, pull: Pull, attempt: int) -> None:
        """Give the pull to the worker that has the arm's state, if it is idle, or to another."""
        task = self._arms.task(pull, attempt)
        home, level = self._home.get(pull.arm, (None, 0))
        only_there = pull.arm in self._pinned or level > (task.known[0] if task.known else 0)
        if attempt >= ATTEMPTS_OF_LOST:
            self._alone.append(task)
        elif home and (home.task is None or only_there):
            home.queue.append(task)
        else:
            next(worker for worker in self._workers if worker.task is None).queue.append(task)
        self._dispatch()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back."""
        deadline = min((worker.since + self._limit for worker in self._workers), default=math.inf)
        results: list[Told] = []
        with suppress(queue.Empty):
            until_then = max(0.0, min(seconds, deadline - monotonic()))
            results = self._take(*self._messages.get(timeout=until_then))
        results += self._give_up_the_late()
        self._dispatch()
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, from its checkpoint; what cannot leave its worker stays there."""
        return self._arms.index.load(pull) if self._arms.index else None

    def close(self) -> None:
        """End all workers and clear away what they left."""
        for worker in self._workers:
            if worker.task:
                worker.kill()
        for worker in self._workers:
            worker.close()
        if self._settling:
            self._settling.close()
        self._scratch.cleanup()

    def _dispatch(self) -> None:
        if self._solo and self._solo.task is None:
            self._solo = None
        if self._alone and not any(worker.task for worker in self._workers):
            task = self._alone.popleft()
            home, _ = self._home.get(task.pull.arm, (self._workers[0], 0))
            # Not with one that has just died: the suspect would be blamed for it.
            self._solo = next((worker for worker in [home, *self._workers] if worker.alive), home)
            self._solo.begin(task)
        elif not self._alone and not self._solo:
            for worker in self._workers:
                if worker.queue and worker.task is None:
                    worker.begin(worker.queue.popleft())

    def _take(self, worker: Worker, message: Any) -> list[Told]:
        if isinstance(message, Settled):
            self._unsettled -= 1
            return [message.loss]
        if isinstance(message, BaseException):
            raise message
        if worker not in self._workers:
            return []  # replaced before
        task, worker.task = worker.task, None
        match message:
            case Ready(pid, resident):
                self._false_starts = 0
                worker.ready, worker.task = True, task
                worker.pid, worker.at_first = pid, resident
                worker.since = monotonic() if task else math.inf
                return []
            case Done(result, level, resident, let_go):
                worker.since = math.inf
                self._home.pop(result.pull.arm, None)
                for arm in let_go:
                    if arm in self._home and self._home[arm][0] is worker:
                        del self._home[arm]
                if level:  # also of one that failed when it was looked at
                    self._home[result.pull.arm] = worker, level
                if isinstance(result, Loss) and result.saved is None:
                    self._pinned.add(result.pull.arm)
                # One that needs as much to begin with would be no better if it were begun anew.
                if resident > max(self._worker_memory, 2 * worker.at_first):
                    self._replace(worker)
                if self._settling and isinstance(result, Loss) and result.saved:
                    self._unsettled += 1
                    self._settling.add(worker, result)
                    return []
                return [result]
            case Broken(CheckpointNotWritten() as error):
                raise error
            case Broken(reason):
                raise Stuck(f"a worker could not load the trainer:\n{reason}")
        return self._bury(worker, task)

    def _bury(self, worker: Worker, task: Task | None) -> list[Told]:
        end = worker.end()
        level = self._level(worker, task) if task else 0
        self._false_starts += not worker.ready
        if self._false_starts == MOST_FALSE_STARTS:
            raise Stuck(f"{MOST_FALSE_STARTS} workers in a row ended ({end}) while they started.")
        self._replace(worker)
        if task is None:
            return []
        alone = ", running alone" if task.attempt >= ATTEMPTS_OF_LOST else ""
        why = f"its worker died ({end}){alone}"
        return [_failure(task, worker, why, level, lost=True)]

    def _give_up_the_late(self) -> list[Told]:
        results: list[Told] = []
        for worker in list(self._workers):
            if not worker.ready and monotonic() >= worker.born + max(STARTING, self._limit):
                results += self._bury(worker, worker.task)
            elif worker.task and monotonic() >= worker.since + self._limit:
                why = f"no result within {self._limit:g} s, so its worker was stopped"
                level = self._level(worker, worker.task)
                results.append(_failure(worker.task, worker, why, level))
                worker.kill()
                self._replace(worker)
        return results

    def _level(self, worker: Worker, task: Task) -> int:
        """How far the arm had come when the task began, or where it would be if it had not."""
        if not worker.ready:
            return task.pull.upto
        home, level = self._home.get(task.pull.arm, (None, 0))
        return max(level if home is worker else 0, task.known[0] if task.known else 0)

    def _replace(self, worker: Worker) -> None:
        """Another worker takes its place; what only it had is trained again."""
        number = self._workers.index(worker)
        threading.Thread(target=worker.close, daemon=True).start()
        successor = self._workers[number] = self._worker(number)
        successor.queue.extend(worker.queue)
        self._home = {arm: home for arm, home in self._home.items() if home[0] is not worker}
        self._solo = None if self._solo is worker else self._solo

    def _worker(self, number: int) -> Worker:
        folder, scratch = self._arms.folder, Path(self._scratch.name)
        setup = Setup(
            coordinator=os.getpid(),
            worker=f"process {number}",
            trainer=scratch / "trainer",
            scratch=scratch,
            states=folder.path if folder else None,
            durable=bool(folder and folder.durable),
            memory=self._arms.memory // self._number,
        )
        return Worker(setup, self._messages)


def _failure(task: Task, worker: Worker, why: str, level: int, *, lost: bool = False) -> Failure:
    # How much of it was done nobody knows: at most this.
    work = Work(task.pull.upto - level, worker=worker.name, attempt=task.attempt)
    return Failure(task.pull, why, work=work, lost=lost)


def _share_of_memory(workers: int) -> float:
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # nobody knows how much there is
        return math.inf
    with suppress(OSError, ValueError):  # a container may have less
        machine = min(machine, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return 0.9 * machine / workers
