"""The journal: what is written can be read, damage is found, and one process writes at a time."""

import fcntl
import json
import math
import os
import pickle
import platform
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastarm import (
    ASHA,
    Choice,
    HorizonHalving,
    RecordedCurves,
    Result,
    SuccessiveHalving,
    Uniform,
    search,
)
from lastarm.cli import main
from lastarm.errors import (
    JournalDamaged,
    JournalError,
    JournalLocked,
    JournalNotRead,
    JournalNotWritten,
    JournalRepaired,
    NotAJournal,
    OtherFormat,
    OtherSearch,
    OtherVersion,
    ReplayDiverged,
)
from lastarm.events import (
    Closed,
    Event,
    Extended,
    Failure,
    Loss,
    Opened,
    Pull,
    Saved,
    Started,
    Told,
    Work,
)
from lastarm.journal import Journal, lock, read, replay
from lastarm.journal.lines import KnownLine, Line, by_json, decode, encode, fields_of
from lastarm.journal.rescue import WrittenLines
from lastarm.ledger.survivors import rounds_of
from lastarm.loop import run
from tests.refusals import raised

OPENED = Opened(seed=0, policy={"name": "uniform"}, space={}, trainer={})
TABLE = [[1 / (1 + arm % 5) + (arm * step) % 7 / 9 for step in range(30)] for arm in range(16)]


def owner(process: int) -> str:
    return f"process {process} on {platform.node()}"


def play(path: Path, *, budget: int = 128, seed: int = 0, table: Any = TABLE) -> Result:
    rows = [{"row": row} for row in range(len(table))]
    policy = SuccessiveHalving(len(table), budget)
    return search(
        RecordedCurves(table), rows, policy=policy, journal=path, checkpoints=False, seed=seed
    )


numbers = st.floats(allow_nan=True, allow_infinity=True)
configs = st.none() | st.dictionaries(st.text(), st.floats(-1e9, 1e9) | st.text())
numbered = st.integers(0, 10**12), st.integers(1, 10**12)
pulls = st.builds(Pull, *numbered, configs) | st.builds(
    Started, *numbered, configs, st.text(), st.none() | st.floats(0, 1e12)
)
works = st.builds(
    Work,
    st.integers(0, 10**12),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
    st.text(),
    st.integers(1, 99),
    st.integers(0, 1),
    st.floats(0, 1e9),
)
texts = st.text(st.characters(exclude_categories=()))  # lone surrogates too
losses = st.builds(
    Loss,
    pulls,
    numbers,
    works,
    st.none() | st.dictionaries(texts, st.integers() | texts, min_size=1),
    st.none() | st.builds(Saved, st.text("0123456789abcdef"), st.integers(0)),
)
events = st.one_of(
    pulls,
    losses,
    st.builds(Failure, pulls, texts, texts, works, st.booleans(), st.booleans()),
    st.builds(Extended, st.integers(1)),
    st.builds(Closed, st.integers(0), st.integers(1), st.none() | numbers, st.integers(0)),
    st.builds(
        Opened,
        st.integers(0),
        st.fixed_dictionaries({"name": texts}),
        st.dictionaries(texts, st.integers()),
        st.just({}),
        st.just({}),
        st.lists(texts).map(tuple),
        texts,
    ),
)


@given(event=events, durable=st.integers(0), after=st.text("0123456789abcdef"))
def test_every_event_reads_back_as_it_was_written(event: Event, durable: int, after: str) -> None:
    line, checksum = encode(event, durable, after)
    assert line.count(b"\n") == 1
    read_back = decode(line[:-1])
    assert read_back is not None
    assert (read_back.durable, read_back.after, read_back.sum) == (durable, after, checksum)
    assert repr(read_back.event()) == repr(event)
    assert start_of(read_back.event()) == start_of(event)
    assert isinstance(read_back, KnownLine) == (isinstance(event, Pull | Loss) and ordinary(line))


def start_of(event: Event) -> Any:
    """Who performed a pull and since when, if that was recorded."""
    return (event.worker, event.at) if isinstance(event, Started) else ("", None)


def ordinary(line: bytes) -> bool:
    """Whether it has no half of a pair of signs, which only `json` reads."""
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def told(line: Line | None) -> str:
    """What a line comes to: its event, what is said of it, or that it is none."""
    if line is None:
        return "none"
    try:
        event = line.event()
    except Exception as error:
        return f"{type(error)} {error}"
    config, start = getattr(event, "config", None), start_of(event)
    return f"{event!r} {config!r} {start!r} {line.durable} {line.after} {line.sum}"


ODD = st.sampled_from(
    [
        *("0", "1", "-1", "1.0", "-0", "-0.0", "1e3", "1e400", "NaN", "-Infinity", "true", "null"),
        *("9" * 30, "-" + "9" * 400, "9" * 5000, "01", "", '""', '"x"', '"nan"', '"1_0"'),
        *('"\\ud800"', '"\\u0000"', "[]", "{}", '["ab", 3]', '["ab", 3, "cd"]', '["ab", 3.0]'),
        *('["ab", 3, "cd", false]', '{"a": 1, "a": 2}', '{"a": 1e999}', "[" * 3000 + "]" * 3000),
        *('{"a": {"b": [null, 18446744073709551616]}}', '{"a": [' + "[" * 70 + "]" * 70 + "]}"),
    ]
)
NAMES = st.sampled_from(
    [
        "event",
        "arm",
        "upto",
        "value",
        "trained",
        "train_seconds",
        "loss_seconds",
        "worker",
        "at",
        "attempt",
        "moves",
        "move_seconds",
        "metrics",
        "saved",
        "config",
        "durable",
        "after",
        "sum",
        "format",
        "continues",
        "retried",
        "error",
    ]
)


@given(
    event=pulls | losses,
    changes=st.lists(st.tuples(st.sampled_from(["set", "twice", "drop"]), NAMES, ODD), max_size=3),
)
def test_a_line_means_the_same_whatever_reads_it(
    event: Event, changes: list[tuple[str, str, str]]
) -> None:
    fields = {**fields_of(event), "durable": 3, "after": "ab"}
    parts = [(name, json.dumps(value)) for name, value in fields.items()]
    for how, name, spelled in changes:
        if how == "set":
            parts = [(one, spelled if one == name else value) for one, value in parts]
        elif how == "twice":
            parts.append((name, spelled))
        else:
            parts = [(one, value) for one, value in parts if one != name]
    body = "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in parts)
    checksum = blake2b(body.encode(), digest_size=8).hexdigest()
    line = body.encode() + f',"sum":"{checksum}"}}'.encode()
    assert told(decode(line)) == told(by_json(body.encode(), checksum))


@given(event=pulls | losses, data=st.data())
def test_a_line_with_one_byte_changed_is_none(event: Event, data: st.DataObject) -> None:
    line = bytearray(encode(event, 3, "ab")[0][:-1])
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    assert decode(bytes(line)) is None
    assert decode(bytes(line[: data.draw(st.integers(0, len(line)))])) is None


def test_a_line_is_json_that_a_person_can_read() -> None:
    loss = Loss(Pull(3, 25), math.nan, Work(25, 1.5, 0.25, "worker 1", 2), {"accuracy": 0.5})
    assert json.loads(encode(loss, 7, "ab")[0]) == {
        "event": "loss",
        "arm": 3,
        "upto": 25,
        "value": "nan",
        "trained": 25,
        "train_seconds": 1.5,
        "loss_seconds": 0.25,
        "worker": "worker 1",
        "attempt": 2,
        "metrics": {"accuracy": 0.5},
        "durable": 7,
        "after": "ab",
        "sum": encode(loss, 7, "ab")[1],
    }


@pytest.mark.parametrize("worker", ["", "process 1"])
@pytest.mark.parametrize("at", [None, 1795122903.25])
def test_a_pull_tells_who_performs_it_and_since_when_and_is_the_same_pull(
    worker: str, at: float | None
) -> None:
    started, pull = Started(3, 25, {"lr": 0.1}, worker, at), Pull(3, 25)
    assert started == pull
    assert pull == started
    assert hash(started) == hash(pull)
    assert started != Pull(3, 26)
    assert started != 3
    said = json.loads(encode(started, 7, "ab")[0])
    assert (said.get("worker", ""), said.get("at")) == (worker, at)
    again = pickle.loads(pickle.dumps(started))
    assert (again, again.config, again.worker, again.at) == (pull, {"lr": 0.1}, worker, at)


def test_who_performs_a_pull_and_since_when_changes_no_answer(tmp_path: Path) -> None:
    path, before = tmp_path / "search.jsonl", time.time()
    first = play(path)
    begun = [event for event in read(path) if isinstance(event, Pull)]
    assert all(isinstance(event, Started) for event in begun)
    times = [event.at for event in begun if isinstance(event, Started) and event.at]
    assert before - 0.001 <= times[0] <= times[-1] <= time.time() + 0.001
    assert len(times) == len(begun)
    written = read(path)
    for told in ((), ("another", 0.0)):
        other, lines, after = tmp_path / "other.jsonl", b"", ""
        for event in written[:-1]:
            changed: Event = event
            if isinstance(event, Pull):
                changed = Started(event.arm, event.upto, event.config, *told)
            line, after = encode(changed, 0, after)
            lines += line
        other.write_bytes(lines)
        assert play(other).digest == first.digest
        assert read(other) == written


def test_a_journal_that_is_not_there_is_created_whole(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED) as journal:
        assert journal.events == [OPENED]
    assert read(path) == [OPENED]
    assert os.listdir(tmp_path) == ["search.jsonl"]


def test_a_finished_search_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    first = play(path)
    before = path.read_bytes()
    again = play(path)
    assert again.digest == first.digest
    assert again.spent == first.spent
    assert again.complete
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"budget": 127}, [("budget", 128, 127)]),
        ({"seed": 1}, [("seed", 0, 1)]),
        ({"table": [row[::-1] for row in TABLE]}, ["trainer.table"]),
        ({"table": [[*row, row[-1]] for row in TABLE]}, ["trainer.table"]),
        (
            {"table": TABLE[:8]},
            [("arms", 16, 8), "trainer.table", "space.configs", "space.sha256"],
        ),
    ],
)
def test_another_search_is_refused_by_what_differs(
    tmp_path: Path, change: dict[str, Any], named: list[Any]
) -> None:
    path = tmp_path / "search.jsonl"
    play(path)
    before = path.read_bytes()
    with raised(OtherSearch, path=path) as refusal:
        play(path, **change)
    differences = refusal.value.differences
    assert [one if one in named else one[0] for one in differences] == named
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["search.jsonl"]


def test_cut_at_every_byte_of_the_last_group_it_resumes_to_the_same_digest(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "search.jsonl"
    result = play(whole)
    content = whole.read_bytes()
    lines = content.splitlines(keepends=True)
    for group in (lines[:-1], lines):  # the last group is Closed; without it, the last loss
        known = max(json.loads(line)["durable"] for line in group)
        start, end = len(b"".join(group[:known])), len(b"".join(group))
        for cut in range(start, end):
            path.write_bytes(content[:cut])
            torn = content[:cut] and not content[:cut].endswith(b"\n")
            if torn:
                with pytest.warns(JournalRepaired):
                    resumed = play(path)
            else:
                resumed = play(path)
            assert resumed.digest == result.digest
            assert read(path)[-1] == read(whole)[-1]


def test_cut_after_every_record_it_resumes_to_the_same_digest(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "search.jsonl"
    result = play(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:kept]))
        resumed = play(path)
        assert resumed.digest == result.digest
        assert resumed.spent.pulls == result.spent.pulls
        losses = [event.pull for event in read(path) if isinstance(event, Loss)]
        assert len(losses) == len(set(losses)), "no loss that was written is asked for again"


class Ticking:
    """A clock on which each look takes a while, so that groups are the same each time."""

    def __init__(self, tick: float) -> None:
        self.now, self._tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self._tick
        return self.now


class Interrupted(RecordedCurves):
    """Its n-th training is interrupted."""

    def __init__(self, at: int) -> None:
        super().__init__(TABLE)
        self.left = at

    def train(self, state: Any, pulls: int) -> Any:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().train(state, pulls)


@pytest.mark.parametrize(("tick", "losses"), [(0.001, [16, 8, 4, 2]), (0.3, [1] * 30)])
def test_losses_of_a_round_share_a_sync_if_they_take_little_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tick: float, losses: list[int]
) -> None:
    monkeypatch.setattr("lastarm.loop.perf_counter", Ticking(tick))
    groups, on_disk = list[int](), list[Event]()
    sync = Journal.sync

    def counted(self: Journal) -> None:
        sync(self)
        there = [event for event in read(self.path) if isinstance(event, Loss)]
        groups.append(len(there) - len(on_disk))
        on_disk[:] = there

    monkeypatch.setattr(Journal, "sync", counted)
    path = tmp_path / "j.jsonl"
    trainer = RecordedCurves(TABLE)
    rows = [{"row": row} for row in range(16)]

    def watch(event: Event) -> None:
        assert not isinstance(event, Loss) or event in on_disk, "told before it was synced"

    policy = SuccessiveHalving(16, 128)
    result = search(trainer, rows, policy=policy, journal=path, on_event=watch)
    assert [number for number in groups if number] == losses
    assert result.digest == search(RecordedCurves(TABLE), rows, policy=policy).digest


def test_an_event_driven_policy_is_told_each_loss_before_it_decides(tmp_path: Path) -> None:
    events: list[Event] = []
    rows = [{"row": row} for row in range(16)]
    policy = ASHA(16, 100, max_pulls=9)
    path = tmp_path / "j.jsonl"
    search(RecordedCurves(TABLE), rows, policy=policy, journal=path, on_event=events.append)
    assert [type(event) for event in events[1:-1]] == [Started, Loss] * (len(events) // 2 - 1)


def test_what_a_group_has_done_is_synced_if_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lastarm.loop.perf_counter", Ticking(0.001))
    path = tmp_path / "j.jsonl"
    rows = [{"row": row} for row in range(16)]
    policy = SuccessiveHalving(16, 128)
    with pytest.raises(KeyboardInterrupt):
        search(Interrupted(at=9), rows, policy=policy, journal=path)
    assert sum(isinstance(event, Loss) for event in read(path)) == 8
    result = search(Interrupted(at=0), rows, policy=policy, journal=path)
    assert result.digest == search(RecordedCurves(TABLE), rows, policy=policy).digest


class Breaks:
    """Brings back one loss. While the next pull is under way, the search is stopped; it fails."""

    at_once = False  # all have had their time, as a `Stop` says

    def __init__(self) -> None:
        self._came: list[Told] = []

    def __call__(self) -> bool:
        return self.at_once

    @property
    def free(self) -> int:
        return 1 - len(self._came)

    def start(self, pull: Pull, attempt: int) -> None:
        self._came.append(Loss(pull, 0.5, Work(pull.upto)))

    def wait(self, seconds: float) -> list[Told]:
        self.at_once = self._came[0].pull.arm == 1
        if self.at_once:
            raise OSError("it broke")
        came, self._came = self._came, []
        return came


def test_an_error_that_had_to_wait_for_a_group_is_raised_also_after_a_stop(tmp_path: Path) -> None:
    breaks: Any = Breaks()
    policy, rows = SuccessiveHalving(16, 128), [{"row": row} for row in range(16)]
    path = tmp_path / "j.jsonl"
    with Journal(path, OPENED) as journal, pytest.raises(OSError, match="it broke"):
        list(run(policy, breaks, journal, rows, stop=breaks, group_seconds=60.0))
    assert sum(isinstance(event, Loss) for event in read(path)) == 1


def test_ctrl_c_within_a_write_is_not_taken_for_a_change_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: WrittenLines) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "j.jsonl"
    with Journal(path, OPENED) as journal:
        journal.append(Pull(0, 1))
        monkeypatch.setattr(WrittenLines, "note", interrupt)
        with pytest.raises(KeyboardInterrupt):
            journal.sync()
    assert [file.name for file in tmp_path.iterdir()] == ["j.jsonl"]
    monkeypatch.undo()
    with Journal(path, OPENED) as journal:
        assert journal.events == [OPENED, Pull(0, 1)]


def test_a_torn_group_with_a_hole_is_cut_at_the_hole(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED) as journal:
        journal.append(Pull(0, 1))
        journal.sync()
        for arm in range(1, 5):
            journal.append(Pull(arm, 1))
        journal.flush()  # four lines that are not yet known to be on the disk
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b"\0" * len(lines[3])
    path.write_bytes(b"".join(lines))
    with pytest.warns(JournalRepaired), Journal(path, OPENED) as journal:
        assert journal.events == [OPENED, Pull(0, 1), Pull(1, 1)]
    assert read(path) == [OPENED, Pull(0, 1), Pull(1, 1)]


def test_earlier_damage_is_an_error_with_its_line_and_changes_nothing(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "search.jsonl"
    play(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    for number in range(len(lines) - 1):  # all but Closed, the last group
        flipped = bytearray(lines[number])
        flipped[len(flipped) // 2] ^= 1
        damaged = b"".join([*lines[:number], bytes(flipped), *lines[number + 1 :]])
        missing = b"".join([*lines[:number], *lines[number + 1 :]])
        for content in (damaged, missing):
            path.write_bytes(content)
            with raised(JournalDamaged, path=path, line=number + 1):
                play(path)
            with pytest.raises(JournalDamaged):
                read(path)
            assert path.read_bytes() == content


def test_no_bit_flip_goes_unnoticed(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "search.jsonl"
    result = play(whole)
    content = whole.read_bytes()
    refused = 0
    positions = range(0, len(content), 11)
    for position in positions:
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        with warnings.catch_warnings(record=True) as warned, patch("os.fsync"):
            warnings.simplefilter("always")
            try:
                assert play(path).digest == result.digest
                assert [warning.category for warning in warned] == [JournalRepaired], position
            except JournalError:
                refused += 1
    assert len(positions) - 64 < refused < len(positions)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}\n", b"hello", b'{"event":"opened"}\n', b"\0" * 4096]
)
def test_what_is_no_journal_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "search.jsonl"
    path.write_bytes(content)
    with raised(NotAJournal, path=path):
        play(path)
    with raised(NotAJournal, path=path):
        read(path)
    for words in (["show"], ["resume"], ["report"], ["export", "-o", "arms.csv"]):
        with pytest.raises(SystemExit) as ended:
            main([words[0], str(path), *words[1:]])
        assert ended.value.code == 2
    assert path.read_bytes() == content


def test_a_header_with_a_flipped_bit_is_damaged_and_not_another_file(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    header, _ = encode(OPENED, 0, "")
    for position in range(len(header) - 1):
        flipped = bytearray(header)
        flipped[position] ^= 1
        path.write_bytes(flipped)
        with pytest.raises((JournalDamaged, OtherFormat)):
            read(path)


def test_whole_lines_that_were_never_written_by_us_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    line, checksum = encode(OPENED, 0, "")
    for fields in ({"event": "surprise"}, {"event": "pull", "arm": "x", "upto": 1}, [1]):
        body = json.dumps({"x": fields} if isinstance(fields, list) else fields)[:-1]
        body += f',"durable":1,"after":"{checksum}"'
        path.write_bytes(line + _summed(body))
        with raised(JournalDamaged, path=path, line=2):
            read(path)


def test_a_journal_of_another_format_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    line, _ = encode(OPENED, 0, "")
    newer = line.replace(b'"format":1', b'"format":2').rpartition(b',"sum"')[0].decode()
    path.write_bytes(_summed(newer))
    with raised(OtherFormat, path=path, written=2, known=1):
        read(path)


def _summed(body: str) -> bytes:
    checksum = blake2b(body.encode(), digest_size=8).hexdigest()
    return f'{body},"sum":"{checksum}"}}\n'.encode()


def test_a_journal_that_cannot_be_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "there").symlink_to("back")
    (tmp_path / "back").symlink_to("there")
    circles = ("circle", "circle/search.jsonl", "there", "back")
    for name in ("folder", "pipe", "/", "/dev/full", *circles, "x" * 300):
        with raised(JournalError) as refusal:
            play(tmp_path / name)
        assert type(refusal.value) is JournalError
    missing = tmp_path / "missing" / "search.jsonl"
    with raised(JournalNotWritten, path=missing) as refusal:
        play(missing)
    assert isinstance(refusal.value.__cause__, FileNotFoundError)
    with raised(JournalNotRead, path=missing):
        read(missing)


def test_a_second_writer_is_refused_by_name_and_let_in_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED):
        with raised(JournalLocked, path=path, owner=owner(os.getpid())):
            Journal(path, OPENED)
        assert read(path) == [OPENED], "reading needs no lock"
    Journal(path, OPENED).close()


def test_a_dead_writers_lock_holds_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    holder = (
        "import sys, time; from lastarm.journal import Journal; from lastarm.events import Opened;"
        "journal = Journal(sys.argv[1], Opened(0, {'name': 'uniform'}, {}, {}));"
        "print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", holder, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        with raised(JournalLocked, path=path, owner=owner(process.pid)):
            Journal(path, OPENED)
        process.kill()
        process.wait()
        Journal(path, OPENED).close()


def test_what_a_dead_writer_was_starting_holds_nobody_up_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between its birth and its beginning, a new process has all that its parent had open.
    holder = (
        "import fcntl, os, platform, subprocess, sys; file = open(sys.argv[1], 'w');"
        "fcntl.flock(file, fcntl.LOCK_EX);"
        "print(f'process {os.getpid()} on {platform.node()}', end='', file=file, flush=True);"
        "subprocess.Popen(['sleep', sys.argv[2]], pass_fds=[file.fileno()])"
    )
    path = tmp_path / "search.jsonl"
    command = [sys.executable, "-c", holder, f"{path}.lock"]
    subprocess.run([*command, "0.3"], check=True)
    Journal(path, OPENED).close()
    monkeypatch.setattr(lock, "PATIENCE", 0.05)
    subprocess.run([*command, "1"], check=True)
    with raised(JournalLocked, path=path):
        Journal(path, OPENED)


def test_a_process_that_has_the_number_of_a_dead_writer_holds_nothing(tmp_path: Path) -> None:
    path, beside = tmp_path / "search.jsonl", tmp_path / "search.jsonl.lock"
    with Journal(path, OPENED):
        note = beside.read_text()
        assert note.startswith(f"{owner(os.getpid())}\n")
        assert lock.is_held(path)
        with raised(JournalLocked, path=path, owner=owner(os.getpid())):
            Journal(path, OPENED)
    assert not lock.is_held(path)
    began = int(note.split()[-1])
    beside.write_text(note.replace(f" {began}", f" {began - 1}"))
    assert not lock.is_held(path), "a process of this number began before, and is dead"
    beside.write_text(note)
    assert lock.is_held(path)


@pytest.mark.parametrize(
    "note",
    [
        owner(os.getpid()),  # as 0.1 wrote it
        f"process {os.getpid()} on another-machine\n",
        f"{owner(os.getpid())}\nanother-start/pid:[1] 5",  # of a container, or before a reboot
        f"process 99999999 on {platform.node()}\nanother-start/pid:[1] 5",
        "",
    ],
    ids=["0.1", "another machine", "another start", "a dead process", "empty"],
)
def test_of_a_writer_that_cannot_be_asked_the_lock_tells(tmp_path: Path, note: str) -> None:
    path, beside = tmp_path / "search.jsonl", tmp_path / "search.jsonl.lock"
    beside.write_text(note)
    assert not lock.is_held(path)
    with beside.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert lock.is_held(path)


def test_a_writer_that_has_ended_and_was_not_waited_for_holds_nothing(tmp_path: Path) -> None:
    path, beside = tmp_path / "search.jsonl", tmp_path / "search.jsonl.lock"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        beside.write_text(f"{owner(process.pid)}\n{lock._life(process.pid)}")
        assert lock.is_held(path)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not lock.is_held(path)


def test_who_asks_whether_a_journal_is_held_stops_no_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "A_MOMENT", 60.0)  # the test may have to wait for the other thread
    monkeypatch.setattr(lock, "PATIENCE", 60.0)
    path, beside = tmp_path / "search.jsonl", tmp_path / "search.jsonl.lock"
    beside.write_text("process 1 on another-machine")
    beside.chmod(0o600)
    with beside.open() as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        threading.Timer(0.02, fcntl.flock, (asked.fileno(), fcntl.LOCK_UN)).start()
        Journal(path, OPENED).close()


def test_a_running_search_is_called_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "search.jsonl"
    play(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))  # it is not closed yet
    ends = {}
    with (tmp_path / "search.jsonl.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for words in (["show"], ["resume"]):
            with pytest.raises(SystemExit) as ended:
                main([*words, str(path)])
            ends[words[0]] = ended.value.code, "".join(capsys.readouterr())
    assert ends["show"][0] == 0
    assert "lastarm watch" in ends["show"][1]
    assert "To resume" not in ends["show"][1]
    assert ends["resume"][0] == 3
    assert "in use by" in ends["resume"][1]


def test_a_journal_by_another_name_is_the_same_journal(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED):
        (tmp_path / "soft.jsonl").symlink_to(path)
        (tmp_path / "hard.jsonl").hardlink_to(path)
        with raised(JournalLocked, path=path, owner=owner(os.getpid())):
            Journal(tmp_path / "soft.jsonl", OPENED)
        with raised(JournalLocked, path=tmp_path / "hard.jsonl", owner="another process"):
            Journal(tmp_path / "hard.jsonl", OPENED)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_holds_nothing_and_takes_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED) as journal:
        child = os.fork()
        if child == 0:
            try:
                journal.append(Pull(0, 1))
                journal.sync()
            except JournalError:
                journal.close()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        with pytest.raises(JournalLocked):
            Journal(path, OPENED)
        journal.append(Pull(0, 1))
        journal.sync()
    assert read(path) == [OPENED, Pull(0, 1)]


def test_of_many_that_create_at_once_one_wins(tmp_path: Path) -> None:
    race = (
        "import sys; from lastarm.journal import Journal\n"
        "from lastarm.errors import JournalLocked; from lastarm.events import Opened, Pull\n"
        "try:\n"
        "    with Journal(sys.argv[1], Opened(0, {'name': 'uniform'}, {}, {})) as journal:\n"
        "        journal.append(Pull(0, 1)); journal.sync()\n"
        "        print('won', flush=True); sys.stdin.read()\n"
        "except JournalLocked: print('locked', flush=True)\n"
    )
    command = [sys.executable, "-c", race, str(tmp_path / "search.jsonl")]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)
    ]
    said = [racer.stdout.readline() for racer in racers if racer.stdout]
    for racer in racers:
        racer.communicate()
    assert sorted(said) == [b"locked\n"] * 3 + [b"won\n"]
    assert read(tmp_path / "search.jsonl") == [OPENED, Pull(0, 1)]


def test_a_policy_that_asks_otherwise_than_written_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    play(path)
    history = read(path)
    with raised(ReplayDiverged, record=2, written=history[1]):
        replay(history, SuccessiveHalving(16, 640))
    with raised(ReplayDiverged, record=2, written=history[2]):
        replay([history[0], history[2]], SuccessiveHalving(16, 128))
    with raised(ReplayDiverged, record=2, written=Closed(3, 8)):
        replay([history[0], Closed(3, 8)], SuccessiveHalving(16, 128))


def test_a_hyperparameter_called_configs_keeps_its_description(tmp_path: Path) -> None:
    def run(**more: Any) -> Result:
        trainer = RecordedCurves(TABLE)
        space = {
            "row": Choice(*range(16)),
            "configs": Uniform(0, 1),
            "configs drawn": Uniform(2, 3),
        }
        policy = SuccessiveHalving(8, 64)
        return search(trainer, space, policy=policy, journal=tmp_path / "j.jsonl", **more)

    found = run()
    opened = read(tmp_path / "j.jsonl")[0]
    assert isinstance(opened, Opened)
    assert opened.space["configs"] == {"uniform": [0.0, 1.0]}
    assert opened.space["configs drawn"] == {"uniform": [2.0, 3.0]}
    assert run().digest == found.digest
    with raised(OtherSearch) as refusal:
        run(include=[{"row": 0, "configs": 0.5, "configs drawn": 2.5}])
    assert [name for name, *_ in refusal.value.differences] == ["space.configs drawn drawn"]


def by_two_seeds(path: Path | None, *, seed: int, own: int = 7) -> Result:
    """A search whose policy has a seed of its own: it draws 3 of 8 arms."""
    policy = HorizonHalving(arms=8, budget=12, max_pulls=18, seed=own)
    return search(
        Noisy(), [{"x": x / 8} for x in range(8)], policy=policy, seed=seed, journal=path
    )


class Noisy:
    """Its losses depend on the seed of the arm."""

    def start(self, config: Any, seed: int) -> list[float]:
        return [config["x"] + seed % 97, 0]

    def train(self, state: list[float], pulls: int) -> list[float]:
        return [state[0], state[1] + pulls]

    def loss(self, state: list[float]) -> float:
        return state[0] + 1 / state[1]


def test_a_seed_of_the_policy_does_not_hide_that_of_the_search(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    first = by_two_seeds(path, seed=1)
    assert by_two_seeds(path, seed=1).digest == first.digest
    with raised(OtherSearch, differences=[("seed", 1, 2)]):
        by_two_seeds(path, seed=2)
    with raised(OtherSearch, differences=[("policy.seed", 7, 8)]):
        by_two_seeds(path, seed=1, own=8)


def test_a_seed_that_the_policy_has_from_the_search_is_named_once(tmp_path: Path) -> None:
    def run(seed: int) -> Result:
        rows = [{"x": x / 8} for x in range(8)]
        numbers: dict[str, Any] = {"arms": 8, "budget": 12, "max_pulls": 18}
        return search(Noisy(), rows, seed=seed, journal=tmp_path / "search.jsonl", **numbers)

    run(1)
    with raised(OtherSearch, differences=[("seed", 1, 2)]):
        run(2)


def test_a_result_finds_its_journal_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = play(Path("search.jsonl"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert result.journal == str(tmp_path / "search.jsonl")
    assert result.report("report.html").exists()


@dataclass(eq=False)
class Later(SuccessiveHalving):
    """Successive Halving, after its rule was changed."""

    version: ClassVar[int] = 2


class LaterCurves(RecordedCurves):
    """Recorded curves, after their rule was changed."""

    version = 3
    recorded_as = "RecordedCurves"
    __qualname__ = "RecordedCurves"


def test_a_journal_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    path, rows = tmp_path / "search.jsonl", [{"row": row} for row in range(16)]
    play(path)
    before = path.read_bytes()
    policy = {"part": "policy", "name": "successive-halving", "written": 1, "known": 2}
    with raised(OtherVersion, path=path, **policy):
        search(RecordedCurves(TABLE), rows, policy=Later(16, 128), journal=path)
    trainer = {"part": "trainer", "name": "RecordedCurves", "written": 1, "known": 3}
    with raised(OtherVersion, path=path, **trainer):
        search(LaterCurves(TABLE), rows, policy=SuccessiveHalving(16, 128), journal=path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["search.jsonl"]


@pytest.mark.parametrize("maximize", [False, True])
def test_functions_and_maximized_trainers_have_versions_too(
    tmp_path: Path, maximize: bool
) -> None:
    def arm(config: dict[str, Any]) -> Iterator[float]:
        for level in range(1, 1000):
            yield config["x"] / level

    class Made(RecordedCurves):
        version: ClassVar[int] = 1

    def run(trainer: Any, path: Path) -> None:
        space = {"x": Uniform(0, 1)} if trainer is arm else [{"row": row} for row in range(4)]
        search(trainer, space, arms=4, budget=16, journal=path, maximize=maximize)

    for trainer, name in ((arm, "Generated"), (Made(TABLE), Made.__qualname__)):
        path = tmp_path / f"{name[-4:]}.jsonl"
        run(trainer, path)
        changed: Any = arm if trainer is arm else Made
        changed.version = 2
        with raised(OtherVersion, part="trainer", name=name, written=1, known=2):
            run(trainer, path)


def test_a_version_other_than_1_is_in_the_header_and_is_resumed(tmp_path: Path) -> None:
    path, rows = tmp_path / "search.jsonl", [{"row": row} for row in range(16)]

    def run(policy: SuccessiveHalving, trainer: RecordedCurves) -> Result:
        return search(trainer, rows, policy=policy, journal=path, checkpoints=False)

    first = run(Later(16, 128), LaterCurves(TABLE))
    opened = read(path)[0]
    assert isinstance(opened, Opened)
    assert (opened.policy["version"], opened.trainer["version"]) == (2, 3)
    assert run(Later(16, 128), LaterCurves(TABLE)).digest == first.digest
    with pytest.raises(OtherVersion):  # nor by an older rule
        run(SuccessiveHalving(16, 128), LaterCurves(TABLE))


def test_a_journal_of_another_version_is_shown_reported_and_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "search.jsonl"
    digest = play(path).digest
    played = rounds_of({"name": "successive-halving", "arms": 16, "budget": 128}, read(path))
    assert played
    monkeypatch.setattr(SuccessiveHalving, "version", 2)
    opened = read(path)[0]
    assert isinstance(opened, Opened)
    assert rounds_of(opened.policy, read(path)) == []  # the new rule does not explain the old
    for words in (["show", "--json"], ["report", "-o", str(tmp_path / "report.html")], ["show"]):
        with pytest.raises(SystemExit) as ended:
            main([*words, str(path)])
        assert ended.value.code == 0
        said = capsys.readouterr().out
        assert "--json" not in words or json.loads(said)["digest"] == digest
        assert words != ["show"] or "cannot be resumed here" in " ".join(said.split())
    with pytest.raises(SystemExit) as ended:
        main(["export", str(path), "-o", str(tmp_path / "arms.csv")])
    assert ended.value.code == 0
