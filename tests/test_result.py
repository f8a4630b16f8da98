"""What a search gives back, and what it shows meanwhile."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastarm import Choice, SuccessiveHalving, Uniform, search
from lastarm.trainers import Config


def arms(config: Config) -> Iterator[float]:
    if config["kind"] == "bad":
        raise RuntimeError("no\x1b[31m such kind")
    for level in range(1, 10**9):
        yield config["x"] + 1 / level


SPACE = {"x": Uniform(0, 1), "kind": Choice("good", "bad")}


@pytest.fixture(scope="module")
def result() -> Any:
    return search(
        arms, SPACE, policy=SuccessiveHalving(8, 96), include=[{"x": 0.5, "kind": "bad"}]
    )


def test_printed_it_is_a_table(result: Any) -> None:
    lines = str(result).splitlines()
    assert lines[0].startswith(f"Arm {result.arm} is recommended: loss {result.loss:.6g}")
    (heading,) = (
        n for n, line in enumerate(lines) if line.split()[:3] == ["arm", "pulls", "loss"]
    )
    rows = [line.split() for line in lines[heading + 1 :]]
    assert rows[0][0] == str(result.arm)
    assert len(rows) == 8
    assert rows[-1][2] == "RuntimeError"
    assert "\x1b" not in str(result)


def test_it_can_be_had_as_a_dataframe(result: Any) -> None:
    frame = result.to_dataframe()
    assert list(frame.columns) == ["arm", "x", "kind", "pulls", "loss", "error"]
    assert list(frame["arm"]) == list(range(8))
    assert frame.loc[0, "error"].startswith("RuntimeError")
    assert frame.loc[result.arm, "loss"] == result.loss
    curves = result.to_dataframe(curves=True)
    assert len(curves) == result.spent.observations
    assert list(curves.columns) == ["arm", "pulls", "loss"]


def test_settings_and_metrics_have_columns_of_their_own() -> None:
    def arm(config: Config) -> Iterator[dict[str, float]]:
        while True:
            yield {"loss": 0.5, "accuracy": 0.25, "error": 1.0}

    space = {"loss": Choice("hinge", "log"), "x": Uniform(0, 1)}
    found = search(arm, space, policy=SuccessiveHalving(4, 16))
    frame = found.to_dataframe()
    assert list(frame.columns) == ["arm", "param_loss", "x", "pulls", "loss", "error"]
    assert set(frame["param_loss"]) <= {"hinge", "log"}
    curves = found.to_dataframe(curves=True)
    assert list(curves.columns) == ["arm", "pulls", "loss", "accuracy", "metric_error"]
    assert found.metrics[0][found.curves[0][0][0]] == {"accuracy": 0.25, "error": 1.0}


def test_include_comes_first_and_the_rest_is_drawn_by_the_seed(result: Any) -> None:
    assert result.configs[0] == {"x": 0.5, "kind": "bad"}
    other = search(arms, SPACE, policy=SuccessiveHalving(8, 96), seed=3)
    assert other.configs[1:] != result.configs[1:]


SCRIPT = """
import time
from lastarm import SuccessiveHalving, Uniform, search
def arm(config):
    for level in range(1, 1000):
        time.sleep(0.01)
        yield config["x"] + 1 / level
result = search(arm, {"x": Uniform(0, 1)}, policy=SuccessiveHalving(8, 96), progress=PROGRESS)
"""


@pytest.mark.parametrize(("wanted", "shown"), [("None", True), ("False", False)])
def test_progress_is_shown_on_a_terminal(tmp_path: Path, wanted: str, shown: bool) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT.replace("PROGRESS", wanted)],
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 65536):
                written += chunk
        except OSError:  # the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    text = written.decode(errors="replace")
    for part in ("successive-halving: rung", "arms to", "/96", "left", "lowest loss", "x="):
        assert (part in text) == shown


def test_progress_is_silent_elsewhere() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("PROGRESS", "None")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == done.stdout == ""
