"""Every example runs as it is, in an empty folder."""

import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.eventually import eventually

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.rglob("*.py"))
NEEDS = {
    "pytorch_loop": "torch",
    "pytorch_module": "torch",
    "lightning_loop": "lightning",
    "transformers_loop": "transformers",
    "keras_loop": "keras",
    "train": "torch",
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


@pytest.mark.frameworks
@pytest.mark.skipif(not find_spec("torch"), reason="torch: make frameworks")
def test_arms_of_several_processes_resume_to_the_same_answer_and_leave_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"LASTARM_TEST={tmp_path}"
    monkeypatch.setenv("LASTARM_TEST", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def begun(journal: str) -> subprocess.Popen[str]:
        command = ["sh", str(EXAMPLES / "ddp" / "tune.sh"), str(tmp_path / journal)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def running(words: str = "") -> list[int]:
        """The processes that come from the search."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                own = mark.encode() in (process / "environ").read_bytes()
                if own and words.encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
        return [one for one in found if one != os.getpid()]

    def answer(search: subprocess.Popen[str]) -> str:
        with search:
            told = search.communicate()[0]
        assert search.returncode == 0, told
        return told[told.index("Recommended:") :].splitlines()[0]

    undisturbed = answer(begun("undisturbed.jsonl"))
    eventually(lambda: not running())
    killed = tmp_path / "killed.jsonl"
    with begun(killed.name) as search:
        eventually(lambda: killed.exists() and '"loss"' in killed.read_text(), seconds=600)
        eventually(lambda: len(running("multiprocessing")) >= 2, seconds=600)
        search.kill()
    eventually(lambda: not running())
    assert answer(begun(killed.name)) == undisturbed
    eventually(lambda: not running())
