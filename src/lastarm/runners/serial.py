"""The serial runner: one pull after another, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lastarm.errors import whole_number
from lastarm.events import Pull, Told
from lastarm.runners.performer import Performer
from lastarm.trainers import Config, Trainer


class Serial:
    """Performs pulls here and now.

    `group` pulls are taken on and brought back together, so that tiny ones can share the cost of
    writing their losses down. A crash loses a group at most.
    """

    def __init__(
        self, trainer: Trainer[Any], configs: Sequence[Config], seed: int, *, group: int = 1
    ) -> None:
        self._performer = Performer(trainer, configs, seed)
        self._group = whole_number("group", group, 1, "how many pulls are performed together")
        self._started: list[tuple[Pull, int]] = []

    @property
    def free(self) -> int:
        """What is left of the group."""
        return self._group - len(self._started)

    def start(self, pull: Pull, attempt: int) -> None:
        """Put a pull into the group."""
        self._started.append((pull, attempt))

    def wait(self) -> list[Told]:
        """Perform the group."""
        started, self._started = self._started, []
        return [self._performer.perform(pull, attempt) for pull, attempt in started]

    def state(self, pull: Pull) -> Any:
        """The arm's state, kept from its last pull."""
        return self._performer.state(pull)

    def close(self) -> None:
        """Nothing runs on."""
