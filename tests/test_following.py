"""A journal that grows is read line by line, each once, whatever becomes of its file."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lastarm import RecordedCurves, SuccessiveHalving, search
from lastarm.events import Event, Opened, Pull
from lastarm.journal import Journal, read
from lastarm.journal.following import Following
from tests.forged import REFUSED, forge

OPENED = Opened(seed=0, policy={"name": "uniform"}, space={}, trainer={})
TABLE = [[1 / (1 + arm % 5) + (arm * step) % 7 / 9 for step in range(8)] for arm in range(8)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "whole.jsonl"
    rows = [{"row": row} for row in range(8)]
    policy = SuccessiveHalving(8, 60)
    search(RecordedCurves(TABLE), rows, policy=policy, journal=path, checkpoints=False)
    return path


def all_of(following: Following, most: int = 10**6) -> list[Event]:
    events: list[Event] = []
    while (news := following.news(most)).events or news.more:
        events += news.events
    return events


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), most=st.sampled_from([1, 100, 10**6]))
def test_in_whatever_pieces_it_is_written_each_event_comes_once(
    data: st.DataObject, most: int, whole: Path, tmp_path: Path
) -> None:
    content, path = whole.read_bytes(), tmp_path / "growing.jsonl"
    path.unlink(missing_ok=True)
    cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=12).map(sorted))
    following, events = Following(path), list[Event]()
    assert all_of(following) == []
    for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        with path.open("ab") as file:
            file.write(content[start:end])
        events += all_of(following, most)
    assert events == read(whole)
    assert following.trouble == ""
    assert following.lines == len(events)


def test_a_file_that_is_not_there_is_waited_for(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "later" / "search.jsonl"
    following = Following(path)
    assert following.news() == ([], False, False)
    assert following.trouble == "it does not exist yet"
    path.parent.mkdir()
    path.write_bytes(whole.read_bytes())
    news = following.news()
    assert news == (read(whole), True, False)
    assert following.trouble == ""
    assert following.news() == ([], False, False)


@pytest.mark.parametrize("how", ["replaced", "truncated and written", "written over"])
def test_another_file_is_read_from_its_beginning(tmp_path: Path, whole: Path, how: str) -> None:
    path, other = tmp_path / "search.jsonl", tmp_path / "other.jsonl"
    path.write_bytes(whole.read_bytes())
    following = Following(path)
    following.news()
    with Journal(other, OPENED) as journal:
        for arm in range(400):
            journal.append(Pull(arm, 1))
    if how == "replaced":
        os.replace(other, path)
    elif how == "truncated and written":
        with path.open("r+b") as file:
            file.truncate(0)
        assert following.news() == ([], True, False)
        path.write_bytes(other.read_bytes())
    else:
        path.write_bytes(other.read_bytes())
    news = following.news()
    assert news.anew == (how != "truncated and written")
    assert news.events == [OPENED, *(Pull(arm, 1) for arm in range(400))]


def test_what_was_cut_off_by_a_repair_is_forgotten(tmp_path: Path, whole: Path) -> None:
    lines, path = whole.read_bytes().splitlines(keepends=True), tmp_path / "search.jsonl"
    path.write_bytes(b"".join(lines[:9]))
    following = Following(path)
    assert len(following.news().events) == 9
    path.write_bytes(b"".join(lines[:7]))
    news = following.news()
    assert news.anew
    assert len(news.events) == 7


def test_up_to_a_damaged_line_it_is_read_and_the_damage_is_told(
    tmp_path: Path, whole: Path
) -> None:
    lines, path = whole.read_bytes().splitlines(keepends=True), tmp_path / "search.jsonl"
    path.write_bytes(b"".join([*lines[:5], bytes(len(lines[5]) - 1) + b"\n", *lines[6:]]))
    following = Following(path)
    news = following.news()
    assert (len(news.events), news.more) == (5, False)
    assert "line 6" in following.trouble
    path.write_bytes(b"".join(lines))  # it was only late, as on a disk of another machine
    assert following.news().events == read(whole)[5:]
    assert following.trouble == ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_search_has_is_told_and_not_read(tmp_path: Path, name: str) -> None:
    lines, line, _ = REFUSED[name]
    following = Following(forge(tmp_path / "forged.jsonl", lines))
    assert len(following.news().events) == line - 1
    assert f"line {line}" in following.trouble


def test_what_is_not_a_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        following = Following(tmp_path / name)
        assert following.news().events == []
        assert "not a file" in following.trouble
