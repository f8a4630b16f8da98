"""Every form of trainer, counted: what is trained is what is booked, and nothing is trained twice.

A step of training writes a byte to a file, whichever process makes it.
"""

import importlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastarm import Doubling, Hyperband, Program, Result, SuccessiveHalving, Uniform, search
from lastarm.events import Event, Loss
from lastarm.runners import Serial
from lastarm.trainers import Config

BUDGET = 96
POLICIES = {
    "halving": SuccessiveHalving(8, BUDGET),
    "doubling": Doubling(8, BUDGET),
    "hyperband": Hyperband(8, BUDGET, max_pulls=9),
}


class Tally:
    def __init__(self, path: Path) -> None:
        self.path = path

    def step(self, steps: int = 1) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(b"x" * steps)

    @property
    def steps(self) -> int:
        return self.path.stat().st_size


class Object:
    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def start(self, config: Config, seed: int) -> list[float]:
        return [config["x"], 0]

    def train(self, state: list[float], pulls: int) -> list[float]:
        self.tally.step(pulls)
        return [state[0], state[1] + pulls]

    def loss(self, state: list[float]) -> float:
        return state[0] + 1 / state[1]


def functions(tally: Tally) -> Any:
    def train(config: Config, state: Any, pulls: int) -> list[float]:
        x, level = state or (config["x"], 0)
        tally.step(pulls)
        return [x, level + pulls]

    return train, lambda state: {"loss": state[0] + 1 / state[1], "level": state[1]}


def generator(tally: Tally) -> Any:
    def arm(config: Config) -> Iterator[float]:
        for level in range(1, 10**9):
            tally.step()
            yield config["x"] + 1 / level

    return arm


def lazy_generator_that_resumes(tally: Tally) -> Any:
    def arm(config: Config, seed: int, resume: Any = None) -> Iterator[Any]:
        level = resume or 0
        while True:
            level += 1
            tally.step()
            yield partial(loss, config["x"], level), level

    def loss(x: float, level: int) -> float:
        return x + 1 / level

    return arm


def estimator(tally: Tally) -> Any:
    return importlib.import_module("tests.counted_sgd").trainer()


PROGRAM = """
import pathlib, sys
x, upto, state, tally = sys.argv[1:]
file = pathlib.Path(state, "level")
level = int(file.read_text()) if file.exists() else 0
with open(tally, "a") as out:
    out.write("x" * (int(upto) - level))
file.write_text(upto)
print(float(x) + 1 / int(upto))
"""


def program(tally: Tally) -> Any:
    return Program([sys.executable, "-c", PROGRAM, "{x}", "{upto}", "{state}", tally.path])


FORMS = {
    form.__name__: form
    for form in (Object, functions, generator, lazy_generator_that_resumes, estimator, program)
}
SPACES: dict[str, Any] = {
    "estimator": {"countedsgd__alpha": Uniform(1e-6, 1)},
}


@pytest.fixture
def tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tally:
    monkeypatch.setenv("TALLY", str(tmp_path / "tally"))
    return Tally(tmp_path / "tally")


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_trained_is_what_is_booked(
    tally: Tally, form: str, policy: str, workers: int | None
) -> None:
    space = SPACES.get(form, {"x": Uniform(0, 1)})
    result = search(FORMS[form](tally), space, policy=POLICIES[policy], workers=workers)
    assert result.complete
    assert tally.steps == result.spent.pulls <= BUDGET
    assert result.spent.repeated == 0
    assert result.failures == {}


class Stopped(Exception):
    """Ends a search as a crash would, between two pulls."""


@pytest.mark.parametrize("form", [form for form in FORMS if form != "generator"])
def test_after_a_crash_what_counted_is_not_trained_again(
    tally: Tally, tmp_path: Path, form: str
) -> None:
    left = [9]

    def stop(event: Event) -> None:
        left[0] -= isinstance(event, Loss)
        if left[0] == 0:
            raise Stopped

    def run(on_event: Any = None) -> Result:
        space = SPACES.get(form, {"x": Uniform(0, 1)})
        return search(
            FORMS[form](tally),
            space,
            policy=POLICIES["halving"],
            journal=tmp_path / "j.jsonl",
            on_event=on_event,
            runner=partial(Serial, group=1),  # so that none else is in flight
        )

    with pytest.raises(Stopped):
        run(stop)
    result = run()
    assert result.complete
    assert tally.steps == result.spent.pulls == BUDGET
    assert result.spent.repeated == 0


def test_a_generator_runs_again_from_zero_after_a_crash_and_that_is_told(
    tally: Tally, tmp_path: Path
) -> None:
    left = [9]

    def stop(event: Event) -> None:
        left[0] -= isinstance(event, Loss)
        if left[0] == 0:
            raise Stopped

    found = partial(
        search,
        generator(tally),
        {"x": Uniform(0, 1)},
        policy=POLICIES["halving"],
        journal=tmp_path / "j.jsonl",
    )
    with pytest.raises(Stopped):
        found(on_event=stop)
    result = found()
    assert result.spent.pulls == BUDGET
    assert result.spent.repeated > 0
    assert tally.steps == BUDGET + result.spent.repeated


def test_scores_and_metrics_go_through(tmp_path: Path) -> None:
    def accuracy(config: Config) -> Iterator[dict[str, Any]]:
        for level in range(1, 10**9):
            yield {"loss": config["x"] * (1 - 1 / level), "seen": np.float32(level)}

    losses: list[Loss] = []
    result = search(
        accuracy,
        {"x": Uniform(0, 1)},
        policy=POLICIES["halving"],
        maximize=True,
        journal=tmp_path / "j.jsonl",
        on_event=lambda event: losses.append(event) if isinstance(event, Loss) else None,
    )
    assert result.config is not None
    assert result.config["x"] == max(config["x"] for config in result.configs)
    assert result.loss is not None
    assert result.loss < 0
    assert all(loss.metrics == {"seen": loss.pull.upto} for loss in losses)
