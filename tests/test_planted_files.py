"""What others put beside a journal, or in its place, is not followed, written to or executed."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lastarm import SuccessiveHalving, Uniform, search
from lastarm.checkpoints import StateFolder
from lastarm.checkpoints.index import Index
from lastarm.cli import main
from lastarm.errors import (
    CheckpointNotWritten,
    JournalError,
    JournalLocked,
    JournalNotRead,
    JournalNotWritten,
    NotOwnFile,
    StateNotSaved,
)
from lastarm.events import Opened, Pull
from lastarm.journal import Journal, file, lines, lock, read
from lastarm.journal.disk import make_folder
from lastarm.journal.lock import is_held
from lastarm.runners.protocol import Arms
from lastarm.runners.remote import Kit
from lastarm.testing.runners import Drifting

OPENED = Opened(seed=0, policy={"name": "uniform"}, space={}, trainer={})
ANOTHER = 65534  # a user that every system has, and that no test runs as

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second user")


def by_another_user(act: Callable[[], object]) -> None:
    """Do it in a process of another user."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(ANOTHER)
            os.setuid(ANOTHER)
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder that all users can write to, and reach."""
    opened = [folder for folder in tmp_path.parents if not folder.stat().st_mode & 0o001]
    modes = {folder: folder.stat().st_mode for folder in (*opened, tmp_path)}
    for folder, mode in modes.items():
        folder.chmod(stat.S_IMODE(mode) | 0o001)
    tmp_path.chmod(0o777)
    yield tmp_path
    for folder, mode in modes.items():
        folder.chmod(stat.S_IMODE(mode))


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


LIMITS = {"limit": Uniform(0, 1)}


def searched(path: Path, trainer: Any = None, **arguments: Any) -> Any:
    policy = SuccessiveHalving(arms=4, budget=16)
    return search(trainer or Drifting(), LIMITS, policy=policy, journal=path, **arguments)


# The lock and the new journal --------------------------------------------------------------------


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def dangling_link(path: Path, target: Path) -> None:
    path.symlink_to(target.with_name("not there"))


def second_name(path: Path, target: Path) -> None:
    path.hardlink_to(target)


def pipe(path: Path, target: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, target: Path) -> None:
    path.mkdir()


def open_to_others(path: Path, target: Path) -> None:
    path.touch()
    path.chmod(0o666)


@pytest.mark.parametrize("plant", [link, dangling_link, second_name, pipe, folder, open_to_others])
def test_a_lock_that_is_not_a_file_of_ours_is_an_error_and_nothing_is_written(
    tmp_path: Path, plant: Any
) -> None:
    path, target = tmp_path / "j.jsonl", tmp_path / "precious"
    target.write_text("precious")
    plant(tmp_path / "j.jsonl.lock", target)
    there = sorted(tmp_path.iterdir())
    with pytest.raises(NotOwnFile) as stopped:
        Journal(path, OPENED)
    assert stopped.value.path == tmp_path / "j.jsonl.lock"
    assert sorted(tmp_path.iterdir()) == there
    assert target.read_text() == "precious"


@pytest.mark.parametrize("plant", [link, dangling_link, second_name, pipe, open_to_others])
def test_what_has_the_name_of_the_new_journal_is_removed_and_not_written_to(
    tmp_path: Path, plant: Any
) -> None:
    path, target = tmp_path / "j.jsonl", tmp_path / "precious"
    target.write_text("precious")
    plant(tmp_path / "j.jsonl.new", target)
    Journal(path, OPENED).close()
    assert sorted(tmp_path.iterdir()) == [path, target]
    assert target.read_text() == "precious"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.is_symlink()


def test_a_new_journal_whose_name_cannot_be_had_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "j.jsonl.new").mkdir()
    with pytest.raises(JournalError, match=r"j\.jsonl\.new"):
        Journal(tmp_path / "j.jsonl", OPENED)
    assert [path.name for path in tmp_path.iterdir()] == ["j.jsonl.new"]


@as_root
def test_the_lock_of_another_user_is_not_ours(shared: Path) -> None:
    beside = shared / "j.jsonl.lock"
    by_another_user(lambda: beside.write_text("process 1 on mars"))
    with pytest.raises(NotOwnFile) as stopped:
        Journal(shared / "j.jsonl", OPENED)
    assert stopped.value.path == beside
    assert beside.read_text() == "process 1 on mars"


@as_root
def test_another_user_gets_no_file_of_ours_overwritten(shared: Path) -> None:
    target = shared / "precious"
    target.write_text("precious")
    for name in ("one.lock", "two.new"):
        by_another_user(partial((shared / name).symlink_to, target))
    with pytest.raises(NotOwnFile):
        Journal(shared / "one", OPENED)
    Journal(shared / "two", OPENED).close()
    assert target.read_text() == "precious"
    assert (shared / "two").lstat().st_uid == os.geteuid()


def test_a_journal_swapped_for_a_link_while_it_is_opened_is_read_from_what_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "j.jsonl", tmp_path / "other.jsonl"
    for each in (path, other):
        Journal(each, OPENED).close()
    with Journal(other, OPENED) as longer:
        longer.append(Pull(0, 1))
        longer.sync()

    def swap(*arguments: Any) -> None:
        lock.try_to_lock(*arguments)
        path.unlink()
        path.symlink_to(other)

    monkeypatch.setattr(file, "try_to_lock", swap)
    journal = Journal(path, OPENED)
    assert [type(event) for event in journal.events] == [Opened]
    with pytest.raises(JournalNotWritten):  # it says that another file has the name
        journal.close()


def test_a_pipe_in_place_of_a_journal_is_refused_at_once(tmp_path: Path) -> None:
    for name in ("j.jsonl", "j.jsonl.lock"):
        os.mkfifo(tmp_path / name)
    assert not is_held(tmp_path / "j.jsonl")
    with pytest.raises(JournalNotRead):
        read(tmp_path / "j.jsonl")
    with pytest.raises(JournalError):
        Journal(tmp_path / "j.jsonl", OPENED)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_new_files_are_ours_alone_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    modes: dict[str, int] = {}

    def look(_: object) -> None:
        for each in (*tmp_path.rglob("*"),):
            if each.is_file():
                modes[each.suffix] = modes.get(each.suffix, 0) | each.stat().st_mode & 0o7777

    with umask(mask):
        searched(tmp_path / "j.jsonl", on_event=look)
    assert modes == {".jsonl": 0o600, ".lock": 0o600, ".state": 0o600}


def test_the_mode_of_a_journal_that_exists_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with pytest.raises(KeyboardInterrupt):
        searched(path, on_event=interrupt)
    path.chmod(0o640)
    assert searched(path).complete
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def interrupt(event: object) -> None:
    if not isinstance(event, Opened):
        raise KeyboardInterrupt


# The states of a journal -------------------------------------------------------------------------


def test_sweeping_removes_only_what_a_search_could_have_written(tmp_path: Path) -> None:
    states, outside = tmp_path / "j.jsonl.states", tmp_path / "outside"
    with pytest.raises(KeyboardInterrupt):
        searched(tmp_path / "j.jsonl", on_event=interrupt)
    make_folder(states)
    outside.write_text("precious")
    foreign = ["arm-notes.txt", "arm-1-at-2.txt", "arm-x-at-2.state", "notes"]
    for name in (*foreign, "arm-1-at-999.state", "arm-1-at-999.host-1.new"):
        (states / name).write_text("")
    (states / "arm-8-at-8.state").symlink_to(outside)
    (states / "arm-9-at-9.state").mkdir()
    assert searched(tmp_path / "j.jsonl").complete
    kept = {path.name for path in states.iterdir()}
    assert {*foreign, "arm-8-at-8.state", "arm-9-at-9.state"} <= kept
    assert not {name for name in kept if "999" in name}
    assert outside.read_text() == "precious"


def test_a_link_in_place_of_the_folder_of_states_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "elsewhere" / "arm-0-at-2.state"
    precious.parent.mkdir()
    precious.write_text("precious")
    (tmp_path / "j.jsonl.states").symlink_to(precious.parent)
    with pytest.raises(CheckpointNotWritten):
        searched(tmp_path / "j.jsonl")
    assert [path.read_text() for path in precious.parent.iterdir()] == ["precious"]


def test_workers_of_an_engine_find_the_folder_without_harm_to_files_of_others(
    tmp_path: Path,
) -> None:
    states = StateFolder(tmp_path / "j.jsonl.states", Drifting(), durable=True)
    make_folder(states.path)
    left = f"lastarm-{'0' * 32}"
    for name in ("lastarm-notes", left):
        (states.path / name).write_text("")
    arms = Arms(Drifting(), [], index=Index(states, disk=2**30), always=True)
    kit = Kit.of(arms)
    assert {path.name for path in states.path.iterdir()} == {"lastarm-notes", kit.identity}
    states.path.rename(tmp_path / "elsewhere")
    states.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointNotWritten):
        Kit.of(arms)
    assert len(list((tmp_path / "elsewhere").iterdir())) == 2


class Linked(Drifting):
    """Another user puts a link in the place of the file that is about to be saved."""

    def __init__(self, outside: Path) -> None:
        self.outside = outside

    def save(self, state: Any, path: Path) -> None:
        path.unlink()
        path.symlink_to(self.outside)
        path.write_text("a state")

    def load(self, path: Path) -> Any:
        raise AssertionError("nothing was saved")


def test_a_trainer_saves_no_state_where_others_can_put_a_link(tmp_path: Path) -> None:
    states, outside = tmp_path / "j.jsonl.states", tmp_path / "outside"
    outside.write_text("precious")
    states.mkdir()
    states.chmod(0o777)
    with pytest.warns(StateNotSaved, match="others may write"):
        assert searched(tmp_path / "j.jsonl", trainer=Linked(outside)).complete
    assert outside.read_text() == "precious"
    assert not list(states.iterdir())


# The command in a journal ------------------------------------------------------------------------

TUNE = ("tune", "--arms", "4", "--budget", "16", "--param", "x=uniform:0:1", "--journal")


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a search whose program tells that it was run."""
    monkeypatch.chdir(tmp_path)
    program = ("sh", "-c", "touch ran; echo {x}")
    assert run(*TUNE, "j.jsonl", "--", *program) == 0
    (tmp_path / "ran").unlink()
    return tmp_path / "j.jsonl"


def swapping(monkeypatch: pytest.MonkeyPatch, path: Path, instead: Path) -> None:
    """As soon as the first line of a journal is read, a link to another is in its place."""

    event_of = lines.event_of

    def swap(fields: Any) -> Any:
        if not path.is_symlink():
            path.unlink()
            path.symlink_to(instead)
        return event_of(fields)

    monkeypatch.setattr(lines, "event_of", swap)


def test_a_journal_that_is_swapped_while_it_is_read_is_judged_by_what_was_read(
    journal: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = journal.with_name("hostile.jsonl")
    hostile.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:1]))
    hostile.chmod(0o666)
    swapping(monkeypatch, hostile, instead=journal)
    assert run("resume", hostile) == 2
    assert "--trust" in capsys.readouterr().err
    assert not journal.with_name("ran").exists()


@as_root
def test_a_journal_of_another_user_that_is_swapped_while_it_is_read_is_not_executed(
    journal: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.chmod(0o1777)
    hostile = shared / "hostile.jsonl"
    header = journal.read_bytes().splitlines(keepends=True)[0]
    by_another_user(lambda: hostile.write_bytes(header))
    swapping(monkeypatch, hostile, instead=journal)
    assert run("resume", hostile) == 2
    assert not journal.with_name("ran").exists()


def test_a_journal_that_is_linked_to_is_resumed(journal: Path) -> None:
    whole = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(whole[:3]))
    link = journal.with_name("link.jsonl")
    link.symlink_to(journal)
    assert run("resume", link) == 0
    assert len(journal.read_bytes().splitlines()) == len(whole)
    assert link.is_symlink()
    with Journal(link, read(link)[0]), pytest.raises(JournalLocked):  # type: ignore[arg-type]
        Journal(journal, OPENED)
