"""F23: a long search on worker processes, one of which is killed every minute.

100,000 pulls of a few arms, in an hour or in parts of half an hour. While it goes on, nothing may
grow: the memory of this process and of its workers, descriptors, threads, temporary files, trained
states on the disk. The journal does, and in memory what must: its compressed copy and the curves,
217 bytes for each pull (see BYTES). Then come short searches, one after another in the same
process; each leaves everything as it was.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import numpy as np

from faults.campaign import SEARCHING, Campaign, Figures, Most, replayable
from faults.processes import MARK, SECONDS_FOR_ORPHANS, children, in_shared_memory, orphans
from lastarm import Configs, SuccessiveHalving, search
from lastarm.events import Event, Loss, Pull
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import Algorithm, lowest

ARMS = 64
PULLS, SECONDS = 100_000, 3600.0  # in full; a part takes its share of the time
HURRIED = 10_000  # fewer pulls than this are not spread over their time
KILLS = 60  # in full, so one a minute; in a hurry, three
# By which this process may grow for each pull: the copy of the journal (`journal/rescue.py`) takes
# 190 for two lines (the sha256 and the seal of a state cannot be compressed), a curve (`ledger/`)
# three numbers of 8, with spare room of up to an eighth. So 100,000 pulls take 21 MB.
BYTES = 190 + 3 * 8 * 9 / 8
NOISE = 4.0  # MB by which any process may differ from one moment to another
WORKER = 16.0  # MB that a worker may grow by in its life
FEW = 2  # descriptors, threads and files come and go by so many
SHORT = 100  # pulls of one of the short searches, at least


@dataclass(eq=False)
class StepByStep(InRounds):
    """Brings all arms one pull further, again and again: few arms, and many pulls."""

    name: ClassVar[str] = "step-by-step"

    def algorithm(self) -> Algorithm:
        """Round after round."""
        best = 0
        for upto in range(1, self.budget // self.arms + 1):
            losses = yield [Pull(arm, upto) for arm in range(self.arms)]
            best = lowest(losses) or 0
        return best

    def least_budget(self, arms: int) -> int:
        """A pull for each."""
        return arms


class Steady:
    """Arms whose states are arrays that keep their size."""

    def start(self, config: Any, seed: int) -> Any:
        """Noughts, and a place to go to."""
        return {"at": np.zeros(1000), "to": config["to"]}

    def train(self, state: Any, pulls: int) -> Any:
        """A part of the way."""
        return {**state, "at": state["at"] + (state["to"] - state["at"]) * (1 - 0.999**pulls)}

    def loss(self, state: Any) -> float:
        """What is left of it."""
        return float(np.mean((state["at"] - 1) ** 2))


class Sample(NamedTuple):
    """What this process holds at one moment."""

    megabytes: float
    descriptors: int
    threads: int
    temporary: int  # files
    states: int  # files


class Watched:
    """Watches a search: keeps its pace, takes samples, kills a worker now and then."""

    def __init__(self, pulls: int, folder: Path, others: set[int]) -> None:
        hurried = pulls < HURRIED
        self._pace = 0.0 if hurried else SECONDS / PULLS
        self._between_kills = pulls // 4 if hurried else PULLS // KILLS
        self._between_samples = pulls // (20 if hurried else 200)  # they take time
        self._folder, self._others = folder, others
        self._random = Random(pulls)
        self._began = time.monotonic()
        self._losses = 0
        self.kills = 0
        self.samples: list[tuple[int, Sample]] = []
        self.workers: dict[int, list[float]] = {}  # process → its MB

    def see(self, event: Event) -> None:
        """As `on_event`."""
        if not isinstance(event, Loss):
            return
        self._losses += 1
        if self._losses % self._between_samples == 0:
            self.samples.append((self._losses, sample(self._folder)))
            for worker in children() - self._others:
                with suppress(OSError):
                    self.workers.setdefault(worker, []).append(megabytes(worker))
        if self._losses % self._between_kills == 0:
            workers = sorted(children() - self._others)
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(self._random.choice(workers), signal.SIGKILL)
                    self.kills += 1
        ahead = self._began + self._losses * self._pace - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)

    def slope(self) -> float:
        """MB in 10,000 pulls, once it has found its stride."""
        later = self.samples[len(self.samples) // 5 :]
        pulls, held = [at for at, _ in later], [one.megabytes for _, one in later]
        return 1e4 * float(np.polyfit(pulls, held, 1)[0])

    def require_flat(self) -> None:
        """Nothing grows."""
        later = self.samples[len(self.samples) // 5 :]
        pulls = later[-1][0] - later[0][0]
        grown = self.slope() * pulls / 1e4
        most = NOISE + BYTES * pulls / 2**20
        assert grown <= most, f"memory grew by {grown:.1f} MB in {pulls:,} pulls"
        quarter = len(later) // 4
        # Those of losses that wait for a sync, and those before them.
        states = max(one.states for _, one in self.samples)
        assert states <= 2 * ARMS, f"{states} states of {ARMS} arms"
        for kind in ("descriptors", "threads", "temporary"):
            first, last = (
                median(getattr(one, kind) for _, one in part)
                for part in (later[:quarter], later[-quarter:])
            )
            assert last <= first + FEW, f"{kind}: {first} at first, {last} in the end"
        assert self.grown <= WORKER, f"a worker grew by {self.grown:.1f} MB"

    @property
    def grown(self) -> float:
        """MB by which a worker grew. At its first sample it may still be importing."""
        lives = [held[1:] for held in self.workers.values() if len(held) > 1 and self._pace]
        return max((held[-1] - held[0] for held in lives), default=0.0)


def megabytes(process: int | str = "self") -> float:
    """What a process has in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def sample(folder: Path) -> Sample:
    """What is held at this moment."""
    gc.collect()
    return Sample(
        megabytes(),
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
        sum(len(files) for _, _, files in os.walk(folder / "tmp")),
        sum(len(files) for path, _, files in os.walk(folder) if path.endswith(".states")),
    )


@contextmanager
def own_temporary_folder(folder: Path) -> Iterator[None]:
    """Within, temporary files are in a folder where there are no others."""
    (folder / "tmp").mkdir()
    with patch.object(tempfile, "tempdir", str(folder / "tmp")):
        yield


def soak(pulls: int, folder: Path) -> Watched:
    """One search of that many pulls, watched; it comes to the digest of the serial runner."""
    configs = Configs([{"to": 1 + (arm * 29 % ARMS) / ARMS} for arm in range(ARMS)])
    found = partial(search, Steady(), configs, policy=StepByStep(ARMS, max(ARMS, pulls)))
    serial = found(checkpoints=False).digest
    watched = Watched(pulls, folder, children())
    result = found(
        runner="processes", workers=2, journal=folder / "soak.jsonl", on_event=watched.see
    )
    assert not result.failures, f"innocent arms are out: {result.failures}"
    assert result.digest == serial, "another digest"
    return watched


def short_searches(number: int, folder: Path) -> None:
    """One after another; each leaves all as it was after the first, which imports much."""
    halving = SuccessiveHalving(SHORT // 2, 6 * SHORT)
    configs = Configs([{"to": 1 + arm / SHORT} for arm in range(halving.arms)])
    before: Sample | None = None
    for one in range(number + 1):
        journal = folder / f"{one}.jsonl" if one % 2 else None
        search(Steady(), configs, policy=halving, runner="processes", journal=journal)
        before = settled(before, folder)


def settled(before: Sample | None, folder: Path) -> Sample:
    """What there was before, if there is no more now; what is about to end has some seconds."""
    until = time.monotonic() + 5
    while True:
        now = sample(folder)
        held = zip((before or now)[1:4], now[1:4], strict=True)  # states stay with their journals
        if all(most >= there for most, there in held):
            return before or now
        assert time.monotonic() < until, f"{before} became {now}"
        time.sleep(0.02)


def left_in_shared_memory(before: set[str]) -> set[str]:
    """What was not there before and stays there; what other programs leave is soon removed."""
    until = time.monotonic() + SECONDS_FOR_ORPHANS
    while (new := in_shared_memory(joblib=False) - before) and time.monotonic() < until:
        time.sleep(0.1)
    return new


def run(tries: range, folder: Path) -> Figures:
    """As many pulls as there are tries."""
    pulls = len(tries)
    shared = in_shared_memory(joblib=False)
    mark = f"soak of {os.getpid()} from {tries.start}"
    again = f"faults.soak.run({tries}, …)"
    with replayable(again), own_temporary_folder(folder), patch.dict(os.environ, {MARK: mark}):
        watched = soak(pulls, folder)
        watched.require_flat()
        searches = max(1, pulls // 5000)
        short_searches(searches, folder)
        assert not (left := orphans(mark)), f"workers run on: {left}"
        left_over = [name for _, _, files in os.walk(folder / "tmp") for name in files]
        assert not left_over, f"left in the temporary folder: {left_over[:5]}"
        assert not (new := left_in_shared_memory(shared)), f"left in shared memory: {new}"
    last = watched.samples[-1][1]
    return {
        "pulls": pulls,
        "workers killed": watched.kills,
        "MB more in 10,000 pulls": watched.slope(),
        "MB more in a worker": watched.grown,
        "descriptors": Most(last.descriptors),
        "threads": Most(last.threads),
        "temporary files": Most(last.temporary),
        "states on the disk": Most(last.states),
        "short searches after it": searches,
        "descriptors, threads and files left by them": 0,
        "other digests": 0,
        "orphans after 5 s": 0,
    }


SOAK = Campaign(
    "F23",
    "an hour of pulls, and a worker killed every minute",
    run,
    PULLS,
    256,
    (*SEARCHING, "faults/processes.py", "faults/soak.py"),
    parts=2,
)
