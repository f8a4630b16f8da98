"""The one place where wording is checked: texts that people read most, in golden_texts.txt.

Other tests check the class of an error and the values that it carries. If a text has changed for
the better, write the file anew and read the difference:

    python -m tests.test_golden_texts
"""

from __future__ import annotations

import ast
import importlib
import io
import math
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import lastarm
from lastarm import (
    Choice,
    Configs,
    Grid,
    HorizonHalving,
    Integer,
    LogUniform,
    Result,
    SuccessiveHalving,
    Uniform,
    search,
)
from lastarm import errors as e
from lastarm.batched.protocol import SomeFailed
from lastarm.checkpoints.folder import NeedsItsTrainer, StateNotRead
from lastarm.cli import display, main
from lastarm.events import Closed, Pull
from lastarm.journal import read
from lastarm.runners.performer import ConfigNotLoaded
from lastarm.sklearn.halving_search import (
    AllFitsFailed,
    FewConfigs,
    SearchStopped,
    SomeFitsFailed,
)
from lastarm.trainers.functions import Functions, NoState
from lastarm.trainers.generators import BadYield
from lastarm.trainers.losses import observation
from lastarm.trainers.programs import Program, ProgramFailed, UnsafeArchive
from lastarm.trainers.reporting import BadReport
from lastarm.trainers.reporting.loops import DropIgnored

GOLDEN = Path(__file__).with_name("golden_texts.txt")
JOURNALS = Path(__file__).parent / "fixtures" / "journals_0_1"
JOURNAL = Path("tune.jsonl")
FULL = OSError(28, "No space left on device")


def trainer(config: Mapping[str, Any]) -> Any:
    while True:
        yield config["x"]


SPACE = {"x": Uniform(0, 1)}
tuned = partial(search, trainer, SPACE)


# One example of each class of error -------------------------------------------------------------

ERRORS: dict[type[Exception], Callable[[], Any]] = {
    e.LastarmError: lambda: e.LastarmError("the root of the tree"),
    e.LastarmWarning: lambda: e.LastarmWarning("the root of the warnings"),
    e.InvalidArgument: lambda: SuccessiveHalving(arms=8, budget=1.5),  # type: ignore[arg-type]
    e.UnknownArgument: lambda: search(trainer, SPACE, **{"n_trials": 64}),  # type: ignore[arg-type]
    e.BudgetTooSmall: lambda: SuccessiveHalving(arms=64, budget=100),
    e.NotAsked: lambda: SuccessiveHalving(arms=2, budget=8).tell(e_loss()),
    e.BadLoss: lambda: observation({"accuracy": 0.9}),
    e.MetricsTooLarge: lambda: observation({"loss": 0.5, "text": "x" * 2**20}, arm=3),
    e.AllArmsFailed: lambda: e.AllArmsFailed({0: "ValueError: no", 1: "its loss became nan"}),
    e.ArmRaised: lambda: e.ArmRaised(3, 9, "Traceback: …\nValueError: no\n"),
    e.EndedEarly: lambda: e.EndedEarly(3, 7, 9),
    e.LoopsLeft: lambda: e.LoopsLeft("train", 2),
    e.Stuck: lambda: e.Stuck("the search cannot continue"),
    e.WorkersNotStarted: lambda: e.WorkersNotStarted("no worker could start", "(its output)"),
    e.EngineNotStarted: lambda: e.EngineNotStarted("Ray", "OSError: no", "Check its folder"),
    e.ClusterLost: lambda: e.ClusterLost("the cluster is gone"),
    e.JournalError: lambda: tuned(arms=2, budget=8, journal=Path("/")),
    e.JournalNotRead: lambda: read(Path("missing.jsonl")),
    e.NotAJournal: lambda: e.NotAJournal(Path("data.csv"), "no line of it is one of a journal's"),
    e.JournalDamaged: lambda: e.JournalDamaged(JOURNAL, 7, "it is not the line that was written"),
    e.ImpossibleValue: lambda: Result.of([Pull(arm=10**30, upto=1)]),
    e.OtherFormat: lambda: e.OtherFormat(JOURNAL, 2, 1),
    e.JournalLocked: lambda: e.JournalLocked(JOURNAL, "process 4711 on this machine"),
    e.JournalNotWritten: lambda: e.JournalNotWritten(JOURNAL, FULL),
    e.NotOwnFile: lambda: e.NotOwnFile(Path("search.jsonl.lock"), "it is another user's"),
    e.KeyNotSafe: lambda: e.KeyNotSafe(Path("key"), "it belongs to another user"),
    e.NothingSealed: lambda: e.NothingSealed(JOURNAL, "key: Read-only file system"),
    e.StatesNotTrusted: lambda: e.StatesNotTrusted(Path("search.jsonl.states")),
    e.TrainerChanged: lambda: e.TrainerChanged(
        JOURNAL, ["train.loss", "train.step"], ["train.step"]
    ),
    e.StateNotLoaded: lambda: e.StateNotLoaded(3, "its file is missing", "Train it again"),
    e.JournalRepaired: lambda: e.JournalRepaired(JOURNAL, 57),
    e.Unencrypted: lambda: e.Unencrypted("192.0.2.7"),
    e.OtherSecret: lambda: e.OtherSecret(JOURNAL, ["tune.py", "--api-key", "***"]),
    e.CheckpointNotWritten: lambda: e.CheckpointNotWritten(Path("arm-3-at-9.state"), FULL),
    e.TemporaryNotWritten: lambda: e.TemporaryNotWritten(Path("/tmp"), FULL),
    e.CheckpointLost: lambda: e.CheckpointLost("it is not what was saved"),
    e.FolderNotSeen: lambda: e.FolderNotSeen(Path("tune.jsonl.states")),
    e.EarlyStoppingOff: lambda: e.EarlyStoppingOff(
        "LGBMClassifier", {"n_iter_no_change": 9}, True
    ),
    e.FittedByRows: lambda: e.FittedByRows("SVC"),
    e.NoTestLoss: lambda: e.NoTestLoss("ValueError: no"),
    e.CannotBeStacked: lambda: e.CannotBeStacked("RuntimeError: vmap: called .item()"),
    e.StateNotSaved: lambda: e.StateNotSaved(3, "TypeError: cannot pickle a socket"),
    e.CheckpointReplaced: lambda: e.CheckpointReplaced(Path("arm-3-at-9.state"), 3),
    e.OtherSearch: lambda: e.OtherSearch(JOURNAL, [("seed", 0, 1), ("trainer.data", "a", "b")]),
    e.OtherVersion: lambda: e.OtherVersion(JOURNAL, "policy", "hyperband", 1, 2, "0.1.0"),
    e.ReplayDiverged: lambda: e.ReplayDiverged(7, Closed(3, 9), "does not end here"),
    e.DrawnOtherwise: lambda: e.DrawnOtherwise(3, {"x": 0.5}),
    AllFitsFailed: lambda: AllFitsFailed({0: "ValueError: no", 1: "ValueError: no"}),
    SomeFitsFailed: lambda: SomeFitsFailed({0: "ValueError: no"}, configs=3, error_score=math.nan),
    FewConfigs: lambda: FewConfigs(there=8, asked=32),
    SearchStopped: lambda: SearchStopped(pulls=40, budget=48),
    BadYield: lambda: BadYield("train", "yielded a text"),
    BadReport: lambda: BadReport("train", "gave no state"),
    DropIgnored: lambda: DropIgnored("train"),
    ConfigNotLoaded: lambda: ConfigNotLoaded("ValueError: no"),
    NoState: lambda: _trained(Functions(lambda config, state, pulls: None, abs)),
    ProgramFailed: lambda: _trained(Program(["false"])),
    SomeFailed: lambda: SomeFailed({0: ValueError("no")}),
    NeedsItsTrainer: lambda: NeedsItsTrainer("its trainer has written it by its own `save`"),
    StateNotRead: lambda: StateNotRead("Permission denied"),
    UnsafeArchive: lambda: UnsafeArchive("../outside leads outside"),
}


def e_loss() -> Any:
    return lastarm.Loss(Pull(arm=0, upto=1), 0.5)


def _trained(trainer: Any) -> Any:
    return trainer.train(trainer.start({}, seed=0), 1)


# What users meet most ---------------------------------------------------------------------------

REFUSALS: dict[str, Callable[[], Any]] = {
    "a policy that is misspelled": lambda: tuned(policy="ahsa", arms=8, budget=64),
    "a class in place of a policy": lambda: tuned(policy=SuccessiveHalving),  # type: ignore[arg-type]
    "numbers beside a policy": lambda: tuned(policy=SuccessiveHalving(8, 64), budget=100),
    "no budget": lambda: tuned(arms=8),
    "an argument that the policy does not take": lambda: tuned(
        policy="uniform", arms=8, budget=64, max_pulls=9
    ),
    "a negative seed": lambda: tuned(arms=8, budget=64, seed=-1),
    "seconds that are a text": lambda: tuned(arms=8, budget=64, seconds="3"),  # type: ignore[arg-type]
    "a runner that is misspelled": lambda: tuned(arms=8, budget=64, runner="proceses"),
    "no worker": lambda: tuned(arms=8, budget=64, runner="processes", workers=0),
    "a journal that is a number": lambda: tuned(arms=8, budget=64, journal=5),  # type: ignore[arg-type]
    "recommend": lambda: tuned(arms=8, budget=64, recommend="first"),  # type: ignore[arg-type]
    "a number in place of a trainer": lambda: search(5, SPACE, arms=8, budget=64),  # type: ignore[arg-type]
    "a number in place of a space": lambda: search(trainer, 5, arms=8, budget=64),  # type: ignore[arg-type]
    "more arms than configs": lambda: search(trainer, {"x": [1, 2]}, arms=8, budget=64),
    "an empty choice": Choice,
    "the ends of an interval": lambda: Uniform(1, 0),
    "an end of a logarithmic scale": lambda: LogUniform(0, 1),
    "an end of an integer": lambda: Integer(1, 2.5),  # type: ignore[arg-type]
    "a grid without end": lambda: Grid(SPACE),
    "a config without its names": lambda: tuned(arms=8, budget=64, include=[{"y": 1}]),
    "a lambda in a config": lambda: search(
        trainer, Configs([{"x": 1, "of": lambda: 0}]), arms=1, budget=1, journal=JOURNAL
    ),
    "eta of 1": lambda: HorizonHalving(arms=8, budget=64, max_pulls=9, eta=1),
}

COMMANDS = {
    "lastarm": [],
    "lastarm plan": ["plan", "--arms", "64", "--budget", "652", "--max-pulls", "51"],
    "lastarm plan, with a budget that is too small": ["plan", "--arms", "64", "--budget", "3"],
    "lastarm tune, without anything to tune": ["tune"],
    "lastarm show, of no journal": ["show", "missing.jsonl"],
    "lastarm show, of a search with failures": ["show", "failures.jsonl", "--top", "3"],
    "lastarm show, of a search that was extended": ["show", "extended.jsonl", "--top", "3"],
    "lastarm show, of a search that was stopped": ["show", "generator-killed.jsonl", "--top", "3"],
    "lastarm resume, of a search that was begun in Python": ["resume", "asha-killed.jsonl"],
    "lastarm resume, of a complete search that was begun in Python": ["resume", "asha.jsonl"],
    "lastarm show, of another file": ["show", "curves.csv"],
    "lastarm replay": ["replay", "curves.csv", "--budget", "24"],
}

CURVES = "\n".join(",".join(f"{arm / 8 + 1 / level}" for level in range(1, 9)) for arm in range(4))


def _refused(act: Callable[[], Any]) -> str:
    """What is said by the error that this raises, or that it makes."""
    try:
        made = act()
    except e.LastarmError as error:
        made = error
    assert isinstance(made, Exception), made
    return f"{type(made).__name__}: {made}"


def _printed(arguments: list[str]) -> str:
    """What the command prints, with its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(arguments)
    lines = [line.rstrip() for line in (out.getvalue() + err.getvalue()).splitlines()]
    return "\n".join([*lines, f"(exit code {ended.value.code})"])


def _result() -> str:
    return str(Result.of(read(JOURNALS / "successive-halving.jsonl")))


TEXTS: dict[str, Callable[[], str]] = {
    **{kind.__name__: partial(_refused, make) for kind, make in ERRORS.items()},
    **{name: partial(_refused, make) for name, make in REFUSALS.items()},
    **{name: partial(_printed, arguments) for name, arguments in COMMANDS.items()},
    "the plan of successive halving": lambda: str(SuccessiveHalving(64, 652).plan()),
    "the plan of horizon halving": lambda: str(HorizonHalving(64, 652, 51).plan()),
    "a result": _result,
}


def _made(name: str, folder: Path) -> str:
    """The text, as it is in this folder."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        with (
            patch.object(sys, "argv", ["golden"]),
            patch.object(display.console, "_width", 80),  # however wide this terminal is
            patch.dict(os.environ, COLUMNS="80"),
        ):
            return re.sub(r" at 0x[0-9a-f]+", " at 0x…", TEXTS[name]()).strip("\n")
    finally:
        os.chdir(before)


def _furnished(folder: Path) -> Path:
    """A folder with a few journals and a table of curves."""
    for journal in JOURNALS.glob("*.jsonl"):
        shutil.copyfile(journal, folder / journal.name)
    (folder / "curves.csv").write_text(CURVES)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _furnished(tmp_path_factory.mktemp("golden"))


def _golden() -> dict[str, str]:
    sections = GOLDEN.read_text(encoding="utf-8").split("\n== ")[1:]
    return {name: text.strip("\n") for name, _, text in (s.partition(" ==\n") for s in sections)}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_as_it_was(name: str, folder: Path) -> None:
    assert _made(name, folder) == _golden().get(name), "python -m tests.test_golden_texts"


def test_the_file_has_no_other_texts() -> None:
    assert list(_golden()) == list(TEXTS), "python -m tests.test_golden_texts"


def test_every_class_of_error_has_an_example() -> None:
    bases: dict[str, set[str]] = {}
    for file in Path(lastarm.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    found, known = set[str](), {"LastarmError", "LastarmWarning"}
    while found != known:
        found = known
        known = found | {name for name, parents in bases.items() if parents & found}
    assert {kind.__name__ for kind in ERRORS} == known


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_is_the_same_in_another_process(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        error = ERRORS[kind]()
    except e.LastarmError as raised:
        error = raised
    again = pickle.loads(pickle.dumps(error))
    assert type(error) is type(again) is kind
    assert (str(again), repr(vars(again))) == (str(error), repr(vars(error)))


def write() -> None:
    """Write the file anew."""
    with tempfile.TemporaryDirectory() as place:
        folder = _furnished(Path(place))
        told = "".join(f"\n== {name} ==\n{_made(name, folder)}\n" for name in TEXTS)
    GOLDEN.write_text(f"Written by tests/test_golden_texts.py.\n{told}", encoding="utf-8")


if __name__ == "__main__":
    importlib.import_module("tests.test_golden_texts").write()  # under the name that tests have
