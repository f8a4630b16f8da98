"""Kill it anywhere, break its disk anywhere: it resumes to the same digest and loses nothing.

How that is done is in `faults/`. Its campaigns are tried in `test_faults.py`; here is what they
leave out: many kills of one search, and disks that fail for good at many a point.
"""

from collections.abc import Iterator
from errno import EFBIG, EIO
from itertools import count
from pathlib import Path

import pytest

from faults.disk import Call, in_memory
from faults.full_disks import full, longest_file
from faults.kills import killed
from faults.reference import EACH, Reference
from faults.refusals import refused
from lastarm.errors import JournalNotWritten
from tests.refusals import raised


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[Reference]:
    with in_memory(tmp_path) as place:
        yield Reference(place)


def test_killed_again_and_again_it_still_comes_to_the_same_digest(reference: Reference) -> None:
    kills = 0
    while killed(reference, nth=40):
        kills += 1
        assert kills < 1000
    assert kills > 5
    reference.resumed("killed again and again")


def test_when_the_disk_fails_to_sync_nothing_that_counted_is_lost(reference: Reference) -> None:
    for nth in range(1, 36):  # of all syncs, if each loss has its own
        syncs = count()

        def is_refused(_: int, call: Call, syncs: Iterator[int] = syncs, nth: int = nth) -> bool:
            return call.kind == "fsync" and next(syncs) >= nth

        reference.clear()
        assert refused(reference, EIO, is_refused, runner=EACH) == "stopped"


def test_when_the_disk_is_full_nothing_that_counted_is_lost(reference: Reference) -> None:
    reference.play()
    size = reference.journal.stat().st_size
    for limit in range(1500, size - 500, 293):  # seconds are not always as long when written
        reference.clear()
        assert full(reference, EFBIG, longest_file(limit), by_command=False)


def test_opening_on_a_full_disk_is_an_error_that_says_so(reference: Reference) -> None:
    with (
        longest_file(5),
        raised(JournalNotWritten, path=reference.journal.resolve()) as refusal,
    ):
        reference.play()
    cause = refusal.value.__cause__
    assert isinstance(cause, OSError)
    assert cause.errno == EFBIG
    reference.resumed("there was no room for a header")
