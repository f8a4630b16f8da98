"""What a runner is: who performs pulls, one at a time or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lastarm.events import Pull, Told
from lastarm.trainers import Config, Trainer


class Runner(Protocol):
    """Starts pulls and brings back what became of them, in any order.

    A result may come back twice, late, or from an attempt that was given up: whoever waits
    recognises it by its pull and its attempt. What may not happen is that a pull which was started
    never comes back, neither as a loss nor as a failure.
    """

    @property
    def free(self) -> int:
        """How many pulls may be started now."""

    def start(self, pull: Pull, attempt: int) -> None:
        """Begin to perform a pull."""

    def wait(self) -> list[Told]:
        """What has come back, at least one result; blocks until there is one."""

    def state(self, pull: Pull) -> Any:
        """The trained state of an arm at that level, or None if it is not at hand."""

    def close(self) -> None:
        """Stop whatever is still running."""


MakeRunner = Callable[[Trainer[Any], Sequence[Config], int], Runner]
"""`make(trainer, configs, seed)`: a runner for arms with these configs; a runner class is one."""
