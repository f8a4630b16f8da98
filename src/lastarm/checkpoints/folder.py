"""A folder of states: saved whole or not at all, and loaded only if they are what was saved."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import platform
import stat
from collections.abc import Iterable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import cloudpickle

from lastarm.errors import CheckpointLost, CheckpointNotWritten, LastarmError
from lastarm.events import Pull, Saved
from lastarm.journal.disk import make_folder, sync_file, sync_folder

REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


class StateNotRead(LastarmError):
    """A state could not be read in order to be saved. That arm has failed."""


class Folder:
    """Files of states, one for an arm at a level.

    Where it is `durable`, they outlive power cuts and are known by their digests. Elsewhere they
    end with us, and are as safe as memory is: a digest would more than double what saving costs.

    A process that `only_writes` leaves it to another to make its files durable, by `settle`: that
    takes longer than writing, and the one that trains can go on meanwhile.

    A trainer with `save(state, path)` and `load(path)` of its own spells its states; those of
    others are pickled.
    """

    def __init__(
        self, path: Path, trainer: Any, *, durable: bool, only_writes: bool = False
    ) -> None:
        self.path = path
        self._trainer = trainer
        self.durable = durable
        self._only_writes = only_writes
        self._named = False  # whether the name of the folder itself is known to be durable

    def file(self, pull: Pull) -> Path:
        """The file of an arm at a level."""
        return self.path / f"arm-{pull.arm}-at-{pull.upto}.state"

    def save(self, pull: Pull, state: Any) -> Saved | None:
        """Write a state, whole or not at all; None if it is of a kind that cannot be written."""
        file = self.file(pull)
        # Nobody knows of it before it is whole; only a crash could leave a part of it to be found.
        new = _written(file, os.getpid()) if self.durable else file
        try:
            with _created(new) as out:
                try:
                    own_way = hasattr(self._trainer, "save")
                    saved = self._save(state, new) if own_way else self._pickle(state, out)
                except OSError as error:
                    if error.errno not in REFUSED:
                        raise StateNotRead(f"{error.strerror or error}") from error
                    raise
                if saved is None:
                    new.unlink()
                    return None
            if self.durable and not self._only_writes:
                self.settle([(pull, os.getpid())])
        except BaseException as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise CheckpointNotWritten(file, error) from error
            raise
        return saved

    def settle(self, written: Iterable[tuple[Pull, int]]) -> None:
        """Make durable what was written, by which process, and give it its name."""
        file = self.path
        try:
            for pull, process in written:
                file = self.file(pull)
                new = _written(file, process)
                sync_file(new)
                new.replace(file)
            sync_folder(self.path)  # once for all of them
            if not self._named:
                sync_folder(self.path.parent)
                self._named = True
        except OSError as error:
            raise CheckpointNotWritten(file, error) from error

    def _save(self, state: Any, path: Path) -> Saved:
        """As the trainer does it."""
        self._trainer.save(state, path)
        path.chmod(0o600)  # it may have put another file in the place of ours
        with path.open("rb") as written:
            digest = self._digest(written)
            if not (size := os.fstat(written.fileno()).st_size):
                raise StateNotRead(f"`save` wrote nothing to {path}: write to that very file")
        return Saved(digest, size)

    def _pickle(self, state: Any, out: IO[bytes]) -> Saved | None:
        """Arrays and the like are written as they lie in memory, behind the pickle of the rest."""
        # By reference where that works, so that the classes of a script stay its own when it is
        # run again; by value where they have no name that another process could find.
        for dumps in (pickle.dumps, cloudpickle.dumps):
            buffers: list[pickle.PickleBuffer] = []
            try:
                rest = dumps(state, protocol=5, buffer_callback=buffers.append)
                arrays = [buffer.raw() for buffer in buffers]
            except OSError:
                raise
            except Exception:
                continue
            head = pickle.dumps((len(rest), [(a.nbytes, a.readonly) for a in arrays]))
            digest = hashlib.sha256()
            for part in (head, rest, *arrays):
                if self.durable:
                    digest.update(part)
                out.write(part)
            out.flush()
            return Saved(digest.hexdigest() if self.durable else "", out.tell())
        return None

    def _digest(self, file: BufferedReader) -> str:
        return hashlib.file_digest(file, "sha256").hexdigest() if self.durable else ""

    def load(self, pull: Pull, saved: Saved) -> Any:
        """The state that was saved, or `CheckpointLost` if it is not there as it was."""
        file = self.file(pull)
        try:
            with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as own:
                _require_ours(own)
                size = os.fstat(own.fileno()).st_size
                if Saved(self._digest(own), size) != saved:
                    raise CheckpointLost("it is not what was saved")
                if hasattr(self._trainer, "save"):
                    return self._trainer.load(file)
                own.seek(0)
                return _unpickled(own)
        except CheckpointLost:
            raise
        except Exception as error:  # whatever a state does when it is loaded, it can be trained
            raise CheckpointLost(f"{type(error).__name__}: {error}") from error

    def remove(self, pull: Pull) -> None:
        """Delete a file, if it is there."""
        with suppress(OSError):
            self.file(pull).unlink(missing_ok=True)


def _written(file: Path, process: int) -> Path:
    """What a file is called while it is written: other machines may write to the folder, too."""
    return file.with_suffix(f".{platform.node()}-{process}.new")


def _created(path: Path) -> IO[bytes]:
    """A new file that is ours alone, in a folder that is made if it has to be."""
    while True:
        try:
            return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b")
        except FileExistsError:  # from an attempt that was killed
            path.unlink(missing_ok=True)
        except FileNotFoundError:
            make_folder(path.parent)


def _unpickled(file: IO[bytes]) -> Any:
    length, sizes = pickle.load(file)
    rest = file.read(length)
    arrays = (file.read(n) if readonly else bytearray(file.read(n)) for n, readonly in sizes)
    return pickle.loads(rest, buffers=arrays)


def _require_ours(file: IO[bytes]) -> None:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointLost("it is not a file")
    if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise CheckpointLost("others may have written to it")
