"""Files that others cannot put theirs in place of, and that survive a power cut."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

# A link is not followed, and a pipe is not waited for.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_MANY = 100  # times that somebody may put a file in our way before we give up


class NotAFile(OSError):
    """What has the name is a link, a pipe, a folder or a device."""

    def __init__(self, name: str) -> None:
        what = f"{name} is not a file, but a link, a folder, a pipe or a device"
        super().__init__(errno.EINVAL, what)


class Folder:
    """A folder that is opened once: names are looked up in it, wherever its path leads by now.

    :param path: where it is; links in it are resolved. A link in its place, or in the place of a
        file in it, was put there since and is not followed.

    Use it as a context. Where the system cannot look up a name in an open folder, paths are used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at: dict[str, Any] = {}
        if sys.platform != "win32":
            # To look up names it does not take the permission to list them.
            only_names = getattr(os, "O_PATH", os.O_RDONLY)
            how = only_names | os.O_DIRECTORY | os.O_NOFOLLOW
            self._at = {"dir_fd": os.open(path, how)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._at.values():
            os.close(descriptor)

    @property
    def status(self) -> os.stat_result:
        """Its owner and mode."""
        return os.stat(self._at.get("dir_fd", self.path))

    def open(self, name: str, how: int = os.O_RDONLY) -> int:
        """The descriptor of a regular file that exists."""
        try:
            descriptor = os.open(self._named(name), how | _CAREFULLY, **self._at)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):
                raise NotAFile(str(self.path / name)) from error
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotAFile(str(self.path / name))
        return descriptor

    def create(self, name: str) -> int:
        """The descriptor of a new file that is this user's alone, whatever the umask."""
        how = os.O_RDWR | os.O_CREAT | os.O_EXCL | _CAREFULLY
        descriptor = os.open(self._named(name), how, 0o600, **self._at)
        # Not each time: it takes ten times as long as to look, and only an unusual umask needs it.
        if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
        return descriptor

    def create_anew(self, name: str) -> int:
        """The same, after what has the name was removed: a dead process may have left it."""
        for _ in range(_MANY):
            try:
                return self.create(name)
            except FileExistsError:
                try:
                    self.unlink(name)
                except FileNotFoundError:
                    pass
                except OSError as error:
                    what = f"{self.path / name} is in the way, and cannot be removed"
                    raise OSError(error.errno, what) from error
        raise FileExistsError(errno.EEXIST, f"{self.path / name} is made again and again")

    def path_of(self, name: str) -> Path:
        """A path to a file in it, for others to open.

        On Linux it leads by this open folder, so it is valid while that is open, and of no use to
        put another folder in its place.
        """
        if (at := self._at.get("dir_fd")) is not None:
            opened = Path(f"/proc/{os.getpid()}/fd/{at}")  # what is started here sees it, too
            with suppress(OSError):
                if os.path.samestat(opened.stat(), os.fstat(at)):
                    return opened / name
        return self.path / name

    def replace(self, name: str, by: str) -> None:
        """Give the file `by` that name."""
        os.replace(self._named(by), self._named(name), **self._at_both())

    def add_name(self, name: str, of: str) -> None:
        """Give the file `of` a second name, unless something has that name already."""
        os.link(self._named(of), self._named(name), **self._at_both())

    def unlink(self, name: str) -> None:
        """Remove a name, and if it is a link, nothing else."""
        os.unlink(self._named(name), **self._at)

    def files(self) -> Iterator[str]:
        """The names of all regular files in it."""
        at, listed = self._at.get("dir_fd"), os.fspath(self.path)
        descriptor = None if at is None else os.open(".", os.O_RDONLY, dir_fd=at)
        try:
            with os.scandir(listed if descriptor is None else descriptor) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        yield entry.name
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _at_both(self) -> dict[str, Any]:
        return {f"{which}_{key}": fd for key, fd in self._at.items() for which in ("src", "dst")}

    def _named(self, name: str) -> str:
        return (name or ".") if self._at else os.path.join(self.path, name)


def is_ours(status: os.stat_result) -> bool:
    """Whether no other user can have written to what has this owner and this mode."""
    if os.name != "posix":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def sync_file(path: Path) -> None:
    """Make what is in a file durable, whichever process has written it."""
    _sync(path, os.O_RDWR | _CAREFULLY)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, where that can be asked for."""
    if os.name == "posix":
        _sync(path, os.O_RDONLY)


def make_folder(path: Path) -> None:
    """Make a folder that is ours alone, in folders whose names are durable if they are new."""
    around = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(around):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return  # if it is not a folder, the first file in it says so
    if path.lstat().st_mode & 0o700 != 0o700:  # an unusual umask
        path.chmod(0o700)


def _sync(path: Path, how: int) -> None:
    descriptor = os.open(path, how)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
