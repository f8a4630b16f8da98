"""The Ray runner: pulls on the actors of a Ray cluster.

An actor keeps the states of the arms that it trained, and a copy of each goes to Ray's object
store. Another actor that goes on with the arm gets it from there, also when the first actor is
dead. States never pass through the coordinator.
"""

from __future__ import annotations

import math
import os
import pickle
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import ray

from lastarm.arguments import as_float, time_limit, whole_number
from lastarm.checkpoints import StateFolder
from lastarm.errors import CheckpointNotWritten, InvalidArgument, WorkersNotStarted
from lastarm.events import Failure, Loss, Pull, Saved, Told
from lastarm.runners.asides import Asides
from lastarm.runners.performer import Performer, Task
from lastarm.runners.protocol import Arms
from lastarm.runners.ray.cluster import ClusterWatch, LocalRay, room
from lastarm.runners.remote import Kit, Report, amounts, load_trainer, sendable
from lastarm.runners.states import States, packed
from lastarm.runners.turns import Turns, failed
from lastarm.signals import end_children_by_sigterm

MOST_FALSE_STARTS = 3


class Copy(NamedTuple):
    """A state in the object store."""

    level: int
    at: Any  # an ObjectRef


class PullActor:
    """In an actor: performs pulls, and keeps the states of the last ones in `memory` bytes."""

    def __init__(self, kit: Kit, path: list[str], name: str, memory: int) -> None:
        self._kit, self._name, self._memory = kit, name, memory
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._sizes: dict[int, int] = {}  # arm → bytes of what is also in the object store
        self._size = 0  # of all of them

    def load(self) -> str | None:
        """Load the trainer; the traceback if that fails."""
        try:
            trainer, script = load_trainer(self._kit.trainer)
        except BaseException:
            return traceback.format_exc()
        script.keep()
        end_children_by_sigterm()
        path = self._kit.seen_folder
        durable, sync = self._kit.durable, self._kit.sync
        folder = StateFolder(path, trainer, durable=durable, sync=sync) if path else None
        self._states = States(folder, trainer, memory=math.inf, always=True)
        self._performer = Performer(trainer, self._states, apart=True)
        return None

    def pull(
        self, task: Task, copy: Copy | None
    ) -> tuple[Report | CheckpointNotWritten, bytes | None]:
        """Train and look; with the report comes a copy of the state."""
        arm = task.pull.arm
        held = self._states.held(arm)
        began, moves, seconds = perf_counter(), 0, 0.0
        if copy and task.can_use(copy.level) and (held is None or held.level != copy.level):
            with suppress(BaseException):  # lost with its machine, or it cannot be loaded here
                state = pickle.loads(ray.get(copy.at))
                self._states.put_back(Pull(arm, copy.level), state)
                moves, seconds = 1, perf_counter() - began
        self._size -= self._sizes.pop(arm, 0)
        try:
            told = self._performer.perform(task, self._name)
        except CheckpointNotWritten as error:
            return error, None
        if moves:
            training = told.work.train_seconds + seconds
            work = told.work._replace(train_seconds=training, moves=moves, move_seconds=seconds)
            told = told._replace(work=work)
        held, aside = self._states.held(arm), self._performer.aside.sendable()
        if held is None:
            return Report(told, aside=aside), None
        copied = packed(held.state)  # the arrays of a pickle can be changed when it is loaded
        if copied is not None:
            self._sizes[arm] = held.size or len(copied)
            self._size += self._sizes[arm]
            self._make_room()
        movable = copied is not None
        return Report(told, held.level, movable, held.continues, aside=aside), copied

    def answer(self) -> None:
        """Show that this process is not frozen, while a pull is under way."""

    def _make_room(self) -> None:
        """Let the oldest go, and what would have to be trained again only as `States` does."""
        while len(self._sizes) > 1 and self._size > self._memory:
            all_held = {arm: held for arm in self._sizes if (held := self._states.held(arm))}
            oldest = (arm for arm, held in all_held.items() if held.continues)
            arm = next(oldest, None)
            if arm is None:
                arm = min(all_held, key=lambda arm: (all_held[arm].level, -all_held[arm].loss))
            self._size -= self._sizes.pop(arm)
            self._states.take(Pull(arm, all_held[arm].level), None)


# A pull runs in one thread, and answers come from another.
Actor = ray.remote(concurrency_groups={"pulse": 1})(PullActor)


class WorkerActor:
    """An actor, as its coordinator sees it."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self.actor = actor
        self._pull = actor.pull.options(num_returns=2)
        self._answer = actor.answer.options(concurrency_group="pulse")
        self.ready = False
        self.awaited = actor.load.remote()  # that it is ready; then, the report of its task
        self.copied: Any = None  # where the state will be then
        self.task: Task | None = None
        self.since = math.inf  # when it began with its task, by the monotonic clock
        self.asked: Any = None  # whether it lives
        self.answered = math.inf

    def begin(self, task: Task, copy: Copy | None) -> None:
        """Give it a task."""
        self.task, self.since = task, monotonic()
        self.awaited, self.copied = self._pull.remote(task, copy)

    def lives(self, now: float, lease: float) -> bool:
        """Whether it has answered within the last `lease` seconds; if so, it is asked again.

        One that has never answered may be waiting for its place in the cluster.
        """
        if self.asked is None or ray.wait([self.asked], timeout=0)[0]:
            if self.asked is not None:
                self.answered = now
                if self.ready and self.task is None:  # else, its task shows that it died
                    try:
                        ray.get(self.asked)
                    except ray.exceptions.RayError:
                        return False
            self.asked = self._answer.remote()
        return now < self.answered + lease

    def kill(self) -> None:
        """End it now, with all that it has started, even if it is frozen."""
        with suppress(Exception):  # it, or the whole cluster, is gone already
            ray.kill(self.actor, no_restart=True)
        self.task = self.awaited = self.copied = self.asked = None


class Kept(NamedTuple):
    """Where the state of an arm is: with a worker, and in the object store if it can be copied.

    One that is `pinned` is trained further only by its home: a copy does not continue, or there
    can be none.
    """

    level: int
    copy: Copy | None
    home: WorkerActor | None
    pinned: bool = False


class Ray:
    """Performs pulls on actors of the Ray that is initialised here, or else on one of its own.

    - `arms`: the arms of the search
    - `workers`: how many actors there are, each of which performs one pull at a time. By default,
      as many as the cluster has room for
    - `pull_seconds`: how long a pull may take. One that takes longer is a failure of its arm, and
      its worker is replaced
    - `lease`: after how many seconds without a sign of life a worker counts as lost. Foreign code
      that lets no other thread run for that long needs a longer lease
    - `num_cpus`, `num_gpus`, `resources`: what each actor has for itself, as in Ray's options

    An actor takes part as soon as Ray has found a place for it. lastarm has to be installed there.

    If a worker dies, it is replaced, and its pull comes back as a failure whose worker was `lost`.
    From the third attempt on the pull runs while no other does, so that an arm is blamed only if
    it brings its worker down by itself. If the cluster itself is gone, `ClusterLost` is raised.

    Without `ray.init()` before, a Ray is started on this machine, and ended with the runner. It
    listens on 127.0.0.1 only, asks for Ray's token where Ray has them, and reports to no server.
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
                rule = f"{name} is how many a pull takes"
                raise InvalidArgument.of(name, given, rule, "Use a number of at least 0")
        taken = amounts(resources)
        self._arms = arms
        self.asides = Asides()
        self._unsent: list[Told] = []  # failures of arms whose configs cannot be sent
        self._kept: dict[int, Kept] = {}
        self._spare: dict[int, int] = {}  # arm → bytes of a copy that is saved, too; oldest first
        self._spare_bytes = 0
        self._false_starts = 0
        self._workers: dict[str, WorkerActor] = {}
        self._kit = Kit.of(arms)
        self._to_be_seen = self._kit.folder is not None  # by the workers
        self._own: LocalRay | None = None
        self._cluster = ClusterWatch(patience=self._lease)
        try:
            if not ray.is_initialized():
                self._own = LocalRay(max(1, math.ceil(workers * num_cpus)) if workers else None)
            needed = {"CPU": num_cpus, "GPU": num_gpus, **taken}
            places = room({name: amount for name, amount in needed.items() if amount})
            if self._own and not places:
                raise InvalidArgument(
                    f"num_cpus={num_cpus}, num_gpus={num_gpus}, resources={resources} is not "
                    "valid: this machine has less than that for a pull. Ask for less, or start "
                    "Ray yourself, with ray.init() and what there is."
                )
            number = workers or max(1, places)
            self._options = Actor.options(
                num_cpus=num_cpus,
                num_gpus=num_gpus,
                resources=taken,
                max_restarts=0,
                max_task_retries=0,
            )
            self._memory = arms.memory // number
            self.turns: Turns[str] = Turns(
                home=self._worker_of,
                slots=lambda: {name: 1 for name, worker in self._workers.items() if worker.ready},
                starting=lambda: sum(not worker.ready for worker in self._workers.values()),
                under_way=lambda: [(n, w.task) for n, w in self._workers.items() if w.task],
                only_home=lambda task: self._kept[task.pull.arm].pinned,
                switch_seconds=arms.switch_seconds,
                restarts=arms.restarts,
            )
            self._cluster.find()
            self._looked = monotonic()
            self._kit_at = ray.put(self._kit)
            for k in range(number):
                self._add_worker(f"actor {k}")
        except BaseException:
            self.close()
            raise

    @property
    def free(self) -> int:
        """How many workers are idle, also while they start."""
        return self.turns.free

    def worker_of(self, pull: Pull, attempt: int) -> str:
        """The worker that the pull would be started on now, or "" if that is not known yet."""
        return self.turns.expected(self._arms.task(pull, attempt)) or ""

    def start(self, pull: Pull, attempt: int) -> None:
        """Begin the pull on the worker that `turns` names, now or when that has room."""
        task = sendable(self._arms.task(pull, attempt))
        if isinstance(task, Failure):
            self._unsent.append(task)
            return
        self.turns.start(task)
        with self._cluster.needed():
            self._dispatch()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back."""
        until = monotonic() + seconds
        results, self._unsent = self._unsent, []
        with self._cluster.needed():
            while not results:
                self._cluster.look()
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
            for worker in self._workers.values():
                worker.kill()
        self._workers, self._kept, self._kit_at = {}, {}, None
        self._kit.put_away()
        if self._own:
            self._own.close()
        elif self._cluster.gone:
            ray.shutdown()  # or Ray ends this process, a minute after the cluster's end
        self._own = None

    def _worker_of(self, arm: int) -> str | None:
        kept = self._kept.get(arm)
        return kept.home.name if kept and kept.home else None

    def _dispatch(self) -> None:
        for task, worker in self.turns.begin():
            kept = self._kept.get(task.pull.arm)
            self._workers[worker].begin(task, kept.copy if kept and not kept.pinned else None)

    def _come_back(self, until: float) -> list[Told]:
        """What has come back by then, or by when something else has to be looked after."""
        workers = self._workers.values()
        due = min(until, self._looked + self._lease / 4, self._cluster.next_look)
        due = min(due, *(worker.since + self._limit for worker in workers))
        awaited = {worker.awaited: worker for worker in workers if worker.awaited}
        patience = max(0.0, due - monotonic())
        if not awaited:
            time.sleep(patience)
            return []
        there, rest = ray.wait(list(awaited), timeout=patience)
        if there and rest:
            there += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return [told for ref in there for told in self._take(awaited[ref])]

    def _take(self, worker: WorkerActor) -> list[Told]:
        try:
            report = ray.get(worker.awaited)
        except ray.exceptions.RayError as error:
            return self._bury(worker, "its worker died", str(error))
        worker.awaited = None
        if worker.task is None:
            if report is not None:
                raise WorkersNotStarted("a worker could not load the trainer", report)
            worker.ready, worker.answered, self._false_starts = True, monotonic(), 0
            return []
        if isinstance(report, CheckpointNotWritten):
            raise report
        arm, told = worker.task.pull.arm, report.told
        self.asides.take(told, report.aside)
        worker.task, worker.since = None, math.inf
        if report.level:
            copy = Copy(report.level, worker.copied) if report.movable else None
            pinned = copy is None or not report.continues
            self._kept[arm] = Kept(report.level, copy, worker, pinned)
            saved = told.saved if copy and isinstance(told, Loss) else None
            self._do_without_copies(arm, saved)
        else:
            self._forget(arm)
        worker.copied = None
        copied = report.level and report.movable
        if self._to_be_seen and copied and isinstance(told, Loss) and not told.saved:
            self._to_be_seen = False
            self._kit.warn_of_unseen_folder()
        return [told]

    def _do_without_copies(self, arm: int, saved: Saved | None) -> None:
        """Drop the oldest copies of what was saved, too, if they fill the memory."""
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
        for worker in list(self._workers.values()):
            if worker.task and monotonic() >= worker.since + self._limit:
                why = f"no result within {self._limit:g} s, so its worker was stopped"
                results += self._failed(worker, why)
                self._replace(worker)
        return results

    def _give_up_the_frozen(self) -> list[Told]:
        now, since = monotonic(), monotonic() - self._looked
        if since < self._lease / 4:
            return []
        self._looked = now
        results: list[Told] = []
        for worker in list(self._workers.values()):
            if since > self._lease / 2:  # this process was frozen, and could not take answers
                worker.answered = max(worker.answered, now)
            if not worker.lives(now, self._lease):
                results += self._bury(worker, f"its worker was silent for {self._lease:g} s")
        return results

    def _bury(self, worker: WorkerActor, why: str, details: str = "") -> list[Told]:
        self._cluster.require()
        self._false_starts += not worker.ready
        if self._false_starts == MOST_FALSE_STARTS:
            what = f"{MOST_FALSE_STARTS} workers in a row ended while they started"
            raise WorkersNotStarted(what, details or why)
        results = self._failed(worker, why, details, lost=True)
        self._replace(worker)
        return results

    def _failed(
        self, worker: WorkerActor, why: str, details: str = "", *, lost: bool = False
    ) -> list[Told]:
        """The failure of the pull that the worker was at, if any."""
        task = worker.task
        if task is None:
            return []
        kept = self._kept.get(task.pull.arm)
        level = max(kept.level if kept and (kept.home or not kept.pinned) else 0, task.saved_level)
        return [failed(task, worker.name, why, level=level, details=details, lost=lost)]

    def _replace(self, worker: WorkerActor) -> None:
        """Start another worker in its place; what only it had is trained again."""
        worker.kill()
        self._add_worker(worker.name)
        for arm in [arm for arm, kept in self._kept.items() if kept.home is worker]:
            self._forget(arm)

    def _forget(self, arm: int) -> None:
        """Note that no worker has its state any more; what is left is the copy."""
        kept = self._kept.pop(arm, None)
        if kept and kept.copy:
            self._kept[arm] = Kept(kept.copy.level, kept.copy, None, kept.pinned)

    def _add_worker(self, name: str) -> None:
        path = [os.path.abspath(entry) for entry in sys.path]
        actor = self._options.remote(self._kit_at, path, name, self._memory)
        self._workers[name] = WorkerActor(name, actor)
