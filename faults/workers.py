"""F7: worker processes that are killed, crash, leave, freeze and run out of memory.

Whatever befalls the workers (see `faults.striking`), every search comes to the digest of the
serial runner, and no arm is out that is not out there.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from faults.campaign import Campaign, Figures
from faults.processes import MARK, orphans
from faults.replayable import replayable
from faults.striking import ATTEMPTS, Struck
from lastarm import Configs, SuccessiveHalving, search
from lastarm.runners import Arms
from lastarm.testing.runners import Drifting

# Of 80. Whose worker has died is tried again in any case; what took too long, or raised a
# MemoryError, only where retries are asked for.
DEATHS = {"SIGKILL": 50, "SIGSEGV": 10, "os._exit(0)": 10}
AILMENTS = {"SIGSTOP": 5, "out of memory": 5}
LEASE = 1.5  # seconds that a pull may take, where workers freeze
ARMS = Configs([{"limit": arm / 12} for arm in range(16)])
HALVING = SuccessiveHalving(16, 160)


class Frail(Drifting):
    """Trains slowly, so that it can be struck half-way, and does in its worker as it is told."""

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
    mark = f"workers of search {number}"
    with patch.dict(os.environ, {MARK: mark}):
        journal = folder / f"{number}.jsonl" if number % 2 else None
        result = found(Frail(begun), runner=make, retries=retries, journal=journal)
    blamed = {arm: f.error for arm, f in result.failures.items() if arm not in serial.failures}
    assert not blamed, f"innocent arms are out: {blamed}"
    assert result.digest == serial.digest, "another digest"
    assert not (left := orphans(mark)), f"workers run on: {left}"
    return runners[0]


def run(times: int, folder: Path) -> Figures:
    """Strike so often, in as many searches as that takes."""
    struck: Counter[str] = Counter()
    searches, slowest = 0, 0.0
    for shares in (DEATHS, AILMENTS):
        deck = [kind for kind in shares for _ in range(max(1, times * shares[kind] // 80))]
        Random(times).shuffle(deck)
        while deck:
            again = f"faults.workers.strike({searches}, …), though at other instants"
            with replayable(again), no_core_files():
                runner = strike(searches, deck, folder, ailing=shares is AILMENTS)
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
    """What crashes leaves nothing behind."""
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)


WORKER_FAULTS = Campaign("F7", "worker processes killed, crashed, frozen, starved", run, 800, 1)
