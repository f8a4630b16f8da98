"""What all arms have in common: their rows, their loss, and how a step goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lastarm.arguments import whole_number
from lastarm.torch.arm import Arm
from lastarm.torch.data import Batches, called, on_device
from lastarm.torch.randomness import seeded
from lastarm.trainers import Config

PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Course:
    """How arms are trained, whether one by one or together; `Module` says what the fields mean."""

    rows: Mapping[str, Batches]
    loss: Callable[[Any, Any], Any]
    batch_size: int | Callable[[Any], int]
    by_step: bool
    clip_norm: float | None
    precision: str | None
    device: torch.device
    threads: int

    def size(self, config: Config) -> int:
        """The rows in a batch of an arm."""
        if not callable(self.batch_size):
            return self.batch_size
        return whole_number("batch_size", self.batch_size(config), 1, "the rows in a batch")

    def epoch(self, number: int, size: int) -> Iterator[tuple[Any, Any]]:
        """The batches of an epoch, where arms are trained."""
        for batch in self.rows["train"].shuffled(size, number):
            inputs, targets = on_device(batch, self.device)
            yield inputs, targets

    def step(self, arm: Arm, inputs: Any, targets: Any) -> None:
        """Train one arm on one batch."""
        arm.optimizer.zero_grad()
        with self.cast():
            loss = self.loss(called(arm.model, inputs), targets)
        arm.scaler.scale(loss).backward()
        if self.clip_norm is not None:
            arm.scaler.unscale_(arm.optimizer)
            nn.utils.clip_grad_norm_(arm.model.parameters(), self.clip_norm)
        arm.scaler.step(arm.optimizer)
        arm.scaler.update()

    def cast(self) -> Any:
        """Where operations run in the precision that was asked for."""
        if self.precision is None:
            return nullcontext()
        return torch.autocast(self.device.type, PRECISIONS[self.precision])

    @contextmanager
    def own(self, *numbers: int) -> Iterator[None]:
        """Generators that are seeded by these numbers, and the threads of an arm."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with seeded(self.device, *numbers):
                yield
        finally:
            torch.set_num_threads(before)
