"""The processes runner: pulls on worker processes of this machine.

States stay with the worker that trained them, and go to others through the checkpoints' folder;
they never pass through the coordinator. Workers are started afresh, not forked, and get the
trainer by cloudpickle. So a trainer from a notebook, or from a script without a guard, works.
"""

from __future__ import annotations

import math
import os
import queue
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from lastarm.arguments import time_limit, whole_number
from lastarm.checkpoints import StateFolder
from lastarm.errors import CheckpointNotWritten, WorkersNotStarted
from lastarm.events import Failure, Loss, Pull, Told
from lastarm.runners.performer import Task
from lastarm.runners.processes.worker import (
    Broken,
    Message,
    Messages,
    Ready,
    Setup,
    WorkerProcess,
)
from lastarm.runners.protocol import Arms
from lastarm.runners.remote import Report, pickled_trainer, sendable
from lastarm.runners.turns import Turns, failed

MOST_FALSE_STARTS = 3
STARTING = 60.0  # seconds that a worker may take to start, where pulls have a limit of time


class Processes:
    """Performs pulls on `workers` worker processes of this machine.

    - `arms`: the arms of the search
    - `workers`: how many processes there are, each of which performs one pull at a time
    - `pull_seconds`: how long a pull may take. One that takes longer is a failure of its arm, and
      its worker is replaced
    - `worker_memory`: how many bytes a worker may use. One that uses more is replaced once its
      pull is done. By default, an even share of nine tenths of the machine's memory

    If a worker dies, it is replaced, and its pull comes back as a failure whose worker was `lost`.
    From the third attempt on the pull runs while no other does, so that an arm is blamed only if
    it brings its worker down by itself.

    Where states have to be durable, workers only write them. They are synced here, and a loss
    comes back when its state is durable. The worker goes on meanwhile, unless it is the only one:
    its next pull is one that the policy could ask for without that loss. A crash in these few
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
        self._messages: Messages = queue.SimpleQueue()
        self._unsent: list[Told] = []  # failures of arms whose configs cannot be sent
        # arm → the worker that has its state in memory, and the level it is at
        self._home: dict[int, tuple[WorkerProcess, int]] = {}
        self.turns: Turns[str] = Turns(
            home=lambda arm: self._home[arm][0].name if arm in self._home else None,
            # Not one that has just died: a suspect would be blamed for it.
            slots=lambda: {name: 1 for name, worker in self._workers.items() if worker.alive},
            under_way=lambda: [(n, w.task) for n, w in self._workers.items() if w.task],
            only_home=lambda task: self._home[task.pull.arm][1] > _checkpoint(task),
            switch_seconds=arms.switch_seconds,
        )
        self._false_starts = 0
        self._error: Exception | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="lastarm-", ignore_cleanup_errors=True)
        try:
            trainer = pickled_trainer(arms.trainer)
            (Path(self._scratch.name) / "trainer").write_bytes(trainer)
        except BaseException:
            self._scratch.cleanup()
            raise
        self._syncing: Syncing | None = None
        if arms.folder and arms.folder.durable:
            self._syncing = Syncing(arms.folder, self._messages)
        self._unsynced = 0  # losses whose states are not durable yet
        self._workers: dict[str, WorkerProcess] = {}
        for number in range(workers):
            self._add_worker(f"process {number}")

    @property
    def free(self) -> int:
        """How many workers are idle, as long as the disk keeps up with them."""
        return max(0, min(self.turns.free, self._number - self._unsynced))

    def start(self, pull: Pull, attempt: int) -> None:
        """Begin the pull on the worker that `turns` names, now or when that has room."""
        task = sendable(self._arms.task(pull, attempt))
        if isinstance(task, Failure):
            self._unsent.append(task)
        else:
            self.turns.start(task)
            self._dispatch()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back: all of it, so that the journal is synced once for many losses."""
        if self._error:
            raise self._error
        deadline = min(worker.since + self._limit for worker in self._workers.values())
        results, self._unsent = self._unsent, []
        try:
            patience = 0.0 if results else max(0.0, min(seconds, deadline - monotonic()))
            results += self._take(*self._messages.get(timeout=patience))
            while True:
                results += self._take(*self._messages.get_nowait())
        except queue.Empty:
            results += self._give_up_the_late()
        except Exception as error:
            if not results:
                raise
            self._error = error  # for the next time, so that these results count
        self._dispatch()
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, from its checkpoint; a state that cannot be pickled stays away."""
        return self._arms.index.load(pull) if self._arms.index else None

    def close(self) -> None:
        """End all workers and delete what they left."""
        for worker in self._workers.values():
            if worker.task:
                worker.kill()
        for worker in self._workers.values():
            worker.close()
        if self._syncing:
            self._syncing.close()
        self._scratch.cleanup()

    def _dispatch(self) -> None:
        for task, worker in self.turns.begin():
            self._workers[worker].begin(task)

    def _take(
        self, worker: WorkerProcess | None, message: Message | Loss | BaseException
    ) -> list[Told]:
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, Loss):
            self._unsynced -= 1
            return [message]
        if worker is None or self._workers[worker.name] is not worker:
            return []  # it was replaced before
        match message:
            case Ready(pid, resident):
                self._false_starts = 0
                worker.ready, worker.pid, worker.at_first = True, pid, resident
                worker.since = monotonic() if worker.task else math.inf
                return []
            case Report():
                return self._take_report(worker, message)
            case Broken(CheckpointNotWritten() as error):
                raise error
            case Broken(reason):
                raise WorkersNotStarted("a worker could not load the trainer", str(reason))
            case None:
                return self._bury(worker)

    def _take_report(self, worker: WorkerProcess, report: Report) -> list[Told]:
        told = report.told
        worker.task, worker.since = None, math.inf
        self._home.pop(told.pull.arm, None)
        for arm in report.let_go:
            if arm in self._home and self._home[arm][0] is worker:
                del self._home[arm]
        if report.level:  # also of an arm that failed when it was looked at
            self._home[told.pull.arm] = worker, report.level
        # A worker that needs as much to begin with would be no better if it were started again.
        if report.resident > max(self._worker_memory, 2 * worker.at_first):
            self._replace(worker)
        if self._syncing and isinstance(told, Loss) and told.saved:
            self._unsynced += 1
            self._syncing.add(told, worker.pid)
            return []
        return [told]

    def _bury(self, worker: WorkerProcess) -> list[Told]:
        """Replace a worker that has died; its pull was lost."""
        end, task = worker.end(), worker.task
        level = self._level(worker, task) if task else 0
        self._false_starts += not worker.ready
        if self._false_starts == MOST_FALSE_STARTS:
            what = f"{MOST_FALSE_STARTS} workers in a row ended while they started"
            raise WorkersNotStarted(what, end)
        self._replace(worker)
        if task is None:
            return []
        return [failed(task, worker.name, f"its worker died ({end})", level=level, lost=True)]

    def _give_up_the_late(self) -> list[Told]:
        results: list[Told] = []
        for worker in list(self._workers.values()):
            if not worker.ready and monotonic() >= worker.born + max(STARTING, self._limit):
                results += self._bury(worker)
            elif worker.task and monotonic() >= worker.since + self._limit:
                why = f"no result within {self._limit:g} s, so its worker was stopped"
                level = self._level(worker, worker.task)
                results.append(failed(worker.task, worker.name, why, level=level))
                worker.kill()
                self._replace(worker)
        return results

    def _level(self, worker: WorkerProcess, task: Task) -> int:
        """How far the arm had come when the task began, or where it would be if it had not."""
        if not worker.ready:
            return task.pull.upto
        home, level = self._home.get(task.pull.arm, (None, 0))
        return max(level if home is worker else 0, _checkpoint(task))

    def _replace(self, worker: WorkerProcess) -> None:
        """Start another worker in its place; what only it had is trained again."""
        threading.Thread(target=worker.close, daemon=True).start()
        self._add_worker(worker.name)
        self._home = {arm: home for arm, home in self._home.items() if home[0] is not worker}

    def _add_worker(self, name: str) -> None:
        folder, scratch = self._arms.folder, Path(self._scratch.name)
        setup = Setup(
            coordinator=os.getpid(),
            worker=name,
            trainer=scratch / "trainer",
            scratch=scratch,
            states=folder.path if folder else None,
            durable=bool(folder and folder.durable),
            memory=self._arms.memory // self._number,
        )
        self._workers[name] = WorkerProcess(setup, self._messages)


class Syncing:
    """A thread that makes states durable while the workers that wrote them go on.

    It takes losses whose states are written, and puts each among the messages when its state is
    durable. What comes in while it waits for the disk is synced together. An error goes among the
    messages as well, to be raised where these are read.
    """

    def __init__(self, folder: StateFolder, messages: Messages) -> None:
        self._folder, self._messages = folder, messages
        self._written: queue.SimpleQueue[tuple[Loss, int]] = queue.SimpleQueue()
        self._thread = ThreadPoolExecutor(1)

    def add(self, loss: Loss, process: int) -> None:
        """Take a loss whose state this process has written."""
        self._written.put((loss, process))
        self._thread.submit(self._sync)

    def close(self) -> None:
        """Finish what is under way, and nothing more."""
        self._thread.shutdown(cancel_futures=True)

    def _sync(self) -> None:
        group = [self._written.get() for _ in range(self._written.qsize())]
        if not group:
            return  # it was synced with the one before
        try:
            self._folder.settle((loss.pull, process) for loss, process in group)
        except BaseException as error:
            self._messages.put((None, error))
        else:
            for loss, _ in group:
                self._messages.put((None, loss))


def _checkpoint(task: Task) -> int:
    return task.known[0] if task.known else 0


def _share_of_memory(workers: int) -> float:
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # the system does not say how much there is
        return math.inf
    with suppress(OSError, ValueError):  # a container may have less
        machine = min(machine, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return 0.9 * machine / workers
