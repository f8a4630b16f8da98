"""What a runner is: who performs pulls, one at a time or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

from lastarm.checkpoints import Folder, Index
from lastarm.events import Pull, Told
from lastarm.runners.performer import Task
from lastarm.runners.states import States
from lastarm.trainers import Config, Trainer

ATTEMPTS_OF_LOST = 3
"""How often a pull whose worker was lost is tried. The last time it has to run alone: then nobody
else can be to blame. What fails for other reasons may be tried more often, always alone from here
on."""


@dataclass(frozen=True)
class Arms:
    """All that a runner is given: the arms of a search, how they are trained and kept.

    Where there is an `index` of checkpoints, states that do not fit into `memory` bytes go to its
    folder; all of them, if `always` is set. Moving a state from one worker to another takes
    `switch_seconds`; None: measure it.
    """

    trainer: Trainer[Any]
    configs: Sequence[Config]
    seed: int = 0
    index: Index | None = None
    memory: int = 2**30
    always: bool = False
    switch_seconds: float | None = None

    @property
    def folder(self) -> Folder | None:
        """Where checkpoints are."""
        return self.index.folder if self.index else None

    def states(self) -> States:
        """What keeps the states of a runner that trains in this process."""
        disk = self.index.disk if self.index else inf
        return States(self.folder, memory=self.memory, always=self.always, disk=disk)

    def task(self, pull: Pull, attempt: int) -> Task:
        """An attempt at a pull, with all that whoever performs it has to know."""
        known = self.index.latest(pull.arm) if self.index else None
        return Task(pull, attempt, self.configs[pull.arm], self.seed, known)


class Runner(Protocol):
    """Starts pulls and brings back what became of them, in any order.

    A result may come back twice, late, or from an attempt that was given up: whoever waits
    recognises it by its pull and its attempt. What may not happen is that a pull which was started
    never comes back, neither as a loss nor as a failure.

    One that knows where states are may have a `waiting`, a `Waiting` that says which of the pulls
    that may be started in any order is next.
    """

    @property
    def free(self) -> int:
        """How many pulls may be started now."""

    def start(self, pull: Pull, attempt: int) -> None:
        """Begin to perform a pull."""

    def wait(self, seconds: float) -> list[Told]:
        """What has come back, as soon as there is something; nothing, if that takes too long.

        One that performs pulls itself, here and now, takes as long as they take.
        """

    def state(self, pull: Pull) -> Any:
        """The trained state of an arm at that level, or None if it is not at hand."""

    def close(self) -> None:
        """Stop whatever is still running."""


MakeRunner = Callable[[Arms], Runner]
"""A runner for the arms of a search; a runner class is one."""
