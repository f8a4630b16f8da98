"""F24: bugs planted for the campaigns of coordinator and storage; each must be caught."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from faults.damage import DAMAGES
from faults.drift import DRIFTS
from faults.full_disks import FULL_DISKS
from faults.kills import KILLS_EVERYWHERE, RANDOM_KILLS
from faults.owners import OWNERS
from faults.planted import Planted, mutated
from faults.power import POWER_CUTS
from faults.refusals import REFUSALS
from lastarm.checkpoints import StateFolder, folder
from lastarm.checkpoints.index import Index
from lastarm.events import Pull, Saved
from lastarm.journal import Journal, lock
from lastarm.journal import file as journal
from lastarm.loop import _Group


@contextmanager
def nothing_instead_of(owner: Any, name: str) -> Iterator[None]:
    """Within, a function does nothing and returns None."""
    with patch.object(owner, name, lambda *_: None):
        yield


@contextmanager
def late_states() -> Iterator[None]:
    """Within, a state is where it is looked for only when the next one is saved."""
    save = StateFolder.save
    late: list[Path] = []

    def saved_late(self: StateFolder, pull: Pull, state: Any) -> Saved | None:
        for path in late:
            with suppress(FileNotFoundError):  # of a search before this one
                path.with_suffix(".late").rename(path)
        saved = save(self, pull, state)
        late[:] = [self.file(pull)]
        self.file(pull).rename(self.file(pull).with_suffix(".late"))
        return saved

    with patch.object(StateFolder, "save", saved_late):
        yield


PLANTED: tuple[Planted, ...] = (
    Planted(
        "a loss counts before it is written",
        partial(mutated, _Group, "synced", "self._journal.sync()", "pass"),
        KILLS_EVERYWHERE,
        range(60),
    ),
    Planted(
        "a loss counts before it is on the disk",
        partial(mutated, Journal, "sync", "os.fsync(self._file.fileno())", "pass"),
        POWER_CUTS,
        range(50),
    ),
    Planted(
        "the names of states are not synced",
        partial(nothing_instead_of, folder, "sync_folder"),
        POWER_CUTS,
        range(50, 100),  # where each state is synced
    ),
    Planted(
        "what is in a state is not synced",
        partial(mutated, StateFolder, "settle", "sync_file(file)", "pass"),
        POWER_CUTS,
        range(50, 100),
    ),
    Planted(
        "a state is not synced before its loss",
        partial(mutated, StateFolder, "save", "self.settle([pull])", "pass"),
        POWER_CUTS,
        range(50, 100),
    ),
    Planted(
        "the winner's state is not synced before the search is closed",
        partial(nothing_instead_of, Index, "settle"),
        POWER_CUTS,
        range(50),
    ),
    Planted("a state is saved after its loss", late_states, KILLS_EVERYWHERE, range(60)),
    Planted(
        "what a state is goes unchecked",
        partial(mutated, StateFolder, "load", "!= (saved.digest, saved.size)", "is None"),
        DAMAGES,
        range(50),
    ),
    Planted(
        "the chain of lines goes unchecked",
        partial(mutated, journal, "_verified", "and line.after == checksum", ""),
        DAMAGES,
        range(250),
    ),
    Planted(
        "an empty journal is begun anew",
        partial(
            mutated,
            Journal,
            "__init__",
            "if not self.path.exists():",
            "if not self.path.exists() or not self.path.stat().st_size:",
        ),
        DAMAGES,
        range(190, 250),  # where a journal is cut to nothing
    ),
    Planted(
        "a torn end stays",
        partial(
            mutated,
            Journal,
            "__init__",
            "self._file.truncate(end)",
            "end = self.path.stat().st_size",
        ),
        KILLS_EVERYWHERE,
        range(60),
    ),
    Planted(
        "a write that fails goes unnoticed",
        partial(mutated, Journal, "flush", "raise self._broken(error) from error", "pass"),
        REFUSALS,
        range(20),
    ),
    Planted(
        "a state that cannot be written is left out",
        partial(
            mutated,
            StateFolder,
            "write",
            "raise not_written(file, error) from error",
            "return None",
        ),
        REFUSALS,
        range(20),
    ),
    Planted(
        "a full disk raises a foreign error",
        partial(mutated, Journal, "_broken", "return JournalNotWritten", "raise error; return"),
        FULL_DISKS,
        range(12),
    ),
    Planted(
        "the lock is never taken",
        partial(nothing_instead_of, lock, "_try_to_lock"),
        OWNERS,
        range(6),
    ),
    Planted(
        "what was done is trained again",
        partial(nothing_instead_of, Index, "latest"),
        RANDOM_KILLS,
        range(6),
    ),
    Planted(
        "another search is resumed",
        partial(nothing_instead_of, journal, "refuse_another_search"),
        DRIFTS,
        range(1),
    ),
)
