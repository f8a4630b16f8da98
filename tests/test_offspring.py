"""Processes that come from a search or from its arms: none speaks for it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.eventually import eventually


def printed(script: str, folder: Path) -> list[str]:
    """What a script prints that is run as the main script of a process."""
    file = folder / "script.py"
    file.write_text(script)
    ran = subprocess.run(
        [sys.executable, file],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_a_forked_child_that_comes_back_neither_answers_nor_goes_on_with_the_search(
    tmp_path: Path,
) -> None:
    script = """
import os, sys
from lastarm import Batched, Configs, Simulated, SuccessiveHalving, search

class Forking:
    forks = True

    def start(self, config, seed):
        self.helped("start", config)
        return config

    def train(self, state, pulls):
        self.helped("train", state)
        return state

    def loss(self, state):
        self.helped("loss", state)
        return state["loss"]

    def test(self, state):
        self.helped("test", state)
        return state["loss"]

    def helped(self, method, config):
        if not self.forks or method != config["method"]:
            return
        child = os.fork()
        if child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code == config["code"], code
        elif config["end"] == "exit":
            sys.exit(config["code"])
        elif config["end"] == "raise":
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            raise KeyboardInterrupt

    def fingerprint(self):
        return {}

ends = [("exit", 0), ("exit", 3), ("raise", 1), ("return", 0)]
configs = Configs([
    {"loss": float(k), "method": method, "end": end, "code": code}
    for k, (method, (end, code)) in enumerate(
        (method, end) for method in ("test", "start", "train", "loss") for end in ends
    )
])

def watch(event):
    # The last child is one of the search itself.
    if Forking.forks and type(event).__name__ == "Closed" and os.fork() == 0:
        sys.exit(0)

def found(**how):
    return search(Forking(), configs, policy=SuccessiveHalving(16, 320), **how).digest

Forking.forks = False
expected = found()
Forking.forks = True
for how in (
    {},
    {"journal": "serial.jsonl"},
    {"runner": Batched, "journal": "batched.jsonl"},
    {"runner": Simulated},
    {"workers": 2},
    {"workers": 2, "journal": "processes.jsonl"},
):
    print(found(on_event=watch, **how) == expected, flush=True)
"""
    assert printed(script, tmp_path) == ["True"] * 6


def test_pools_in_a_pull_work_also_with_functions_and_classes_of_the_script(
    tmp_path: Path,
) -> None:
    script = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from joblib import Parallel, delayed
from lastarm import UniformAllocation, search

OFFSET = 5

class State:
    def __init__(self, x):
        self.x = x

def plus(state):
    return State(state.x + OFFSET)

class Trainer:
    def start(self, config, seed):
        return State(config["x"])

    def train(self, state, pulls):
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                (state,) = pool.map(plus, [state])
        with ProcessPoolExecutor(1) as pool:
            (state,) = pool.map(plus, [state])
        state, _ = Parallel(2)(delayed(plus)(state) for _ in range(2))
        return state

    def loss(self, state):
        assert type(state) is State
        return state.x

if __name__ == "__main__":
    for runner in ("serial", "processes"):
        result = search(Trainer(), {"x": [1.0]}, arms=1, budget=1, runner=runner, workers=1)
        assert type(result.state) is State
        print(result.loss)
"""
    assert printed(script, tmp_path) == ["21.0"] * 2


SHARING = """
import multiprocessing, os, sys, time
from lastarm import Configs, UniformAllocation, search

class Sharing:
    def start(self, config, seed):
        return config

    def train(self, state, pulls):
        if state["sleeps"]:
            # It has a name in shared memory, which a process of Python removes when we are dead.
            self.lock = multiprocessing.get_context("spawn").Lock()
            with open("names", "a") as names:
                names.write(f"/dev/shm/sem.{self.lock._semlock.name[1:]}\\n")
            time.sleep(600)
        return state

    def loss(self, state):
        return 0.5

configs = Configs([{"sleeps": True}, {"sleeps": False}])
limit = float(sys.argv[1]) or None
policy = UniformAllocation(2, 2)
search(Sharing(), configs, policy=policy, runner="processes", workers=1, pull_seconds=limit)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where shared memory has names in a folder")
@pytest.mark.parametrize("ends", ["by a limit of time", "with its coordinator"])
def test_what_a_killed_worker_has_left_in_shared_memory_is_removed(
    ends: str, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(SHARING)
    names, limit = tmp_path / "names", "0.5" if ends == "by a limit of time" else "0"
    with subprocess.Popen([sys.executable, "script.py", limit], cwd=tmp_path) as script:
        while script.poll() is None and not (names.exists() and names.read_text()):
            time.sleep(0.01)
        if ends == "with its coordinator":
            script.kill()
    left = [Path(name) for name in names.read_text().split()]
    assert left
    for _ in range(3000):
        if not any(path.exists() for path in left):
            break
        time.sleep(0.01)
    assert not any(path.exists() for path in left)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="says which processes there are")
def test_workers_that_are_frozen_while_they_start_end_with_a_killed_search(tmp_path: Path) -> None:
    """They have not told the system yet to kill them, and see no pipe close: guards end them."""
    script = """
import os, signal, subprocess
from lastarm.runners import processes

guards = 0

class Frozen(subprocess.Popen):
    def __init__(self, *arguments, **others):
        global guards
        is_guard = others["stdout"] == subprocess.DEVNULL
        guards += is_guard
        if guards == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        super().__init__(*arguments, **others)
        if not is_guard:
            os.kill(self.pid, signal.SIGSTOP)
            print(self.pid, flush=True)

processes.subprocess.Popen = Frozen
from lastarm import SuccessiveHalving, search

class Trainer:
    def start(self, config, seed): ...
    def train(self, state, pulls): ...
    def loss(self, state): return 0.0

search(Trainer(), [{}, {}], policy=SuccessiveHalving(2, 2), runner="processes", workers=2)
"""
    file = tmp_path / "script.py"
    file.write_text(script)
    ran = subprocess.run([sys.executable, file], check=False, stdout=subprocess.PIPE, text=True)
    frozen = [Path(f"/proc/{process}/stat") for process in ran.stdout.split()]
    assert frozen
    eventually(lambda: not any(map(Path.exists, frozen)), seconds=30)
