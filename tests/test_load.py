"""The winner, later and elsewhere: what `load` reads was searched for by another process."""

import importlib
import json
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

import lastarm
from lastarm import (
    Checkpoints,
    Choice,
    LogUniform,
    Result,
    SuccessiveHalving,
    Uniform,
    load,
    search,
)
from lastarm.cli import main
from lastarm.errors import InvalidArgument, JournalNotRead, StateNotLoaded
from lastarm.events import Loss
from lastarm.journal import read
from lastarm.journal.lock import is_held
from lastarm.journal.secret import KEY_FILE
from lastarm.testing.runners import Drifting
from lastarm.trainers import RecordedCurves
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.programs import ArmFolder
from tests.refusals import refused, warned

SCRIPT = '''
import json, pickle, signal, sys
from pathlib import Path

import numpy as np

from lastarm import Choice, Functions, Loss, Program, Uniform, search
from lastarm.batched import OneByOne


class Net:
    """A class of the script that is run."""

    def __init__(self, x, y=0.0):
        self.x, self.y = x, y

    def __eq__(self, other):
        return isinstance(other, Net) and (self.x, self.y) == (other.x, other.y)


class Descends:
    """Its states are of a class of the script."""

    def start(self, config, seed):
        return Net(config["x"])

    def train(self, state, pulls):
        state.x /= 2**pulls
        state.y += pulls
        return state

    def loss(self, state):
        return abs(state.x - 0.01)  # which it passes by

    def test(self, state):
        return self.loss(state) + 1


class Saves(Descends):
    """It has a form of its own for a file, and gives the user a part of its state."""

    def save(self, state, path):
        Path(path).write_text(f"{state.x!r} {state.y!r}")

    def load(self, path):
        return Net(*map(float, Path(path).read_text().split()))

    def unwrap(self, state):
        return {"net": state}


class Arrays(Descends):
    """Its states are plain."""

    def start(self, config, seed):
        return {"x": np.full(3, config["x"]), "y": 0}

    def train(self, state, pulls):
        return {"x": state["x"] / 2**pulls, "y": state["y"] + pulls}

    def loss(self, state):
        return abs(float(state["x"][0]) - 0.01)


def generator(config, resume):
    x = config["x"] if resume is None else resume["x"]
    while True:
        x /= 2
        yield x, {"x": x, "sizes": config["sizes"]}


def forgets(config):
    while True:
        yield config["x"]


def halved(config, state, pulls):
    return (config["x"] if state is None else state) / 2**pulls


PAIR = (halved, abs)
ROOT = [sys.executable, "-c", """
import pathlib, sys
file = pathlib.Path(sys.argv[3], "x")
x = float(file.read_text()) if file.exists() else float(sys.argv[1])
file.write_text(repr(x / 2 ** int(sys.argv[2])))
print(file.read_text())
""", "{x}", "{pulls}", "{state}"]

SPACE = {"x": Uniform(0.1, 1.0), "sizes": Choice((4, 4), (8,))}
FORMS = {
    "arrays": (Arrays(), {}),
    "net": (Descends(), {}),
    "saves": (Saves(), {}),
    "generator": (generator, {}),
    "forgets": (forgets, {}),
    "functions": (PAIR, {}),
    "program": (Program(ROOT), {}),
    "batched": (OneByOne(Arrays()), {}),
    "maximized": (generator, {"maximize": True}),
    "maximized-program": (Program(ROOT), {"maximize": True}),
    "maximized-batched": (OneByOne(Arrays()), {"maximize": True}),
    "best": (Arrays(), {"recommend": "best"}),
    "elsewhere": (Arrays(), {"checkpoints": "elsewhere"}),
    "forgotten": (Arrays(), {"checkpoints": False}),
}


def told(result):
    names = ("arm", "level", "loss", "test_loss", "complete", "digest")
    return {name: getattr(result, name) for name in names}


def stop_after(losses):
    left = [losses]

    def on_event(event):
        left[0] -= isinstance(event, Loss)
        if left[0] == 0 and isinstance(event, Loss):
            signal.raise_signal(signal.SIGINT)

    return on_event


def run(name, trainer, budget=96, journal=None, **options):
    return search(
        trainer, SPACE, arms=8, budget=budget, journal=f"{journal or name}.jsonl", **options
    )


if __name__ == "__main__":
    answers = {}
    for name, (trainer, options) in FORMS.items():
        result = run(name, trainer, **options)
        answers[name] = told(result), result.config, repr(result.state)
        if name == "saves":
            assert result.state["net"].y == result.level
    for name, options in {"extended": {}, "extended-best": {"recommend": "best"}}.items():
        run(name, Arrays(), **options)
        result = run(name, Arrays(), budget=384, **options)
        answers[name] = told(result), result.config, repr(result.state)
    for name, options in {"stopped": {}, "stopped-best": {"recommend": "best"}}.items():
        result = run(name, Arrays(), on_event=stop_after(10), **options)
        assert not result.complete
        answers[name] = told(result), result.config, repr(result.state)
    Path("answers.pickle").write_bytes(pickle.dumps(answers))
'''
WITHOUT_TRAINER = (
    "arrays",
    "generator",
    "functions",
    "program",
    "batched",
    "maximized",
    "maximized-program",
    "maximized-batched",
    "best",
    "extended",
    "extended-best",
    "stopped",
    "stopped-best",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a script, in a process of its own, has searched with every form of trainer."""
    made: Path = tmp_path_factory.mktemp("searched")
    (made / "searched.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "searched.py"], cwd=made, check=True)
    return made


@pytest.fixture(scope="module")
def answers(folder: Path) -> Any:
    """What the searches found there."""
    return pickle.loads((folder / "answers.pickle").read_bytes())


@pytest.fixture
def script(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script, imported as a module."""
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("searched")
    del sys.modules["searched"]


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A journal with its states, to be changed."""

    def copy(name: str) -> Path:
        shutil.copy(folder / f"{name}.jsonl", tmp_path)
        states = folder / f"{name}.jsonl.states"
        shutil.copytree(states, tmp_path / states.name)
        return tmp_path / f"{name}.jsonl"

    return copy


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")
    }


def told(result: Result) -> dict[str, Any]:
    names = ("arm", "level", "loss", "test_loss", "complete", "digest")
    return {name: getattr(result, name) for name in names}


# What is loaded ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITHOUT_TRAINER)
def test_the_result_and_its_state_are_those_of_the_search(
    folder: Path, answers: Any, name: str
) -> None:
    before = files_of(folder)
    result = load(folder / f"{name}.jsonl")
    known, config, state = answers[name]
    assert told(result) == known
    assert dict(result.config or {}) | {"sizes": ()} == dict(config) | {"sizes": ()}
    assert list((result.config or {})["sizes"]) == list(config["sizes"])
    if isinstance(result.state, ArmFolder):
        x = float((Path(result.state) / "x").read_text())
        assert x == abs(result.loss or 0.0) == config["x"] / 2 ** (result.level or 0)
    else:
        assert repr(result.state) == state
    assert result.journal == str(folder / f"{name}.jsonl")
    assert files_of(folder) == before, "it is only read"


@pytest.mark.parametrize("name", ["best", "stopped-best", "extended-best"])
def test_the_best_state_is_not_the_latest(folder: Path, name: str) -> None:
    result = load(folder / f"{name}.jsonl")
    assert result.arm is not None
    assert result.level != result.curves[result.arm][-1][0], "so it is told from the latest"


def test_a_config_is_as_it_was_drawn_where_the_state_has_it(folder: Path, script: Any) -> None:
    for name in ("generator", "functions", "maximized"):
        assert isinstance((load(folder / f"{name}.jsonl").config or {})["sizes"], tuple)
    assert isinstance((load(folder / "arrays.jsonl").config or {})["sizes"], list)


def test_a_state_of_the_trainers_own_form_is_none_without_it(
    folder: Path, answers: Any, script: Any
) -> None:
    known, _, _ = answers["saves"]
    with warned(StateNotLoaded, arm=known["arm"]) as found:
        result = load(folder / "saves.jsonl")
    assert result.state is None
    assert told(result) == known
    assert "trainer=" in str(found[0])
    for trainer in (script.Saves(), script.Saves):
        with_it = load(folder / "saves.jsonl", trainer)
        net = with_it.state["net"]
        assert (net.y, script.Saves().loss(net)) == (with_it.level, with_it.loss)


def test_a_class_of_the_script_is_found_by_its_trainer(folder: Path, script: Any) -> None:
    with warned(StateNotLoaded) as found:
        assert load(folder / "net.jsonl").state is None
    assert "Net" in found[0].why
    assert "trainer=" in str(found[0])
    result = load(folder / "net.jsonl", trainer=script.Descends())
    assert type(result.state) is script.Net
    assert result.state.y == result.level


@pytest.mark.parametrize("name", [*WITHOUT_TRAINER[:8], "best"])
def test_the_trainer_may_be_given_where_it_is_not_needed(
    folder: Path, answers: Any, script: Any, name: str
) -> None:
    result = load(folder / f"{name}.jsonl", trainer=script.FORMS[name][0])
    assert told(result) == answers[name][0]
    assert isinstance(result.state, ArmFolder) or repr(result.state) == answers[name][2]


def test_another_kind_of_trainer_is_refused(folder: Path, script: Any) -> None:
    with refused("trainer", script.generator):
        load(folder / "arrays.jsonl", trainer=script.generator)
    with refused("trainer"):
        load(folder / "maximized.jsonl", trainer=script.Arrays())


def test_states_may_be_elsewhere_or_not_wanted(folder: Path, answers: Any) -> None:
    path = folder / "elsewhere.jsonl"
    with warned(StateNotLoaded) as found:
        assert load(path).state is None
    assert "checkpoints=" in str(found[0])
    for checkpoints in (folder / "elsewhere", Checkpoints(folder / "elsewhere")):
        result = load(path, checkpoints=checkpoints)
        assert repr(result.state) == answers["elsewhere"][2]
    assert load(path, checkpoints=False).state is None


@pytest.mark.parametrize("name", ["forgets", "forgotten"])
def test_a_state_that_was_never_saved_is_none_with_a_reason(
    folder: Path, answers: Any, name: str
) -> None:
    with warned(StateNotLoaded):
        result = load(folder / f"{name}.jsonl")
    assert (result.state, told(result)) == (None, answers[name][0])


def test_a_search_without_a_loss_has_no_winner_yet(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(
            Interrupts(), {"limit": Uniform(0, 1)}, arms=2, budget=4, journal=tmp_path / "j.jsonl"
        )
    result = load(tmp_path / "j.jsonl", trainer=Interrupts())
    assert (result.arm, result.state, result.complete) == (None, None, False)
    with refused(None):
        result.refit()


class Interrupts(Drifting):
    def train(self, state: Any, pulls: int) -> Any:
        raise KeyboardInterrupt


def test_what_is_not_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalNotRead):
        load(tmp_path / "missing.jsonl")
    with refused("journal", 3):
        load(3)  # type: ignore[arg-type]
    with refused("trust", "yes"):
        load(tmp_path / "missing.jsonl", trust="yes")  # type: ignore[arg-type]


def test_it_is_among_the_public_names() -> None:
    assert lastarm.load is load
    assert "load" in dir(lastarm)


# Under the rules of resuming ---------------------------------------------------------------------


def test_a_state_without_this_users_seal_is_loaded_only_if_it_is_trusted(
    folder: Path, answers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "another"))
    path = folder / "arrays.jsonl"
    with warned(StateNotLoaded) as found:
        assert load(path).state is None
    assert "trust=True" in str(found[0])
    assert repr(load(path, trust=True).state) == answers["arrays"][2]
    trusting = load(path, checkpoints=Checkpoints(trust=True))
    assert repr(trusting.state) == answers["arrays"][2]
    assert not (tmp_path / "another").exists(), "reading makes no secret"


@pytest.mark.parametrize("trust", [False, True])
def test_a_state_that_was_changed_is_not_loaded(
    copied: Callable[[str], Path], answers: Any, trust: bool
) -> None:
    path, (known, _, _) = copied("arrays"), answers["arrays"]
    state = Path(f"{path}.states") / f"arm-{known['arm']}-at-{known['level']}.state"
    content = state.read_bytes()
    state.write_bytes(pickle.dumps(print) + content[len(pickle.dumps(print)) :])
    with warned(StateNotLoaded):
        assert load(path, trust=trust).state is None


@pytest.mark.parametrize("trust", [False, True])
def test_a_state_that_others_may_have_written_is_not_loaded(
    copied: Callable[[str], Path], trust: bool
) -> None:
    path = copied("arrays")
    for state in Path(f"{path}.states").iterdir():
        state.chmod(0o666)
    with warned(StateNotLoaded):
        assert load(path, trust=trust).state is None


def test_a_state_of_its_trainers_form_is_not_loaded_where_others_may_write(
    copied: Callable[[str], Path], script: Any
) -> None:
    path = copied("saves")
    Path(f"{path}.states").chmod(0o777)
    with warned(StateNotLoaded):
        assert load(path, script.Saves()).state is None


@pytest.mark.parametrize("name", ["batched", "estimator", "tune"])
def test_journals_of_version_0_1_are_loaded(name: str, tmp_path: Path) -> None:
    made = Path(__file__).parent / "fixtures" / "journals_0_1" / f"{name}-killed.jsonl"
    shutil.copy(made, tmp_path)
    shutil.copytree(f"{made}.states", tmp_path / f"{made.name}.states")
    for state in (tmp_path / f"{made.name}.states").iterdir():
        state.chmod(0o600)
    result = load(tmp_path / made.name)
    assert result.state is not None
    assert not result.complete


# While it runs -----------------------------------------------------------------------------------

WAITS = """
import time
from pathlib import Path
from searched import Arrays, run

class Waits(Arrays):
    def loss(self, state):
        if state["y"] > 4:
            Path("waits").touch()
            while not Path("go").exists():
                time.sleep(0.01)
        return super().loss(state)

run("running", Waits())
"""


def test_a_running_search_is_read_by_another_process(folder: Path, script: Any) -> None:
    path = folder / "running.jsonl"
    with subprocess.Popen([sys.executable, "-c", WAITS], cwd=folder) as running:
        try:
            while not (folder / "waits").exists():
                assert running.poll() is None
                time.sleep(0.01)
            assert is_held(path)
            result = load(path)
            (folder / "go").touch()
            assert running.wait() == 0
        finally:
            running.kill()
    assert not result.complete
    assert result.state["y"] == result.level == 4
    assert load(path).complete


def test_a_running_search_has_a_winner_after_every_loss(script: Any, tmp_path: Path) -> None:
    path, levels = tmp_path / "j.jsonl", []

    def look(event: lastarm.events.Event) -> None:
        if isinstance(event, lastarm.Loss):
            result = load(path)
            assert result.state["y"] == result.level
            levels.append(result.level)

    policy = SuccessiveHalving(4, 24)
    found = search(script.Arrays(), script.SPACE, policy=policy, journal=path, on_event=look)
    assert levels[-1] == found.level != levels[0]


def test_a_search_that_moves_on_while_it_is_read_is_read_again(
    folder: Path, answers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, _, state = answers["arrays"]
    whole = read(folder / "arrays.jsonl")
    level = {event.upto for event in whole if isinstance(event, lastarm.Pull)}
    first_rung = [e for e in whole if not isinstance(e, lastarm.Loss) or e.pull.upto == min(level)]
    reads = iter([first_rung[:-1], whole])
    monkeypatch.setattr("lastarm.searching.loading.read", lambda path: next(reads))
    result = load(folder / "arrays.jsonl")
    assert told(result) == known
    assert repr(result.state) == state


# One model on all rows ---------------------------------------------------------------------------

FOLDED = """
import pickle
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from lastarm import LogUniform, search
from lastarm.sklearn import HalvingSearch
from lastarm.trainers.estimators import Estimator

random = np.random.default_rng(0)
X = random.normal(size=(90, 4))
y = (X[:, 0] + X[:, 1] > 0.3).astype(int)
SPACE = {"sgdclassifier__alpha": LogUniform(1e-5, 1e-1)}
PIPELINE = make_pipeline(StandardScaler(), SGDClassifier())


def trainer(**options):
    return Estimator(PIPELINE, X, y, cv=3, **options)


def halving(model, settings, journal, **options):
    options |= {"n_arms": 4, "budget": 16, "random_state": 0, "journal": journal}
    return HalvingSearch(model, settings, **options).fit(X, y)


if __name__ == "__main__":
    result = search(trainer(), SPACE, arms=4, budget=16, journal="folds.jsonl", seed=3)
    search(trainer(scoring="f1"), SPACE, arms=4, budget=16, journal="max.jsonl", maximize=True)
    linear = halving(PIPELINE, SPACE, "linear.jsonl", cv=3)
    forest = halving(RandomForestClassifier(), {"max_depth": [1, 2, 3, 4]}, "forest.jsonl")
    models = {
        "folds": result.refit().named_steps["sgdclassifier"].coef_,
        "linear": linear.best_estimator_.named_steps["sgdclassifier"].coef_,
        "linear by refit": linear.result_.refit().named_steps["sgdclassifier"].coef_,
        "forest": forest.best_estimator_.predict_proba(X),
        "forest by refit": forest.result_.refit().predict_proba(X),
    }
    open("models.pickle", "wb").write(pickle.dumps(models))
"""


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a script has searched with estimators."""
    made: Path = tmp_path_factory.mktemp("folded")
    (made / "folded.py").write_text(FOLDED)
    subprocess.run([sys.executable, "folded.py"], cwd=made, check=True)
    return made


@pytest.fixture
def estimators(folded: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script, imported as a module."""
    monkeypatch.syspath_prepend(folded)
    yield importlib.import_module("folded")
    del sys.modules["folded"]


@pytest.fixture
def models(folded: Path) -> Any:
    """What was trained on all rows there."""
    return pickle.loads((folded / "models.pickle").read_bytes())


def test_with_folds_one_model_is_trained_on_all_rows(
    folded: Path, estimators: Any, models: Any
) -> None:
    result = load(folded / "folds.jsonl", trainer=estimators.trainer())
    assert len(result.state.models) == 3
    with pytest.raises(InvalidArgument) as told_how:
        result.state.model  # noqa: B018
    assert "result.refit()" in str(told_how.value)
    model, again = result.refit(), result.refit()
    line = model.named_steps["sgdclassifier"]
    assert np.array_equal(line.coef_, again.named_steps["sgdclassifier"].coef_)
    assert np.array_equal(line.coef_, models["folds"]), "as in the process that searched"
    assert line.t_ == 1 + len(estimators.X) * (result.level or 0), "all rows, to its level"
    assert model.named_steps["standardscaler"].n_samples_seen_ == len(estimators.X)


def test_a_maximized_estimator_is_trained_on_all_rows(folded: Path, estimators: Any) -> None:
    result = load(folded / "max.jsonl", trainer=estimators.trainer(scoring="f1"))
    assert result.refit().named_steps["standardscaler"].n_samples_seen_ == len(estimators.X)


@pytest.mark.parametrize("name", ["linear", "forest"])
def test_the_result_of_a_halving_search_has_its_state_and_is_refitted(
    folded: Path, models: Any, name: str
) -> None:
    result = load(folded / f"{name}.jsonl")
    assert result.complete
    assert len(result.state.models) == (3 if name == "linear" else 1)
    assert result.state.pulls == result.level
    assert np.array_equal(models[name], models[f"{name} by refit"])


def test_a_result_without_its_trainer_says_how_to_have_it(folded: Path) -> None:
    with refused(None) as told_how:
        load(folded / "folds.jsonl").refit()
    assert "folds.jsonl', trainer=" in str(told_how.value)


def test_a_pickled_result_is_without_its_trainer(folded: Path, estimators: Any) -> None:
    result = load(folded / "folds.jsonl", trainer=estimators.trainer())
    copy = pickle.loads(pickle.dumps(result))
    assert (copy.digest, copy.winner) == (result.digest, None)
    with refused(None):
        copy.refit()


@pytest.mark.parametrize("name", ["generator", "program", "maximized", "batched"])
def test_a_trainer_that_has_no_rows_is_named(folder: Path, script: Any, name: str) -> None:
    result = load(folder / f"{name}.jsonl", trainer=script.FORMS[name][0])
    with refused(None) as told_how:
        result.refit()
    assert "on_all_rows" in str(told_how.value)


def test_a_trainer_may_have_its_own_way_to_learn_from_all() -> None:
    class Whole(Drifting):
        def on_all_rows(self, config: Any, seed: int, pulls: int) -> Any:
            return self.train(self.start(config, seed), pulls)

    result = search(Whole(), {"limit": Uniform(-0.1, 0.1)}, arms=4, budget=16)
    assert result.refit()[1] == result.loss


# --output, for trainers of modules ---------------------------------------------------------------

TUNE = (
    "tune",
    "--arms",
    "8",
    "--budget",
    "96",
    "--param",
    "x=uniform:0.1:1",
    "--param",
    "sizes=4",
)


class Command:
    """The command, in a folder with the script, and what it says on standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as leaving:
            main(list(words))
        printed = self._capsys.readouterr()
        assert leaving.value.code == code, printed.err
        self.answer = printed.out
        return printed.err


@pytest.fixture
def command(
    script: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(capsys)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("trainer", ["Arrays", "Descends", "generator", "PAIR"])
def test_the_winner_of_a_module_is_written_as_a_pickle(
    command: Command, trainer: str, workers: str
) -> None:
    command(*TUNE, "--workers", workers, "--json", "--output", "new/won", f"searched:{trainer}")
    found, state = json.loads(command.answer), pickle.loads(Path("new/won").read_bytes())
    x = found["config"]["x"] / 2 ** found["level"]
    match trainer:
        case "Arrays":
            assert (state["x"].tolist(), state["y"]) == ([x] * 3, found["level"])
        case "Descends":
            assert (state.x, state.y) == (x, found["level"])
        case "generator":
            assert state == {"x": x, "sizes": 4}
        case "PAIR":
            assert state == x


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_winner_of_a_trainer_with_its_own_form_is_in_that_form(
    command: Command, script: Any, workers: str
) -> None:
    command(*TUNE, "--workers", workers, "--output", "won", "--json", "searched:Saves")
    net, level = script.Saves().load("won"), json.loads(command.answer)["level"]
    assert net.y == level


def test_the_winner_of_a_module_is_written_on_resuming(command: Command) -> None:
    command(*TUNE, "--journal", "j.jsonl", "--output", "won", "searched:Arrays")
    first = pickle.loads(Path("won").read_bytes())
    command("resume", "j.jsonl", "--output", "again")
    assert repr(pickle.loads(Path("again").read_bytes())) == repr(first)
    said = command("resume", "j.jsonl", "--budget", "384")
    assert "won" in said, "it stays as it is"
    command("resume", "j.jsonl", "--output", "better")
    assert pickle.loads(Path("better").read_bytes())["y"] == load("j.jsonl").level != first["y"]
    assert repr(pickle.loads(Path("won").read_bytes())) == repr(first)


def test_an_output_that_cannot_be_is_refused_before_a_module_is_trained(
    command: Command, tmp_path: Path
) -> None:
    Path("taken").write_text("a file")
    for output in ("taken", "taken/won", "/"):
        assert output in command(*TUNE, "--output", output, "searched:nothing", code=2)
    assert Path("taken").read_text() == "a file"


MORE = """
import threading
from pathlib import Path
from searched import Arrays

class NotPickled(Arrays):
    def train(self, state, pulls):
        return super().train(state, pulls) | {"lock": threading.Lock()}

class Fails(Arrays):
    def save(self, state, path):
        raise RuntimeError("no such form")
    load = None

class WritesNothing(Arrays):
    def save(self, state, path):
        pass
    load = None

class Takes(Arrays):
    def test(self, state):
        Path("later").touch()
        return 1.0

class TakesAndSaves(Takes):
    def save(self, state, path):
        Path(path).write_text("saved")
    load = None
"""


@pytest.mark.parametrize("trainer", ["NotPickled", "Fails", "WritesNothing", "forgets"])
def test_a_winner_that_cannot_be_written_is_told(command: Command, trainer: str) -> None:
    Path("more.py").write_text(MORE)
    module = "searched" if trainer == "forgets" else "more"
    with changed_modules():
        said = command(*TUNE, "--json", "--output", "won", f"{module}:{trainer}", code=1)
    assert "won" in said
    assert json.loads(command.answer)["complete"], "the answer is printed"
    assert not Path("won").exists()


@pytest.mark.parametrize("trainer", ["Takes", "TakesAndSaves"])
def test_an_output_that_is_taken_meanwhile_does_not_cost_the_winner(
    command: Command, trainer: str
) -> None:
    Path("more.py").write_text(MORE)
    with changed_modules():
        said = command(*TUNE, "--json", "--output", "later/won", f"more:{trainer}", code=2)
    (kept,) = (Path(word[:-1]) for word in said.split() if "lastarm-winner-" in word)
    saved = kept.read_bytes()
    shutil.rmtree(kept.parent)
    level = json.loads(command.answer)["level"]
    assert saved == b"saved" if trainer == "TakesAndSaves" else pickle.loads(saved)["y"] == level


@contextmanager
def changed_modules() -> Iterator[None]:
    """Within, a module of the working folder is imported as it is there."""
    try:
        yield
    finally:
        sys.modules.pop("more", None)


def test_a_search_that_has_ended_says_how_to_have_its_winner(
    command: Command, copied: Callable[[str], Path]
) -> None:
    for name, ended in {"arrays": True, "stopped": False}.items():
        path = copied(name)
        command("show", str(path))
        assert (f"lastarm.load({str(path)!r})" in command.answer.replace("\n", "")) is ended
    Path("curves.csv").write_text("3,2,1\n4,3,2\n")
    command("replay", "curves.csv", "--budget", "4", "--journal", "replayed.jsonl")
    command("show", "replayed.jsonl")
    assert "lastarm.load" not in command.answer, "no state was trained"


@pytest.mark.parametrize("tests", [True, False])
def test_a_winner_whose_file_was_lost_before_the_end_is_there_again(
    tmp_path: Path, tests: bool
) -> None:
    """As by a power cut just before a search was closed, since states are not synced by then."""
    journal = tmp_path / "j.jsonl"

    def run(on_event: Any = None) -> Any:
        rows = make_classification(200, 8, random_state=0)
        space: Any = {"alpha": LogUniform(1e-6, 1)}
        trainer: Any = Estimator(SGDClassifier(), *rows)
        if not tests:
            trainer, space = RecordedCurves([[3.0, 2.0], [4.0, 1.0]]), {"row": Choice(0, 1)}
        return search(trainer, space, arms=2, budget=4, journal=journal, on_event=on_event)

    left = [2]

    def stop(event: Any) -> None:
        left[0] -= isinstance(event, Loss)
        if not left[0]:
            raise KeyError

    with pytest.raises(KeyError):
        run(stop)
    for file in Path(f"{journal}.states").iterdir():
        file.unlink()
    found = run()
    assert found.spent.repeated == 2
    assert load(journal).state.pulls == run().state.pulls == 2
