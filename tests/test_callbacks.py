"""The callbacks of frameworks, on tiny real models: they keep the laws, and survive kill -9."""

import os
import pickle
import signal
import subprocess
import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lastarm import Checkpoints, Reporting, SuccessiveHalving, search
from lastarm.errors import BadLoss
from lastarm.testing import trainer_checks
from lastarm.trainers.callbacks.checkpoint_files import loss_among, read_files, write_files
from tests.test_forms import trained

EXAMPLES = Path(__file__).parent.parent / "examples" / "frameworks"
FRAMEWORKS = ["lightning", "transformers", "keras"]
framework = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                pytest.mark.frameworks,
                pytest.mark.skipif(not find_spec(name), reason=f"{name}: make frameworks"),
            ],
        )
        for name in FRAMEWORKS
    ],
)
MIDDLING = {"rate": 0.003, "dropout": 0.2}


@pytest.fixture
def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example that uses the framework."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return import_module(f"{name}_loop")


# A law each that begins a fit more than twenty times would take minutes.
@framework
@pytest.mark.parametrize("law", ["a_loss_is_a_number", "saved_state"])
def test_the_laws_of_trainers(name: str, example: Any, law: str) -> None:
    (check,) = (check for check in trainer_checks() if law in check.__name__)
    check(lambda: Reporting(example.training), MIDDLING)


@framework
def test_arms_that_take_turns_and_make_room_have_the_digest_of_serial(
    name: str, example: Any
) -> None:
    found = partial(
        search, example.training, example.SPACE, policy=SuccessiveHalving(arms=4, budget=24)
    )
    serial = found()
    assert not serial.failures
    for other in (found(checkpoints=Checkpoints(alive=1)), found(workers=2)):
        assert (other.digest, other.spent.repeated) == (serial.digest, 0)


@framework
def test_the_state_is_the_frameworks_own_checkpoint(name: str, example: Any) -> None:
    state = trained(Reporting(example.training), MIDDLING, 2).unpacked()
    plain = pickle.loads(pickle.dumps(state))
    names = {"lightning": None, "transformers": "trainer_state.json", "keras": "weights.h5"}
    if names[name] is None:
        assert isinstance(plain, bytes)
    else:
        files = plain[1] if name == "transformers" else plain
        assert any(file.endswith(str(names[name])) for file in files)
        assert all(isinstance(written, bytes) for written in files.values())


SCRIPT = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
example = __import__(sys.argv[2])
from lastarm import search

events = 0
def kill(event):
    global events
    events += 1
    if events == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    found = search(example.training, example.SPACE, policy=example.POLICY, workers=2,
                   journal=sys.argv[3] or None, on_event=kill)
    assert not found.failures, found.failures
    print(found.digest)
"""


@framework
def test_killed_in_the_middle_on_two_workers_it_comes_to_the_same_digest(
    name: str, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def run(journal: Path | str, kill_at: int = -1) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, script, EXAMPLES, f"{name}_loop", journal, str(kill_at)],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    undisturbed = run("")
    assert undisturbed.returncode == 0, undisturbed.stderr
    journal = tmp_path / "search.jsonl"
    for kill_at in (7, 20):
        assert run(journal, kill_at).returncode == -signal.SIGKILL
    resumed = run(journal)
    digest = undisturbed.stdout.split()[-1]
    assert resumed.stdout.split()[-1] == digest, resumed.stderr


# What they share ---------------------------------------------------------------------------------


def test_files_of_a_folder_are_the_same_in_another(tmp_path: Path) -> None:
    files = {"a.bin": b"\x00\x01", "deep/er/b.json": b"{}", "empty": b""}
    one = write_files(files, tmp_path / "one")
    assert read_files(one) == files
    assert read_files(write_files(read_files(one), tmp_path / "other")) == files


def test_a_figure_that_the_framework_does_not_have_is_named_with_those_that_it_has() -> None:
    with pytest.raises(BadLoss, match="accuracy") as error:
        loss_among({"accuracy": 0.9}, "val_loss")
    assert error.value.kind == "val_loss"
    assert loss_among({"loss": 0.5}, "loss") == {"loss": 0.5}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_without_the_framework_the_error_names_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name, *(known for known in sys.modules if known.startswith(f"{name}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"lastarm.trainers.callbacks.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"lastarm\[{name}\]"):
        import_module(f"lastarm.trainers.callbacks.{name}")
