"""Code that has changed since its journal was begun: it is named, and nothing is hidden."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lastarm import Changed, LogUniform, Opened, Result, search
from lastarm.cli import main
from lastarm.errors import AllArmsFailed, JournalLocked, NotAJournal, TrainerChanged
from lastarm.events import Event
from lastarm.journal import Journal, read
from lastarm.journal.lock import held
from tests.user_code import load

SPACE = {"step": LogUniform(0.001, 1.0)}
LOOP = """
SCALE = 1.0

def error(x):
    return abs(x * x - 2) * SCALE

def training(config, resume=None):
    x = 1.0 if resume is None else resume
    while True:
        x -= config["step"] * (x * x - 2)
        yield error(x), x
"""
WRONG = LOOP.replace("return abs(x * x - 2)", "return abs(x * x - undefined)")


@pytest.fixture(autouse=True)
def no_module_stays() -> Iterator[None]:
    yield
    sys.modules.pop("user_code", None)


def run(folder: Path, source: str = LOOP, **arguments: Any) -> Result:
    """What a script with this source would do."""
    trainer = load(folder, source).training
    given = {"arms": 4, "budget": 16, "journal": folder / "j.jsonl", **arguments}
    return search(trainer, SPACE, **given)


class Killed(Exception):
    """The end of a search that has not ended."""


def begun(folder: Path, source: str = LOOP, events: int = 9) -> Path:
    """The journal of a search that was killed after some events, the last of which is a loss."""
    seen = []

    def kill(event: Event) -> None:
        seen.append(event)
        if len(seen) == events:
            raise Killed

    with pytest.raises(Killed):
        run(folder, source, on_event=kill)
    return folder / "j.jsonl"


def test_the_header_has_short_hashes_of_what_the_trainer_reaches(tmp_path: Path) -> None:
    run(tmp_path)
    header = json.loads((tmp_path / "j.jsonl").read_bytes().splitlines()[0])
    assert header["code"].keys() == {"user_code.error", "user_code.training"}
    assert {len(hashed) for hashed in header["code"].values()} == {12}


def test_a_changed_function_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    known = len(read(journal))
    happened: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: happened.append(message)
        changed = LOOP.replace("SCALE = 1.0", "SCALE = 2.0")
        result = run(tmp_path, changed, on_event=happened.append)
    told = [event for event in happened if isinstance(event, TrainerChanged)]
    assert [warning.names for warning in told] == [["user_code.error"]]
    assert happened[0] is told[0]
    assert result.complete
    (change,) = result.code_changes
    assert (change.event, change.names) == (known + 1, ("user_code.error",))
    assert isinstance(read(journal)[known], Changed)
    assert f"From event {known + 1} of the journal on" in str(result)


def test_show_and_report_say_from_which_event_on_the_code_was_different(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = begun(tmp_path)
    with pytest.warns(TrainerChanged):
        run(tmp_path, LOOP.replace("- 2) * SCALE", "- 2.5) * SCALE"))
    for arguments in (["show", journal], ["report", journal, "-o", tmp_path / "report.html"]):
        with pytest.raises(SystemExit):
            main([str(argument) for argument in arguments])
    told = "From event 10 of the journal on"
    assert told in " ".join(capsys.readouterr().out.split())
    assert told in (tmp_path / "report.html").read_text()
    with pytest.raises(SystemExit):
        main(["show", str(journal), "--json"])
    (change,) = json.loads(capsys.readouterr().out)["code_changes"]
    assert (change["event"], change["names"]) == (10, ["user_code.error"])


def test_the_newest_code_is_what_the_next_resume_is_compared_with(tmp_path: Path) -> None:
    begun(tmp_path)
    other = LOOP.replace("SCALE = 1.0", "SCALE = 2.0")
    with pytest.warns(TrainerChanged):
        begun(tmp_path, other, events=12)
    begun(tmp_path, other, events=14)  # without a warning: it is the same
    with pytest.warns(TrainerChanged):
        result = run(tmp_path, LOOP)
    assert [change.names for change in result.code_changes] == [("user_code.error",)] * 2
    assert [change.event for change in result.code_changes] == [10, 15]


def test_what_is_new_and_what_is_not_used_any_more_is_named(tmp_path: Path) -> None:
    begun(tmp_path)
    with pytest.warns(TrainerChanged) as told:
        run(tmp_path, LOOP.replace("error(", "miss("))
    (warning,) = [one.message for one in told if isinstance(one.message, TrainerChanged)]
    assert warning.names == ["user_code.error", "user_code.miss", "user_code.training"]
    assert (warning.new, warning.unused) == (["user_code.miss"], ["user_code.error"])


def test_a_comment_and_an_upgraded_package_are_not_reported(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    text = journal.read_bytes()
    result = run(tmp_path, LOOP.replace("    while True", "    # for ever\n    while True"))
    assert result.complete
    assert result.code_changes == []
    assert journal.read_bytes().startswith(text)


def test_the_digest_does_not_know_of_it(tmp_path: Path) -> None:
    undisturbed = run(tmp_path, journal=None).digest
    begun(tmp_path)
    with pytest.warns(TrainerChanged):
        result = run(tmp_path, LOOP.replace("SCALE = 1.0", "SCALE = 1"))  # the same losses
    assert result.digest == undisturbed


def test_what_is_found_whole_in_the_journal_stays_and_is_said_to_be_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path)
    assert not first.nothing_trained
    assert "nothing was trained" not in str(first)
    text = (tmp_path / "j.jsonl").read_bytes()
    again = run(tmp_path)
    assert again.nothing_trained
    assert f"Everything was in the journal {tmp_path / 'j.jsonl'}: nothing was trained" in str(
        again
    )
    with pytest.warns(TrainerChanged):
        changed = run(tmp_path, LOOP.replace("- 2) * SCALE", "- 3) * SCALE"))
    assert (changed.nothing_trained, changed.code_changes) == (True, [])
    assert (tmp_path / "j.jsonl").read_bytes() == text


def test_fresh_starts_again_and_keeps_the_old_journal_with_its_states(tmp_path: Path) -> None:
    journal, first = tmp_path / "j.jsonl", run(tmp_path)
    text = journal.read_bytes()
    states = sorted(path.name for path in (tmp_path / "j.jsonl.states").iterdir())
    other = LOOP.replace("SCALE = 1.0", "SCALE = 2.0")
    (tmp_path / "j.jsonl.old-1").write_text("something else")
    result = run(tmp_path, other, fresh=True)
    assert not result.nothing_trained
    assert result.old_journal == str(tmp_path / "j.jsonl.old-2")
    assert "is now" in str(result)
    assert (tmp_path / "j.jsonl.old-1").read_text() == "something else"
    assert (tmp_path / "j.jsonl.old-2").read_bytes() == text
    assert sorted(p.name for p in (tmp_path / "j.jsonl.old-2.states").iterdir()) == states
    assert result.digest != first.digest
    with pytest.warns(TrainerChanged):  # and it can be resumed
        assert run(tmp_path, other, journal=tmp_path / "j.jsonl.old-2").digest == first.digest
    assert run(tmp_path, other, fresh=True).old_journal == str(tmp_path / "j.jsonl.old-3")


def test_fresh_without_an_old_journal_is_a_beginning(tmp_path: Path) -> None:
    result = run(tmp_path, fresh=True)
    assert (result.complete, result.old_journal) == (True, None)
    assert run(tmp_path, journal=None, fresh=True).complete


def test_states_in_a_folder_of_their_own_are_kept_too(tmp_path: Path) -> None:
    for fresh in (False, True):
        run(tmp_path, checkpoints=tmp_path / "states", fresh=fresh)
    kept = sorted(path.name.partition("-")[0] for path in (tmp_path / "states").iterdir())
    assert kept == ["j.jsonl", "j.jsonl.old"]


def test_a_file_that_is_not_a_journal_or_that_is_in_use_is_not_renamed(tmp_path: Path) -> None:
    (tmp_path / "j.jsonl").write_text("my,data\n1,2\n")
    with pytest.raises(NotAJournal):
        run(tmp_path, fresh=True)
    assert (tmp_path / "j.jsonl").read_text() == "my,data\n1,2\n"
    (tmp_path / "j.jsonl").unlink()
    run(tmp_path)
    with held(tmp_path / "j.jsonl"), pytest.raises(JournalLocked):
        run(tmp_path, fresh=True)
    assert sorted(path.name for path in tmp_path.glob("j.jsonl*"))[:2] == [
        "j.jsonl",
        "j.jsonl.states",
    ]


def test_a_bug_that_was_fixed_does_not_come_back_from_the_journal_in_silence(
    tmp_path: Path,
) -> None:
    with pytest.raises(AllArmsFailed) as failed:
        run(tmp_path, WRONG)
    assert (failed.value.changed, failed.value.journal) == ([], None)
    for _ in range(2):  # each time, because nothing was trained by the code as it is now
        with pytest.raises(AllArmsFailed) as failed, pytest.warns(TrainerChanged):
            run(tmp_path)
        assert failed.value.changed == ["user_code.error"]
        assert failed.value.journal == str(tmp_path / "j.jsonl")
        assert "fresh=True" in str(failed.value)
        assert "nothing was trained" in str(failed.value)
    assert run(tmp_path, fresh=True).complete


def test_headers_without_hashes_are_not_compared(tmp_path: Path) -> None:
    opened = read(begun(tmp_path))[0]
    assert isinstance(opened, Opened)
    journal = tmp_path / "old.jsonl"
    with Journal(journal, replace(opened, code={})):
        pass
    assert b'"code"' not in journal.read_bytes()
    result = run(tmp_path, LOOP.replace("SCALE = 1.0", "SCALE = 2.0"), journal=journal)
    assert (result.complete, result.code_changes) == (True, [])


def test_a_program_whose_file_has_changed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text("echo $1\n")
    words = ["tune", "--arms", "2", "--budget", "4", "--param", "x=uniform:0:1", "--journal", "j"]
    program = ["--", "sh", "train.sh", "{x}"]

    def tune(*options: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main([*words, *options, *program])
        assert ended.value.code == 0
        told = capsys.readouterr()
        return " ".join((told.out + told.err).split())

    tune()
    assert "nothing was trained" in tune()
    assert "nothing was trained" in tune("--json")
    Path("train.sh").write_text("echo 1$1\n")
    said = tune()
    assert "the code has changed" in said
    assert "train.sh" in said
    assert "--fresh" in said
    said = tune("--fresh")
    assert "j.old-1" in said
    assert "changed" not in said
    with pytest.raises(SystemExit) as ended:
        main(["resume", "j"])  # which does not start again
    assert ended.value.code == 0
    assert "nothing was trained" in " ".join(capsys.readouterr().out.split())
    assert not Path("j.old-2").exists()


def test_a_script_that_is_edited_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "tune.py"
    text = f"""
from lastarm import LogUniform, search
{LOOP}
print(search(training, {{"step": LogUniform(0.001, 1.0)}}, arms=4, budget=16, journal="j.jsonl"))
"""

    def ran(source: str) -> subprocess.CompletedProcess[str]:
        script.write_text(source)
        command = [sys.executable, str(script)]
        return subprocess.run(
            command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=True
        )

    assert "TrainerChanged" not in ran(text).stderr
    assert "nothing was trained" in ran(f"# a comment\n{text}").stdout
    ended = ran(text.replace("SCALE = 1.0", "SCALE = 3.0"))
    assert ended.stderr.count("TrainerChanged: the code has changed") == 1
    assert "__main__.error" in ended.stderr
