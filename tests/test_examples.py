"""Every example runs as it is, in an empty folder."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: str(script.stem))
def test_example(script: Path, tmp_path: Path) -> None:
    if script.stem == "pytorch_loop" and not find_spec("torch"):
        pytest.skip("PyTorch is not installed")
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout


def test_the_example_of_a_program_runs_and_resumes(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        run = subprocess.run(
            ["sh", EXAMPLES / "program" / "tune.sh", tmp_path / "root.jsonl"],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        assert "Spent: 960 pulls of a budget of 960, 62 looks at a loss." in run.stdout
