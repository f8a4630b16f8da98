"""One writer at a time: a lock that the operating system releases when its holder dies."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import IO

from lastarm.errors import JournalLocked, JournalNotWritten

if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(file: IO[bytes]) -> None:
        file.seek(1 << 30)  # locks are mandatory here: keep them off the bytes that others read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_to_lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lock:
    """The lock on `path`, held until `release`: a file beside it, `path`.lock, names the holder.

    The file is only a place to lock and a note for people. A dead holder's file stays behind and
    holds nobody up, because its lock died with it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        while True:
            file = self._open(path)
            try:
                _try_to_lock(file)
            except OSError as error:
                file.seek(0)
                owner = file.read(1000).decode(errors="replace").strip() or "another process"
                file.close()
                if not isinstance(error, BlockingIOError | PermissionError):
                    raise JournalNotWritten(path, error) from error  # no locks on this disk
                raise JournalLocked(path, owner) from None
            if self._is_current(file):
                break
            file.close()  # its holder removed it between our opening and our locking
        self._file = file
        file.truncate(0)
        file.seek(0)
        file.write(f"process {os.getpid()} on {platform.node()}".encode())
        file.flush()

    def _open(self, path: Path) -> IO[bytes]:
        try:
            return os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise JournalNotWritten(path, error) from error

    def _is_current(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let the next one in."""
        if sys.platform != "win32":  # an open file cannot be removed there
            self._path.unlink(missing_ok=True)
        self._file.close()
