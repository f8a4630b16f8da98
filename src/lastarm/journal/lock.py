"""One writer at a time: a lock that the operating system releases when its holder dies."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import IO
from weakref import WeakSet

from lastarm.errors import JournalError, JournalLocked, JournalNotWritten, NotOwnFile
from lastarm.journal.disk import Folder, NotAFile, is_ours

if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(file: IO[bytes]) -> None:
        file.seek(1 << 30)  # locks are mandatory here: keep them off the bytes that others read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)

    def _is_locked(file: IO[bytes]) -> bool:
        return True  # it is not tried, because locks are mandatory here

else:
    import fcntl

    def _try_to_lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_locked(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # until the file is closed
        except OSError:
            return True
        return False


PATIENCE = 5.0  # seconds, with a lock whose holder is dead
A_MOMENT = 0.2  # seconds, in which another process may only have asked whether it is held
LONGEST_NOTE = 400  # bytes

_locked_here: WeakSet[IO[bytes]] = WeakSet()


def _let_go_in_child() -> None:
    """A forked child must not keep a lock alive when its parent is dead."""
    for file in _locked_here:
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


def try_to_lock(path: Path, file: IO[bytes], holder: str = "another process") -> None:
    """Lock an open file, or raise an error that names the holder of `path`."""
    try:
        _try_to_lock(file)
        _locked_here.add(file)
    except (BlockingIOError, PermissionError):
        raise JournalLocked(path, holder) from None
    except OSError as error:  # a file system without locks
        raise JournalNotWritten(path, error) from error


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock on `path`: a file beside it, `path`.lock, that names the holder.

    The file is only a place to lock and a note for people. The file of a dead holder stays behind,
    but its lock does not, so it stops no other process.
    """
    beside, holder = path.with_name(path.name + ".lock"), os.getpid()
    with _locked(path, beside) as file:
        try:
            with suppress(OSError):  # on a full disk there is no note, which does no harm
                file.truncate(0)
                file.seek(0)
                file.write(f"process {holder} on {platform.node()}\n{_life(holder)}".encode())
            yield
        finally:
            # An open file cannot be removed on Windows; and a forked child holds nothing.
            if sys.platform != "win32" and os.getpid() == holder:
                with suppress(OSError):  # one that stays does no harm
                    if os.path.samestat(os.fstat(file.fileno()), beside.stat()):  # not another's
                        beside.unlink()


def _locked(path: Path, beside: Path) -> IO[bytes]:
    began = monotonic()
    while True:
        try:
            with Folder(path.parent) as folder:
                file = os.fdopen(_opened(folder, beside), "r+b", buffering=0)
        except FileNotFoundError as error:
            if path.parent.exists():
                continue  # its holder removed it a moment after we had found it
            raise JournalNotWritten(path, error) from error
        except OSError as error:
            raise JournalNotWritten(path, error) from error
        try:
            holder, _ = _noted(file)
            try_to_lock(path, file, holder or "another process")
        except JournalError as error:
            file.close()
            waited = monotonic() - began
            # A child that the dead holder was starting has the lock until it has really begun.
            known = waited > A_MOMENT and is_held(path)
            if not isinstance(error, JournalLocked) or known or waited > PATIENCE:
                raise
            sleep(0.01)
            continue
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), beside.lstat()):
                return file
        file.close()  # its holder removed it between our opening and our locking


def _opened(folder: Folder, beside: Path) -> int:
    """The lock file: a new one, or one that a process of this user has left or still holds.

    In a folder that others can write to, anything may have its name. It is written to, so nothing
    of somebody else's may be reached by it.
    """
    try:
        return folder.create(beside.name)
    except FileExistsError:
        pass
    try:
        descriptor = folder.open(beside.name, os.O_RDWR)
    except NotAFile as error:
        raise NotOwnFile(beside, "it is a link, a folder, a pipe or a device") from error
    status = os.fstat(descriptor)
    if is_ours(status) and status.st_nlink <= 1:  # 0, where it was removed since
        return descriptor
    os.close(descriptor)
    why = "it has a second name" if is_ours(status) else "it is another user's, or open to others"
    raise NotOwnFile(beside, why)


def is_held(path: Path) -> bool:
    """Whether some process is writing to the journal `path`."""
    return holder_of(path) is not None


def holder_of(path: Path) -> str | None:
    """The process that is writing to the journal `path`, as people read it, if there is one.

    The note in the lock file says which process it was. Where this can be asked, it is: the lock
    is left alone then, since a search that begins meanwhile has to wait for those who try it.
    """
    beside = Path(os.path.realpath(path) + ".lock")  # the path may be a folder without a name
    try:
        with Folder(beside.parent) as folder, os.fdopen(folder.open(beside.name), "rb") as file:
            holder, life = _noted(file)
            return (holder or "another process") if _lives(holder, life, file) else None
    except (OSError, ValueError):  # a name may not hold a zero byte
        return None


def _lives(holder: str, life: str, file: IO[bytes]) -> bool:
    process, _, host = holder.removeprefix("process ").partition(" on ")
    if host == platform.node() and process.isdecimal():
        if life and life.split(maxsplit=1)[0] == _place():
            return life == _life(int(process))
        if not life and not _exists(int(process)):
            return False
    return _is_locked(file)


def _noted(file: IO[bytes]) -> tuple[str, str]:
    """Who holds the lock, and its life; both are empty a moment after the file was made.

    Version 0.1 noted no life.
    """
    holder, _, life = file.read(LONGEST_NOTE).decode(errors="replace").partition("\n")
    return holder, life


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)  # which only asks
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        pass
    return True


def _place() -> str:
    """Where a process has its number: a start of the machine, and a container in it."""
    with suppress(OSError):  # only Linux says so
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    return ""


def _life(process: int) -> str:
    """What no later process of the same number has: its place, and when it began.

    It is empty where this is not known, and for a process that has ended.
    """
    with suppress(OSError):
        stat = Path(f"/proc/{process}/stat").read_bytes()
        state, *numbers = stat[stat.rindex(b")") + 1 :].split()  # after its name, which may be )
        if state not in (b"Z", b"X"):
            return f"{_place()} {numbers[18].decode()}"  # field 22: ticks since the machine began
    return ""
