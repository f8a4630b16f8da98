"""What a runner is: it performs pulls, one at a time or many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

from lastarm.checkpoints import StateFolder
from lastarm.checkpoints.index import Index
from lastarm.events import Pull, Told
from lastarm.runners.performer import Task
from lastarm.runners.states import States
from lastarm.trainers import Config, Trainer


@dataclass(frozen=True)
class Arms:
    """All that a runner is given: the arms of a search, how they are trained and kept.

    - `trainer`: trains the arms and gives their losses
    - `configs`: the settings of each arm, by its number
    - `seed`: the seed of the search
    - `index`: which checkpoints there are, or None if states are kept in memory only
    - `memory`: how many bytes of states are kept in memory; others go to the index's folder
    - `always`: whether every state is written to that folder
    - `switch_seconds`: how long it takes to move a state to another worker; None: measure it
    """

    trainer: Trainer[Any]
    configs: Sequence[Config]
    seed: int = 0
    index: Index | None = None
    memory: int = 2**30
    always: bool = False
    switch_seconds: float | None = None

    @property
    def folder(self) -> StateFolder | None:
        """The folder of checkpoints."""
        return self.index.folder if self.index else None

    @property
    def restarts(self) -> bool:
        """Whether the trainer trains every level from zero."""
        return bool(getattr(self.trainer, "restarts", False))

    def states(self) -> States:
        """The states of a runner that trains in this process."""
        disk = self.index.disk if self.index else inf
        return States(self.folder, self.trainer, memory=self.memory, always=self.always, disk=disk)

    def task(self, pull: Pull, attempt: int) -> Task:
        """An attempt at a pull, with all that a worker needs to perform it."""
        restarts = self.restarts  # so that no earlier state is of use
        known = self.index.latest(pull.arm) if self.index and not restarts else None
        config = self.configs[pull.arm]
        return Task(pull, attempt, config, self.seed, known, restarts=restarts)


class Runner(Protocol):
    """Starts pulls and brings back what became of them, in any order.

    A result may come back twice, late, or from an attempt that was given up: the loop recognises
    it by its pull and its attempt. But every pull that was started has to come back, as a loss or
    as a failure.

    A runner that knows where states are may have an attribute `turns`, a `Turns`. The loop asks it
    which of the pulls that may be started in any order is next. One that hears what trainers raise
    may have `asides`, an `Asides`: the error of the first arm, for `AllArmsFailed`. One whose
    workers have names may have `worker_of(pull, attempt)`: the name of the one that would perform
    a pull that is started now, which the journal tells people. One that has groups or a clock of
    its own sets `has_own_groups`: what it brings back is told at once.
    """

    @property
    def free(self) -> int:
        """How many pulls may be started now."""

    def start(self, pull: Pull, attempt: int) -> None:
        """Begin to perform a pull."""

    def wait(self, seconds: float) -> list[Told]:
        """What has come back, as soon as there is something; nothing after that many seconds.

        A runner that performs pulls in this process takes as long as they take.
        """

    def state(self, pull: Pull) -> Any:
        """The trained state of an arm after a pull, or None if it is not available."""

    def close(self) -> None:
        """Stop all that is still running."""


MakeRunner = Callable[[Arms], Runner]
"""Makes a runner for the arms of a search; a runner class is one example."""
