"""The batched runner: arms that stand at one level are trained and looked at together."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from lastarm.arguments import whole_number
from lastarm.batched import SomeFailed, as_batched
from lastarm.errors import CheckpointLost, CheckpointNotWritten, StateNotSaved
from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.runners.asides import Aside, Asides
from lastarm.runners.performer import Task, last_lines, said
from lastarm.runners.protocol import Arms
from lastarm.system.offspring import ThisProcess
from lastarm.trainers import arm_seed, observation


class Place(NamedTuple):
    """Where an arm is: in which batch, at which place in it, after how many pulls."""

    batch: Any
    place: int
    level: int


class Batched:
    """Performs pulls in groups: those that go from one level to one other are one batch.

    - `arms`: the arms of the search. Their trainer is a batched one, or a `Single` of it; the arms
      of any other trainer are trained one after another
    - `group`: how many pulls are taken at most before they are performed. By default, as many as
      there are arms, so that a whole rung is one batch

    An error of one arm is its failure. An error of the batch may be caused by any of its arms: all
    fail as if a worker had been lost, so they are tried again, and from the second attempt on each
    alone. The time that training and looking took is divided evenly among the arms of a group.

    States stay in memory, in their batches. Where all states are saved, each arm's own is written
    to the folder after every pull (and if they are synced, those of a group are synced together),
    so that a crash loses a group at most.
    """

    trains_together = True

    def __init__(self, arms: Arms, *, group: int | None = None) -> None:
        self._arms = arms
        self._trainer: Any = as_batched(arms.trainer)
        self.has_own_groups = group is not None
        group = len(arms.configs) if group is None else group
        self._group = whole_number("group", group, 1, "how many pulls are taken at once")
        self._started: list[Task] = []
        self._places: dict[int, Place] = {}
        self._here = ThisProcess()
        self.asides = Asides()

    @property
    def free(self) -> int:
        """How many pulls the group still has room for."""
        return self._group - len(self._started)

    def start(self, pull: Pull, attempt: int) -> None:
        """Put a pull into the group."""
        self._started.append(self._arms.task(pull, attempt))

    def wait(self, seconds: float = 0.0) -> list[Told]:
        """Perform the pulls that go together with the one that was started first."""
        if not self._started:
            return []
        groups: dict[tuple[int, ...], list[Task]] = {}
        for task in self._started:
            groups.setdefault(self._kind(task), []).append(task)
        first, *others = groups.values()
        self._started = [task for group in others for task in group]
        performance = _Performance(
            first, self._trainer, self._arms, self._places, self._here, self.asides
        )
        return performance.perform()

    def _kind(self, task: Task) -> tuple[int, ...]:
        alone = (task.pull.arm,) if task.attempt > 1 else ()
        return (self._level(task), task.pull.upto, *alone)

    def _level(self, task: Task) -> int:
        """The level that a pull starts from; a state that cannot be used is forgotten."""
        arm, upto, known = task.pull.arm, task.pull.upto, task.known
        place = self._places.get(arm)
        if place and task.saved_level <= place.level and task.can_use(place.level):
            return place.level
        self._places.pop(arm, None)
        if known and known[0] <= upto and self._arms.folder:
            with suppress(CheckpointLost):
                one = self._arms.folder.load(Pull(arm, known[0]), known[1])
                self._places[arm] = Place(self._trainer.gather([one]), 0, known[0])
                return known[0]
        return 0

    def state(self, pull: Pull) -> Any:
        """The arm on its own, out of its batch or from a checkpoint."""
        place = self._places.get(pull.arm)
        if place and place.level == pull.upto:
            return self._trainer.take(place.batch, place.place)
        return self._arms.index.load(pull) if self._arms.index else None

    def close(self) -> None:
        """Nothing is left running."""


@dataclass
class _Performance:
    """One group of pulls, from one level to one other, and what it has taken so far."""

    tasks: Sequence[Task]
    trainer: Any
    arms: Arms
    places: dict[int, Place]
    here: ThisProcess
    asides: Asides
    trained: int = 0
    train_seconds: float = 0.0
    loss_seconds: float = 0.0

    def perform(self) -> list[Told]:
        """Train and look. An error of a batch of many arms is not blamed on any of them."""
        known: dict[int, Any] = {}  # arm → what was observed, or its own error
        told: list[Told] = []
        try:
            known |= self._train()
            arms = (task.pull.arm for task in self.tasks)
            known |= self._look([arm for arm in arms if arm not in known])
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            lost = len(self.tasks) > 1
            failed = (task for task in self.tasks if task.pull.arm not in known)
            told = [self._failed(task, error, lost=lost) for task in failed]
        seen = (task for task in self.tasks if task.pull.arm in known)
        told += [self._observed(task, known[task.pull.arm]) for task in seen]
        saved = [loss.pull for loss in told if isinstance(loss, Loss) and loss.saved]
        if saved and self.arms.folder and self.arms.folder.sync:
            self.arms.folder.settle(saved)
        return told

    def _train(self) -> dict[int, BaseException]:
        """Bring the arms to their new level; the errors of those that failed."""
        upto = self.tasks[0].pull.upto
        causes: dict[int, BaseException] = {}
        began = perf_counter()
        try:
            with self.here:
                batch, numbers, level = self._gathered()
            if level < upto:
                self.trained = upto - level
                if not getattr(self.trainer, "restores", False):
                    for task in self.tasks:  # they may be half changed when it raises
                        self.places.pop(task.pull.arm, None)
                try:
                    with self.here:
                        self.trainer.train(batch, numbers, upto - level)
                except SomeFailed as some:
                    causes = some.causes
        finally:
            self.train_seconds = perf_counter() - began
        failed = {}
        for task, number in zip(self.tasks, numbers, strict=True):
            if number in causes:
                failed[task.pull.arm] = causes[number]
            else:
                self.places[task.pull.arm] = Place(batch, number, upto)
        return failed

    def _gathered(self) -> tuple[Any, list[int], int]:
        """One batch in which all arms are, their places in it, and the level they are at."""
        places = [self.places.get(task.pull.arm) for task in self.tasks]
        known = [place for place in places if place]
        if not known:
            seeds = [arm_seed(task.seed, task.pull.arm) for task in self.tasks]
            batch = self.trainer.start([task.config for task in self.tasks], seeds)
            return batch, list(range(len(self.tasks))), 0
        assert len(known) == len(places), "arms of a group are at one level"
        batch, level = known[0].batch, known[0].level
        if all(place.batch is batch for place in known):
            return batch, [place.place for place in known], level
        batch = self.trainer.gather([self.trainer.take(p.batch, p.place) for p in known])
        numbers = list(range(len(known)))
        for task, number in zip(self.tasks, numbers, strict=True):
            self.places[task.pull.arm] = Place(batch, number, level)
        return batch, numbers, level

    def _look(self, arms: Sequence[int]) -> dict[int, Any]:
        """What is observed of these arms, or the errors that looking raised."""
        if not arms:
            return {}
        places = [self.places[arm] for arm in arms]
        began = perf_counter()
        try:
            with self.here:
                losses = self.trainer.losses(places[0].batch, [p.place for p in places])
                return dict(zip(arms, losses, strict=True))
        finally:
            self.loss_seconds = perf_counter() - began

    def _observed(self, task: Task, value: Any) -> Told:
        """The loss of an arm, kept with its state; or its failure, if that is not a loss."""
        try:
            if isinstance(value, BaseException):
                raise value
            loss, metrics = observation(value, task.pull.arm)
            saved, aside = None, Aside()
            if self.arms.folder and self.arms.always:
                place = self.places[task.pull.arm]
                with self.here:
                    state = self.trainer.take(place.batch, place.place)
                    saved = self.arms.folder.write(task.pull, state)
                if saved is None:
                    aside = Aside((StateNotSaved(task.pull.arm, self.arms.folder.refusal),))
        except (CheckpointNotWritten, KeyboardInterrupt):
            raise
        except BaseException as error:
            return self._failed(task, error)
        seen = Loss(task.pull, loss, self._work(task), metrics, saved)
        self.asides.take(seen, aside)
        return seen

    def _failed(self, task: Task, error: BaseException, *, lost: bool = False) -> Failure:
        told = last_lines("".join(traceback.format_exception(error)))
        failure = Failure(task.pull, said(error), told, self._work(task), lost=lost)
        self.asides.take(failure, Aside(error=error))
        return failure

    def _work(self, task: Task) -> Work:
        train, look = (t / len(self.tasks) for t in (self.train_seconds, self.loss_seconds))
        return Work(self.trained, train, look, attempt=task.attempt)
