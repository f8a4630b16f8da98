"""F3: the disk refuses a call, once or from then on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from errno import EIO, ENOSPC, errorcode
from itertools import product
from pathlib import Path
from typing import Any

from faults.campaign import REFERENCE, SEARCHING, Campaign, Figures
from faults.disk import Call, in_memory, shuffled, watched
from faults.reference import GROUPED, Reference
from lastarm.errors import CheckpointNotWritten, JournalNotWritten

CAUSES = (ENOSPC, EIO)
MADE_WITH_WORKERS = 96  # calls by the coordinator, at least: losses may share a sync


def refusals(tries: range, folder: Path) -> Figures:
    """At calls that change the disk, in random order, each of them once; half a write may be done.

    Some are tried with workers, too: there the states are made durable by the coordinator.
    """
    ends: Counter[str] = Counter()
    with in_memory(folder) as place:
        reference = Reference(place)
        there_are = 0

        def count(call: Call) -> None:
            nonlocal there_are
            there_are += call.when != "after"

        with watched(reference.disk, count):
            reference.play(runner=GROUPED)
        for point in shuffled(there_are)[tries.start : tries.stop]:
            for cause, again in product(CAUSES, (False, True)):
                reference.clear()
                refuses = _refuses(point, again=again)
                ends[refused(reference, cause, refuses, runner=GROUPED)] += 1
        points = ends.total() // (2 * len(CAUSES))
        for point in filter(tries.__contains__, range(0, MADE_WITH_WORKERS, 6)):
            reference.clear()
            ends[refused(reference, EIO, _refuses(point, again=True), workers=2)] += 1
    return {
        "points": points,
        "refusals": ends.total(),
        "typed errors": ends["stopped"],
        "did no harm": ends["went on"],
        "losses lost": 0,
        "other digests": 0,
    }


def _refuses(point: int, *, again: bool) -> Callable[[int, Call], bool]:
    return lambda number, _: number == point or (again and number > point)


def refused(
    reference: Reference,
    cause: int,
    refuses: Callable[[int, Call], bool],
    **changed: Any,
) -> str:
    """Play while the disk refuses some calls, then resume when it works; how the first run ended.

    Calls are numbered; a write has two numbers, the second for its other half.
    """
    calls: list[Call] = []
    refusals: list[Call] = []

    def at(call: Call) -> None:
        if call.when != "after":
            calls.append(call)
            if refuses(len(calls) - 1, call):
                refusals.append(call)
                raise OSError(cause, os.strerror(cause))

    said = ""
    try:
        with watched(reference.disk, at):
            reference.play(**changed)
    except (JournalNotWritten, CheckpointNotWritten) as error:
        said = str(error)
    except OSError as error:
        raise AssertionError(f"{_fault(refusals, cause)}: that is an untyped {error!r}") from error
    fault = _fault(refusals, cause)
    # Nothing depends on the lock's note, or on whether unneeded files are gone.
    harmless = refusals[0].kind == "unlink" or refusals[0].path.suffix == ".lock"
    assert said or harmless, f"{fault}: it went on as if nothing had happened"
    for part in (str(reference.disk), os.strerror(cause)) if said else ():
        assert part in said, f"{said!r} does not say {part}"
    reference.resumed(fault)
    return "stopped" if said else "went on"


def _fault(refusals: list[Call], cause: int) -> str:
    kind, path, when, _ = refusals[0]
    return f"{errorcode[cause]} {when} {kind} of {path.name}"


REFUSALS = Campaign(
    "F3",
    "ENOSPC and EIO at every call that changes the disk",
    refusals,
    full=1000,
    short=12,
    paths=(*SEARCHING, *REFERENCE, "faults/refusals.py"),
)
