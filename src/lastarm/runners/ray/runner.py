"""The Ray runner: pulls on the actors of a Ray cluster.

An actor keeps the states of the arms that it trained, and a copy of each goes to Ray's object
store. From there it gets to any other actor that is to go on with the arm, and it is still there
when its actor is dead. States never pass through here.
"""

from __future__ import annotations

import math
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from lastarm.arguments import as_float, time_limit, whole_number
from lastarm.errors import CheckpointNotWritten, InvalidArgument, Stuck
from lastarm.events import Failure, Loss, Pull, Saved, Told, Work
from lastarm.runners.performer import Task
from lastarm.runners.protocol import ATTEMPTS_OF_LOST, Arms
from lastarm.runners.ray.actors import Actor, Copy, Worker
from lastarm.runners.ray.head import Head
from lastarm.runners.ray.local import LocalRay, ray
from lastarm.runners.remote import Kit, Order, amounts, order
from lastarm.runners.turns import Waiting

MOST_FALSE_STARTS = 3


class Kept(NamedTuple):
    """Where the state of an arm is: with a worker, and in the object store if it can be copied."""

    level: int
    copy: Copy | None
    home: Worker | None
    pinned: bool = False  # to its home: there can be no copy


class Ray:
    """Performs pulls on actors of the Ray that is initialised here, or else on one of its own.

    There are as many actors as `workers` says, or as the cluster has room for; each has
    `num_cpus`, `num_gpus` and `resources` to itself, performs one pull at a time, and takes part
    from when Ray has found a place for it. lastarm is to be installed where they are.

    A worker that dies is replaced, and its pull comes back as a failure whose worker was `lost`;
    from the third attempt on, such an arm runs while no other does, so that only one that brings
    its worker down by itself is blamed. A pull that takes longer than `pull_seconds` is a failure,
    and its worker is replaced. A worker that gives no sign of life for `lease` seconds, whatever
    it does, is given up as lost; foreign code that lets no other thread run for that long needs a
    longer one. When the cluster itself is gone, that is an error, `Stuck`.

    Without `ray.init()` before, a Ray is started on this machine, and ended with the runner. It
    listens on 127.0.0.1 only, asks for Ray's token where Ray has them, and tells nobody.
    """

    def __init__(
        self,
        arms: Arms,
        *,
        workers: int | None = None,
        pull_seconds: float | None = None,
        lease: float = 60.0,
        num_cpus: float = 1,
        num_gpus: float = 0,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        if workers is not None:
            workers = whole_number("workers", workers, 1, "how many pulls can be under way")
        self._limit = time_limit("pull_seconds", pull_seconds, "the most that a pull may take")
        self._lease = time_limit("lease", lease, "how long a worker may give no sign of life")
        for name, given in {"num_cpus": num_cpus, "num_gpus": num_gpus}.items():
            if not 0 <= as_float(given) < math.inf:
                raise InvalidArgument(
                    f"{name}={given!r} will not do: it is how many a pull takes. Give 0 or more."
                )
        taken = amounts(resources)
        self._arms = arms
        self._alone: deque[tuple[Task, Order]] = deque()
        self._solo: Worker | None = None  # the worker that runs such a task now
        self._for_any: deque[tuple[Task, Order]] = deque()
        self._unsent: list[Told] = []  # failures of arms whose configs cannot be sent
        self._kept: dict[int, Kept] = {}
        self._spare: dict[int, int] = {}  # arm → bytes of a copy that is saved, too; oldest first
        self._spare_bytes = 0
        self._false_starts = 0
        self._workers: list[Worker] = []
        self._kit = Kit.of(arms)
        self._to_be_seen = self._kit.folder is not None  # by the workers
        self._own: LocalRay | None = None
        self._head = Head(patience=self._lease)
        try:
            if not ray.is_initialized():
                self._own = LocalRay(max(1, math.ceil(workers * num_cpus)) if workers else None)
            needed = {"CPU": num_cpus, "GPU": num_gpus, **taken}
            room = _room({name: amount for name, amount in needed.items() if amount})
            if self._own and not room:
                raise InvalidArgument(
                    f"num_cpus={num_cpus}, num_gpus={num_gpus}, resources={resources} will not "
                    "do: this machine has less than that for a pull. Ask for less, or start Ray "
                    "yourself, with ray.init() and what there is."
                )
            number = workers or max(1, room)
            self._options = Actor.options(
                num_cpus=num_cpus,
                num_gpus=num_gpus,
                resources=taken,
                max_restarts=0,
                max_task_retries=0,
            )
            self._memory = arms.memory // number
            self.waiting = Waiting(
                home=self._worker_of,
                idle=lambda: [worker.name for worker in self._workers if worker.task is None],
                switch_seconds=arms.switch_seconds,
            )
            self._head.find()
            self._looked = monotonic()
            self._kit_at = ray.put(self._kit)
            self._workers = [self._worker(k) for k in range(number)]
        except BaseException:
            self.close()
            raise

    @property
    def free(self) -> int:
        """How many workers have nothing to do, also while they start."""
        idle = sum(worker.task is None for worker in self._workers)
        return 0 if self._alone or self._solo else max(0, idle - len(self._for_any))

    def start(self, pull: Pull, attempt: int) -> None:
        """Give the pull to the worker that has the arm's state, if it is idle, or to another."""
        task = self._arms.task(pull, attempt)
        sent = order(task)
        if isinstance(sent, Failure):
            self._unsent.append(sent)
            return
        kept = self._kept.get(pull.arm)
        home = kept.home if kept else None
        if attempt >= ATTEMPTS_OF_LOST:
            self._alone.append((task, sent))
        elif kept and home and (home.idle or kept.pinned):
            home.queue.append((task, sent))
        else:
            self._for_any.append((task, sent))
        with self._head.needed():
            self._dispatch()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back."""
        until = monotonic() + seconds
        results, self._unsent = self._unsent, []
        with self._head.needed():
            while not results:
                self._head.look()
                results = self._come_back(until)
                results += self._give_up_the_late() + self._give_up_the_frozen()
                self._dispatch()
                if monotonic() >= until:
                    break
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, from its checkpoint or the object store, if it is in one of them."""
        state = self._arms.index.load(pull) if self._arms.index else None
        kept = self._kept.get(pull.arm)
        if state is None and kept and kept.copy and kept.level == pull.upto:
            with suppress(Exception):  # lost with its machine, or of no use here
                state = pickle.loads(ray.get(kept.copy.at, timeout=60))
        return state

    def close(self) -> None:
        """End all actors, and Ray, if it was started here; a cluster that is gone is left."""
        if ray.is_initialized():
            for worker in self._workers:
                worker.kill()
        self._workers, self._kept, self._kit_at = [], {}, None
        self._kit.put_away()
        if self._own:
            self._own.close()
        elif self._head.gone:
            ray.shutdown()  # or Ray ends this process, a minute after the cluster's end
        self._own = None

    def _worker_of(self, arm: int) -> str | None:
        kept = self._kept.get(arm)
        return kept.home.name if kept and kept.home else None

    def _dispatch(self) -> None:
        if self._solo and self._solo.task is None:
            self._solo = None
        if self._alone and not any(worker.task for worker in self._workers):
            kept = self._kept.get(self._alone[0][0].pull.arm)
            idle = [worker for worker in self._workers if worker.idle]
            if idle:
                self._solo = kept.home if kept and kept.home in idle else idle[0]
                self._begin(self._solo, self._alone.popleft())
        elif not self._alone and not self._solo:
            for worker in self._workers:
                if worker.idle and (queue := worker.queue or self._for_any):
                    self._begin(worker, queue.popleft())

    def _begin(self, worker: Worker, sent: tuple[Task, Order]) -> None:
        kept = self._kept.get(sent[0].pull.arm)
        worker.begin(*sent, kept.copy if kept else None)

    def _come_back(self, until: float) -> list[Told]:
        """What has come back by then, or by when somebody else has to be looked after."""
        due = min(until, self._looked + self._lease / 4, self._head.next_look)
        due = min(due, *(worker.since + self._limit for worker in self._workers))
        awaited = {worker.awaited: worker for worker in self._workers if worker.awaited}
        patience = max(0.0, due - monotonic())
        if not awaited:
            time.sleep(patience)
            return []
        there, rest = ray.wait(list(awaited), timeout=patience)
        if there and rest:
            there += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return [told for ref in there for told in self._take(awaited[ref])]

    def _take(self, worker: Worker) -> list[Told]:
        try:
            answer = ray.get(worker.awaited)
        except ray.exceptions.RayError as error:
            return self._bury(worker, "its worker died", str(error))
        worker.awaited = None
        if worker.task is None:
            if answer is not None:
                raise Stuck(f"a worker could not load the trainer:\n{answer}")
            worker.ready, worker.answered, self._false_starts = True, monotonic(), 0
            return []
        if isinstance(answer.told, CheckpointNotWritten):
            raise answer.told
        arm, told = worker.task.pull.arm, answer.told
        worker.task, worker.since = None, math.inf
        if answer.level:
            copy = Copy(answer.level, worker.copied) if answer.copied else None
            self._kept[arm] = Kept(answer.level, copy, worker, pinned=copy is None)
            saved = told.saved if copy and isinstance(told, Loss) else None
            self._do_without_copies(arm, saved)
        else:
            self._forget(arm)
        worker.copied = None
        if self._to_be_seen and answer.copied and isinstance(told, Loss) and not told.saved:
            self._to_be_seen = False
            self._kit.warn_of_unseen_folder()
        return [told]

    def _do_without_copies(self, arm: int, saved: Saved | None) -> None:
        """Let go of the oldest copies of what was saved, too, if they fill the memory."""
        self._spare_bytes -= self._spare.pop(arm, 0)
        if saved:
            self._spare[arm] = saved.size
            self._spare_bytes += saved.size
        while self._spare_bytes > self._arms.memory:
            oldest = next(iter(self._spare))
            self._spare_bytes -= self._spare.pop(oldest)
            self._kept[oldest] = self._kept[oldest]._replace(copy=None)

    def _give_up_the_late(self) -> list[Told]:
        results: list[Told] = []
        for worker in list(self._workers):
            if worker.task and monotonic() >= worker.since + self._limit:
                why = f"no result within {self._limit:g} s, so its worker was stopped"
                results.append(self._failure(worker, worker.task, why))
                self._replace(worker)
        return results

    def _give_up_the_frozen(self) -> list[Told]:
        now, since = monotonic(), monotonic() - self._looked
        if since < self._lease / 4:
            return []
        self._looked = now
        results: list[Told] = []
        for worker in list(self._workers):
            if since > self._lease / 2:  # it is we who were frozen, and who could not be answered
                worker.answered = max(worker.answered, now)
            if not worker.lives(now, self._lease):
                results += self._bury(worker, f"its worker was silent for {self._lease:g} s")
        return results

    def _bury(self, worker: Worker, why: str, details: str = "") -> list[Told]:
        self._head.require()
        self._false_starts += not worker.ready
        if self._false_starts == MOST_FALSE_STARTS:
            raise Stuck(
                f"{MOST_FALSE_STARTS} workers in a row ended while they started:\n{details}"
            )
        results: list[Told] = []
        if worker.task:
            why += ", running alone" if worker.task.attempt >= ATTEMPTS_OF_LOST else ""
            results = [self._failure(worker, worker.task, why, details, lost=True)]
        self._replace(worker)
        return results

    def _failure(
        self, worker: Worker, task: Task, why: str, details: str = "", *, lost: bool = False
    ) -> Failure:
        kept = self._kept.get(task.pull.arm)
        level = max(kept.level if kept else 0, task.known[0] if task.known else 0)
        # How much of it was done nobody knows: at most this.
        work = Work(task.pull.upto - level, worker=worker.name, attempt=task.attempt)
        return Failure(task.pull, why, details[-65536:], work, lost=lost)

    def _replace(self, worker: Worker) -> None:
        """Another worker takes its place; what only it had is trained again."""
        worker.kill()
        number = self._workers.index(worker)
        self._workers[number] = self._worker(number)
        self._for_any.extend(worker.queue)
        for arm in [arm for arm, kept in self._kept.items() if kept.home is worker]:
            self._forget(arm)
        self._solo = None if self._solo is worker else self._solo

    def _forget(self, arm: int) -> None:
        """No worker has its state any more; what is left is the copy."""
        kept = self._kept.pop(arm, None)
        if kept and kept.copy:
            self._kept[arm] = Kept(kept.copy.level, kept.copy, None)

    def _worker(self, number: int) -> Worker:
        name = f"actor {number}"
        path = [os.path.abspath(entry) for entry in sys.path]
        return Worker(name, self._options.remote(self._kit_at, path, name, self._memory))


def _room(needed: Mapping[str, float]) -> int:
    """How many pulls the machines of the cluster have room for."""
    machines = [machine["Resources"] for machine in ray.nodes() if machine["Alive"]]
    needed = needed or {"CPU": 1}
    return sum(
        # 1 // 0.2 is 4.
        min(math.floor(has.get(name, 0) / amount + 1e-9) for name, amount in needed.items())
        for has in machines
    )
