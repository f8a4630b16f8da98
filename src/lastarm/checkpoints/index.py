"""Which states are kept, and which go when there is no more room."""

from __future__ import annotations

import warnings
from contextlib import suppress
from math import inf, isfinite
from typing import Any

from lastarm.checkpoints.folder import Folder
from lastarm.errors import CheckpointLost, CheckpointReplaced
from lastarm.events import Event, Failure, Loss, Pull, Saved


class Index:
    """Which states are in the folder: a fold of the events, like all that is known of a search.

    Of each arm the latest is kept, and with `best` the one with the lowest loss, too; together
    they stay within `disk` bytes.
    """

    def __init__(self, folder: Folder, *, disk: int, best: bool = False) -> None:
        self.folder = folder
        self.disk = disk
        self._best = best
        self._saved: dict[int, dict[int, tuple[float, Saved]]] = {}  # arm → level → loss, file
        self._size = 0
        self._expected: dict[int, int] = {}  # arm → the level that it was to go on from

    def latest(self, arm: int) -> tuple[int, Saved] | None:
        """The furthest level of the arm that has a file, and the file."""
        levels = self._saved.get(arm)
        if not levels:
            return None
        self._expected[arm] = max(levels)
        return max(levels), levels[max(levels)][1]

    def load(self, pull: Pull) -> Any:
        """The state of an arm at a level, or None if it is not there."""
        entry = self._saved.get(pull.arm, {}).get(pull.upto)
        with suppress(CheckpointLost):
            return self.folder.load(pull, entry[1]) if entry else None

    def add(self, event: Event) -> None:
        """Account for one event that counts; what it makes superfluous is deleted."""
        if isinstance(event, Failure) and not event.retried:
            for level in list(self._saved.get(event.pull.arm, ())):
                self._remove(event.pull.arm, level)
        if not isinstance(event, Loss):
            return
        arm, upto = event.pull.arm, event.pull.upto
        level = self._expected.pop(arm, 0)
        if level and event.work.trained > upto - level:
            file = self.folder.file(Pull(arm, level))
            warnings.warn(CheckpointReplaced(file, arm), stacklevel=2)
        if event.saved:
            levels = self._saved.setdefault(arm, {})
            levels[upto] = event.value, event.saved
            self._size += event.saved.size
            needed = {max(levels)}
            if self._best:
                needed.add(min(levels, key=lambda level: (_rank(levels[level][0]), level)))
            for level in levels.keys() - needed:
                self._remove(arm, level)
            while self._size > self.disk:
                self._remove(*self._least_wanted())

    def sweep(self) -> None:
        """Delete what nobody will ask for: files of attempts that never counted."""
        wanted = {
            self.folder.file(Pull(arm, level))
            for arm, levels in self._saved.items()
            for level in levels
        }
        with suppress(OSError):
            for file in set(self.folder.path.glob("arm-*")) - wanted:
                file.unlink(missing_ok=True)

    def _least_wanted(self) -> tuple[int, int]:
        """The furthest behind, and there the worst: a survivor has a lower loss than the rest."""
        return max(
            ((arm, level) for arm, levels in self._saved.items() for level in levels),
            key=lambda at: (-at[1], _rank(self._saved[at[0]][at[1]][0]), at[0]),
        )

    def _remove(self, arm: int, level: int) -> None:
        _, saved = self._saved[arm].pop(level)
        self._size -= saved.size
        self.folder.remove(Pull(arm, level))


def _rank(loss: float) -> float:
    return loss if isfinite(loss) else inf
