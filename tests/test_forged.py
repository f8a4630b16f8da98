"""Journals that read back whole, and hold what no search has: told, or refused in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState

from lastarm import Result
from lastarm.cli import main
from lastarm.errors import ImpossibleValue, JournalDamaged, JournalError, JournalNotRead
from lastarm.events import Closed, Loss, Pull
from lastarm.journal import read
from tests.forged import DIGITS, HUGE, REFUSED, TOLD, forge, honest, nested
from tests.refusals import raised

COMMANDS = [
    ("show",),
    ("show", "--json"),
    ("report", "-o", "report.html"),
    ("export", "-o", "arms.csv"),
    ("export", "-o", "events.csv"),
]


def said(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, printed.out, printed.err


def drawn(result: Result) -> None:
    """Every figure, and what a notebook shows."""
    for name in ("curves", "rungs", "spending", "importance"):
        getattr(result.plot, name)()
        plt.gcf().draw_without_rendering()
    result.plot.policies({"other": result}, name="own")
    plt.gcf().draw_without_rendering()
    plt.close("all")
    assert len(result._repr_html_()) < 10**6
    assert len(str(result)) < 10**5


@pytest.mark.parametrize("name", TOLD)
def test_what_is_odd_is_told_by_every_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    journal = forge(tmp_path / "forged.jsonl", TOLD[name])
    for command, *options in COMMANDS:
        code, out, err = said(capsys, command, journal, *options)
        assert (code, err) == (0, ""), command
        assert out
    assert said(capsys, "resume", journal)[0] in (0, 2)
    result = Result.of(read(journal))
    drawn(result)
    assert len(result.to_dataframe()) == len(result.curves)
    trials = len(result.curves.keys() | result.failures.keys())
    assert len(result.to_optuna().trials) == trials
    if 3 in result.rungs and result.curves:
        assert len(result.to_optuna(level=3).trials) == trials


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_search_has_is_refused_by_every_command_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines, line, impossible = REFUSED[name]
    journal = forge(tmp_path / "forged.jsonl", lines)
    for command, *options in [*COMMANDS, ("export", "--optuna", "sqlite:///study.db")]:
        code, out, err = said(capsys, command, journal, *options)
        assert (code, out, err.count("\n")) == (3, "", 1), command
        assert f"line {line}" in err
        assert len(err) < 500
    kind, fields = (ImpossibleValue, {"name": impossible}) if impossible else (JournalDamaged, {})
    with raised(kind, line=line, **fields):
        Result.of(read(journal))
    assert os.listdir(tmp_path) == ["forged.jsonl"]


absurd = st.one_of(
    st.integers(),
    st.sampled_from([HUGE, -HUGE, DIGITS, 2**53, 2**63, True, None, "", "nan", "-inf", "\ud800"]),
    st.floats(),
    st.integers(1, 900).map(nested),
    st.recursive(
        st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
)


def places(fields: Any, *before: Any) -> list[tuple[Any, ...]]:
    inner = fields.items() if isinstance(fields, dict) else ()
    return [(*before, name) for name, _ in inner] + [
        place for name, value in inner for place in places(value, *before, name)
    ]


PLACES = [place for line, fields in enumerate(honest()) for place in places(fields, line)]


@settings(
    deadline=None,
    max_examples=15,  # more were tried when this was written
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(claims=st.lists(st.tuples(st.sampled_from(PLACES), absurd), min_size=1, max_size=4))
def test_whatever_a_journal_claims_there_is_no_traceback(
    claims: list[tuple[tuple[Any, ...], Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = honest()
    for (*way, last), value in claims:
        fields: Any = lines
        for name in way:
            fields = fields[name] if not isinstance(fields, dict) or name in fields else {}
        if isinstance(fields, dict):
            fields[last] = value
    journal = forge(tmp_path / "forged.jsonl", deepcopy(lines))
    for command, *options in COMMANDS:
        files = [tmp_path / option if "." in option else option for option in options]
        code, _, err = said(capsys, command, journal, *files)
        assert code in (0, 3)
        assert err.count("\n") == (code == 3), err
    try:
        result = Result.of(read(journal))
    except JournalError:
        return
    drawn(result)
    result.to_optuna()


@pytest.mark.parametrize(
    "forged", [{"trained": DIGITS}, {"train_seconds": 1e308}, {"attempt": 10**30}]
)
def test_a_forged_journal_is_resumed_to_the_same_answer(
    forged: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("curves.npz", losses=np.random.default_rng(0).random((4, 12)))
    replay = ("replay", "curves.npz", "--budget", 24, "--journal", "search.jsonl", "--audit")
    code, answer, _ = said(capsys, *replay)
    lines = [json.loads(line) for line in Path("search.jsonl").read_text().splitlines()]
    for line in lines:
        for name in ("durable", "after", "sum"):
            del line[name]
        if line["event"] == "loss":
            line.update(forged)
    forge(tmp_path / "search.jsonl", lines)
    resumed = said(capsys, *replay)
    assert (code, resumed[0]) == (0, 0)
    assert answer.partition("Spent")[0] == resumed[1].partition("Spent")[0]


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    "make",
    [pipe, lambda path: Path("/dev/zero"), lambda path: path.parent, lambda path: Path(".")],
    ids=["a pipe", "a device", "a folder", "here"],
)
def test_what_is_no_file_is_refused_at_once(
    make: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("curves.npz", losses=[[0.5]])
    journal = make(tmp_path / "search.jsonl")
    for command, *options in [*COMMANDS, ("resume",), ("show", "--watch")]:
        code, out, err = said(capsys, command, journal, *options)
        assert (code, out, err.count("\n")) == (3, "", 1)
    with raised(JournalNotRead, path=Path(journal)):
        read(journal)
    code, out, err = said(capsys, "replay", "curves.npz", "--budget", 1, "--journal", journal)
    assert (code, out, err.count("\n")) == (3, "", 1)


def test_a_pipe_beside_a_journal_holds_nobody_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = forge(tmp_path / "search.jsonl", honest()[:5])
    pipe(tmp_path / "search.jsonl.lock")
    code, out, _ = said(capsys, "show", journal)
    assert code == 0
    assert "stopped" in out


def test_a_loss_that_is_not_finite_at_a_level_is_a_trial_that_failed_there() -> None:
    pulls = [Pull(arm, level) for level in (1, 2) for arm in (0, 1)]
    losses = [
        Loss(pull, value) for pull, value in zip(pulls, [np.nan, 0.5, 0.25, 0.4], strict=True)
    ]
    study = Result.of([*losses, Closed(0, 2)]).to_optuna(level=1)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert study.trials[0].user_attrs["error"] == "its loss became nan"
    assert study.trials[1].value == 0.5


def test_a_study_of_that_name_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = forge(tmp_path / "mine.jsonl", honest())
    export = ("export", journal, "--optuna", f"sqlite:///{tmp_path}/study.db")
    assert said(capsys, *export)[0] == 0
    code, _, err = said(capsys, *export)
    assert code == 2
    assert "'mine'" in err
