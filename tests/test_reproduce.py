"""The paper's experiments, run again: the protocol, the claims, and the command."""

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastarm.batched import OneByOne
from lastarm.cli import main
from lastarm.events import Loss
from lastarm.journal.lock import is_held
from lastarm.papers.jamieson2015 import comparisons
from lastarm.papers.jamieson2015.data import Table
from lastarm.papers.jamieson2015.experiments import (
    COMPLETION,
    RIDGE,
    SVM,
    Experiment,
    InThePaper,
    kernel_svm,
    run,
    scaled,
    searched,
)
from lastarm.papers.jamieson2015.page import Settings, Stopped, command
from lastarm.papers.jamieson2015.traces import AllTheWay
from lastarm.policies import UniformAllocation
from lastarm.policies.parts.budgeted import InRounds
from lastarm.space import Configs, draw, size
from lastarm.testing import policy_checks
from lastarm.trainers import RecordedCurves

SECONDS = ("train_seconds", "loss_seconds")


# The experiments are those of the paper --------------------------------------------------------


@pytest.mark.parametrize(
    ("experiment", "arms", "trials", "values"),
    [
        (RIDGE, 10, 32, {"lambda": (10, 1e-6, 1.0)}),
        (SVM, 100, 64, {"lambda": (10, 1e-6, 1.0), "gamma": (10, 1.0, 1e3)}),
        (
            COMPLETION,
            64,
            32,
            {"rank": (4, 2, 50), "sigma": (4, 0.01, 3.0), "lambda": (4, 1e-6, 1.0)},
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Experiment) else "",
)
def test_arms_and_trials_are_those_of_section_5(
    experiment: Experiment, arms: int, trials: int, values: dict[str, tuple[int, float, float]]
) -> None:
    assert (experiment.arms, experiment.trials) == (arms, trials)
    configs = draw(experiment.space, arms, seed=1)
    assert size(experiment.space) in (arms, None)
    for name, (count, low, high) in values.items():
        found = {config[name] for config in configs}
        assert len(found) == count
        assert low <= min(found) <= max(found) <= high
    others = draw(experiment.space, arms, seed=2)
    assert {config["lambda"] for config in configs}.isdisjoint(c["lambda"] for c in others)


@pytest.mark.parametrize("experiment", [RIDGE, SVM, COMPLETION], ids=lambda e: e.name)
def test_budgets_double_and_every_policy_can_use_the_first(experiment: Experiment) -> None:
    for before, after in zip(experiment.budgets, experiment.budgets[1:], strict=False):
        assert after == 2 * before
    for name, most in experiment.policies.items():
        assert most in experiment.budgets
        InThePaper(experiment.arms, experiment.budgets[0], of=name)


def test_rows_are_scaled_by_train_alone_and_distances_are_near_one() -> None:
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(5, 3, (400, 8)), np.full(400, 7.0)])
    X[300:] += 100
    train = np.arange(300)
    assert scaled(X, train)[train].mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert scaled(X, train)[train].std(axis=0)[:8] == pytest.approx(1)
    assert (scaled(X, train)[:, 8] == 0).all()

    table = Table("made", X[:300], np.where(X[:300, 0] > 5, 1.0, -1.0), "")
    rows = kernel_svm(table, seed=0)._columns.T
    distances = ((rows[:50, None] - rows[None, 50:100]) ** 2).sum(axis=2)
    assert 0.5 < np.median(distances) < 1.5


@pytest.mark.parametrize("name", ["successive-elimination", "lucb", "lil-ucb"])
def test_what_a_sure_policy_has_left_goes_to_the_arm_that_it_found(name: str) -> None:
    policy = InThePaper(arms=4, budget=5000, of=name)
    pulls: dict[int, int] = {}
    losses = [0.1, 0.5, 0.6, 0.9]
    while asked := policy.ask(4):
        for pull in asked:
            pulls[pull.arm] = pull.upto
            policy.tell(Loss(pull, losses[pull.arm]))
    assert policy.finished
    assert policy.recommendation == 0
    assert sum(pulls.values()) == 5000
    assert pulls[0] > 2500


@pytest.mark.parametrize("name", ["successive-elimination", "lucb", "lil-ucb"])
def test_what_rounding_leaves_goes_to_no_arm(name: str) -> None:
    """With 65 pulls successive elimination does what uniform allocation does."""
    pulls = {}
    for of in (name, "uniform"):
        policy, made = InThePaper(arms=10, budget=65, of=of), dict[int, int]()
        while asked := policy.ask(10):
            for pull in asked:
                made[pull.arm] = pull.upto
                policy.tell(Loss(pull, 0.5 + 0.001 * pull.arm))
        pulls[of] = made
    if name == "successive-elimination":
        assert pulls[name] == pulls["uniform"] == dict.fromkeys(range(10), 6)
    else:
        assert sum(pulls[name].values()) == 64 + (name == "lil-ucb")  # LUCB's pulls come in pairs


def test_recommended_is_the_lowest_latest_loss_even_of_an_arm_that_was_dropped() -> None:
    policy = InThePaper(arms=4, budget=64, of="successive-halving")
    while asked := policy.ask(4):
        for pull in asked:
            overfitted = 0.5 if pull.arm < 2 and pull.upto > 8 else 0.0
            policy.tell(Loss(pull, 0.1 * pull.arm + overfitted))
    assert policy.finished
    assert policy.recommendation == 2


@pytest.mark.parametrize("check", policy_checks(only_ranks=False), ids=lambda c: c.__name__)
@pytest.mark.parametrize("kind", [InThePaper, AllTheWay])
def test_the_policies_of_the_paper_obey_the_laws(kind: type[InRounds], check: Any) -> None:
    check(kind)


# The claims are what the numbers say -----------------------------------------------------------


def rows(trials: int = 12, /, **errors: list[float]) -> list[dict[str, Any]]:
    """Policies with these mean errors at budgets 64, 128, …; a second for each unit of budget."""
    return [
        {
            "trial": trial,
            "policy": policy.replace("_", "-"),
            "budget": 64 * 2**k,
            "pulls": 64 * 2**k,
            "observations": 10,
            "train_seconds": 48.0 * 2**k,
            "loss_seconds": 16.0 * 2**k,
            "test_loss": error + 0.001 * (-1) ** trial,
        }
        for policy, column in errors.items()
        for k, error in enumerate(column)
        for trial in range(trials)
    ]


def holds(judge: Any, found: list[dict[str, Any]]) -> list[str]:
    return [claim.holds for claim in judge(found, "made")]


def test_the_judges_say_yes_and_no_by_the_numbers() -> None:
    slow = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    fast = [0.6, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2]
    good = rows(uniform=slow, successive_halving=fast, successive_rejects=fast)
    bad = rows(uniform=fast, successive_halving=slow, successive_rejects=slow)
    assert holds(comparisons.of_completion, good) == ["yes"] * 4
    assert holds(comparisons.of_completion, bad) == ["no"] * 4

    def at(row: dict[str, Any]) -> float:
        return 0.05 if row["policy"] == "successive-halving" else 1.0

    quick = [row | {name: row[name] * at(row) for name in SECONDS} for row in good]
    assert holds(comparisons.of_svm, quick) == ["yes", "yes", "yes"]
    assert holds(comparisons.of_svm, good) == ["not settled", "no", "yes"], (
        "uniform never gets there"
    )
    never = rows(uniform=slow, successive_halving=[*slow[:-1], 0.4], successive_rejects=fast)
    assert holds(comparisons.of_svm, never) == ["not settled", "no", "no"]
    assert holds(comparisons.of_completion, never) == ["no", "no", "yes", "yes"]

    most = rows(
        uniform=slow,
        successive_elimination=slow,
        exp3=slow,
        lucb=fast,
        lil_ucb=fast,
        successive_halving=fast,
        successive_rejects=slow,
    )
    assert holds(comparisons.of_ridge, most) == ["yes", "yes", "yes", "no"]
    apart = rows(
        uniform=fast,
        successive_elimination=fast,
        exp3=slow,
        lucb=slow,
        lil_ucb=slow,
        successive_halving=slow,
        successive_rejects=slow,
    )
    assert holds(comparisons.of_ridge, apart) == ["no", "no", "in part", "no"]


def test_two_trials_settle_nothing() -> None:
    slow, fast = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], [0.2] * 7
    policies = {"uniform": slow, "successive_halving": fast, "successive_rejects": slow}
    for judge in (comparisons.of_completion, comparisons.of_svm):
        found = judge(rows(2, **policies), "made")
        assert {claim.holds for claim in found} == {"not settled"}
        assert all(claim.ours.endswith("; too few trials for intervals") for claim in found)


def test_levels_of_an_untrained_model_do_not_count() -> None:
    """Uniform allocation has lows of 9.99 and 9.98 while nothing is learnt yet."""
    uniform, halving = [10, 9.99, 9.98, 5, 2.5], [9.985, 9.97, 4.9, 2.4, 1.2]
    both = rows(uniform=uniform, successive_halving=halving, successive_rejects=halving)
    claim = comparisons.of_completion(both, "made")[0]
    assert claim.ours.startswith("2.0 times")
    assert claim.axis == "iterations"


def test_a_sentence_says_for_which_price_of_a_look_it_holds() -> None:
    slow, fast = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], [0.95, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2]
    found = rows(uniform=slow, successive_halving=fast, successive_rejects=fast)
    for row in found:
        row["observations"] = 1 if row["policy"] == "uniform" else 20
    claim = comparisons.of_completion(found, "made")[0]
    assert claim.choices.startswith("in pulls + c·looks: yes for c from 0 to ")
    assert "no for c from" in claim.choices
    assert claim.choices.endswith("to 10,000")


def test_rows_are_judged_again_without_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("ridge", "--again", "--out", str(tmp_path)) == 2
    assert "has no rows of ridge" in capsys.readouterr().err
    assert reproduce("table1", "--again", "--out", str(tmp_path)) == 2
    assert "no trials to judge again" in capsys.readouterr().err
    docs = Path(__file__).parent.parent / "docs" / "jamieson2015"
    for ending in ("csv", "json"):
        name = f"completion-movielens-100k.{ending}"
        (tmp_path / name).write_bytes((docs / name).read_bytes())
    assert reproduce("all", "--again", "--out", str(tmp_path)) == 0
    for ending in ("csv", "json"):
        name = f"completion-movielens-100k.{ending}"
        assert (tmp_path / name).read_bytes() == (docs / name).read_bytes(), "as it is in the docs"


# The protocol ----------------------------------------------------------------------------------


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def without_seconds(found: list[Any]) -> list[Any]:
    return [{k: v for k, v in row.items() if k not in SECONDS} for row in found]


def test_workers_and_kernels_change_nothing_but_the_time(tmp_path: Path) -> None:
    small = replace(SVM.quick(), budgets=(1024,), policies={"successive-halving": 1024})
    settings = Settings(tmp_path / "one", quick=True)
    _, alone = run(small, settings)
    _, at_once = run(small, replace(settings, out=tmp_path / "two", workers=2))
    _, together = run(small, settings, together=True)
    assert without_seconds(alone) == without_seconds(at_once) == without_seconds(together)
    assert run(small, settings)[1] == alone  # read from the journals, with the seconds of then
    assert [row["pulls"] <= row["budget"] for row in alone] == [True, True]


def test_trials_differ_in_their_arms_and_their_splits(tmp_path: Path) -> None:
    small = replace(RIDGE.quick(), budgets=(64,), policies={"uniform": 64})
    _, found = run(small, Settings(tmp_path, quick=True, trials=3))
    assert len({row["test_loss"] for row in found}) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_last_round_of_a_search_is_not_forgotten(
    tmp_path: Path, number: signal.Signals
) -> None:
    class Interrupted(OneByOne):
        def losses(self, batch: Any, arms: Any) -> Any:
            os.kill(os.getpid(), number)
            return super().losses(batch, arms)

    trainer = Interrupted(RecordedCurves([[0.5], [0.25]]))
    space, policy = Configs([{"row": 0}, {"row": 1}]), UniformAllocation(2, 2)
    with pytest.raises(Stopped) as stopped:
        searched(trainer, space, policy, tmp_path / "journal")
    assert stopped.value.signal == number
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    again = searched(OneByOne(RecordedCurves([[0.5], [0.25]])), space, policy, tmp_path / "j2")
    assert again.arm == 1


def test_a_folder_with_something_else_in_it_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert reproduce("table1", "--quick", "--out", str(tmp_path)) == 2
    assert "README.md" in capsys.readouterr().err
    (tmp_path / "README.md").unlink()
    (tmp_path / "package.json").write_text("{}")
    assert reproduce("table1", "--quick", "--out", str(tmp_path)) == 2
    assert "package.json" in capsys.readouterr().err
    assert reproduce("table1", "--quick", "--out", str(tmp_path / "package.json" / "x")) == 2
    assert "package.json" in capsys.readouterr().err


def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    arguments = ["reproduce", "svm", "--workers", "2", "--out", str(tmp_path)]
    parent = subprocess.Popen([sys.executable, "-m", "lastarm", *arguments])
    while len(list(tmp_path.rglob("*.jsonl"))) < 4:
        assert parent.poll() is None
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    journals = list(tmp_path.rglob("*.jsonl"))
    deadline = time.monotonic() + 10
    while any(is_held(path) for path in journals):
        assert time.monotonic() < deadline
        time.sleep(0.1)


# The command -----------------------------------------------------------------------------------


def reproduce(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", *arguments])
    return int(ended.value.code or 0)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    arguments = ["reproduce", "ridge", "--quick"]
    started = subprocess.Popen(
        [sys.executable, "-m", "lastarm", *arguments, "--workers", "2", "--out", str(cut)],
        stdout=subprocess.PIPE,
        text=True,
    )
    while len(list(cut.glob("journals/seed-0/ridge-year-stand-in-quick/*/*.jsonl"))) < 4:
        assert started.poll() is None
        time.sleep(0.02)
    started.send_signal(signal.SIGTERM)
    said, _ = started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGTERM
    assert "The same command continues" in said
    assert not list(cut.glob("*.csv"))

    journals = {path: path.read_bytes() for path in cut.rglob("*.jsonl")}
    done = {path: text for path, text in journals.items() if b'"event":"closed"' in text}
    assert len(done) >= 2
    assert reproduce(*arguments[1:], "--out", str(cut)) == 0
    for path, before in done.items():
        assert path.read_bytes() == before
    assert reproduce(*arguments[1:], "--out", str(whole)) == 0
    first, second = (
        without_seconds(table(out / "ridge-year-stand-in.csv")) for out in (whole, cut)
    )
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "is not one of"),
        (["ridge", "--trials", "0"], "trials=0"),
        (["ridge", "--workers", "some"], "workers='some'"),
        (["ridge", "--data", "nowhere.npz"], "nowhere.npz"),
        (["all", "--data", "some.npz"], "for one experiment"),
        (["table1", "--data", "some.npz"], "makes its own data"),
    ],
)
def test_bad_arguments_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert reproduce(*arguments, "--quick", "--out", str(tmp_path)) == 2
    assert message in capsys.readouterr().err


def test_the_command_of_a_part_can_be_typed() -> None:
    settings = Settings(Path("x"), trials=4, data="folder/uci-protein.npz", seed=3)
    expected = "lastarm reproduce ridge --data uci-protein.npz --trials 4 --seed 3"
    assert command("ridge", settings) == expected
    at_once = Settings(Path("x"), trials=4, workers=2)
    assert command("svm", at_once) == "lastarm reproduce svm --trials 4 --workers 2"
    assert command("subsets", at_once) == "lastarm reproduce subsets --trials 4"
    assert command("table1", at_once) == "lastarm reproduce table1"
