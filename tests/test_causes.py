"""A bug has a line number: `AllArmsFailed` is raised from what the first arm raised."""

import gc
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from lastarm import LogUniform, search
from lastarm.batched import SomeFailed
from lastarm.cli import main
from lastarm.errors import AllArmsFailed, ArmRaised
from lastarm.events import Event, Failure, Pull
from lastarm.runners.asides import Aside, Asides
from tests.user_code import load

SPACE = {"lr": LogUniform(1e-5, 1e-1)}
HERE = "raise_of_this_line"


def training(config: dict[str, Any]) -> Iterator[float]:
    if config["lr"] > 1e-3:
        raise ValueError("too large")  # raise_of_this_line
    yield float("nan")


class Unsendable(Exception):
    """An error that cannot be made again from its message."""

    def __init__(self, code: int, what: str) -> None:
        self.code = code
        super().__init__(what)


def unsendable(config: dict[str, Any]) -> Iterator[float]:
    yield from ()
    raise Unsendable(3, "it is bad")  # raise_of_this_line


def failed(trainer: Any = training, **arguments: Any) -> AllArmsFailed:
    with pytest.raises(AllArmsFailed) as error:
        search(trainer, SPACE, arms=8, budget=32, **arguments)
    return error.value


def printed(error: BaseException) -> str:
    """What Python prints of it; lines of the source are there if they are in a traceback."""
    return "".join(traceback.format_exception(error))


def test_in_this_process_the_cause_is_the_error_itself() -> None:
    error = failed()
    assert isinstance(error.__cause__, ValueError)
    *_, last = traceback.extract_tb(error.__cause__.__traceback__)
    assert last.name == "training"
    assert HERE in printed(error)


def test_causes_are_counted() -> None:
    error = failed()
    raised = sum(cause.startswith("ValueError") for cause in error.causes.values())
    assert 0 < raised < 8
    assert f"{raised} of 8: ValueError: too large" in str(error)
    assert f"{8 - raised} of 8: its loss became nan" in str(error)
    assert f"{Path(__file__)}, line" in str(error)
    assert ", in training" in str(error)


def raised_there(**arguments: Any) -> None:
    """In another process: the error with its traceback there, or at least the traceback."""
    error = failed(**arguments)
    assert isinstance(error.__cause__, ValueError)
    assert isinstance(error.__cause__.__cause__, ArmRaised)
    assert HERE in printed(error)
    error = failed(unsendable, **arguments)
    assert isinstance(error.__cause__, ArmRaised)
    assert "Unsendable: it is bad" in str(error.__cause__)
    assert HERE in printed(error)


def test_from_a_worker_process_the_cause_has_the_traceback_of_the_worker() -> None:
    raised_there(workers=2)


class Hostile(Exception):
    """An error that cannot be pickled, or not loaded, and raises no Exception then."""

    def __reduce__(self) -> Any:
        if self.args[0] == "sent":
            raise KeyboardInterrupt
        return sys.exit, ()


@pytest.mark.parametrize("moment", ["sent", "loaded"])
def test_an_error_that_cannot_be_sent_is_the_failure_of_its_arm(moment: str) -> None:
    aside = Aside(error=Hostile(moment)).sendable()
    assert (aside.error is None) == (moment == "sent")
    asides, failure = Asides(), Failure(Pull(0, 1), "Hostile", "its traceback")
    asides.take(failure, aside)
    assert isinstance(asides.cause(failure), ArmRaised)


def test_from_a_journal_too(tmp_path: Path) -> None:
    failed(journal=tmp_path / "j.jsonl")
    error = failed(journal=tmp_path / "j.jsonl")
    assert isinstance(error.__cause__, ArmRaised)
    assert error.journal == str(tmp_path / "j.jsonl")
    assert HERE in printed(error)


def test_where_no_arm_raised_there_is_no_cause() -> None:
    def diverging(config: dict[str, Any]) -> Iterator[float]:
        yield float("nan")

    error = failed(diverging)
    assert error.__cause__ is None
    assert "8 of 8: its loss became nan" in str(error)


class Model:
    """A large one."""


def test_an_error_is_let_go_when_an_arm_is_healthy() -> None:
    """It holds on to what its functions had, which may be a large model."""
    models: WeakSet[Model] = WeakSet()
    alive = []

    def first_fails(config: dict[str, Any]) -> Iterator[float]:
        model = Model()
        if config["lr"] == 0.01:
            models.add(model)
            raise ValueError("the first")
        while True:
            yield 1.0

    def note(event: Event) -> None:
        gc.collect()
        alive.append(len(models))

    result = search(first_fails, SPACE, arms=4, budget=16, include=[{"lr": 0.01}], on_event=note)
    assert [*result.failures] == [0]
    assert alive[:2] == [0, 1], "the failure of arm 0, as AllArmsFailed would show it"
    assert alive[4:] == [0] * len(alive[4:]), "after the first loss"


class Batch:
    """A batched trainer in which all arms fail, each by itself."""

    def start(self, configs: Any, seeds: Any) -> list[int]:
        return [0 for _ in configs]

    def train(self, batch: Any, arms: Any, pulls: int) -> None:
        try:
            raise ValueError("all of them")  # raise_of_this_line
        except ValueError as error:
            raise SomeFailed(dict.fromkeys(arms, error)) from None

    def losses(self, batch: Any, arms: Any) -> list[float]:
        return [0.0 for _ in arms]

    def take(self, batch: Any, arm: int) -> Any:
        return batch[arm]

    def gather(self, states: Any) -> list[Any]:
        return list(states)


def test_of_a_batch_as_well() -> None:
    error = failed(Batch())
    assert isinstance(error.__cause__, ValueError)
    assert HERE in printed(error)


def test_the_command_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    load(tmp_path, "def training(config):\n    yield 1 / 0\n", "user_code")
    words = ["--arms", "2", "--budget", "4", "--param", "x=uniform:0:1"]
    with pytest.raises(SystemExit) as ended:
        main(["tune", "user_code:training", *words])
    sys.modules.pop("user_code")
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "2 of 2: ZeroDivisionError: division by zero" in said
    assert f"user_code.py{os.sep}"[:-1] + ", line 2, in training" in said
