"""Importing the package: every name is there, and nothing heavy comes with it."""

import importlib
import subprocess
import sys
from importlib.metadata import version

import pytest

import lastarm
from lastarm.cli.command import COMMANDS

HEAVY = {"numpy", "numba", "scipy", "sklearn", "pandas", "rich", "click", "distributed", "ray"}
HEAVY |= {"matplotlib", "optuna", "torch", "lightning", "transformers", "keras"}

# What README, docs and examples of 0.1.0 import. Only `lastarm.plan`, `lastarm.forecast` and
# `lastarm.utilisation`, which were headings of the API reference, have moved: see CHANGELOG.
PATHS = {
    "lastarm": (
        "Checkpoints Choice Configs Forest Hyperband Integer LogUniform Policy Result Rounds "
        "Sampler SuccessiveHalving Uniform UniformAllocation search"
    ),
    "lastarm.batched": "BatchedTrainer Single SomeFailed Together",
    "lastarm.batched.completion": "MatrixCompletion",
    "lastarm.batched.kernel_svm": "KernelSVM",
    "lastarm.batched.linear": "LinearModels",
    "lastarm.batched.ridge": "RidgeRegression",
    "lastarm.cli": "main",
    "lastarm.data": "digits",
    "lastarm.errors": "",
    "lastarm.events": "Saved Work",
    "lastarm.journal": "read",
    "lastarm.ledger": "Ledger Spent Stretch",
    "lastarm.policies.hyperband": "brackets",
    "lastarm.policy": "Algorithm",
    "lastarm.report.importance": "importance",
    "lastarm.runners": "AnyRunner Arms Runner Simulated",
    "lastarm.runners.dask": "Dask",
    "lastarm.runners.ray": "Ray",
    "lastarm.samplers": "Seen",
    "lastarm.sklearn": "HalvingSearch",
    "lastarm.testing": "policy_checks",
    "lastarm.theory": (
        "Envelopes halving_budget halving_regret horizon_budget horizon_regret uniform_budget"
    ),
    "lastarm.theory.audit": "Elimination",
    "lastarm.trainers": "RecordedCurves",
    "lastarm.trainers.estimators": "Estimator",
    "lastarm.trainers.splits": "Split folds split",
}


def test_every_name_is_there_and_is_the_one_that_is_meant() -> None:
    assert set(lastarm.__all__) <= set(dir(lastarm))
    for name in lastarm.__all__:
        found = getattr(lastarm, name)
        assert found.__name__ == name
        assert found.__module__.startswith("lastarm.")
    assert not hasattr(lastarm, "no_such_name")


def test_it_says_its_version() -> None:
    assert lastarm.__version__ == version("lastarm")
    assert "__version__" in dir(lastarm)


@pytest.mark.parametrize("module", PATHS)
def test_what_was_imported_once_can_be_imported(module: str) -> None:
    found = importlib.import_module(module)
    assert all(hasattr(found, name) for name in PATHS[module].split())


def test_importing_it_brings_nothing_heavy() -> None:
    code = "import sys, lastarm; print(*{name.partition('.')[0] for name in sys.modules})"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not HEAVY & set(said.stdout.split())


def test_printing_a_result_needs_nothing_of_the_report() -> None:
    code = (
        "import sys; from lastarm import Result\n"
        "from lastarm.events import Loss, Pull\n"
        "print(Result.of([Loss(Pull(0, 1), 0.5)]), file=sys.stderr)\n"
        "print(*(name for name in sys.modules if name.startswith('lastarm.report')))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "0.5" in said.stderr
    assert said.stdout == "\n"


def test_importing_search_and_a_policy_brings_nothing_heavy() -> None:
    code = (
        "import sys; from lastarm import SuccessiveHalving, search\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not HEAVY & set(said.stdout.split())


def test_searching_brings_no_more_than_numpy() -> None:
    code = (
        "import sys; from lastarm import Configs, search\n"
        "search(lambda config: (yield from [0.5] * 9), Configs([{}, {}]), arms=2, budget=4)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert HEAVY & set(said.stdout.split()) == {"numpy"}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_brings_neither_numpy_nor_rich(command: str) -> None:
    assert not HEAVY & brought_by(command, "--help") - {"click"}


@pytest.mark.parametrize("words", ["--help", "-h", "--version", "", "tune --nope", "nope", "show"])
def test_the_command_brings_neither_numpy_nor_rich_before_it_does_something(words: str) -> None:
    assert not HEAVY & brought_by(*words.split()) - {"click"}


def brought_by(*words: str) -> set[str]:
    code = (
        "import sys; from lastarm.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print('\\nbrought:', *{name.partition('.')[0] for name in sys.modules})"
    )
    command = [sys.executable, "-c", code, *words]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    brought = set(said.stdout.rpartition("brought:")[2].split())
    assert "click" in brought
    return brought
