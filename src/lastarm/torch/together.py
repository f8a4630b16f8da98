"""Many networks in one step, behind the contract of batched trainers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from lastarm.batched import SomeFailed
from lastarm.batched.adapters import value_or_error
from lastarm.errors import CannotBeStacked, InvalidArgument
from lastarm.torch.arm import Arm
from lastarm.torch.course import Course
from lastarm.torch.kinds import kind_of
from lastarm.torch.stack import Stack
from lastarm.trainers import Config, Trainer

FEWEST, MOST = 4, 64  # arms in a stack: of fewer, each is faster alone; more take only memory


class NewArm(NamedTuple):
    """An arm that is started when it is first trained, so that its errors are its own."""

    config: Config
    seed: int


class BatchedModules:
    """The arms of a `Module`, of which those of one kind are trained in one step.

    Arms that are few of their kind, and those whose kind cannot be stacked, are trained one by
    one. All get the same rows in the same order, so the losses of an arm are those that it would
    have alone, up to rounding. Arms are looked at one by one.

    - `trainer`: trains one arm.
    - `course`: how all are trained.
    - `always`: whether an arm that cannot be stacked fails.
    """

    def __init__(self, trainer: Trainer[Arm], course: Course, *, always: bool) -> None:
        self._trainer: Any = trainer
        self._course, self._always = course, always
        self._refused: dict[Hashable, str] = {}  # the kinds that cannot be stacked, and why
        if hasattr(trainer, "test"):
            self.tests = self._tests  # without TEST there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> list[Any]:
        """Configs and seeds only."""
        return list(map(NewArm, configs, seeds))

    def train(self, batch: list[Any], arms: Sequence[int], pulls: int) -> None:
        """Train one stack after another, and then the arms that are in none."""
        causes: dict[int, BaseException] = {}
        kinds: dict[Hashable, list[int]] = {}
        for place in arms:
            try:
                arm = self._started(batch, place)
                kinds.setdefault(kind_of(arm, self._course.size(arm.config)), []).append(place)
            except Exception as error:
                causes[place] = error
        for kind, places in kinds.items():
            for low in range(0, len(places), MOST):
                some = places[low : low + MOST]
                if not self._train_stacked(kind, [batch[place] for place in some], pulls):
                    causes |= self._train_alone(kind, batch, some, pulls)
        if causes:
            raise SomeFailed(causes)

    def losses(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        """The losses on VAL; for an arm that raises, the error."""
        return [value_or_error(self._trainer.loss, batch[arm]) for arm in arms]

    def _tests(self, batch: list[Any], arms: Sequence[int]) -> list[Any]:
        return [value_or_error(self._trainer.test, batch[arm]) for arm in arms]

    def take(self, batch: list[Any], arm: int) -> Arm:
        """A copy of the arm: an ordinary module with its optimizer."""
        one = self._started(batch, arm)
        copy: Arm = self._trainer.start(one.config, one.seed)
        copy.take_from(one.packed())
        return copy

    def gather(self, ones: Sequence[Arm]) -> list[Any]:
        """A list of the arms."""
        return list(ones)

    def _started(self, batch: list[Any], place: int) -> Arm:
        if isinstance(batch[place], NewArm):
            batch[place] = self._trainer.start(*batch[place])
        arm: Arm = batch[place]
        return arm

    def _train_stacked(self, kind: Hashable, arms: Sequence[Arm], pulls: int) -> bool:
        """Train arms of one kind in one stack; whether this can be done."""
        if kind is None or len(arms) < FEWEST or kind in self._refused:
            return False
        try:
            stack = Stack(arms, self._course)
            stack.train(pulls)
        except CannotBeStacked as refusal:
            self._refused[kind] = str(refusal)
            return False
        stack.put_back()
        return True

    def _train_alone(
        self, kind: Hashable, batch: list[Any], places: Sequence[int], pulls: int
    ) -> dict[int, BaseException]:
        """Train arms one by one; the errors of those that failed."""
        causes: dict[int, BaseException] = {}
        for place in places:
            try:
                if self._always and (kind is None or kind in self._refused):
                    why = self._refused.get(kind, "of its optimizer, its precision or its hooks")
                    rule = f"this arm cannot be trained together with others, because {why}"
                    raise InvalidArgument.of("together", "always", rule, "Use True or False")
                batch[place] = self._trainer.train(batch[place], pulls)
            except Exception as error:
                causes[place] = error
        return causes
