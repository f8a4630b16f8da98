"""A folder of states: saved whole or not at all, and loaded only if they are what was saved."""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Any

import cloudpickle

from lastarm.errors import (
    CheckpointLost,
    CheckpointNotWritten,
    LastarmError,
    TemporaryNotWritten,
)
from lastarm.events import Pull, Saved
from lastarm.journal.disk import Folder, is_ours, make_folder, sync_file, sync_folder
from lastarm.system.temporary import REFUSED, VANISHED
from lastarm.trainers import continues

MAIN = "__main__"
_OF_A_STATE = re.compile(r"arm-[0-9]+-at-[0-9]+\.(state|.+\.new)", re.ASCII | re.DOTALL)


class StateNotRead(LastarmError):
    """A state could not be read in order to be saved. That arm has failed."""


class NeedsItsTrainer(CheckpointLost):
    """The trainer has written the state by its own `save`, so only its `load` can read it."""


class StateFolder:
    """Files of states, one for each arm at each level.

    - `path`: the folder, which is made when the first state is saved
    - `trainer`: if it has `save(state, path)` and `load(path)`, these write and read the files;
      other states are pickled
    - `durable`: whether the files outlive this process and are recognised by their digests. Others
      are as safe as memory: a digest would more than double the cost
    - `sync`: whether `save` also waits until the file would survive a power cut. That takes longer
      than all the rest
    - `imported_as`: the module that the script of the search is here, if it is imported and not
      run. Classes of the script are then looked for in it, too

    `refusal` says why the last state that could not be written could not.
    """

    def __init__(
        self,
        path: Path,
        trainer: Any,
        *,
        durable: bool,
        sync: bool = False,
        imported_as: str = MAIN,
    ) -> None:
        self.path = path
        self._trainer = trainer
        self.durable, self.sync = durable, sync
        self.refusal = ""
        self._imported_as = imported_as
        self._own_way = hasattr(trainer, "save")
        self._named = False  # whether the name of the folder itself is known to be durable

    def file(self, pull: Pull) -> Path:
        """The file of an arm at a level."""
        return self.path / f"arm-{pull.arm}-at-{pull.upto}.state"

    def save(self, pull: Pull, state: Any) -> Saved | None:
        """Save a state, whole or not at all; None if it is of a kind that cannot be written."""
        saved = self.write(pull, state)
        if saved and self.sync:
            self.settle([pull])
        return saved

    def write(self, pull: Pull, state: Any) -> Saved | None:
        """Write a state, as `save` does, and leave it to the caller to `settle` it."""
        file = self.file(pull)
        # A process that was given up may still write the same file: only whole ones get the name.
        new = _written(file) if self.durable else file
        try:
            with _made(self.path) as folder:
                with os.fdopen(folder.create_anew(new.name), "r+b") as out:
                    saved = self._filled(state, new, out)
                if saved is None:
                    folder.unlink(new.name)
                elif self.durable:
                    folder.replace(file.name, by=new.name)
        except BaseException as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            if isinstance(error, VANISHED) and not self.durable:
                return None  # an arm is clearing TMPDIR
            if isinstance(error, OSError):
                not_written = CheckpointNotWritten if self.durable else TemporaryNotWritten
                raise not_written(file, error) from error
            raise
        return saved

    def _filled(self, state: Any, new: Path, out: IO[bytes]) -> Saved | None:
        try:
            saved = self._save(state, new) if self._own_way else self._pickle(state, out)
        except CheckpointLost:  # when it is asked for, it is trained again
            return None
        except OSError as error:
            if error.errno not in REFUSED:
                raise StateNotRead(f"{error.strerror or error}") from error
            raise
        if saved and not continues(self._trainer, state):
            return saved._replace(continues=False)
        return saved

    def settle(self, written: Iterable[Pull]) -> None:
        """Return when the files of these states would survive a power cut, with their names.

        The folder is synced once for all of them, so a group costs little more than half as much.
        """
        file = self.path
        try:
            for pull in written:
                file = self.file(pull)
                sync_file(file)
            sync_folder(self.path)
            if not self._named:
                sync_folder(self.path.parent)
                self._named = True
        except OSError as error:
            raise CheckpointNotWritten(file, error) from error

    def _save(self, state: Any, new: Path) -> Saved | None:
        """Let the trainer write it."""
        with Folder(self.path) as folder:
            # It opens the file once more, by its name, where others could have put a link.
            if not is_ours(folder.status):
                self.refusal = f"others may write to its folder, {self.path}"
                return None
            path = folder.path_of(new.name)
            self._trainer.save(state, path)
            path.chmod(0o600)  # it may have put another file in the place of ours
            with path.open("rb") as written:
                digest = self._digest(written)
                if not (size := os.fstat(written.fileno()).st_size):
                    raise StateNotRead(f"`save` wrote nothing to {path}. Write to this file")
        return Saved(digest, size)

    def _pickle(self, state: Any, out: IO[bytes]) -> Saved | None:
        """Write arrays and the like as they are in memory, after the pickle of the rest."""
        try:
            rest, arrays = pickled(state, apart=True)
        except OSError:
            raise
        except Exception as error:
            self.refusal = f"{type(error).__name__}: {error}"[:500]
            return None
        head = pickle.dumps((len(rest), [(a.nbytes, a.readonly) for a in arrays]))
        digest = hashlib.sha256()
        parts: list[bytes | memoryview] = [head, rest, *arrays]
        for part in parts:
            if self.durable:
                digest.update(part)
            out.write(part)
        out.flush()
        return Saved(digest.hexdigest() if self.durable else "", out.tell())

    def _digest(self, file: BufferedReader) -> str:
        return hashlib.file_digest(file, "sha256").hexdigest() if self.durable else ""

    def load(self, pull: Pull, saved: Saved) -> Any:
        """The state that was saved, or `CheckpointLost` if it is not there as it was.

        A state that cannot be loaded is lost as well, whatever it raises: one of an older version
        of the script, of the trainer or of lastarm may refer to classes that have other names now.
        """
        file = self.file(pull)
        try:
            with Folder(self.path) as folder, os.fdopen(folder.open(file.name), "rb") as own:
                status = os.fstat(own.fileno())
                if not is_ours(status):
                    raise CheckpointLost("others may have written to it")
                if (self._digest(own), status.st_size) != (saved.digest, saved.size):
                    raise CheckpointLost("it is not what was saved")
                own.seek(0)
                if not self._own_way:
                    if sizes := _sizes(own, status.st_size):
                        return _unpickled(own, *sizes, self._imported_as)
                    raise NeedsItsTrainer("its trainer has written it by its own `save`")
                # It opens the file once more, by its name, which must lead to the same.
                if not is_ours(folder.status):
                    raise CheckpointLost("others may write to its folder")
                return self._trainer.load(folder.path_of(file.name))
        except (CheckpointLost, KeyboardInterrupt, TemporaryNotWritten):
            raise
        except BaseException as error:  # it can be trained again
            raise CheckpointLost(f"{type(error).__name__}: {error}") from error

    def remove(self, pull: Pull) -> None:
        """Delete a file, if it is there."""
        with suppress(OSError), Folder(self.path) as folder:
            folder.unlink(self.file(pull).name)

    def sweep(self, wanted: Iterable[Pull]) -> None:
        """Delete all files that a search has written, except for those that are wanted.

        Other files stay, and so do links. A link in place of the folder is not followed.
        """
        names = {self.file(pull).name for pull in wanted}
        with suppress(OSError), Folder(self.path) as folder:
            for name in list(folder.files()):
                if name not in names and _OF_A_STATE.fullmatch(name):
                    with suppress(OSError):
                        folder.unlink(name)


def pickled(state: Any, *, apart: bool = False) -> tuple[bytes, list[memoryview]]:
    """A pickle, and its arrays as they are in memory if they are to be `apart`.

    Classes are in it by reference where that works, so that a script that is run again finds its
    own; by value where a class has no name that another process could find. If neither works, the
    error is raised.
    """
    try:
        return _pickled_by(pickle.dumps, state, apart)
    except OSError:  # in reading the state, which would not be another
        raise
    except Exception:
        return _pickled_by(cloudpickle.dumps, state, apart)


def _pickled_by(
    dumps: Callable[..., bytes], state: Any, apart: bool
) -> tuple[bytes, list[memoryview]]:
    buffers: list[pickle.PickleBuffer] = []
    rest = dumps(state, protocol=5, buffer_callback=buffers.append if apart else None)
    return bytes(rest), [buffer.raw() for buffer in buffers]


def _written(file: Path) -> Path:
    """The name of a file while it is written; other machines may write to the folder, too."""
    return file.with_suffix(f".{platform.node()}-{os.getpid()}.new")


def _made(path: Path) -> Folder:
    """The folder, which is made where there is none."""
    while True:
        try:
            return Folder(path)
        except FileNotFoundError:
            make_folder(path)


class _OnlyPlainData(pickle.Unpickler):
    """Reads numbers and lists, and neither finds nor runs anything."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


class _OfAScript(pickle.Unpickler):
    """Finds classes of the script that was run, also where it is imported as a module."""

    imported_as = MAIN

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except AttributeError:
            if module == MAIN:
                with suppress(AttributeError):
                    return super().find_class(self.imported_as, name)
            raise


def _sizes(file: IO[bytes], size: int) -> tuple[int, list[tuple[int, bool]]] | None:
    """How long the pickle and the arrays after it are; None if the trainer wrote the file."""
    try:
        length, arrays = _OnlyPlainData(file).load()
        if file.tell() + length + sum(nbytes for nbytes, _ in arrays) == size:
            return length, arrays
    except Exception:  # whatever a file of another form leads to
        pass
    return None


def _unpickled(
    file: IO[bytes], length: int, arrays: list[tuple[int, bool]], imported_as: str
) -> Any:
    rest = BytesIO(file.read(length))
    buffers = (_buffer(file, nbytes, readonly) for nbytes, readonly in arrays)
    unpickler = _OfAScript(rest, buffers=buffers)
    unpickler.imported_as = imported_as
    return unpickler.load()


def _buffer(file: IO[bytes], size: int, readonly: bool) -> bytes | bytearray:
    """The next bytes of a file, in memory once: a state may take half of what there is."""
    if readonly:
        return file.read(size)
    buffer = bytearray(size)
    at, view = 0, memoryview(buffer)
    while at < size and (read := file.readinto(view[at:])):  # type: ignore[attr-defined]
        at += read
    if at < size:
        raise EOFError("the file is shorter than it says")
    return buffer
