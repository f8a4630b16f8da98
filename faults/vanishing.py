"""F28: a journal is deleted, moved, replaced, truncated or linked while its search runs.

The search says so when it next syncs, and every line is in a file that the error names. Resumed as
the error says, it comes to the same digest. A journal that only has another mode, or a second
name, is still the journal: the search ends as ever.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple
from unittest.mock import patch

from faults.campaign import REFERENCE, SEARCHING, Campaign, Figures, Most, replayable
from faults.disk import in_memory
from faults.processes import forked
from faults.reference import EACH, ROWS, TABLE, Reference, check_finished, seen_in, whole
from lastarm.errors import JournalNotWritten, NothingSealed
from lastarm.events import Event, Loss
from lastarm.journal import read
from lastarm.policies import SuccessiveHalving
from lastarm.searching import search
from lastarm.trainers import RecordedCurves

LOSSES = 30  # of the reference search
EVERY_WITH_WORKERS = 13


By = Callable[[Callable[[], object]], object]


class Harm(NamedTuple):
    """What is done to a journal, whether it is the journal no more, and who has its name then."""

    do: Callable[[Path], object]
    harmful: bool = True
    taken: bool = False  # whether another file has the name of the journal


def _replace(path: Path, content: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(content)
    other.replace(path)


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"a line of somebody else\n")


def _link(path: Path, *, to_a_copy: bool) -> None:
    """The file moves elsewhere, and a link to it, or to a copy of it, has its name."""
    moved = path.replace(path.with_name("moved"))
    if to_a_copy:
        moved = Path(shutil.copy(moved, path.with_name("copy")))
    path.symlink_to(moved)


def _second_search(path: Path) -> None:
    """Deleted with its lock, so that another search begins at its place, and ends."""
    path.unlink()
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)

    def live() -> None:
        warnings.simplefilter("ignore", NothingSealed)  # a second user may have no home
        policy = SuccessiveHalving(len(ROWS), 64)
        search(RecordedCurves(TABLE), ROWS, policy=policy, journal=path, checkpoints=False)

    _, status = os.waitpid(forked(live), 0)
    assert not status, "a second search could not begin where there is no journal"


HARMS: dict[str, Harm] = {
    "deleted": Harm(Path.unlink),
    "renamed": Harm(lambda path: path.rename(path.with_name("renamed"))),
    "replaced by a copy": Harm(lambda path: _replace(path, path.read_bytes()), taken=True),
    "replaced by another": Harm(lambda path: _replace(path, b"not a journal\n"), taken=True),
    "replaced by nothing": Harm(lambda path: _replace(path, b""), taken=True),
    "cut to nothing": Harm(lambda path: os.truncate(path, 0)),
    "cut in half": Harm(lambda path: os.truncate(path, path.stat().st_size // 2)),
    "added to": Harm(_append),
    "made a link to a copy": Harm(lambda path: _link(path, to_a_copy=True), taken=True),
    "lost with its folder": Harm(lambda path: path.parent.rename(path.parent.with_name("gone"))),
    "begun by a second search": Harm(_second_search, taken=True),
    "given a second name": Harm(lambda path: path.with_name("second").hardlink_to(path), False),
    "made a link to itself": Harm(lambda path: _link(path, to_a_copy=False), False),
    "given another mode": Harm(lambda path: path.chmod(0o400), False),
}


def harmed(number: int, reference: Reference, name: str, by: By = lambda act: act()) -> None:
    """A search whose journal is harmed at a random loss, and what becomes of it.

    Every other one loses its lock as well. `by` says who does it.
    """
    random = Random(number)
    harm, with_lock = HARMS[name], number // len(HARMS) % 2 == 1
    workers = 2 if number % EVERY_WITH_WORKERS == EVERY_WITH_WORKERS - 1 else None
    left, after = [random.randint(1, LOSSES)], [0]

    def act() -> None:
        if with_lock:
            reference.journal.with_name(f"{reference.journal.name}.lock").unlink()
        harm.do(reference.journal)

    def strike(event: Event) -> None:
        if not isinstance(event, Loss):
            return
        after[0] += left[0] <= 0
        left[0] -= 1
        if left[0] == 0:
            by(act)

    temporary = reference.disk.with_name("tmp")
    temporary.mkdir(exist_ok=True)
    error: JournalNotWritten | None = None
    with patch.object(tempfile, "tempdir", str(temporary)):
        try:
            reference.play(on_event=strike, workers=workers, runner=None if workers else EACH)
        except JournalNotWritten as said:
            error = said
    if not harm.harmful:
        assert not error, f"it ended with {error}"
        check_finished(reference.journal, whole(), name)
        return
    assert error, "it was not noticed"
    assert workers or not after[0], f"{after[0]} losses counted afterwards"
    assert error.rescued, f"nothing was rescued: {error}"
    assert str(error.rescued) in str(error), "the error does not say where its lines are"
    rescued = Path(error.rescued)
    if (gone := reference.disk.with_name("gone")).exists():
        rescued = Path(shutil.move(rescued, gone.with_name(rescued.name)))
        shutil.rmtree(reference.disk, ignore_errors=True)  # a worker may have made it again
        gone.rename(reference.disk)
    _resume(reference, name, rescued)


def _resume(reference: Reference, name: str, rescued: Path) -> None:
    """Resume as the error says, and come to the same digest."""
    lines = {seen_in(event) for event in read(rescued) if isinstance(event, Loss)}
    assert not (lost := reference.counted() - lines), f"it lost {lost}"
    assert rescued.stat().st_mode & 0o077 == 0, "others can read what was rescued"
    journal = reference.journal
    if not HARMS[name].taken:
        shutil.move(rescued, journal)
        reference.resumed(name)
        return
    reference.journal = rescued
    if name == "begun by a second search":  # the states are its own now
        second = read(journal)
        assert reference.play().digest == whole().digest, "another digest"
        assert read(journal) == second, "the second search has changed"
        return
    states = Path(f"{journal}.states")
    if states.exists():
        states.rename(f"{rescued}.states")
    reference.resumed(name)


def run(tries: range, folder: Path) -> Figures:
    """Harm the journals of that many searches."""
    seen: Counter[str] = Counter()
    with in_memory(folder) as place:
        for number in tries:
            own = place / str(number)
            name = list(HARMS)[number % len(HARMS)]
            with replayable(f"faults.vanishing.harmed({number}, Reference(FOLDER), {name!r})"):
                harmed(number, Reference(own), name)
            seen[name] += 1
            shutil.rmtree(own)
    harmful = sum(often for name, often in seen.items() if HARMS[name].harmful)
    return {
        "searches": seen.total(),
        "kinds of harm": Most(len(seen)),
        "journals lost their name or their lines": harmful,
        "of them were not noticed at the next sync": 0,
        "lines lost": 0,
        "other digests": 0,
    }


VANISHING = Campaign(
    "F28",
    "a journal is removed, replaced or changed under its search",
    run,
    full=560,
    short=len(HARMS),
    paths=(*SEARCHING, *REFERENCE, "faults/processes.py", "faults/vanishing.py"),
)
