"""A trainer whose pulls have children: forks, threads, pools. See `faults/offspring.py`.

It is imported from this file, and run as the main script of a process from a copy of it, where
its functions have no other home than `__main__`. PyTorch is not among what the tests install, so
`loader` does what its DataLoader does: worker processes that stay, and queues.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any

Step = Callable[[float], float]


def step(x: float) -> float:
    """What one pull does."""
    return 0.75 * x + 0.0625


def forked(x: float, end: Callable[[], None], *, awaited: bool = True) -> float:
    """A child does it, and tells it by a pipe before it ends, in whichever way."""
    heard, tells = os.pipe()
    child = os.fork()
    if not child:
        os.close(heard)
        os.write(tells, step(x).hex().encode())
        os.close(tells)
        end()
        return x  # the child comes back
    os.close(tells)
    with os.fdopen(heard) as pipe:
        found = float.fromhex(pipe.read())
    if awaited:
        os.waitpid(child, 0)
    return found


def raise_in_child() -> None:
    """A child ends by an error, which says nothing here."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    raise KeyboardInterrupt


def left_behind(x: float) -> float:
    """Children that never end: one that holds all that its parent has open, and a program.

    The first ignores the signals that it can.
    """
    if not os.fork():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(3600)
        os._exit(0)
    with subprocess.Popen(
        ["sh", "-c", "sleep 3600 & echo begun"], stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdout
        shell.stdout.readline()
    return step(x)


def threads(x: float) -> float:
    """Some that end, and one that does not."""
    found: list[float] = []
    started = [threading.Thread(target=lambda: found.append(step(x))) for _ in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    threading.Thread(target=time.sleep, args=[3600], daemon=True).start()
    return found[-1]


def pool(x: float, method: str) -> float:
    """A pool of multiprocessing."""
    with multiprocessing.get_context(method).Pool(2) as processes:
        return processes.map(step, [x, x])[0]


def executor(x: float, kind: Callable[[int], Executor]) -> float:
    """An executor of concurrent.futures."""
    with kind(2) as pool:
        return next(iter(pool.map(step, [x])))


def joblib(x: float, backend: str) -> float:
    """Two jobs of joblib."""
    jobs = importlib.import_module("joblib")  # the others need no more than Python
    both: list[float] = jobs.Parallel(2, backend=backend)(jobs.delayed(step)(x) for _ in range(2))
    return both[0]


def program(x: float) -> float:
    """Another program, in a session of its own."""
    words = [sys.executable, "-S", "-c", f"print((0.75 * {x!r} + 0.0625).hex())"]
    said = subprocess.run(
        words, check=True, capture_output=True, text=True, start_new_session=True
    )
    return float.fromhex(said.stdout)


class Loader:
    """Processes that load one number after another for the process that made them."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._asked: multiprocessing.Queue[float] = multiprocessing.Queue()
        self._loaded: multiprocessing.Queue[float] = multiprocessing.Queue()
        for _ in range(2):
            work = multiprocessing.Process(
                target=serve, args=(self._asked, self._loaded), daemon=True
            )
            work.start()

    def load(self, x: float) -> float:
        """By one of them."""
        self._asked.put(x)
        return self._loaded.get(timeout=60)


def serve(asked: multiprocessing.Queue[float], loaded: multiprocessing.Queue[float]) -> None:
    """In one of them."""
    while True:
        loaded.put(step(asked.get()))


class OfThisProcess:
    """What is made once in a process, and does not leave it when the trainer is sent."""

    made: Loader | None = None

    def __reduce__(self) -> tuple[type[OfThisProcess], tuple[()]]:
        return OfThisProcess, ()


_own = OfThisProcess()


def loader(x: float) -> float:
    """The loader of this process, which stays from pull to pull."""
    if _own.made is None or _own.made.process != os.getpid():
        _own.made = Loader()
    return _own.made.load(x)


HARMLESS: dict[str, Step] = {  # which any process may have
    "a fork that exits": partial(forked, end=sys.exit),
    "a fork on its own": partial(forked, end=sys.exit, awaited=False),
    "a fork that fails": partial(forked, end=partial(sys.exit, 3)),
    "a fork that returns": partial(forked, end=lambda: None),
    "a fork that raises": partial(forked, end=raise_in_child),
    "a fork that is killed": partial(forked, end=partial(signal.raise_signal, signal.SIGKILL)),
    "threads": threads,
    "an executor of threads": partial(executor, kind=ThreadPoolExecutor),
    "a program": program,
    "joblib's loky": partial(joblib, backend="loky"),
    "joblib's threads": partial(joblib, backend="threading"),
    "joblib's pool": partial(joblib, backend="multiprocessing"),
}
CHILDREN: dict[str, Step] = {  # which multiprocessing refuses in some processes
    "a forked pool": partial(pool, method="fork"),
    "a spawned pool": partial(pool, method="spawn"),
    "a forkserver's pool": partial(pool, method="forkserver"),
    "an executor of processes": partial(executor, kind=ProcessPoolExecutor),
    "a loader": loader,
}
LEFT: dict[str, Step] = {"children left behind": left_behind}
KINDS = {"none": step, **HARMLESS, **CHILDREN, **LEFT}


class WithChildren:
    """Trains with children of the kind that is in the config."""

    def start(self, config: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """At the place that is in the config."""
        return dict(config)

    def train(self, state: dict[str, Any], pulls: int) -> dict[str, Any]:
        """The first pull with children, the others without."""
        x = KINDS[state["kind"]](state["x"])
        for _ in range(pulls - 1):
            x = step(x)
        return {**state, "x": x}

    def loss(self, state: dict[str, Any]) -> float:
        """Its place."""
        return float(state["x"])

    def fingerprint(self) -> dict[str, Any]:
        """For the header of a journal, the same in a script and in a module."""
        return {}


def found(kind: str, arms: int, **how: Any) -> str:
    """The digest of a search whose arms have such children."""
    lastarm = importlib.import_module("lastarm")  # children that are spawned need not know it
    configs = lastarm.Configs([{"x": (7 * k % 5 + 1) / 8, "kind": kind} for k in range(arms)])
    policy = lastarm.SuccessiveHalving(arms, 4 * arms)
    digest: str = lastarm.search(WithChildren(), configs, policy=policy, **how).digest
    return digest


def main() -> None:
    """Search as the words say, and print the digests; with a journal, also each loss."""
    arms, journal, *words = sys.argv[1:]
    for word in words:
        runner, kind = word.split(": ")
        how: dict[str, Any] = {"runner": runner, "workers": 1 if runner == "serial" else 2}
        if journal:
            how |= {"journal": journal, "on_event": lambda event: print(event, flush=True)}
        print(f"{word}: {found(kind, int(arms), **how)}", flush=True)


if __name__ == "__main__":
    main()
