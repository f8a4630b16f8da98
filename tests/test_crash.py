"""Kill it anywhere, break its disk anywhere: it resumes to the same digest and loses nothing."""

import errno
import os
import resource
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastarm import RecordedCurves, Result, Serial, SuccessiveHalving, search
from lastarm.errors import CheckpointNotWritten, JournalNotWritten
from lastarm.events import Event, Loss, Pull
from lastarm.journal import Journal, read
from lastarm.trainers.recorded import Position

pytestmark = [
    pytest.mark.filterwarnings("ignore::lastarm.errors.JournalRepaired"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

TABLE = [[1 / (1 + arm % 5) + (arm * step) % 7 / 9 for step in range(30)] for arm in range(16)]


class Tallied(RecordedCurves):
    """Writes a byte for every step of training, so that they can be counted across crashes."""

    def __init__(self, tally: Path) -> None:
        super().__init__(TABLE)
        self._tally = tally

    def train(self, state: Position, pulls: int) -> Position:
        with self._tally.open("ab", buffering=0) as file:
            file.write(b"x" * pulls)
        return super().train(state, pulls)


def play(
    path: Path, on_event: Callable[[Event], None] | None = None, *, checkpoints: bool = True
) -> Result:
    """The reference search: 16 arms, four rungs, 30 observations."""
    return search(
        Tallied(path.with_suffix(".tally")),
        [{"row": row} for row in range(16)],
        policy=SuccessiveHalving(16, 128),
        journal=path,
        checkpoints=checkpoints,
        on_event=on_event,
    )


def pulls_in_flight(path: Path) -> int:
    """How many pulls, and at how many attempts, were under way when the journal ended."""
    levels: dict[int, int] = {}
    in_flight: dict[Pull, int] = {}
    lost = 0
    for event in read(path):
        if isinstance(event, Pull):
            lost += in_flight.get(event, 0)
            in_flight[event] = event.upto - levels.get(event.arm, 0)
        elif isinstance(event, Loss):
            del in_flight[event.pull]
            levels[event.pull.arm] = event.pull.upto
    return lost + sum(in_flight.values())


def killed(path: Path, acknowledged: Path, nth: int) -> bool:
    """Play in a child that is killed at the nth point; whether it lived to see that point."""
    child = os.fork()
    if child == 0:
        try:
            kill_at(nth)
            with acknowledged.open("ab", buffering=0) as file:

                def on_event(event: Event) -> None:
                    if isinstance(event, Loss):
                        file.write(
                            f"{event.pull.arm} {event.pull.upto} {event.value!r}\n".encode()
                        )

                play(path, on_event)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def kill_at(nth: int) -> None:
    """Before and after each event taken down, and before, within and after each write and sync."""
    points = iter(range(10**9))

    def point() -> None:
        if next(points) == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    append, flush, fsync = Journal.append, Journal.flush, os.fsync

    def killing_append(self: Journal, event: Event) -> None:
        point()
        append(self, event)
        point()

    def killing_flush(self: Journal) -> None:
        point()
        waiting = b"".join(self._pending)
        self._pending[:] = [waiting[: len(waiting) // 2]]
        flush(self)
        point()  # half of it is written
        self._pending[:] = [waiting[len(waiting) // 2 :]]
        flush(self)
        point()

    def killing_fsync(descriptor: int) -> None:
        point()
        fsync(descriptor)
        point()

    Journal.append, Journal.flush = killing_append, killing_flush  # type: ignore[method-assign]
    os.fsync = killing_fsync  # type: ignore[assignment]


def test_killed_at_every_point_it_loses_nothing_and_resumes_to_the_same_digest(
    tmp_path: Path,
) -> None:
    path, acknowledged = tmp_path / "search.jsonl", tmp_path / "acknowledged"
    whole = play(tmp_path / "whole.jsonl")
    nth = 0
    while True:
        for left in (path, acknowledged, path.with_suffix(".tally")):
            left.unlink(missing_ok=True)
        shutil.rmtree(path.with_name(path.name + ".states"), ignore_errors=True)
        if not killed(path, acknowledged, nth):
            break
        nth += 1
        in_flight = 0
        if path.exists():
            in_flight = pulls_in_flight(path)
            losses = [event for event in read(path) if isinstance(event, Loss)]
            saved = {f"{loss.pull.arm} {loss.pull.upto} {loss.value!r}" for loss in losses}
            assert set(acknowledged.read_text().splitlines()) <= saved
        resumed = play(path)
        assert resumed.complete
        assert resumed.digest == whole.digest
        assert resumed.spent.pulls == whole.spent.pulls
        assert resumed.spent.repeated == in_flight, "only what was in flight is done again"
        steps = path.with_suffix(".tally").stat().st_size
        assert 128 <= steps <= 128 + in_flight
        done = [event.pull for event in read(path) if isinstance(event, Loss)]
        assert len(done) == len(set(done)), "an acknowledged pull is never performed again"
    assert nth > 30 * 8  # at least so many points for each observation


def test_killed_again_and_again_it_still_comes_to_the_same_digest(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "search.jsonl", tmp_path / "acknowledged"
    kills = 0
    while killed(path, acknowledged, nth=31):
        kills += 1
        assert kills < 1000
    assert kills > 5
    assert play(path).digest == play(tmp_path / "whole.jsonl").digest


def play_until_refused(path: Path, reason: str) -> list[Event]:
    """The events that counted before the disk refused."""
    counted: list[Event] = []
    rows, policy = [{"row": row} for row in range(16)], SuccessiveHalving(16, 128)
    trainer = Tallied(path.with_suffix(".tally"))
    with pytest.raises((JournalNotWritten, CheckpointNotWritten), match=reason):
        search(trainer, rows, policy=policy, journal=path, on_event=counted.append)
    return counted


def test_when_the_disk_fails_to_sync_nothing_that_counted_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "search.jsonl"
    digest = play(tmp_path / "whole.jsonl").digest
    for nth in range(3, 33):
        path.unlink(missing_ok=True)
        calls = iter(range(10**6))

        def fsync(_: int, calls: Any = calls, nth: int = nth) -> None:
            if next(calls) >= nth:
                raise OSError(errno.EIO, "the disk is broken")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            counted = play_until_refused(path, "the disk is broken")
        saved = read(path)
        assert all(event in saved for event in counted)
        assert play(path).digest == digest


@pytest.mark.filterwarnings("ignore::lastarm.errors.JournalRepaired")
def test_when_the_disk_is_full_nothing_that_counted_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    digest = play(tmp_path / "whole.jsonl").digest
    size = (tmp_path / "whole.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in range(1500, size - 500, 97):  # seconds are not always as long when written
        path.unlink(missing_ok=True)
        path.with_suffix(".tally").unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))  # a real, short write
        try:
            counted = play_until_refused(path, "File too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        saved = read(path)
        assert all(event in saved for event in counted if not isinstance(event, Pull))
        assert play(path).digest == digest


def test_opening_on_a_full_disk_is_an_error_that_says_so(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, before[1]))
    try:
        play_until_refused(tmp_path / "search.jsonl", "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert play(tmp_path / "search.jsonl").complete


def test_after_a_power_cut_all_that_counted_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk holds what was synced, and any part of what was written since."""
    path, image = tmp_path / "search.jsonl", tmp_path / "image.jsonl"
    digest = play(tmp_path / "whole.jsonl").digest
    synced = b""
    moments: list[tuple[bytes, bytes, list[Loss]]] = []  # on the disk, written, counted
    counted: list[Loss] = []
    fsync = os.fsync

    def noting_fsync(descriptor: int) -> None:
        nonlocal synced
        fsync(descriptor)
        synced = path.read_bytes() if path.exists() else b""

    def note(event: Event) -> None:
        if isinstance(event, Loss):
            counted.append(event)
        moments.append((synced, path.read_bytes(), list(counted)))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", noting_fsync)
        rows, policy = [{"row": row} for row in range(16)], SuccessiveHalving(16, 128)
        runner = partial(Serial, group=3)
        search(
            Tallied(path.with_suffix(".tally")),
            rows,
            policy=policy,
            runner=runner,
            journal=path,
            on_event=note,
        )

    random = np.random.default_rng(0)
    for on_disk, written, losses in moments:
        for _ in range(5):
            tail = bytearray(written[len(on_disk) :])
            for start in range(0, len(tail), 64):  # sectors, each of which may be lost
                if random.random() < 0.5:
                    tail[start : start + 64] = bytes(len(tail[start : start + 64]))
            kept = int(random.integers(0, len(tail) + 1))
            image.write_bytes(on_disk + tail[:kept])
            saved = read(image)
            assert all(loss in saved for loss in losses)
            assert play(image, checkpoints=False).digest == digest
