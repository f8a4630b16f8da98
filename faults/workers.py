"""F7: worker processes that are killed, crash, leave, freeze and run out of memory.

Whatever befalls the workers, every search comes to the digest of the serial runner, and no arm is
out that is not out there. They are struck from outside, at random instants, and fairly: what fails
three times, the last time alone, is rightly blamed. So a strike waits until the one before has
been noticed, and while a pull is at its last attempt there is none.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any, NamedTuple
from unittest.mock import patch

from faults.campaign import SEARCHING, Campaign, Figures, replayable
from faults.processes import MARK, children, orphans
from lastarm import Configs, Processes, SuccessiveHalving, search
from lastarm.events import Loss, Pull, Told
from lastarm.runners import Arms
from lastarm.testing.runners import Drifting

# Of 80. Whose worker has died is tried again in any case; what took too long, or raised a
# MemoryError, only where retries are asked for.
DEATHS = {"SIGKILL": 50, "SIGSEGV": 10, "os._exit(0)": 10}
AILMENTS = {"SIGSTOP": 5, "out of memory": 5}
LEASE = 1.5  # seconds that a pull may take, where workers freeze
ARMS = Configs([{"limit": arm / 12} for arm in range(16)])
HALVING = SuccessiveHalving(16, 160)
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


class Frail(Drifting):
    """Trains slowly, so that it can be struck half-way; obeys signals in its worker."""

    def __init__(self, begun: Path) -> None:
        self._begun = begun  # where there is a file for each worker that has begun a pull
        self._starving = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In the worker: SIGUSR1 is to leave, SIGUSR2 to have no memory at the next step."""
        vars(self).update(state)
        signal.signal(signal.SIGUSR1, lambda number, frame: os._exit(0))
        signal.signal(signal.SIGUSR2, lambda number, frame: setattr(self, "_starving", True))

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """Step by step."""
        (self._begun / str(os.getpid())).touch()
        for _ in range(pulls):
            state = super().train(state, 1)
            time.sleep(0.004)
            if self._starving:
                self._starving = False
                self._run_out_of_memory()
        return state

    def _run_out_of_memory(self) -> None:
        """A MemoryError, or the death of a library that cannot live with one."""
        limits = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**24, limits[1]))
        try:
            bytearray(2**30)
        except MemoryError:
            if os.getpid() % 2:
                os.abort()
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)


def strike(number: int, deck: list[str], folder: Path, *, ailing: bool) -> Struck:
    """A search in which workers are struck, with what is on the deck, as long as it lasts."""
    begun = folder / f"begun-{number}"
    begun.mkdir()
    lease, retries = (LEASE, ATTEMPTS - 1) if ailing else (None, 0)
    runners: list[Struck] = []

    def make(arms: Arms) -> Struck:
        struck = Struck(arms, deck=deck, begun=begun, random=Random(number), lease=lease)
        runners.append(struck)
        return struck

    found = partial(search, space=ARMS, policy=HALVING, seed=number)
    serial = found(Drifting())
    mark = f"workers of search {number} of {os.getpid()}"
    with patch.dict(os.environ, {MARK: mark}):
        journal = folder / f"{number}.jsonl" if number % 2 else None
        result = found(Frail(begun), runner=make, retries=retries, journal=journal)
    blamed = {arm: f.error for arm, f in result.failures.items() if arm not in serial.failures}
    assert not blamed, f"innocent arms are out: {blamed}"
    assert result.digest == serial.digest, "another digest"
    assert not (left := orphans(mark)), f"workers run on: {left}"
    return runners[0]


def run(tries: range, folder: Path) -> Figures:
    """Strike that often, in as many searches as that takes."""
    struck: Counter[str] = Counter()
    searches, slowest = 0, 0.0
    for shares in (DEATHS, AILMENTS):
        deck = [kind for kind in shares for _ in range(max(1, len(tries) * shares[kind] // 80))]
        Random(tries.stop).shuffle(deck)
        while deck:
            number = tries.start + searches
            again = f"faults.workers.strike({number}, …), though at other instants"
            with replayable(again), no_core_files():
                runner = strike(number, deck, folder, ailing=shares is AILMENTS)
            searches += 1
            struck += runner.struck
            slowest = max(slowest, runner.slowest)
    return {
        **struck,
        "searches": searches,
        "other digests": 0,
        "arms wrongly out": 0,
        "orphans after 5 s": 0,
        "s beyond the lease until the slowest freeze was noticed": slowest,
    }


@contextmanager
def no_core_files() -> Iterator[None]:
    """Within, crashes write no core files."""
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)


WORKER_FAULTS = Campaign(
    "F7",
    "worker processes killed, crashed, frozen, starved",
    run,
    full=800,
    short=1,
    paths=(
        *SEARCHING,
        "src/lastarm/testing/runners.py",
        "faults/processes.py",
        "faults/workers.py",
    ),
)
