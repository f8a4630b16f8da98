"""A search in forms that other tools read: CSV, and an Optuna study."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import optuna
import optuna.visualization.matplotlib as pictures
import pytest
import scipy.stats
from matplotlib.axes import Axes
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from lastarm import (
    Choice,
    Grid,
    Hyperband,
    Integer,
    LogUniform,
    Result,
    SuccessiveHalving,
    Uniform,
    search,
)
from lastarm.cli import main
from lastarm.events import Closed, Event, Failure, Loss, Opened, Pull
from lastarm.journal import Journal, read
from lastarm.report.exports.tables import EVENT_COLUMNS, as_cell
from lastarm.report.hyperparameters import domains_of
from lastarm.space import describe
from lastarm.trainers import Config
from tests.refusals import refused

HOSTILE = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://a")',
    "\t=1",
    "\r=1",
    "\n=1",
    "'",
    '"',
    '","',
    "a,b",
    "a;b",
    "a\nb",
    "a\r\nb",
    "\x00",
    "\x07",
    "\x08\x08",
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\u202eright to left",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ud800",
    "<script>alert(1)</script>",
    "</table>",
    "<!--",
    "&amp;",
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
    "${jndi:ldap://a}",
    "../../etc/passwd",
    "; rm -rf ~",
    "$(id)",
    "`id`",
    "' OR 1=1 --",
    "x" * 10_000,
    "＝1+1",
    "🙂",
]


def arm(config: Config) -> Iterator[Any]:
    if config == FAILING:
        raise RuntimeError("no such kind")
    for level in range(1, 10**9):
        loss = config["x"] + 1 / level if config != DIVERGING or level < 10 else np.nan
        yield {"loss": loss, "accuracy": 1 - loss}


SPACE = {"x": LogUniform(0.01, 1), "layers": Integer(1, 6), "kind": Choice("good", "fine")}
FAILING = {"x": 0.5, "layers": 6, "kind": "fine"}
DIVERGING = {"x": 0.01, "layers": 1, "kind": "good"}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "search.jsonl"
    policy = SuccessiveHalving(16, 256)
    search(
        arm, SPACE, policy=policy, include=[FAILING, DIVERGING], journal=path, checkpoints=False
    )
    return path


@pytest.fixture(scope="module")
def result(journal: Path) -> Result:
    return Result.of(read(journal))


def hostile_journal(path: Path) -> Path:
    """One that lastarm could have written, if a trainer had such settings and said such things."""
    with Journal(path, Opened(0, {"name": HOSTILE[0]}, {}, {}, folder=HOSTILE[19])) as journal:
        for number, text in enumerate(HOSTILE):
            pull = Pull(number, 1, config={text: text, "same": HOSTILE[0], "list": [text]})
            journal.append(pull)
            journal.append(Loss(pull, 0.5, metrics={text: text}))
        journal.append(Pull(0, 2))
        journal.append(Failure(Pull(0, 2), f"no: {''.join(HOSTILE)}"))
        journal.sync()
    return path


def run(*arguments: object, code: int = 0) -> None:
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    assert leaving.value.code == code


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# CSV ------------------------------------------------------------------------------------------


def test_arms_are_rows_that_read_back_bit_for_bit(
    journal: Path, result: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("export", journal, "-o", tmp_path / "arms.csv")
    assert capsys.readouterr().out == f"Wrote 16 arms to {tmp_path / 'arms.csv'}.\n"
    found = rows(tmp_path / "arms.csv")
    own = ["arm", "recommended", "pulls", "loss", "error", "losses"]
    assert list(found[0]) == [*own, "x", "layers", "kind", "accuracy"]
    frame = result.to_dataframe()
    assert list(frame.columns) == list(found[0])
    for column, kind in {"arm": int, "pulls": int, "loss": float, "x": float, "kind": str}.items():
        assert [kind(row[column]) for row in found] == list(frame[column])
    assert [int(row["arm"]) for row in found if row["recommended"] == "True"] == [result.arm]
    assert found[0]["error"] == "RuntimeError: no such kind"
    curves = [[tuple(point) for point in json.loads(row["losses"])] for row in found]
    assert curves[2:] == [result.curves[number] for number in range(2, 16)]
    assert curves[:2] == [[], [(4, 0.26), (12, "nan")]]


def test_events_are_rows_in_the_order_in_which_they_happened(
    journal: Path, result: Result, tmp_path: Path
) -> None:
    run("export", journal, "-o", tmp_path / "my-events.csv")
    found = rows(tmp_path / "my-events.csv")
    assert list(found[0]) == list(EVENT_COLUMNS)
    assert (
        *("record", "event", "arm", "upto", "loss", "test_loss", "trained", "train_seconds"),
        *("loss_seconds", "worker", "attempt", "retried", "lost", "error", "budget", "config"),
        "metrics",
    ) == EVENT_COLUMNS, "others rely on these"
    assert len(found) == len(journal.read_text().splitlines())
    assert [row["record"] for row in found] == [f"{n}" for n in range(1, len(found) + 1)]
    assert (found[0]["event"], found[0]["budget"]) == ("opened", "256")
    assert found[-1]["event"] == "closed"
    seen: dict[int, list[tuple[int, float]]] = {}
    for row in found:
        if row["event"] == "loss":
            seen.setdefault(int(row["arm"]), []).append((int(row["upto"]), float(row["loss"])))
    assert str(seen) == str(result.curves), "as texts, because nan is not nan"
    first = next(row for row in found if row["event"] == "pull")
    assert json.loads(first["config"]) == FAILING
    assert any(json.loads(row["metrics"])["accuracy"] for row in found if row["metrics"])


def test_the_format_may_be_said(journal: Path, tmp_path: Path) -> None:
    run("export", journal, "-o", tmp_path / "a.txt", "--format", "events")
    run("export", journal, "-o", tmp_path / "events.csv", "--format", "arms")
    assert "record" in rows(tmp_path / "a.txt")[0]
    assert "losses" in rows(tmp_path / "events.csv")[0]


@pytest.mark.parametrize("kind", ["arms", "events"])
def test_no_text_becomes_a_formula_or_reaches_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    journal = hostile_journal(tmp_path / "hostile.jsonl")
    out = tmp_path / f"\x1b[31m-{kind}.csv"
    run("export", journal, "-o", out)
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    written = out.read_text(encoding="utf-8")
    assert all(sign.isprintable() or sign == "\n" for sign in written)
    found = rows(out)
    expected = len(HOSTILE) if kind == "arms" else 2 * len(HOSTILE) + 3
    assert len(found) == len(written.splitlines()) - 1 == expected, "a row is a line"
    for cell in [*found[0], *(cell for row in found for cell in row.values())]:
        assert not cell.startswith(("=", "+", "-", "@", "\t", "＝"))
    if kind == "arms":
        assert found[0]["same"] == "'=1+1"


def test_a_number_is_a_number_also_where_it_is_below_zero() -> None:
    cells = [-0.5, -3, np.float32(-0.25), float("-inf"), 1e-300, True, None, 10**30]
    assert [as_cell(cell) for cell in cells] == (
        ["-0.5", "-3", "-0.25", "-inf", "1e-300", "True", "None", str(10**30)]
    )


def test_a_setting_with_the_name_of_a_column_has_another(tmp_path: Path) -> None:
    pull = Pull(0, 1, config={"loss": "hinge", "arm": 7})
    with Journal(tmp_path / "j.jsonl", Opened(0, {}, {}, {})) as journal:
        journal.append(pull)
        journal.append(Loss(pull, 0.5))
        journal.sync()
    run("export", tmp_path / "j.jsonl", "-o", tmp_path / "arms.csv")
    (row,) = rows(tmp_path / "arms.csv")
    assert (row["arm"], row["loss"], row["param_loss"], row["param_arm"]) == (
        *("0", "0.5"),
        *("hinge", "7"),
    )


def test_an_export_leaves_the_journal_alone_and_needs_no_end_of_it(
    journal: Path, tmp_path: Path
) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:20]) + b'{"ev')
    before = torn.read_bytes()
    run("export", torn, "-o", tmp_path / "events.csv", "--optuna", f"sqlite:///{tmp_path}/s.db")
    assert len(rows(tmp_path / "events.csv")) == 20
    assert torn.read_bytes() == before
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"torn.jsonl", "events.csv", "s.db"}, "and nothing beside it"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "-o"),
        (("-o", "arms.xlsx"), "arms.xlsx"),
        (("-o", "no/such/folder/arms.csv"), "no/such/folder/arms.csv"),
        (("-o", "JOURNAL", "--format", "arms"), "JOURNAL"),
        (("--format", "arms"), "-o"),
        (("-o", "arms.csv", "--name", "x"), "--optuna"),
        (("--optuna", "sqlite:///s.db", "--format", "arms"), "-o"),
        (("--optuna", "sqlite:///s.db", "--level", "5"), "4, 12, 28, 60"),
        (("--optuna", "sqlite:///s.db", "--level", "x"), "4, 12, 28, 60"),
        (("--optuna", "no such thing"), "URL"),
        (("--optuna", "sqlite:////no/such/folder/s.db"), "sqlite"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    journal: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = journal.read_bytes()
    run("export", journal, *(str(journal) if a == "JOURNAL" else a for a in arguments), code=2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert named.replace("JOURNAL", str(journal)) in printed.err
    assert journal.read_bytes() == before


def test_what_is_no_journal_is_not_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    for name, code in (("other.jsonl", 2), ("missing.jsonl", 3)):
        run("export", tmp_path / name, "-o", tmp_path / "arms.csv", code=code)
        assert capsys.readouterr().err.startswith("lastarm: the ")
    assert not (tmp_path / "arms.csv").exists()


def test_an_error_about_a_journal_says_nothing_to_the_terminal(
    journal: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = b'{"event":"opened","format":"\\u001b[31m","durable":0,"after":""'
    checksum = blake2b(body, digest_size=8).hexdigest()
    (tmp_path / "other.jsonl").write_bytes(body + f',"sum":"{checksum}"}}\n'.encode())
    run("export", tmp_path / "other.jsonl", "-o", tmp_path / "arms.csv", code=3)
    run("export", journal, "-o", tmp_path / "\x1b[31m", code=2)
    said = capsys.readouterr().err
    assert "�[31m" in said
    assert "\x1b" not in said


def test_nothing_in_a_journal_is_executed_or_unpickled(tmp_path: Path) -> None:
    journal = hostile_journal(tmp_path / "hostile.jsonl")
    code = """
import sys
def watch(event, arguments):
    forbidden = ("pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
    assert event not in (*forbidden, "socket.connect", "os.fork"), (event, arguments)
from lastarm.cli import main
import optuna, sqlalchemy, matplotlib
sys.addaudithook(watch)
main(sys.argv[1:])
"""
    out = ("-o", str(tmp_path / "arms.csv"), "--optuna", f"sqlite:///{tmp_path}/s.db")
    ran = [sys.executable, "-c", code, "export", str(journal), *out]
    subprocess.run(ran, check=True, capture_output=True)


# Optuna ---------------------------------------------------------------------------------------


def test_a_study_has_a_trial_an_arm(result: Result) -> None:
    study = result.to_optuna()
    assert study.direction.name == "MINIMIZE"
    trials = study.trials
    assert [trial.user_attrs["arm"] for trial in trials] == list(range(16))
    states = [trial.state for trial in trials]
    assert states[:2] == [TrialState.FAIL] * 2
    assert trials[0].user_attrs["error"] == "RuntimeError: no such kind"
    assert trials[1].user_attrs["error"] == "its loss became nan"
    furthest = max(curve[-1][0] for curve in result.curves.values())
    for trial, state in list(zip(trials, states, strict=True))[2:]:
        curve = result.curves[trial.number]
        assert trial.intermediate_values == dict(curve)
        assert trial.value == curve[-1][1]
        assert (state == TrialState.COMPLETE) == (curve[-1][0] == furthest)
        assert state in (TrialState.COMPLETE, TrialState.PRUNED)
        assert trial.params == result.configs[trial.number]
        assert trial.user_attrs["metrics"]["accuracy"] == 1 - curve[-1][1]
    assert study.best_trial.number == result.arm
    assert study.best_value == result.loss
    assert study.best_trial.user_attrs["recommended"] is True
    assert study.user_attrs["lastarm"]["policy"]["name"] == "successive-halving"
    assert study.user_attrs["lastarm"]["digest"] == result.digest


def test_a_level_makes_all_arms_comparable(result: Result) -> None:
    study = result.to_optuna(level=4)
    complete = study.get_trials(states=[TrialState.COMPLETE])
    assert len(complete) == 14
    for trial in complete:
        assert trial.value == dict(result.curves[trial.number])[4]


def test_what_was_maximized_is_maximized() -> None:
    def accuracy(config: Config) -> Iterator[float]:
        while True:
            yield config["x"]

    found = search(accuracy, {"x": Uniform(0, 1)}, policy=SuccessiveHalving(8, 96), maximize=True)
    study = found.to_optuna()
    assert study.direction.name == "MAXIMIZE"
    assert study.best_value == max(config["x"] for config in found.configs)
    assert study.best_trial.intermediate_values == {
        level: study.best_value for level, _ in found.curves[study.best_trial.number]
    }


def test_the_arm_that_was_recommended_where_it_was_best_has_that_value() -> None:
    def overfitting(config: Config) -> Iterator[float]:
        for level in range(1, 1000):
            yield config["x"] + abs(level - 10)

    policy = SuccessiveHalving(8, 240)
    found = search(overfitting, {"x": Uniform(0, 1)}, policy=policy, recommend="best")
    study = found.to_optuna()
    assert found.arm is not None
    assert study.trials[found.arm].value == found.loss
    assert study.trials[found.arm].state == TrialState.COMPLETE


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (Uniform(0, 1), FloatDistribution(0, 1)),
        (LogUniform(1e-5, 1), FloatDistribution(1e-5, 1, log=True)),
        (Integer(1, 6), IntDistribution(1, 6)),
        (Integer(1, 64, log=True), IntDistribution(1, 64, log=True)),
        (Choice("relu", "tanh"), CategoricalDistribution(["relu", "tanh"])),
        ([1, 2.5, None, True], CategoricalDistribution([1, 2.5, None, True])),
        (7, CategoricalDistribution([7])),
        (scipy.stats.uniform(2, 3), FloatDistribution(2, 5)),
        (scipy.stats.uniform(loc=2, scale=3), FloatDistribution(2, 5)),
        (scipy.stats.loguniform(1e-3, 10), FloatDistribution(1e-3, 10, log=True)),
        (scipy.stats.randint(1, 7), IntDistribution(1, 6)),
    ],
)
def test_the_domain_of_the_space_is_that_of_the_trials(
    domain: Any, expected: BaseDistribution
) -> None:
    policy = SuccessiveHalving(1 if domain == 7 else 2, 8)
    study = search(ties, {"p": domain}, policy=policy).to_optuna()
    assert study.trials[0].distributions == {"p": expected}


def ties(config: Config) -> Iterator[float]:
    while True:
        yield 0.5


def test_a_distribution_of_no_known_ends_has_those_of_its_values() -> None:
    found = search(ties, {"p": scipy.stats.norm()}, policy=SuccessiveHalving(8, 96))
    values = [config["p"] for config in found.configs]
    (expected,) = {FloatDistribution(min(values), max(values))}
    assert found.to_optuna().trials[0].distributions == {"p": expected}


def test_options_that_are_no_scalars_are_told_by_their_json() -> None:
    options = [(8, 8), [16], {"a": 1}, max, float("inf")]
    found = search(ties, {"p": Choice(*options)}, policy=SuccessiveHalving(5, 15))
    study = found.to_optuna()
    assert {trial.params["p"] for trial in study.trials} == {
        *("[8, 8]", "[16]", '{"a": 1}'),
        *("builtins.max", "inf"),
    }


def test_conditional_spaces_have_one_domain_a_name() -> None:
    space = [
        {"kernel": "linear", "C": LogUniform(0.1, 10)},
        {"kernel": "rbf", "C": LogUniform(1, 1000), "gamma": Uniform(0, 1)},
        {"kernel": "none", "C": 0.05},
    ]
    study = search(ties, space, policy=SuccessiveHalving(30, 300)).to_optuna()
    kernels = {trial.params["kernel"]: trial for trial in study.trials}
    assert set(kernels) == {"linear", "rbf", "none"}
    assert set(kernels["linear"].params) == {"kernel", "C"}
    for trial in study.trials:
        assert trial.distributions["C"] == FloatDistribution(0.05, 1000, log=True)
        assert trial.distributions["kernel"].choices == ("linear", "rbf", "none")


def test_grids_and_listed_configs_have_domains() -> None:
    grid = Grid({"lr": LogUniform(1e-3, 1), "act": ["a", "b"]}, samples=4)
    study = search(ties, grid, policy=SuccessiveHalving(8, 96)).to_optuna()
    assert study.trials[0].distributions == {
        "lr": FloatDistribution(1e-3, 1, log=True),
        "act": CategoricalDistribution(["a", "b"]),
    }
    listed = [{"n": n, "x": n / 4, "s": f"{n}"} for n in range(4)]
    study = search(ties, listed, policy=SuccessiveHalving(4, 16)).to_optuna()
    assert study.trials[0].distributions == {
        "n": IntDistribution(0, 3),
        "x": FloatDistribution(0, 0.75),
        "s": CategoricalDistribution(["0", "1", "2", "3"]),
    }


def test_what_an_older_search_included_from_outside_is_in_its_domain() -> None:
    events: list[Event] = [Opened(0, {}, describe(SPACE), {})]
    for number, config in enumerate([{"x": 1e-3, "layers": 9, "kind": "bad"}, FAILING]):
        pull = Pull(number, 1, config=config)
        events += [pull, Loss(pull, number)]
    assert Result.of([*events, Closed(0, 1)]).to_optuna().trials[1].distributions == {
        "x": FloatDistribution(1e-3, 1, log=True),
        "layers": IntDistribution(1, 9),
        "kind": CategoricalDistribution(["good", "fine", "bad"]),
    }


@pytest.mark.parametrize(
    "claimed",
    [
        {"uniform": "abc"},
        {"uniform": ["a", None]},
        {"uniform": [5, 1]},
        {"uniform": [-(10**400), 10**400]},
        {"log-uniform": [-1, 0]},
        {"integer": [1]},
        {"choice": 5},
        {"choice": [[1], {"a": 2}]},
        {"constant": {"tuple": []}},
        {"distribution": "loguniform", "args": [], "kwds": {}},
        {"distribution": "uniform", "args": ["x"], "kwds": {"loc": "y"}},
        {"distribution": 7},
        {},
        5,
        None,
    ],
)
def test_whatever_a_journal_claims_of_its_space_a_study_is_made(claimed: Any) -> None:
    events: list[Event] = [Opened(0, {}, {"p": claimed, "any of": 1}, {})]
    for number, value in enumerate([0.5, 2.0, 1e6]):
        pull = Pull(number, 1, config={"p": value})
        events += [pull, Loss(pull, value)]
    study = Result.of([*events, Closed(0, 1)]).to_optuna()
    assert [trial.params["p"] for trial in study.trials] == [0.5, 2.0, 1e6]


def test_numbers_too_large_for_whole_ones_are_floats() -> None:
    big = 2**62
    described = describe({"p": Integer(0, big)})
    domain = domains_of(described, [{"p": big - 1}])["p"]
    assert not getattr(domain, "whole", True)
    pull = Pull(0, 1, config={"p": big - 1})
    events: list[Event] = [Opened(0, {}, described, {}), pull, Loss(pull, 0.5)]
    assert Result.of(events).to_optuna().trials[0].params["p"] == float(big)


def test_hostile_texts_go_into_a_database_and_come_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = hostile_journal(tmp_path / "\x1b[31mred.jsonl")
    url = f"sqlite:///{tmp_path}/study.db"
    run("export", journal, "--optuna", url)
    said = capsys.readouterr()
    assert said.err == "", "not even Optuna logs that name"
    assert said.out == f"Wrote {len(HOSTILE)} trials to the study �[31mred.\n"
    (study,) = optuna.get_all_study_summaries(url)
    trials = optuna.load_study(study_name=study.study_name, storage=url).trials
    for text, trial in zip(HOSTILE, trials, strict=True):
        assert text.replace("\ud800", "\\ud800") in trial.params
    assert trials[0].state == TrialState.FAIL


def test_a_study_is_never_written_over(journal: Path, tmp_path: Path, result: Result) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    run("export", journal, "--optuna", url, "--name", "mine", "--level", 4)
    run("export", journal, "--optuna", url, "--name", "mine", code=2)
    with refused("name", "mine"):
        result.to_optuna(url, "mine")
    study = optuna.load_study(study_name="mine", storage=url)
    assert len(study.trials) == 16
    assert len(study.get_trials(states=[TrialState.COMPLETE])) == 14


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_optunas_pictures_have_something_to_show(tmp_path: Path) -> None:
    def descent(config: Config) -> Iterator[float]:
        for level in range(1, 1000):
            yield config["lr"] ** 2 + (config["act"] == "tanh") + 1 / level

    space = {"lr": LogUniform(1e-3, 1), "act": Choice("relu", "tanh"), "n": Integer(1, 9)}
    found = search(descent, space, policy=Hyperband(40, 800, max_pulls=27))
    study = found.to_optuna(f"sqlite:///{tmp_path}/study.db", "pictures")
    axes: Axes = pictures.plot_intermediate_values(study)
    assert len(axes.lines) == len(found.curves)
    comparable = found.to_optuna(level=1)
    complete = len(comparable.get_trials(states=[TrialState.COMPLETE]))
    assert complete > 20
    axes = pictures.plot_param_importances(comparable)
    assert {tick.get_text() for tick in axes.get_yticklabels()} == {"lr", "act", "n"}
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(1)  # type: ignore[attr-defined]
    axes = pictures.plot_parallel_coordinate(comparable)
    assert len(axes.collections[0].get_segments()) == complete  # type: ignore[attr-defined]
    slices: Any = pictures.plot_slice(comparable)
    assert len(slices) == 3
    assert pictures.plot_optimization_history(study).collections
    plt.close("all")  # Optuna leaves its figures open


def test_without_optuna_the_extra_is_named(journal: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['optuna'] = None; from lastarm.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "export", journal, "--optuna", "sqlite:///s.db"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "pip install 'lastarm[optuna]'" in ran.stderr
