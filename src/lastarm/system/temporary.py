"""Folders for temporary files that are removed even if their process is killed: by the next one.

A process that is killed cannot clean up. So each folder contains a file, `owner`, that is locked
as long as the process lives. A process that makes another folder in the same place removes those
whose lock is free. The lock, and not a process id, tells that a process is dead: ids are used
again, and mean nothing in another container or on another machine.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, TypeVar

from lastarm.errors import TemporaryNotWritten

if sys.platform != "win32":
    import fcntl

Made = TypeVar("Made")

PREFIX = "lastarm-"
OWNER = "owner"
MANY = 100  # times that a folder may disappear while something is made in it
# It is not there, or it was a moment ago, when it could not be made.
VANISHED = (FileNotFoundError, FileExistsError)
REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


class Scratch:
    """A folder for temporary files of this process, removed by `close` or when the process ends.

    :param place: the folder in which it is made, by default the system's for temporary files.

    Use it as a context, or call `close`.

    >>> with Scratch() as scratch:
    ...     (scratch.path / "numbers").write_text("1 2 3")
    5
    >>> scratch.path.exists()
    False
    """

    def __init__(self, place: Path | None = None) -> None:
        place = place or _default_place()
        sweep(place)
        self.path, lock = persistently(lambda: _made(place), place)
        self.close = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_shared: weakref.WeakValueDictionary[tuple[int, str], Scratch] = weakref.WeakValueDictionary()


def shared_scratch() -> Scratch:
    """One that all parts of this process share, while one of them has it and it is there."""
    here = os.getpid(), tempfile.gettempdir()
    scratch = _shared.get(here)
    if scratch is None or not scratch.path.exists():
        scratch = _shared[here] = Scratch()
    return scratch


def persistently(make: Callable[[], Made], folder: Path) -> Made:
    """What `make` makes in a folder, also if an arm clears it, and all above it, meanwhile."""
    left = MANY
    while True:
        left -= 1
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return make()
        except OSError as error:
            if not left or not isinstance(error, VANISHED):
                raise TemporaryNotWritten(folder, error) from error


@contextmanager
def needing_room(folder: Path) -> Iterator[None]:
    """Within, a disk that refuses to write is an error that names the folder."""
    try:
        yield
    except OSError as error:
        # When shutil copies folders, it has the errors of the files as texts.
        several = str(error) if isinstance(error, shutil.Error) else ""
        if error.errno in REFUSED or any(os.strerror(number) in several for number in REFUSED):
            raise TemporaryNotWritten(folder, error) from error
        raise


def require_room(folder: Path) -> None:
    """Raise an error that names the folder if its disk is full.

    A program that failed for this reason may not have been able to say so: what it prints is
    written there, too.
    """
    if hasattr(os, "statvfs") and not os.statvfs(folder).f_bavail:
        raise TemporaryNotWritten(folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def _default_place() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:  # none of those that Python tries can be written to
        raise TemporaryNotWritten(Path(os.environ.get("TMPDIR", "/tmp")), error) from error


def _made(place: Path) -> tuple[Path, int | None]:
    """A new folder with its owner, and the descriptor that holds the lock."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    if sys.platform == "win32":
        return folder, None
    new = folder / f"{OWNER}.new"
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new.rename(folder / OWNER)  # so that the file is never seen without its lock
    except OSError:  # a file system without locks: then the folder is left to its process
        new.unlink(missing_ok=True)
    return folder, lock


def _remove(folder: Path, lock: int | None, process: int) -> None:
    if os.getpid() != process:  # a forked child
        return
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def sweep(place: Path | None = None) -> None:
    """Remove what processes of this user have left in a folder that are dead.

    :param place: the folder, by default the system's for temporary files.
    """
    if sys.platform == "win32":
        return
    with suppress(OSError):
        place = place or Path(tempfile.gettempdir())
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(PREFIX)]
        for name in names:
            with suppress(OSError):  # not such a folder, or its process lives
                _remove_left(place / name)


def _remove_left(folder: Path) -> None:
    """Remove a folder whose process is dead; no link is followed, and nothing else is touched."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(at)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return
        lock = os.open(OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in os.listdir(at):
                if name != OWNER:
                    _remove_entry(name, at)
            os.unlink(OWNER, dir_fd=at)  # the last, so that what could not be removed is found
            folder.rmdir()
        finally:
            os.close(lock)
    finally:
        os.close(at)


def _remove_entry(name: str, at: int) -> None:
    try:
        os.unlink(name, dir_fd=at)
    except (IsADirectoryError, PermissionError):  # as Linux and macOS say that it is a folder
        shutil.rmtree(name, dir_fd=at)
