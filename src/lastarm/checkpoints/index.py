"""Which states are kept and where, and which go when there is no more room."""

from __future__ import annotations

import heapq
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any

from lastarm.arguments import whole_number
from lastarm.checkpoints.folder import StateFolder
from lastarm.errors import (
    CheckpointLost,
    CheckpointNotWritten,
    CheckpointReplaced,
    InvalidArgument,
    StatesNotTrusted,
)
from lastarm.events import Event, Failure, Loss, Pull, Saved
from lastarm.journal.seals import Seals
from lastarm.plain import fingerprint
from lastarm.system.temporary import Scratch


@dataclass(frozen=True)
class Checkpoints:
    """Where trained states are kept, and how much of memory and disk they may take.

    States are kept in memory while they fit. Others are written to the folder; with a journal, all
    are. When the disk limit is reached, the arms that are furthest behind lose their states first.

    - `folder`: where files of states are written. By default, beside the journal; without a
      journal, in a temporary folder
    - `memory`: bytes of states that are kept in memory, by all workers of this machine together
    - `disk`: bytes of states that are kept on the disk
    - `trust`: whether states that came with a journal from elsewhere are loaded. Loading may run
      code in them. By default, only states that searches of this user have saved are loaded, and
      other arms are trained again
    - `sync`: whether each state is made to survive a power cut before its loss counts. By default,
      only that of the winner is. States survive the death of every process in any case, and an arm
      whose state is lost is trained again
    - `alive`: how many arms may wait in a process in the middle of their loops, with all that they
      have: those whose function reports. Others wait as states. By default, as many as `memory`
      holds by the size of their states, and at most 64
    """

    folder: str | Path | None = None
    memory: int = 2**30
    disk: int = 2**35
    trust: bool = False
    sync: bool = False
    alive: int | None = None

    def __post_init__(self) -> None:
        whole_number("memory", self.memory, 0, "how many bytes of states are kept in memory")
        whole_number("disk", self.disk, 0, "how many bytes of states are kept on the disk")
        if self.alive is not None:
            whole_number("alive", self.alive, 1, "how many arms may wait in a process")
        for name, given, what in (
            ("trust", self.trust, "states from elsewhere are loaded"),
            ("sync", self.sync, "each state is on the disk before its loss counts"),
        ):
            if not isinstance(given, bool):
                rule = f"it says whether {what}"
                raise InvalidArgument.of(name, given, rule, "Use True or False")

    @classmethod
    def of(cls, given: Checkpoints | str | Path | bool) -> Checkpoints | None:
        """The settings from what `search` is given; None if states are not kept."""
        if isinstance(given, Checkpoints):
            return given
        if not isinstance(given, str | Path | bool):
            rule = "it says where trained states are kept"
            way_out = "Use a folder, Checkpoints(…), True or False"
            raise InvalidArgument.of("checkpoints", given, rule, way_out)
        return cls(None if given is True else given) if given is not False else None

    @property
    def _place(self) -> Path | None:
        return None if self.folder is None else Path(os.path.realpath(self.folder))

    def states_of(self, journal: str | Path) -> Path:
        """The folder of the states of a journal."""
        beside = Path(os.path.realpath(journal))
        if self._place:  # where states of other searches may be, with journals of the same name
            return self._place / f"{beside.name}-{fingerprint(str(beside))[:8]}.states"
        return beside.with_name(f"{beside.name}.states")

    @contextmanager
    def opened(
        self,
        trainer: Any,
        journal: str | Path | None,
        *,
        best: bool = False,
        seals: Seals | None = None,
    ) -> Iterator[Index]:
        """Within, the states of a search; with `best`, also those with an arm's lowest loss.

        Of a journal with `seals`, only what these vouch for is loaded.
        """
        if journal is not None:
            folder = StateFolder(self.states_of(journal), trainer, durable=True, sync=self.sync)
            judge = None if self.trust else seals
            index = Index(folder, disk=self.disk, best=best, seals=judge)
            yield index
            index.sweep()
            return
        place = self._place
        if place:
            try:
                place.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CheckpointNotWritten(place, error) from error
        with Scratch(place) as scratch:
            states = StateFolder(scratch.path, trainer, durable=False)
            yield Index(states, disk=self.disk, best=best)


class Index:
    """Which states are in the folder: a fold of the events, like all that is known of a search.

    Of each arm the latest state is kept, and with `best` the one with the lowest loss, too.
    Together they take at most `disk` bytes. States that the `seals` do not vouch for are kept like
    others, but never loaded, nor is a worker told of them. The first that is asked for gives a
    warning.
    """

    def __init__(
        self, folder: StateFolder, *, disk: int, best: bool = False, seals: Seals | None = None
    ) -> None:
        self.folder = folder
        self.disk = disk
        self._best = best
        self._seals, self._warned = seals, False
        self._saved: dict[int, dict[int, tuple[float, Saved]]] = {}  # arm → level → loss, file
        self._size = 0
        # A heap of level, -rank of the loss, -arm; also of states that were removed since.
        self._by_want: list[tuple[int, float, int]] = []
        self._expected: dict[int, int] = {}  # arm → the level that its next pull starts from

    def latest(self, arm: int) -> tuple[int, Saved] | None:
        """The furthest level of the arm that has a file to train further from, and the file."""
        levels = self._saved.get(arm, {})
        for level in sorted(levels, reverse=True):
            saved = levels[level][1]
            if saved.continues and self._may_load(Pull(arm, level), saved):
                self._expected[arm] = level
                return level, saved
        return None

    def load(self, pull: Pull) -> Any:
        """The state of an arm at a level, or None if it is not there."""
        entry = self._saved.get(pull.arm, {}).get(pull.upto)
        if entry and self._may_load(pull, entry[1]):
            with suppress(CheckpointLost):
                return self.folder.load(pull, entry[1])
        return None

    def has(self, pull: Pull) -> bool:
        """Whether a state of an arm at a level was saved, and is still wanted."""
        return pull.upto in self._saved.get(pull.arm, {})

    def settle(self, pull: Pull, trained_again: Any = None) -> None:
        """Return when the state of an arm at a level would survive a power cut, if it is there.

        If its file was lost, and it was therefore `trained_again`, it is written once more. It is
        loaded later only if that gives the bytes that the journal knows.
        """
        if not self.has(pull) or not self.folder.durable:
            return
        if trained_again is not None:
            self.folder.write(pull, trained_again)
        written = trained_again is not None or not self.folder.sync
        if written and self.folder.file(pull).exists():
            self.folder.settle([pull])

    def _may_load(self, pull: Pull, saved: Saved) -> bool:
        if self._seals is None or self._seals.vouch_for(pull, saved):
            return True
        if not self._warned:
            self._warned = True
            warnings.warn(StatesNotTrusted(self.folder.path), stacklevel=4)
        return False

    def add(self, event: Event) -> None:
        """Account for one event that counts, and delete what is not needed any more."""
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
            heapq.heappush(self._by_want, (upto, -_rank(event.value), -arm))
            if len(self._by_want) > 4 * len(self._saved) + 100:  # most were removed since
                self._by_want = [
                    (level, -_rank(loss), -one)
                    for one, files in self._saved.items()
                    for level, (loss, _) in files.items()
                ]
                heapq.heapify(self._by_want)
            self._size += event.saved.size
            needed = {max(levels)}
            if self._best:
                needed.add(min(levels, key=lambda level: (_rank(levels[level][0]), level)))
            for level in levels.keys() - needed:
                self._remove(arm, level)
            while self._size > self.disk:
                self._remove_least_wanted()

    def sweep(self) -> None:
        """Delete files that are not in the index, such as those of attempts that never counted."""
        self.folder.sweep(Pull(arm, level) for arm, at in self._saved.items() for level in at)

    def _remove_least_wanted(self) -> None:
        """Remove the state that is furthest behind; of these the worst, which is dropped first."""
        level, minus_rank, minus_arm = heapq.heappop(self._by_want)
        there = self._saved[-minus_arm].get(level)
        if there and _rank(there[0]) == -minus_rank:
            self._remove(-minus_arm, level)

    def _remove(self, arm: int, level: int) -> None:
        _, saved = self._saved[arm].pop(level)
        self._size -= saved.size
        self.folder.remove(Pull(arm, level))


def _rank(loss: float) -> float:
    return loss if isfinite(loss) else inf
