"""F5: the disk is full, really: a small one of our own, or a limit on the size of files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import EFBIG, ENOSPC
from pathlib import Path
from random import Random
from unittest.mock import patch

from faults.campaign import COMMAND, REFERENCE, SEARCHING, Campaign, Figures
from faults.disk import in_memory
from faults.processes import answer, commanded, tune
from faults.reference import Reference, check_finished
from lastarm.errors import CheckpointNotWritten, JournalNotWritten

PAGE = 4096  # what the smallest file takes on a disk in memory
PAGES_NEEDED = 22
BYTES_NEEDED = 10_000  # for the journal
JOURNAL_CANNOT_BE_USED = 3


def full_disks(tries: range, folder: Path) -> Figures:
    """Levels of fullness, every other one with the command."""
    stopped: Counter[str] = Counter()
    with in_memory(folder) as place, mounted(folder / "small") as there_is:
        limited = Reference(place)
        small = Reference(folder / "notes", disk=folder / "small")
        for seed in tries:
            room, by_command = Random(seed).random(), seed % 2 == 1
            if there_is and seed % 4 < 2:
                small.clear()
                filled = ballast(small.disk, int(room * PAGES_NEEDED))
                stopped["disk"] += full(small, ENOSPC, filled, by_command=by_command)
            else:
                limited.clear()
                limit = longest_file(1 + int(room * BYTES_NEEDED))
                stopped["file"] += full(limited, EFBIG, limit, by_command=by_command)
    return {
        "levels of fullness": len(tries),
        "stops by a full disk": stopped["disk"],
        "stops by a limit of size": stopped["file"],
        "losses lost": 0,
        "other digests": 0,
    }


@contextmanager
def mounted(folder: Path) -> Iterator[bool]:
    """A small disk in memory; whether there is one, since mounting it needs permission."""
    folder.mkdir()
    size = 2 * PAGES_NEEDED * PAGE
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "small", str(folder)]
    there_is = False
    with suppress(OSError):
        there_is = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield there_is
    finally:
        if there_is:
            subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def ballast(disk: Path, pages: int) -> Iterator[None]:
    """Within, the disk has only this number of pages left."""
    path = disk / "ballast"
    with path.open("wb") as file:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        os.posix_fallocate(file.fileno(), 0, free - pages * PAGE)
    yield
    path.unlink()


@contextmanager
def longest_file(size: int) -> Iterator[None]:
    """Within, no file can grow beyond this number of bytes; a longer write is cut short."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        # Python would not notice that a compiled module is cut short, and load it the next time.
        with patch.object(sys, "dont_write_bytecode", True):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def full(
    reference: Reference, cause: int, filled: AbstractContextManager[None], *, by_command: bool
) -> bool:
    """Play while there is little room, then with more; whether the first had to stop."""
    stopped, said = False, ""
    if by_command:
        with filled:
            code, said = commanded(tune(reference.journal))
        stopped = code != 0
        assert code in (0, JOURNAL_CANNOT_BE_USED), f"exit code {code}: {said}"
    else:
        with filled:
            try:
                reference.play()
            except (JournalNotWritten, CheckpointNotWritten) as error:
                stopped, said = True, str(error)
            except OSError as error:
                raise AssertionError(f"a full disk is an untyped {error!r}") from error
    if stopped:
        for part in (str(reference.disk), os.strerror(cause)):
            assert part in said, f"{said!r} does not say {part}"
    if by_command:
        code, said = commanded(tune(reference.journal))
        assert code == 0, f"with more room, exit code {code}: {said}"
        check_finished(reference.journal, answer(), "a full disk")
    else:
        reference.resumed("a full disk")
    return stopped


FULL_DISKS = Campaign(
    "F5",
    "a disk that is really full, and has room again",
    full_disks,
    full=200,
    short=12,
    paths=(*SEARCHING, *COMMAND, *REFERENCE, "faults/full_disks.py", "faults/processes.py"),
)
