"""Child processes to harm: forked when everything is imported already, so that they begin at once.

Bugs that are planted here are planted in them, too. One kind of child runs the command.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import monotonic, sleep

from faults.reference import ARMS, BUDGET, TABLE
from lastarm.cli import main
from lastarm.policies import SuccessiveHalving
from lastarm.result import Result
from lastarm.searching import search
from lastarm.space import Integer
from lastarm.trainers import RecordedCurves

MARK = "LASTARM_FAULTS"
SECONDS_FOR_ORPHANS = 5.0


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
    until = monotonic() + SECONDS_FOR_ORPHANS
    while (found := _marked(f"{MARK}={mark}".encode())) and monotonic() < until:
        sleep(0.01)
    return found


def _marked(wanted: bytes) -> list[int]:
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in environment.read_bytes().split(b"\0"):  # empty for one that has ended
                found.append(int(environment.parent.name))
        except OSError:
            continue
    return found


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
