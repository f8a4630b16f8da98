"""Child processes to harm: forked when everything is imported already, so that they begin at once.

Bugs that are planted here are planted in them, too. One kind of child runs the command.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from faults.reference import ARMS, BUDGET, TABLE
from lastarm.cli import main
from lastarm.policies import SuccessiveHalving
from lastarm.result import Result
from lastarm.searching import search
from lastarm.space import Integer
from lastarm.system.offspring import GUARD_NAME
from lastarm.trainers import RecordedCurves

MARK = "LASTARM_FAULTS"
SECONDS_FOR_ORPHANS = 5.0
SECONDS_TO_HANG = 120.0  # which are too many, whatever else the machine does
MOST_SAID = 4000
SHARED = Path("/dev/shm")


def forked(action: Callable[[], None]) -> int:
    """A child that performs the action and ends with exit code 0, or 1 if that raised."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a test may have left a thread behind
        child = os.fork()
    if child:
        return child
    try:
        action()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def orphans(mark: str) -> list[int]:
    """The processes that were started with this mark in their environment and do not end.

    They have some seconds to do so. Where the system does not list processes, none is found.
    """
    wanted = f"{MARK}={mark}".encode()
    came_true(lambda: not _marked(wanted), SECONDS_FOR_ORPHANS)
    return _marked(wanted)


def came_true(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it is so within that time."""
    until = monotonic() + seconds
    while not (is_so := condition()) and monotonic() < until:
        sleep(0.005)
    return is_so


def _marked(wanted: bytes) -> list[int]:
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in environment.read_bytes().split(b"\0"):  # empty for one that has ended
                found.append(int(environment.parent.name))
        except OSError:
            continue
    return found


def outcome(act: Callable[[], str]) -> str:
    """What a child says that does it. One that does not end is killed, and that is an error."""
    heard, says = os.pipe()

    def live() -> None:
        os.close(heard)
        os.write(says, act().encode()[:MOST_SAID])

    child = forked(live)
    os.close(says)
    until = monotonic() + SECONDS_TO_HANG
    said, ended = b"", False
    while not ended and select.select([heard], [], [], max(0.0, until - monotonic()))[0]:
        said += (told := os.read(heard, MOST_SAID))
        ended = not told
    os.close(heard)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert ended, f"no end within {SECONDS_TO_HANG:.0f} s"
    code = os.waitstatus_to_exitcode(status)
    assert code == 0, f"it ended with {code}, and said {said!r}"
    return said.decode()


def children(parent: int | None = None) -> set[int]:
    """The children of a process, by default this one, that have not ended.

    One that only waits to be buried has. Guards, which watch over others, are left out, and so is
    what is being started and may become one.
    """
    parent = parent or os.getpid()
    found, own = set(), Path(f"/proc/{parent}/cmdline")
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, its_parent, *_ = file.read_text().rpartition(")")[2].split()
            if int(its_parent) != parent or state == "Z":
                continue
            command = file.with_name("cmdline").read_bytes()
            if command != own.read_bytes() and GUARD_NAME.encode() not in command.split(b"\0"):
                found.add(int(file.parent.name))
    return found


def in_shared_memory(*, joblib: bool = True) -> set[str]:
    """What is in shared memory and belongs to no process; other campaigns have folders there.

    Where no pool of `joblib` is used, what one has left is another program's.
    """
    if not SHARED.is_dir():
        return set()
    others = ("lastarm-",) if joblib else ("lastarm-", "sem.loky-")
    names = {path.name for path in SHARED.iterdir() if not path.name.startswith(others)}
    for maps in Path("/proc").glob("[0-9]*/maps") if names else ():
        with suppress(OSError):
            used = maps.read_text()
            names = {name for name in names if f"{SHARED}/{name}" not in used}
    return names


def settle_in(temporary: Path, mark: str) -> None:
    """In a child: it and all that it starts have this mark, and their temporary files there."""
    temporary.mkdir(exist_ok=True)
    os.environ |= {"TMPDIR": str(temporary), MARK: mark}
    tempfile.tempdir = None  # it may know another one


CURVES = RecordedCurves(TABLE)
SLOW = RecordedCurves(TABLE, seconds_per_pull=0.005)


def tune(journal: Path, trainer: str = "CURVES") -> list[str]:
    """The words of a command that tunes the reference curves, drawn at random."""
    numbers = ["--arms", f"{ARMS}", "--budget", f"{BUDGET}", "--param", f"row=int:0:{ARMS - 1}"]
    return ["tune", f"faults.processes:{trainer}", *numbers, "--journal", f"{journal}"]


@cache
def answer() -> Result:
    """What that command finds if nothing happens to it."""
    space = {"row": Integer(0, ARMS - 1)}
    return search(CURVES, space, policy=SuccessiveHalving(ARMS, BUDGET))


def commanded(words: Sequence[str], first: Callable[[], None] = lambda: None) -> tuple[int, str]:
    """The exit code of `lastarm` with these words, and what it says; `first` is done before."""
    heard, says = os.pipe()

    def run() -> None:
        os.close(heard)
        for stream in (1, 2):
            os.dup2(says, stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        first()
        try:
            main(words)
        except SystemExit as end:
            for printed in (sys.stdout, sys.stderr):
                printed.flush()
            os._exit(end.code if isinstance(end.code, int) else 1)

    child = forked(run)
    os.close(says)
    with os.fdopen(heard) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said
