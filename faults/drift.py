"""F18: a search is resumed with other arguments, or at another place."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EROFS
from pathlib import Path
from random import Random
from typing import Any

from faults.campaign import REFERENCE, SEARCHING, Campaign, Figures
from faults.disk import files_of, lay_out
from faults.full_disks import mounted
from faults.reference import (
    ARMS,
    BUDGET,
    ROWS,
    TABLE,
    Reference,
    Standing,
    Tallied,
    check_finished,
    whole,
)
from lastarm.errors import JournalNotWritten, OtherSearch
from lastarm.events import Event, Loss
from lastarm.policies import SuccessiveHalving, UniformAllocation
from lastarm.trainers import RecordedCurves

OTHER_TABLE = Tallied(Path(os.devnull), [row[::-1] for row in TABLE])

CHANGES: dict[str, dict[str, Any]] = {
    "seed was 0 and is now 1": {"seed": 1},
    "budget was 128 and is now 127": {"policy": SuccessiveHalving(ARMS, BUDGET - 1)},
    "eta was 2 and is now 3": {"policy": SuccessiveHalving(ARMS, BUDGET, eta=3)},
    "policy was 'successive-halving' and is now": {"policy": UniformAllocation(ARMS, BUDGET)},
    "trainer.maximized was None and is now 'Tallied'": {"maximize": True},
    "recommend was None and is now 'best'": {"recommend": "best"},
    "space.sha256 was": {"space": ROWS[::-1]},
    "space.configs was": {"include": [{"row": 3}]},
    "trainer.table was": {"trainer": OTHER_TABLE},
    "trainer.kind was 'Tallied' and is now": {"trainer": RecordedCurves(TABLE)},
}
"""What is changed, by what the error must say."""


class Stopped(Exception):
    """Raised to end a search early."""


def drifts(tries: range, folder: Path) -> Figures:
    """Searches, each stopped somewhere and resumed in every wrong way."""
    refusals = 0
    with mounted(folder / "small") as small:
        here = Reference(folder / "here", disk=folder / "small")
        there = Reference(folder / "there")
        for seed in tries:
            here.clear()
            _play_until(here, Random(seed).randint(1, 30))
            before, standing = files_of(here.disk), here.standing()
            for said, changed in CHANGES.items():
                _check_refused(here, said, **changed)
            with _read_only(here.disk, mounted=small) as cause:
                if cause:
                    _check_refused(here, os.strerror(cause))
            refusals += len(CHANGES) + bool(cause)

            # With its states, a journal can be moved; without, they are trained again.
            there.clear()
            lay_out(before, there.disk)
            there.resumed("moved", Standing(standing.counted, trainings=0))
            there.clear()
            lay_out({here.journal.name: before[here.journal.name]}, there.disk)
            there.play()
            check_finished(there.journal, whole(), "moved without its states")
            here.resumed("after all that", standing)
    return {
        "searches": len(tries),
        "refusals that name what differs": refusals,
        "bytes written by them": 0,
        "moves": 2 * len(tries),
        "other digests": 0,
    }


def _play_until(reference: Reference, losses: int) -> None:
    left = [losses]

    def stop(event: Event) -> None:
        left[0] -= isinstance(event, Loss)
        if not left[0]:
            raise Stopped

    with suppress(Stopped):
        reference.play(on_event=stop)


def _check_refused(reference: Reference, expected: str, **changed: Any) -> None:
    before = files_of(reference.disk)
    said = "nothing"
    try:
        reference.play(**changed)
    except (OtherSearch, JournalNotWritten) as error:
        said = str(error)
    assert expected in said, f"it said {said}, and not: {expected}"
    assert str(reference.journal) in said, f"{said!r} does not name the journal"
    assert files_of(reference.disk) == before, f"{expected}: and yet something was written"
    locks = list(reference.disk.glob("*.lock"))
    assert not locks, f"{expected}: and yet {locks} stayed"


@contextmanager
def _read_only(disk: Path, *, mounted: bool) -> Iterator[int]:
    """Within, nothing can be written; gives the expected cause, or 0 if it can be written."""
    remount = ["mount", "-o", "remount,{}", str(disk)]
    if mounted:
        subprocess.run([word.format("ro") for word in remount], check=True)
    else:
        disk.chmod(0o500)
    try:
        can_write = os.access(disk, os.W_OK)  # as root can, whatever a folder's mode is
        yield 0 if can_write else EROFS if mounted else EACCES
    finally:
        if mounted:
            subprocess.run([word.format("rw") for word in remount], check=True)
        else:
            disk.chmod(0o700)


DRIFTS = Campaign(
    "F18",
    "resumed with other arguments or at another place",
    drifts,
    full=30,
    short=2,
    paths=(*SEARCHING, *REFERENCE, "faults/drift.py", "faults/full_disks.py"),
)
