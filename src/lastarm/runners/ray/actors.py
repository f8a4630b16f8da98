"""The workers of the Ray runner: what runs in an actor, and how the coordinator sees it."""

from __future__ import annotations

import math
import pickle
import sys
import traceback
from contextlib import suppress
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import ray

from lastarm.checkpoints import StateFolder
from lastarm.errors import CheckpointNotWritten
from lastarm.events import Pull
from lastarm.runners.performer import Performer, Task
from lastarm.runners.remote import Kit, Report, load_trainer
from lastarm.runners.states import States, packed


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
        path = self._kit.seen_folder
        folder = StateFolder(path, trainer, durable=self._kit.durable) if path else None
        self._states = States(folder, memory=math.inf, always=True)
        self._performer = Performer(trainer, self._states)
        return None

    def pull(
        self, task: Task, copy: Copy | None
    ) -> tuple[Report | CheckpointNotWritten, bytes | None]:
        """Train and look; with the report comes a copy of the state."""
        arm = task.pull.arm
        held = self._states.held(arm)
        began, moves, seconds = perf_counter(), 0, 0.0
        if copy and (held is None or held.level != copy.level):
            with suppress(Exception):  # lost with its machine, or it cannot be loaded here
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
        held = self._states.held(arm)
        if held is None:
            return Report(told), None
        copied = packed(
            held.state
        )  # a pickle, because its arrays can be changed when it is loaded
        if copied is not None:
            self._sizes[arm] = len(copied)
            self._size += len(copied)
            self._make_room()
        return Report(told, held.level, movable=copied is not None), copied

    def answer(self) -> None:
        """Show that this process is not frozen, while a pull is under way."""

    def _make_room(self) -> None:
        while len(self._sizes) > 1 and self._size > self._memory:
            arm = next(iter(self._sizes))
            self._size -= self._sizes.pop(arm)
            held = self._states.held(arm)
            assert held
            self._states.take(Pull(arm, held.level), None)


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

    @property
    def idle(self) -> bool:
        """Whether it can begin a pull."""
        return self.ready and self.task is None

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
                if self.idle:  # else, its task shows that it died
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
