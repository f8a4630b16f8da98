"""Journals of before open, resume, show, report and export with the same digests.

They are in tests/fixtures/journals_0_1 and, for what version 0.1.0 did not have, in journals_0_2;
`searches.py` there says how they were made.
"""

import csv
import io
import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lastarm import Result
from lastarm.cli import main
from lastarm.errors import CheckpointReplaced, OtherVersion
from lastarm.journal import read
from tests.fixtures.journals_0_1 import searches
from tests.fixtures.journals_0_2 import searches as later

FOLDERS = [Path(str(module.__file__)).parent for module in (searches, later)]
SEARCHES = searches.SEARCHES | later.SEARCHES
EXPECTED: dict[str, dict[str, Any]] = {}
FIXTURES: dict[str, Path] = {}  # the journal of each name
for folder in FOLDERS:
    of_folder = json.loads((folder / "expected.json").read_text())
    EXPECTED |= of_folder
    FIXTURES |= {name: folder / f"{name}.jsonl" for name in of_folder}
NEW_COLUMNS = ("value", "pulls so far", "metric_depth")
# Boosters that draw rows or features have other trees since they live on between pulls.
TRAINED_OTHERWISE_NOW = ("lightgbm-draws",)
# Half of the arms of horizon-halving go on by where their curves lead since version 2.
DECIDED_OTHERWISE_NOW = (
    "horizon-halving",
    "horizon-halving-killed",
    "hyperband",
    "hyperband-killed",
    "own-seed",
    "restarts-horizon",
    "restarts-horizon-killed",
    "restarts-hyperband",
    "restarts-hyperband-killed",
)
TOLD = ("digest", "arm", "level", "loss", "complete", "pulls", "observations")

# States of classes that have another name now are trained again, and a warning says so.
MAY_BE_UNREADABLE = pytest.mark.filterwarnings("ignore::lastarm.errors.CheckpointReplaced")


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def copied(name: str, folder: Path) -> Path:
    """A journal to write to, with its states where they are kept."""
    journal = folder / f"{name}.jsonl"
    shutil.copyfile(FIXTURES[name], journal)
    if (states := FIXTURES[name].with_suffix(".jsonl.states")).exists():
        shutil.copytree(states, folder / states.name, copy_function=shutil.copyfile)
        for state in (folder / states.name).iterdir():
            state.chmod(0o600)  # whatever the umask of the checkout
    return journal


def without_new_columns(table: str) -> str:
    """A table of arms as version 0.1 wrote it: without figures and other metrics."""
    rows = list(csv.reader(io.StringIO(table)))
    old = [place for place, name in enumerate(rows[0]) if name not in NEW_COLUMNS]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerows([row[place] for place in old] for row in rows)
    return written.getvalue()


def resumed(journal: Path) -> Result:
    """The search, after the call that began it was made again."""
    name = journal.stem.removesuffix("-killed")
    if name == "tune":
        assert run("resume", journal, "--json", "--trust") == 0
    else:
        SEARCHES[name](journal)
    return Result.of(read(journal))


@pytest.mark.parametrize("name", EXPECTED)
def test_it_shows_reports_and_exports_what_it_did(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal, expected = FIXTURES[name], EXPECTED[name]
    assert run("show", journal, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {key: told[key] for key in TOLD} == {key: expected[key] for key in TOLD}
    assert run("show", journal) == 0
    assert run("report", journal, "-o", tmp_path / "report.html") == 0
    figure = Result.of(read(journal)).metric.figure(expected["loss"])
    assert f'"said":"{figure}"' in (tmp_path / "report.html").read_text()
    assert run("export", journal, "-o", tmp_path / "arms.csv") == 0
    table = (tmp_path / "arms.csv").read_text(encoding="utf-8")
    if name.removesuffix("-killed") in searches.SEARCHES:
        table = without_new_columns(table)
    assert sha256(table.encode()).hexdigest() == expected["arms"]


@MAY_BE_UNREADABLE
@pytest.mark.parametrize(
    "name",
    [name for name in EXPECTED if name not in TRAINED_OTHERWISE_NOW + DECIDED_OTHERWISE_NOW],
)
def test_it_resumes_to_the_same_digest(name: str, tmp_path: Path) -> None:
    there, journal = os.getcwd(), copied(name, tmp_path)
    expected = EXPECTED[name].get("resumed", EXPECTED[name]["digest"])
    try:
        result = resumed(journal)
    finally:
        os.chdir(there)
    assert (result.digest, result.complete) == (expected, True)
    if "resumed" not in EXPECTED[name]:  # there was nothing left to do
        assert journal.read_bytes() == FIXTURES[name].read_bytes()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        *((name, "trainer") for name in TRAINED_OTHERWISE_NOW),
        *((name, "policy") for name in DECIDED_OTHERWISE_NOW),
    ],
)
def test_it_is_refused_by_name_where_losses_or_pulls_are_others_now(
    name: str, part: str, tmp_path: Path
) -> None:
    journal = copied(name, tmp_path)
    with pytest.raises(OtherVersion) as error:
        resumed(journal)
    assert (error.value.part, error.value.written, error.value.known) == (part, 1, 2)
    assert journal.read_bytes() == FIXTURES[name].read_bytes()


def test_it_goes_on_from_its_states(tmp_path: Path) -> None:
    result = resumed(copied("weighted-killed", tmp_path))
    assert (result.digest, result.spent.repeated) == (EXPECTED["weighted"]["digest"], 0)


def test_states_of_a_class_that_is_gone_are_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(searches, "Weights")
    with pytest.warns(CheckpointReplaced):
        result = resumed(copied("weighted-killed", tmp_path))
    assert result.digest == EXPECTED["weighted"]["digest"]
    assert result.spent.repeated > 0


@MAY_BE_UNREADABLE
@pytest.mark.parametrize("name", ["successive-halving", "extended", "sampler", "sampler-values"])
def test_cut_off_after_any_line_it_comes_to_the_same_end(name: str, tmp_path: Path) -> None:
    journal = tmp_path / f"{name}.jsonl"
    lines = FIXTURES[name].read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines), 5):
        shutil.rmtree(f"{journal}.states", ignore_errors=True)
        journal.write_bytes(b"".join(lines[:kept]))
        assert resumed(journal).digest == EXPECTED[name]["digest"], kept
