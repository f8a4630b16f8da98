"""F16: Ctrl-C, Ctrl-C twice and SIGTERM, at any instant of a real command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import monotonic, sleep

from faults.campaign import COMMAND, SEARCHING, Campaign, Figures
from faults.processes import MARK, answer, commanded, orphans, tune
from faults.reference import check_finished

WAYS = {
    "Ctrl-C": (signal.SIGINT,),
    "Ctrl-C twice": (signal.SIGINT, signal.SIGINT),
    "SIGTERM": (signal.SIGTERM,),
}
LONGEST = 0.5  # seconds into the search; a whole one takes a little longer
LONGEST_PAUSE = 0.05  # between the first and the second
HANGS = 60.0


def signals(tries: range, folder: Path) -> Figures:
    """That many signals of each kind; at random, every other command has two workers."""
    # Started in the background by a shell, we ignore Ctrl-C, and so would the command.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    figures: dict[str, int | float] = {}
    try:
        for way, numbers in WAYS.items():
            random = Random(f"{way} {tries.start}")
            stops = commands = 0
            slowest = 0.0
            while stops < len(tries):
                commands += 1
                fault = f"{way}, command {commands}"
                journal = folder / f"{way}-{commands}.jsonl"
                seconds = _stopped(journal, numbers, random, random.choice((1, 2)), fault)
                stops += seconds is not None
                slowest = max(slowest, seconds or 0.0)
                # With curves that take no time it is the same search.
                code, said = commanded(tune(journal))
                assert code == 0, f"{fault}: resumed, it ended with exit code {code}: {said}"
                check_finished(journal, answer(), fault)
                assert commands < 10 * len(tries), f"{way} always came too late"
            figures |= {f"times {way}": stops, f"s was the slowest end by {way}": slowest}
    finally:
        signal.signal(signal.SIGINT, before)
    return figures | {"other exit codes": 0, "other digests": 0, "orphans after 5 s": 0}


def _stopped(
    journal: Path, numbers: Sequence[int], random: Random, workers: int, fault: str
) -> float | None:
    """Signal a command that has begun its search; how long it took to end.

    None, if it was done when the signal came.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "lastarm", *tune(journal, "SLOW"), "--workers", f"{workers}"],
        cwd=Path(__file__).parents[1],
        env=os.environ | {MARK: str(journal)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        while command.poll() is None and not _has_begun(journal):
            sleep(0.005)
        sleep(random.uniform(0, LONGEST))
        began = monotonic()
        for number in numbers:
            command.send_signal(number)
            sleep(random.uniform(0, LONGEST_PAUSE) if len(numbers) > 1 else 0)
        _, complaint = command.communicate(timeout=HANGS)
    seconds = monotonic() - began
    left = orphans(str(journal))
    assert not left, f"{fault}: processes {left} were left behind"
    assert "Traceback" not in complaint, f"{fault}: {complaint}"
    if command.returncode == 0:
        return None
    # One that is about to leave anyway may be ended by the signal itself, which is the same.
    expected = 128 + numbers[0], -numbers[0]
    assert command.returncode in expected, f"{fault}: exit code {command.returncode}: {complaint}"
    return seconds


def _has_begun(journal: Path) -> bool:
    """Whether its first pull is written down: then it listens for signals."""
    return journal.exists() and journal.read_bytes().count(b"\n") > 1


SIGNALS = Campaign(
    "F16",
    "Ctrl-C, Ctrl-C twice and SIGTERM at any instant",
    signals,
    full=100,
    short=1,
    paths=(
        *SEARCHING,
        *COMMAND,
        "faults/processes.py",
        "faults/reference.py",
        "faults/signalled.py",
    ),
)
