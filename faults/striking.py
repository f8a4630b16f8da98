"""A runner whose worker processes are struck from outside, at random instants, and fairly.

Fairly: what fails three times, the last time alone, is rightly blamed. So a strike waits until
the one before has been noticed, and while a pull is at its last attempt there is none.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any, NamedTuple

from lastarm import Processes
from lastarm.events import Loss, Pull, Told
from lastarm.runners import Arms

WORKERS, ATTEMPTS = 2, 3
HANGING = 60.0  # seconds without any result, which are too many whatever else the machine does
SIGNALS = {  # how each is done from outside
    "SIGKILL": signal.SIGKILL,
    "SIGSEGV": signal.SIGSEGV,
    "os._exit(0)": signal.SIGUSR1,
    "SIGSTOP": signal.SIGSTOP,
    "out of memory": signal.SIGUSR2,
}


class Strike(NamedTuple):
    """What was done to a worker, when, and from when on it has had its effect, noticed or not."""

    kind: str
    worker: int
    at: float
    over: float


class Struck:
    """Processes, whose workers are struck while they are waited for.

    What they are struck with is taken from the end of a `deck`. In `begun` there is a file for
    each worker that has begun a pull, with its process's number as its name.
    """

    def __init__(
        self, arms: Arms, *, deck: list[str], begun: Path, random: Random, lease: float | None
    ) -> None:
        self.struck: Counter[str] = Counter()
        self.slowest = 0.0  # seconds beyond the lease until a frozen worker was given up
        self._deck, self._begun, self._random = deck, begun, random
        self._lease = lease or math.inf
        self._others = children()
        self._processes = Processes(arms, workers=WORKERS, pull_seconds=lease)
        self._last = Strike("", 0, 0.0, over=0.0)
        self._begun_then: set[int] | None = None  # when one that had not begun was struck
        self._started: dict[Pull, float] = {}
        self._failed: Counter[Pull] = Counter()
        self._heard = time.monotonic()

    @property
    def free(self) -> int:
        """As ever."""
        return self._processes.free

    def start(self, pull: Pull, attempt: int) -> None:
        """As ever."""
        self._started[pull] = time.monotonic()
        self._processes.start(pull, attempt)

    def wait(self, seconds: float) -> list[Told]:
        """What has come back; perhaps a worker was struck meanwhile."""
        blow = Timer(self._random.uniform(0, 0.03), self._strike)
        last_attempt = ATTEMPTS - 1 in self._failed.values()
        if self._deck and not last_attempt and self._is_over():
            blow.start()
        results = self._processes.wait(seconds)
        blow.cancel()
        if blow.ident:
            blow.join()
        for result in results:
            self._note(result)
        assert time.monotonic() < self._heard + HANGING, f"nothing came back after {self._last}"
        return results

    def state(self, pull: Pull) -> Any:
        """As ever."""
        return self._processes.state(pull)

    def close(self) -> None:
        """As ever."""
        self._processes.close()

    def _workers(self) -> set[int]:
        return children() - self._others

    def _strike(self) -> None:
        workers = sorted(self._workers())
        if not workers:
            return
        kind, worker = self._deck[-1], self._random.choice(workers)
        begun = {int(file.name) for file in self._begun.iterdir()}
        if worker not in begun:
            # A third worker in a row that dies before it is ready is one too many, so between two
            # of them another is to have begun; and before it has, it does not know our signals.
            if kind not in ("SIGKILL", "SIGSEGV") or begun == self._begun_then:
                return
            self._begun_then = begun
        now, over = time.monotonic(), math.inf
        with suppress(ProcessLookupError):
            os.kill(worker, SIGNALS[self._deck.pop()])
        if kind == "SIGSTOP" and self._random.random() < 0.5:
            thaw = self._lease * self._random.uniform(0.2, 1.2)  # in time, or once it is given up
            Timer(thaw, self._thaw, [worker]).start()
            over = now + thaw + 0.5
        self._last = Strike(kind, worker, now, over)
        self.struck[kind] += 1

    def _thaw(self, worker: int) -> None:
        if worker in self._workers():
            os.kill(worker, signal.SIGCONT)

    def _is_over(self) -> bool:
        """Whether the last strike has been noticed: another worker is in its place."""
        workers = self._workers()
        replaced = self._last.worker not in workers and len(workers) == WORKERS
        return replaced or time.monotonic() > self._last.over

    def _note(self, result: Told) -> None:
        pull, last = result.pull, self._last
        self._heard = now = time.monotonic()
        if isinstance(result, Loss) or result.work.attempt == ATTEMPTS:
            del self._failed[pull]
            return
        self._failed[pull] += 1
        if last.kind == "out of memory" and "MemoryError" in result.error:
            self._last = last._replace(over=now)
        if last.kind == "SIGSTOP" and "no result within" in result.error:
            late = now - max(last.at, self._started[pull]) - self._lease
            self.slowest = max(self.slowest, late)


def children() -> set[int]:
    """The children of this process that have not ended; one that waits to be buried has."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = file.read_text().rpartition(")")[2].split()
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(file.parent.name))
    return found
