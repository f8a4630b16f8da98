"""Processes that come from a search or from its arms: none speaks for it."""

import subprocess
import sys
from pathlib import Path


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
