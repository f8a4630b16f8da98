"""The secret of this user: a file that no other user can read, from which seals are made.

It is in the user's folder for the state of programs, and is made when the first journal is. The
variable `LASTARM_KEY_FILE` names another file, for containers and for several machines that share
journals. What is sealed by it is in `seals`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes, token_hex

from lastarm.errors import KeyNotSafe
from lastarm.journal.disk import Folder, NotAFile, make_folder, sync_folder

if sys.platform != "win32":
    import pwd

KEY_FILE = "LASTARM_KEY_FILE"
LEAST, MOST = 32, 4096  # bytes of a secret


@dataclass(frozen=True)
class Secret:
    """What this user's seals are made with, or `why` there cannot be one."""

    key: bytes = field(default=b"", repr=False)
    why: str = ""


def own_secret(*, make: bool = True) -> Secret:
    """The secret of this user.

    :param make: whether it is made if there is none. If not, a new one is returned that is kept
        nowhere, so nothing is sealed by it.
    :raises KeyNotSafe: if others can read or write the file.
    """
    path = None
    try:
        path = _place()
        with suppress(FileNotFoundError):
            return Secret(_read(path))
        _require_room(path)
        if not make:
            return Secret(token_bytes(LEAST))
        _make(path)
        return Secret(_read(path))
    except OSError as error:
        said = error.strerror or str(error)
        return Secret(why=said if path is None else f"{path}: {said}")


def _place() -> Path:
    if named := os.environ.get(KEY_FILE):
        return Path(os.path.abspath(named))
    for folder in filter(os.path.isabs, _state_folders()):
        path = Path(folder) / "lastarm" / "key"
        if _is_for_us(_above(path)):
            return path
    raise FileNotFoundError(errno.ENOENT, "this user has no home folder")


def _state_folders() -> Iterator[str]:
    """Where programs keep their state, on this system; the first that is this user's counts."""
    yield os.environ.get("XDG_STATE_HOME", "")
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        yield os.environ.get("LOCALAPPDATA", "")
    elif os.path.isdir(home) and not _is_for_us(Path(home)):
        # `sudo` may leave HOME as it was: that of another user.
        with suppress(KeyError):  # a user without a name, as in some containers
            home = pwd.getpwuid(os.geteuid()).pw_dir
    if os.path.isdir(home):  # else, it is not up to us to make it
        below = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
        yield os.path.join(home, below)


def _above(path: Path) -> Path:
    """The nearest folder above it that exists."""
    return next(folder for folder in path.parents if os.path.exists(folder))


def _is_for_us(folder: Path) -> bool:
    """Whether it is this user's or the system's, so that our file is in no other user's way."""
    return os.name != "posix" or folder.stat().st_uid in (0, os.geteuid())


def _require_room(path: Path) -> None:
    above = _above(path)
    if not _is_for_us(above):
        raise PermissionError(errno.EPERM, f"{above} belongs to another user")
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"{above} cannot be written to")


def _read(path: Path) -> bytes:
    real = Path(os.path.realpath(path))
    try:
        with Folder(real.parent) as folder, os.fdopen(folder.open(real.name), "rb") as file:
            status, key = os.fstat(file.fileno()), file.read(MOST).strip()
    except NotAFile as error:
        raise KeyNotSafe(path, "it is a link, a folder, a pipe or a device") from error
    if why := _open_to_others(status):
        raise KeyNotSafe(path, why)
    if len(key) < LEAST:
        raise KeyNotSafe(path, f"it holds {len(key)} bytes, and a secret has at least {LEAST}")
    return key


def _open_to_others(status: os.stat_result) -> str:
    """Why a file with this owner and mode is not a secret of this user; empty if it is."""
    if os.name == "posix" and status.st_uid != os.geteuid():
        return "it belongs to another user"
    if os.name == "posix" and status.st_mode & 0o077:
        return f"its mode is {status.st_mode & 0o777:03o}, so others can read or write it"
    return ""


def _make(path: Path) -> None:
    """It appears whole or not at all; if two processes make it, the first one's is kept."""
    make_folder(path.parent)
    with Folder(Path(os.path.realpath(path.parent))) as folder:
        new = f"{path.name}.{token_hex(8)}.new"
        with os.fdopen(folder.create(new), "wb") as file:
            try:
                # Some file systems have no owners and modes of files.
                if why := _open_to_others(os.fstat(file.fileno())):
                    raise PermissionError(errno.EPERM, f"a new file there is not private: {why}")
                file.write(token_hex(LEAST).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
                with suppress(FileExistsError):
                    folder.add_name(path.name, of=new)
            finally:
                folder.unlink(new)
        sync_folder(folder.path)
