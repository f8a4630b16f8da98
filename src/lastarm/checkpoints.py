"""Checkpoints: the trained states of arms as files. An optimisation, never the truth.

A state is saved whole or not at all, before the loss that it belongs to counts, and the journal
holds its digest. It is loaded only if it is what was saved, and only if it is ours: loading one
may run code. Whatever cannot be loaded is trained again, to the same answer.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import stat
import warnings
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import IO, Any

import cloudpickle

from lastarm.disk import sync_folder
from lastarm.errors import (
    CheckpointLost,
    CheckpointNotWritten,
    CheckpointReplaced,
    LastarmError,
    whole_number,
)
from lastarm.events import Event, Failure, Loss, Pull, Saved

REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


class StateNotRead(LastarmError):
    """A state could not be read in order to be saved. That arm has failed."""


@dataclass(frozen=True)
class Checkpoints:
    """Where trained states are kept: how much in memory and on the disk, in bytes, and where.

    In memory while they fit; in the folder otherwise, and always when there is a journal. Without
    a `folder` they go beside the journal, or to a temporary place where there is none. When the
    disk limit is reached, arms that are furthest behind lose theirs: dropped ones go first.
    """

    folder: str | Path | None = None
    memory: int = 2**30
    disk: int = 2**35

    def __post_init__(self) -> None:
        whole_number("memory", self.memory, 0, "how many bytes of states are kept in memory")
        whole_number("disk", self.disk, 0, "how many bytes of states are kept on the disk")


class Folder:
    """Files of states, one for an arm at a level. Where it is `durable`, they outlive power cuts.

    A trainer with `save(state, path)` and `load(path)` of its own spells its states; those of
    others are pickled.
    """

    def __init__(self, path: Path, trainer: Any, *, durable: bool) -> None:
        self.path = path
        self._trainer = trainer
        self.durable = durable

    def file(self, pull: Pull) -> Path:
        """The file of an arm at a level."""
        return self.path / f"arm-{pull.arm}-at-{pull.upto}.state"

    def save(self, pull: Pull, state: Any) -> Saved | None:
        """Write a state, whole or not at all; None if it is of a kind that cannot be written."""
        file = self.file(pull)
        new = file.with_suffix(f".{os.getpid()}.new")
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "r+b") as out:
                try:
                    if hasattr(self._trainer, "save"):
                        self._trainer.save(state, new)
                    elif not _pickled(state, out):
                        new.unlink()
                        return None
                except OSError as error:
                    if error.errno not in REFUSED:
                        raise StateNotRead(f"{error.strerror or error}") from error
                    raise
            with new.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
                size = written.tell()
                if self.durable:
                    os.fsync(written.fileno())
            new.replace(file)
            if self.durable:
                sync_folder(self.path)
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise CheckpointNotWritten(file, error) from error
        return Saved(digest, size)

    def load(self, pull: Pull, saved: Saved) -> Any:
        """The state that was saved, or `CheckpointLost` if it is not there as it was."""
        file = self.file(pull)
        try:
            with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as own:
                _require_ours(own)
                if hashlib.file_digest(own, "sha256").hexdigest() != saved.digest:
                    raise CheckpointLost("it is not what was saved")
                if hasattr(self._trainer, "save"):
                    return self._trainer.load(file)
                own.seek(0)
                return pickle.load(own)
        except CheckpointLost:
            raise
        except Exception as error:  # whatever a state does when it is loaded, it can be trained
            raise CheckpointLost(f"{type(error).__name__}: {error}") from error

    def remove(self, pull: Pull) -> None:
        """Delete a file, if it is there."""
        with suppress(OSError):
            self.file(pull).unlink(missing_ok=True)


class Index:
    """Which states are in the folder: a fold of the events, like all that is known of a search.

    Of each arm the latest is kept, and with `best` the one with the lowest loss, too; together
    they stay within `disk` bytes.
    """

    def __init__(self, folder: Folder, *, disk: int, best: bool = False) -> None:
        self._folder = folder
        self._disk = disk
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
            return self._folder.load(pull, entry[1]) if entry else None

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
            file = self._folder.file(Pull(arm, level))
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
            while self._size > self._disk:
                self._remove(*self._least_wanted())

    def sweep(self) -> None:
        """Delete what nobody will ask for: files of attempts that never counted."""
        wanted = {
            self._folder.file(Pull(arm, level))
            for arm, levels in self._saved.items()
            for level in levels
        }
        with suppress(OSError):
            for file in set(self._folder.path.glob("arm-*")) - wanted:
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
        self._folder.remove(Pull(arm, level))


def _pickled(state: Any, out: IO[bytes]) -> bool:
    # By reference where that works, so that the classes of a script stay its own when it is run
    # again; by value where they have no name that another process could find.
    for dump in (pickle.dump, cloudpickle.dump):
        try:
            out.seek(0)
            out.truncate()
            dump(state, out, protocol=5)
            out.flush()
        except OSError:
            raise
        except Exception:
            continue
        return True
    return False


def _require_ours(file: IO[bytes]) -> None:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointLost("it is not a file")
    if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise CheckpointLost("others may have written to it")


def _rank(loss: float) -> float:
    return loss if isfinite(loss) else inf
