"""The command, in a child that need not import anything first."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from faults.processes import forked
from faults.reference import ARMS, BUDGET, TABLE
from lastarm.cli import main
from lastarm.policies import SuccessiveHalving
from lastarm.result import Result
from lastarm.searching import search
from lastarm.space import Integer
from lastarm.trainers import RecordedCurves

CURVES = RecordedCurves(TABLE)
SLOW = RecordedCurves(TABLE, seconds_per_pull=0.005)


def tune(journal: Path, trainer: str = "CURVES") -> list[str]:
    """The words of a command that tunes the reference curves, drawn by chance."""
    numbers = ["--arms", f"{ARMS}", "--budget", f"{BUDGET}", "--param", f"row=int:0:{ARMS - 1}"]
    return ["tune", f"faults.command:{trainer}", *numbers, "--journal", f"{journal}"]


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
