"""A Ray of its own, which the runner starts: nothing stays of it, however the search ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from lastarm.journal import read
from lastarm.runners.ray.cluster import UNDERTAKER
from tests.eventually import eventually

SCRIPT = """
import os, signal, sys, time
from functools import partial
import psutil
from lastarm import Configs, SuccessiveHalving, search
from lastarm.errors import Stuck
from lastarm.events import Loss
import ray
from lastarm.runners.ray import Ray
from lastarm.runners.ray.cluster import LocalRay
from lastarm.testing.runners import Drifting

class Slow(Drifting):
    def __init__(self, seconds):
        self.seconds, self.coordinator = seconds, os.getpid()

    def train(self, state, pulls):
        if os.getpid() != self.coordinator:
            time.sleep(self.seconds)
        return super().train(state, pulls)

    def loss(self, state):
        return {"loss": super().loss(state), "process": os.getpid()}

found = partial(search, space=Configs([{"limit": k / 10} for k in range(16)]),
                policy=SuccessiveHalving(16, 320))
"""


def test_when_the_head_is_lost_another_runner_finishes_the_search(
    tmp_path: Path, alive: Callable[[int], bool]
) -> None:
    script = tmp_path / "search.py"
    script.write_text(
        SCRIPT
        + """
def behead(event):
    if isinstance(event, Loss) and event.pull.arm == 3:
        if sys.argv[1] == "coordinator":
            print(*(child.pid for child in psutil.Process().children(recursive=True)), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        for child in psutil.Process().children():
            if child.name() == sys.argv[1]:
                child.kill()

journal = sys.argv[1] + ".jsonl"
users = LocalRay(2) if sys.argv[1] == "raylet" else None
try:
    found(Slow(0.5), runner=partial(Ray, workers=2, lease=2), journal=journal, on_event=behead)
except Stuck as error:
    print(str(error)[:25], ray.is_initialized())
if users:
    users.close()
print(len(psutil.Process().children(recursive=True)))
print(found(Slow(0), journal=journal).digest)
print(found(Slow(0)).digest)
"""
    )
    searches = [
        subprocess.Popen(
            [sys.executable, script, head], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        for head in ("gcs_server", "raylet", "coordinator")
    ]
    left = searches.pop().communicate(timeout=120)[0].split()
    eventually(lambda: not any(alive(int(process)) for process in left), 30)
    assert len(left) > 5
    for search_ in searches:
        said, children, finished, whole = search_.communicate(timeout=120)[0].split("\n")[:4]
        assert said == "the Ray cluster is gone.  False"
        assert children == "0"
        assert finished == whole


def test_a_ray_of_its_own_is_quiet_and_leaves_nothing_behind(tmp_path: Path) -> None:
    script = tmp_path / "search.py"
    script.write_text(
        SCRIPT
        + """
handler = signal.getsignal(signal.SIGTERM)
family = set()
def kill_one(event):
    family.update(psutil.Process().children(recursive=True))
    if isinstance(event, Loss) and event.pull == event.pull.__class__(5, 5):
        os.kill(event.metrics["process"], signal.SIGKILL)

print(found(Slow(0.05), runner=partial(Ray, workers=2), on_event=kill_one).digest)
print(found(Slow(0)).digest)
print(signal.getsignal(signal.SIGTERM) is handler)
print(len(family) > 5, [process for process in family if process.is_running()])
print(psutil.Process().children(recursive=True))
"""
    )
    ran = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    ray_, serial, handler, family, children, rest = ran.stdout.split("\n")
    assert ray_ == serial
    assert handler == "True"
    assert family == "True []"
    assert (children, rest, ran.stderr) == ("[]", "", "")


def test_a_second_ctrl_c_ends_a_ray_of_its_own_at_once(tmp_path: Path) -> None:
    script = tmp_path / "search.py"
    script.write_text(
        SCRIPT
        + """
class Hanging(Drifting):
    def train(self, state, pulls):
        open(str(os.getpid()), "w").close()
        time.sleep(600)

search(Hanging(), Configs([{"limit": 0.0}, {"limit": 0.1}]), policy=SuccessiveHalving(2, 8),
       runner=partial(Ray, workers=2))
"""
    )
    with subprocess.Popen([sys.executable, script], cwd=tmp_path, stderr=subprocess.PIPE) as it:
        eventually(lambda: len(list(tmp_path.iterdir())) == 3)
        family = psutil.Process(it.pid).children(recursive=True)
        assert {int(file.name) for file in tmp_path.iterdir() if file != script} <= {
            process.pid for process in family
        }
        it.send_signal(signal.SIGINT)
        time.sleep(0.5)
        it.send_signal(signal.SIGINT)
        assert it.wait(30) == -signal.SIGINT
    eventually(lambda: not any(process.is_running() for process in family))


def test_what_is_left_of_a_killed_search_is_ended_and_nobody_else(tmp_path: Path) -> None:
    session = tmp_path / "session"
    session.mkdir()
    sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeping) as foreign, subprocess.Popen([*sleeping, session]) as ours:
        family = [str(foreign.pid), str(ours.pid)]
        subprocess.run(
            ["/bin/sh", "-c", UNDERTAKER, session, *family],
            stdin=subprocess.DEVNULL,
            check=True,
        )
        assert ours.wait(60) == -signal.SIGKILL
        assert foreign.poll() is None
        foreign.kill()
    assert not session.exists()


def test_without_ray_it_is_said_what_to_install() -> None:
    code = "import sys; sys.modules['ray'] = None; import lastarm.runners.ray"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'lastarm[ray]'" in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("broken", ["file", "x" * 120], ids=["a file", "a long path"])
def test_a_ray_that_does_not_start_is_an_error_that_says_what_to_check(
    tmp_path: Path, broken: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / ("x" * 120)).mkdir()
    (tmp_path / "train.py").write_text("def train(config):\n    yield 1.0\n")
    script = tmp_path / "tune.py"
    script.write_text(
        """
import importlib, sys
from functools import partial
from lastarm import LogUniform, search
from lastarm.cli import main
from lastarm.errors import EngineNotStarted
from train import train
try:
    search(train, {"x": LogUniform(1e-3, 1)}, arms=2, budget=8, runner="ray", journal="j.jsonl")
except EngineNotStarted as error:
    print(error.engine, error.why)
tune = importlib.import_module("lastarm.cli.tune")
tune.search = partial(tune.search, runner="ray")
main(["tune", "train:train", "--param", "x=log:1e-3:1", "--arms", "2", "--budget", "8"])
"""
    )
    folder = str(tmp_path / broken)
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "RAY_TMPDIR": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("Ray ")
    assert done.stderr.startswith("lastarm: Ray could not be started on this machine: ")
    assert folder in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(read(tmp_path / "j.jsonl")) == 1
