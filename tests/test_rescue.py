"""A journal that disappears or changes under its search: every line of it is rescued."""

import errno
import os
import shutil
import stat
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lastarm import RecordedCurves, Result, SuccessiveHalving, search
from lastarm.cli import main
from lastarm.errors import CheckpointReplaced, JournalNotWritten
from lastarm.events import Closed, Event, Loss, Opened, Pull
from lastarm.journal import Journal, read, rescue
from tests.refusals import raised

OPENED = Opened(seed=0, policy={"name": "uniform"}, space={}, trainer={})
TABLE = [[0.5, 0.4, 0.3, 0.2], [0.6, 0.3, 0.2, 0.1], [0.9, 0.8, 0.7, 0.6], [0.7, 0.7, 0.7, 0.7]]

Deed = Callable[[Path], Any]


def play(path: Path | None, on_event: Callable[[Event], None] | None = None) -> Result:
    rows = [{"row": row} for row in range(len(TABLE))]
    policy = SuccessiveHalving(len(TABLE), 16)
    return search(RecordedCurves(TABLE), rows, policy=policy, journal=path, on_event=on_event)


@cache
def undisturbed() -> str:
    return play(None).digest


def change(path: Path) -> None:
    """Write other bytes in place; the next tick of the clock, which is what tells."""
    before = path.stat().st_mtime_ns
    while path.stat().st_mtime_ns == before:
        with path.open("r+b") as file:
            file.seek(-9, os.SEEK_END)
            file.write(b"#")


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"{}\n")


def replace(path: Path) -> None:
    shutil.copyfile(path, path.with_name("other"))
    path.with_name("other").rename(path)


DEEDS: dict[str, Deed] = {
    "deleted": Path.unlink,
    "moved": lambda path: path.rename(path.with_name("elsewhere")),
    "replaced": replace,
    "emptied": lambda path: os.truncate(path, 0),
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2),
    "grown": grow,
    "changed": change,
}


@pytest.mark.parametrize("name", DEEDS)
@pytest.mark.parametrize(("kind", "often"), [(Pull, 3), (Loss, 5), (Closed, 1)])
def test_every_line_of_a_journal_that_disappears_is_rescued(
    tmp_path: Path, name: str, kind: type[Event], often: int
) -> None:
    path, rescued = tmp_path / "search.jsonl", tmp_path / "search.jsonl.rescued-1"
    seen: list[Event] = []

    def strike(event: Event) -> None:
        seen.append(event)
        if isinstance(event, kind) and sum(isinstance(one, kind) for one in seen) == often:
            DEEDS[name](path)

    with raised(JournalNotWritten, path=path, rescued=rescued) as refusal:
        play(path, strike)
    assert str(rescued) in str(refusal.value)
    assert not list(tmp_path.glob("*.lock"))
    assert stat.S_IMODE(rescued.stat().st_mode) == 0o600
    losses = [event for event in seen if isinstance(event, Loss)]
    assert [event for event in read(rescued) if isinstance(event, Loss)][: len(losses)] == losses
    rescued.replace(path)  # as the error says
    again = play(path)
    assert again.digest == undisturbed()
    assert again.spent.repeated <= 8, "only the pulls of a group are trained again"


def test_rescued_files_do_not_replace_each_other(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    for number in (1, 2):
        rescued = tmp_path / f"search.jsonl.rescued-{number}"
        with raised(JournalNotWritten, rescued=rescued), Journal(path, OPENED):
            path.unlink()


def test_a_journal_whose_folder_is_removed_is_rescued_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    path, rescued = tmp_path / "there/search.jsonl", tmp_path / "elsewhere/search.jsonl.rescued-1"
    seen: list[Event] = []

    def remove(event: Event) -> None:
        seen.append(event)
        if len(seen) > 5 and isinstance(event, Loss):  # after a pull, its state makes a folder
            shutil.rmtree(path.parent)

    with raised(JournalNotWritten, path=path, rescued=rescued):
        play(path, remove)
    path.parent.mkdir()
    shutil.move(rescued, path)
    with pytest.warns(CheckpointReplaced):
        assert play(path).digest == undisturbed()


def test_a_journal_that_can_be_saved_nowhere_is_an_error_too(tmp_path: Path) -> None:
    path = tmp_path / "there" / "search.jsonl"
    path.parent.mkdir()
    with (
        patch("tempfile.gettempdir", lambda: str(path.parent)),
        raised(JournalNotWritten, path=path, rescued=None),
        Journal(path, OPENED),
    ):
        shutil.rmtree(path.parent)


def test_a_disk_that_is_taken_away_is_not_taken_for_a_full_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "search.jsonl"

    sync = os.fsync

    def fail_once(descriptor: int) -> None:
        monkeypatch.setattr("os.fsync", sync)
        path.unlink()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with (
        raised(JournalNotWritten, rescued=tmp_path / "search.jsonl.rescued-1") as refusal,
        Journal(path, OPENED) as journal,
    ):
        monkeypatch.setattr("os.fsync", fail_once)
        journal.append(Pull(0, 1))
        journal.sync()
    assert read(refusal.value.rescued) == [OPENED, Pull(0, 1)]


@pytest.mark.filterwarnings("ignore::lastarm.errors.CheckpointReplaced")
def test_two_searches_on_one_deleted_journal_both_keep_what_they_found(tmp_path: Path) -> None:
    path, rescued = tmp_path / "search.jsonl", tmp_path / "search.jsonl.rescued-1"
    seen: list[Event] = []
    second: list[Result] = []

    def strike(event: Event) -> None:
        seen.append(event)
        if len(seen) == 11:
            path.unlink()
            path.with_name("search.jsonl.lock").unlink()
            beside = threading.Thread(target=lambda: second.append(play(path)))
            beside.start()
            beside.join()

    with raised(JournalNotWritten, path=path, rescued=rescued) as refusal:
        play(path, strike)
    assert f"{rescued}.states" in str(refusal.value)
    assert second[0].digest == play(path).digest == play(rescued).digest


def test_a_search_that_ends_leaves_the_lock_of_another_alone(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    first = Journal(path, OPENED)
    path.unlink()
    path.with_name("search.jsonl.lock").unlink()
    with Journal(path, OPENED):
        with raised(JournalNotWritten):
            first.close()
        assert path.with_name("search.jsonl.lock").exists()


def test_a_journal_that_is_only_touched_or_linked_or_opened_to_readers_stays(
    tmp_path: Path,
) -> None:
    path = tmp_path / "search.jsonl"
    harmless: list[Deed] = [Path.touch, lambda path: path.chmod(0o640), link]
    with Journal(path, OPENED) as journal, patch.object(rescue.WrittenLines, "rescued") as rescued:
        for number, deed in enumerate(harmless):
            deed(path)
            journal.append(Pull(0, number + 1))
            journal.sync()
    assert not rescued.called
    assert read(path) == [OPENED, Pull(0, 1), Pull(0, 2), Pull(0, 3)]
    assert os.listdir(tmp_path) == ["search.jsonl"]


def link(path: Path) -> None:
    """Give it a second name for a moment."""
    path.with_name("hard").hardlink_to(path)
    path.with_name("hard").unlink()


def test_the_copy_is_smaller_than_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    with Journal(path, OPENED) as journal:
        for arm in range(2000):
            journal.append(Pull(arm, 1))
            journal.append(Loss(Pull(arm, 1), arm / 7))
        journal.sync()
        assert len(journal._written._packed) < path.stat().st_size / 3
        path.unlink()
        with raised(JournalNotWritten) as refusal:
            journal.sync()
    assert len(read(refusal.value.rescued)) == 4001


def test_the_command_says_where_its_journal_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, path = tmp_path / "curves.csv", tmp_path / "search.jsonl"
    table.write_text("\n".join(",".join(map(str, row)) for row in TABLE))
    append = Journal.append

    def delete(journal: Journal, event: Event) -> None:
        path.unlink(missing_ok=True)
        append(journal, event)

    with patch.object(Journal, "append", delete), pytest.raises(SystemExit) as ended:
        main(["replay", str(table), "--budget", "16", "--journal", str(path)])
    assert ended.value.code == 3
    assert f"{path}.rescued-1" in "".join(capsys.readouterr().err.splitlines())
