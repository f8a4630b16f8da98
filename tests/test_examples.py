"""Every example runs as it is, in an empty folder."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))
NEEDS = {
    "pytorch_loop": "torch",
    "pytorch_module": "torch",
    "lightning_loop": "lightning",
    "transformers_loop": "transformers",
    "keras_loop": "keras",
    "ray_tune_asha": "tensorboardX",  # which Ray Tune needs, and Ray does not
    "dask_ml_hyperband": "dask_ml",
}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, marks=[pytest.mark.frameworks] * (script.stem in NEEDS))
        for script in SCRIPTS
    ],
    ids=lambda script: str(script.stem),
)
def test_example(script: Path, tmp_path: Path) -> None:
    needed = NEEDS.get(script.stem)
    if needed and not find_spec(needed):
        pytest.skip(f"{needed} is not installed: make frameworks")
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    if script.parent == EXAMPLES:  # peers may have more to say
        assert run.stderr == ""


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
