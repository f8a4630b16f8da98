"""The serial runner: one pull after another, in this process."""

from __future__ import annotations

from collections import deque
from typing import Any

from lastarm.arguments import whole_number
from lastarm.events import Pull, Told
from lastarm.runners.asides import Asides
from lastarm.runners.performer import Performer, Task
from lastarm.runners.protocol import Arms
from lastarm.runners.turns import Turns

HERE = "here"


class Serial:
    """Performs pulls in this process, one after another.

    - `arms`: the arms of the search
    - `group`: how many pulls are performed before their losses are written to the journal
      together. By default one, and the loop decides how many losses share a sync

    Where the order does not matter, arms whose states are in memory come first.
    """

    def __init__(self, arms: Arms, *, group: int | None = None) -> None:
        self._arms = arms
        self._states = arms.states()
        self._performer = Performer(arms.trainer, self._states)
        self.asides = Asides()
        self.has_own_groups = group is not None
        meaning = "how many pulls are performed together"
        self._group = 1 if group is None else whole_number("group", group, 1, meaning)
        self._started: deque[Task] = deque()
        self._error: BaseException | None = None
        if arms.index:  # else, all states stay in memory
            self.turns: Turns[str] = Turns(
                home=lambda arm: HERE if self._states.held(arm) else None,
                slots=lambda: {HERE: 1},
                restarts=arms.restarts,
            )

    @property
    def free(self) -> int:
        """How many pulls the group still has room for."""
        return 0 if self._error else max(0, self._group - len(self._started))

    def start(self, pull: Pull, attempt: int) -> None:
        """Put a pull into the group."""
        self._started.append(self._arms.task(pull, attempt))

    def wait(self, seconds: float = 0.0) -> list[Told]:
        """Perform the group."""
        if self._error:
            raise self._error
        results: list[Told] = []
        while self._started and not self._error:
            try:
                results.append(self._performer.perform(self._started.popleft()))
                self.asides.take(results[-1], self._performer.aside)
            except BaseException as error:
                if not results:
                    raise
                self._error = error  # for the next time, so that these results count
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, kept from its last pull or from a checkpoint."""
        state = self._states.get(pull)
        return self._arms.index.load(pull) if state is None and self._arms.index else state

    def close(self) -> None:
        """Nothing is left running."""
