"""Whatever a trainer raises, wherever it does: that arm fails, alone and with its own words."""

import asyncio
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lastarm import Batched, Configs, Processes, Serial, Simulated, UniformAllocation, search
from lastarm.errors import CheckpointReplaced, NoTestLoss
from lastarm.runners import MakeRunner
from lastarm.sklearn.halving_search import _raise_again
from lastarm.trainers import Config
from tests.refusals import warned

MAKERS: dict[str, MakeRunner] = {
    "serial": Serial,
    "batched": Batched,
    "simulated": partial(Simulated, workers=2),
    "processes": partial(Processes, workers=2),
}


class Skipped(BaseException):
    """As the outcomes of test frameworks are; even its text cannot be had."""

    def __str__(self) -> str:
        raise KeyError


RAISED: dict[str, tuple[BaseException, str]] = {
    "cancelled": (asyncio.CancelledError("why"), "CancelledError: why"),
    "closed": (GeneratorExit(), "GeneratorExit"),
    "group": (BaseExceptionGroup("both", [SystemExit(1)]), "both (1 sub-exception)"),
    "exit": (SystemExit(0), "SystemExit: 0"),
    "outcome": (Skipped(), "Skipped: its message cannot be read"),
    "interrupt": (KeyboardInterrupt("its own"), "KeyboardInterrupt: its own"),
}
METHODS = ("start", "train", "loss", "save")


class Raising:
    """An arm raises what its config says in the method that its config says."""

    def _raise(self, state: Config, method: str) -> None:
        if state.get("method") == method:
            raise RAISED[state["raised"]][0]

    def start(self, config: Config, seed: int) -> Config:
        self._raise(config, "start")
        return config

    def train(self, state: Config, pulls: int) -> Config:
        self._raise(state, "train")
        return state

    def loss(self, state: Config) -> float:
        self._raise(state, "loss")
        return 0.5

    def save(self, state: Config, path: Path) -> None:
        self._raise(state, "save")
        path.write_bytes(pickle.dumps(state))

    def load(self, path: Path) -> Any:
        return pickle.loads(path.read_bytes())


def failures(
    make: MakeRunner, journal: Path, *raised: str, methods: tuple[str, ...] = METHODS
) -> list[str]:
    """What is told of the arms that raise this, each in one of the methods, and of one more."""
    bad = [{"raised": name, "method": method} for name in raised for method in methods]
    policy = UniformAllocation(len(bad) + 1, len(bad) + 1)
    space = Configs([*bad, {}])
    result = search(Raising(), space, policy=policy, runner=make, journal=journal)
    assert result.arm == len(bad)
    assert all("Traceback" in failure.traceback for failure in result.failures.values())
    return [result.failures[arm].error for arm in range(len(bad))]


@pytest.mark.parametrize("runner", MAKERS)
def test_what_is_no_exception_is_that_arms_failure_too(runner: str, tmp_path: Path) -> None:
    raised = [name for name in RAISED if name != "interrupt"]
    told = failures(MAKERS[runner], tmp_path / "j.jsonl", *raised)
    for k, error in enumerate(told):
        assert RAISED[raised[k // len(METHODS)]][1] in error


def test_an_interrupt_that_an_arm_raises_is_its_failure_on_a_worker(tmp_path: Path) -> None:
    told = failures(MAKERS["processes"], tmp_path / "j.jsonl", "interrupt")
    assert told == ["KeyboardInterrupt: its own"] * len(METHODS)


@pytest.mark.parametrize("runner", ["serial", "batched", "simulated"])
def test_an_interrupt_that_an_arm_raises_ends_a_search_in_its_own_process(
    runner: str, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        failures(MAKERS[runner], tmp_path / "j.jsonl", "interrupt", methods=("train",))


@pytest.mark.parametrize("raised", ["cancelled", "exit", "outcome"])
def test_a_test_that_raises_anything_costs_no_answer(raised: str) -> None:
    class Untestable(Raising):
        def test(self, state: Config) -> float:
            raise RAISED[raised][0]

    with warned(NoTestLoss) as told:
        result = search(Untestable(), Configs([{}, {}]), policy=UniformAllocation(2, 2))
    assert RAISED[raised][1] in told[0].cause
    assert result.complete
    assert result.test_loss is None


def test_a_state_that_cannot_be_loaded_is_trained_again_whatever_it_raises(
    tmp_path: Path,
) -> None:
    class Unloadable(Raising):
        def load(self, path: Path) -> Any:
            raise GeneratorExit

    found = partial(search, Unloadable(), Configs([{}, {}]), journal=tmp_path / "j.jsonl")
    found(policy=UniformAllocation(2, 2))
    with pytest.warns(CheckpointReplaced):
        assert found(policy=UniformAllocation(2, 4)).complete


def test_scikit_learn_raises_what_ends_no_more_than_its_call() -> None:
    failed = search(
        Raising(),
        Configs([{"raised": "exit", "method": "train"}, {}]),
        policy=UniformAllocation(2, 2),
    ).failures[0]
    for raised in ("exit", "cancelled"):
        config = {"raised": raised, "method": "train"}
        with pytest.raises(RuntimeError):
            _raise_again(Raising(), config, 0, failed)
