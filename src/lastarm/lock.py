"""One writer at a time: a lock that the operating system releases when its holder dies."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lastarm.errors import JournalLocked, JournalNotWritten

if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(file: IO[bytes]) -> None:
        file.seek(1 << 30)  # locks are mandatory here: keep them off the bytes that others read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)

else:
    import fcntl

    def _try_to_lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock on `path`: a file beside it, `path`.lock, that names the holder.

    The file is only a place to lock and a note for people. A dead holder's file stays behind and
    holds nobody up, because its lock died with it.
    """
    beside = path.with_name(path.name + ".lock")
    file = _locked(path, beside)
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}".encode())
        file.flush()
        yield
    finally:
        if sys.platform != "win32":  # an open file cannot be removed there
            beside.unlink(missing_ok=True)
        file.close()


def _locked(path: Path, beside: Path) -> IO[bytes]:
    while True:
        try:
            file = os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise JournalNotWritten(path, error) from error
        try:
            _try_to_lock(file)
        except (BlockingIOError, PermissionError):
            file.seek(0)
            owner = file.read(1000).decode(errors="replace") or "another process"
            file.close()
            raise JournalLocked(path, owner) from None
        except OSError as error:  # a file system without locks
            file.close()
            raise JournalNotWritten(path, error) from error
        if beside.exists() and os.path.samestat(os.fstat(file.fileno()), beside.stat()):
            return file
        file.close()  # its holder removed it between our opening and our locking
