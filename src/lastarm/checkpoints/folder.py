"""A folder of states: saved whole or not at all, and loaded only if they are what was saved."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import cloudpickle

from lastarm.disk import sync_folder
from lastarm.errors import CheckpointLost, CheckpointNotWritten, LastarmError
from lastarm.events import Pull, Saved

REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


class StateNotRead(LastarmError):
    """A state could not be read in order to be saved. That arm has failed."""


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
            new.unlink(missing_ok=True)
            with os.fdopen(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b") as out:
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
            new.chmod(0o600)  # a trainer's own `save` may have put another file in its place
            with new.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
                size = written.tell()
                if not size:
                    raise StateNotRead(f"`save` wrote nothing to {new}: write to that very file")
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
