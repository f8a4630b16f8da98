"""The workers of the Ray runner: actors, and what their coordinator knows of them."""

from __future__ import annotations

import math
import pickle
import sys
import traceback
from collections import deque
from contextlib import suppress
from time import monotonic, perf_counter
from typing import Any, NamedTuple

from lastarm.checkpoints import Folder
from lastarm.errors import CheckpointNotWritten
from lastarm.events import Pull, Told
from lastarm.runners.performer import Performer, Task
from lastarm.runners.ray.local import ray
from lastarm.runners.remote import Kit, Order, obeyed
from lastarm.runners.sending import unpickled_trainer
from lastarm.runners.states import States, packed


class Copy(NamedTuple):
    """A state in the object store."""

    level: int
    at: Any  # an ObjectRef


class Done(NamedTuple):
    """What became of a pull, and the level of the state that is kept, copied or not."""

    told: Told | CheckpointNotWritten
    level: int = 0
    copied: bool = False


class Trainee:
    """In an actor: performs pulls, and keeps the states of the last ones in so many bytes."""

    def __init__(self, kit: Kit, path: list[str], name: str, memory: int) -> None:
        self._kit, self._name, self._memory = kit, name, memory
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._sizes: dict[int, int] = {}  # arm → bytes of what is also in the object store
        self._size = 0  # of all of them

    def load(self) -> str | None:
        """Load the trainer; why that cannot be done, if so."""
        try:
            trainer = unpickled_trainer(self._kit.trainer)
        except BaseException:
            return traceback.format_exc()
        path = self._kit.folder
        seen = path is not None and (path / self._kit.identity).exists()
        folder = Folder(path, trainer, durable=self._kit.durable) if path and seen else None
        self._states = States(folder, memory=math.inf, always=True)
        self._performer = Performer(trainer, self._states)
        return None

    def pull(self, order: Order, copy: Copy | None) -> tuple[Done, bytes | None]:
        """Train and look; with what became of it comes a copy of the state."""
        arm = order.task.pull.arm
        held = self._states.held(arm)
        began, moves, seconds = perf_counter(), 0, 0.0
        if copy and (held is None or held.level != copy.level):
            with suppress(Exception):  # lost with its machine, or it cannot be loaded here
                state = pickle.loads(ray.get(copy.at))
                self._states.put_back(Pull(arm, copy.level), state)
                moves, seconds = 1, perf_counter() - began
        self._size -= self._sizes.pop(arm, 0)
        try:
            told = obeyed(self._performer, order, self._name)
        except CheckpointNotWritten as error:
            return Done(error), None
        if moves:
            training = told.work.train_seconds + seconds
            work = told.work._replace(train_seconds=training, moves=moves, move_seconds=seconds)
            told = told._replace(work=work)
        held = self._states.held(arm)
        if held is None:
            return Done(told), None
        copied = packed(held.state)  # the arrays of a pickle can be written to when it is loaded
        if copied is not None:
            self._sizes[arm] = len(copied)
            self._size += len(copied)
            self._make_room()
        return Done(told, held.level, copied is not None), copied

    def answer(self) -> None:
        """Say that this process is not frozen, while a pull is under way."""

    def _make_room(self) -> None:
        while len(self._sizes) > 1 and self._size > self._memory:
            arm = next(iter(self._sizes))
            self._size -= self._sizes.pop(arm)
            held = self._states.held(arm)
            assert held
            self._states.take(Pull(arm, held.level), None)


# A pull runs in one thread, and answers come from another.
Actor = ray.remote(concurrency_groups={"pulse": 1})(Trainee)


class Worker:
    """One actor, as its coordinator sees it."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self.actor = actor
        self._pull = actor.pull.options(num_returns=2)
        self._answer = actor.answer.options(concurrency_group="pulse")
        self.ready = False
        self.awaited = actor.load.remote()  # that it is ready; then, what became of its task
        self.copied: Any = None  # where the state will be then
        self.task: Task | None = None
        self.since = math.inf  # when it began with its task, by the monotonic clock
        self.queue: deque[tuple[Task, Order]] = deque()  # what only this worker can go on with
        self.asked: Any = None  # whether it lives
        self.answered = math.inf

    @property
    def idle(self) -> bool:
        """Whether it can begin with something."""
        return self.ready and self.task is None

    def begin(self, task: Task, order: Order, copy: Copy | None) -> None:
        """Give it a task."""
        self.task, self.since = task, monotonic()
        self.awaited, self.copied = self._pull.remote(order, copy)

    def lives(self, now: float, lease: float) -> bool:
        """Whether it has answered within so many seconds; if it has, it is asked again.

        One that has never answered may be waiting for its place in the cluster.
        """
        if self.asked is None or ray.wait([self.asked], timeout=0)[0]:
            if self.asked is not None:
                self.answered = now
                if self.idle:  # else, what it was to do tells of its death
                    try:
                        ray.get(self.asked)
                    except ray.exceptions.RayError:
                        return False
            self.asked = self._answer.remote()
        return now < self.answered + lease

    def kill(self) -> None:
        """End it now, with whatever it has started; also one that is frozen."""
        with suppress(Exception):  # it, or the whole cluster, is gone already
            ray.kill(self.actor, no_restart=True)
        self.task = self.awaited = self.copied = self.asked = None
