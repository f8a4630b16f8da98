"""F22: states of a gibibyte, written, paused and resumed: how much memory and disk they take.

With no memory for states of other arms, a process holds one state at a time. On the disk there is
the latest state of each arm, and one more while it is written; with a limit, no more than that.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faults.campaign import SEARCHING, Campaign, Figures, Most, replayable
from faults.processes import children
from lastarm import Checkpoints, Configs, SuccessiveHalving, search
from lastarm.events import Event, Loss

ARMS = 8
MEBIBYTES = 1024  # of a state in full; in short it is much smaller
SMALL = 32
TIMES = 1.2  # as much as a state may a process take, at most,
BESIDES = 200.0  # and so many MB


class Large:
    """Arms whose states are of one size, trained in place."""

    def __init__(self, mebibytes: int) -> None:
        self._mebibytes = mebibytes

    def start(self, config: Any, seed: int) -> NDArray[np.float64]:
        """Noughts, and the place to go to in front."""
        state = np.zeros(self._mebibytes * 2**17)
        state[0] = config["to"]
        return state

    def train(self, state: NDArray[np.float64], pulls: int) -> NDArray[np.float64]:
        """Every number counts pulls, but for the first."""
        state[1:] += pulls
        return state

    def loss(self, state: NDArray[np.float64]) -> float:
        """It falls with pulls."""
        return float(state[0] + 1 / state[-1])


class Paused(Exception):
    """The search was stopped half-way."""


class Scales:
    """How much memory and disk a search takes, at each of its events."""

    def __init__(self, states: Path, pause_after: int) -> None:
        self._states, self._pause_after = states, pause_after
        self._others = children()
        self._before = forget_the_peak()
        self.on_disk = 0.0  # MB, at most

    def weigh(self, event: Event) -> None:
        """As `on_event`."""
        self.on_disk = max(self.on_disk, disk(self._states))
        if isinstance(event, Loss):
            self._pause_after -= 1
            if not self._pause_after:
                raise Paused
            self.workers = max(
                [self.workers, *(memory(pid, "VmHWM") for pid in children() - self._others)]
            )

    workers = 0.0  # MB of the largest worker, at most

    @property
    def here(self) -> float:
        """MB by which this process grew, at most."""
        return memory("self", "VmHWM") - self._before


def memory(process: int | str, what: str) -> float:
    """MB of a process: VmRSS is what it has now, VmHWM the most that it had."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(what)), 0.0)


def forget_the_peak() -> float:
    """MB that this process has now; from here on, its VmHWM is the most since then."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("self", "VmRSS")


def disk(folder: Path) -> float:
    """MB of the files in a folder."""
    found = os.scandir(folder) if folder.exists() else ()
    return sum(file.stat().st_size for file in found) / 2**20


def weigh(runner: str, arms: int, mebibytes: int, folder: Path) -> Figures:
    """A search that is paused in its first rung, then resumed, then opened with a limit."""
    configs = Configs([{"to": (arm * 5 % arms) / arms} for arm in range(arms)])
    halving = SuccessiveHalving(arms, 4 * arms)
    expected = search(Large(1), configs, policy=halving)
    journal = folder / f"{runner}.jsonl"
    states = folder / f"{journal.name}.states"
    workers_there = {"serial": None, "processes": 2}[runner]
    found = partial(
        search,
        Large(mebibytes),
        configs,
        policy=halving,
        runner=runner,
        workers=workers_there,
        journal=journal,
    )
    no_memory = Checkpoints(memory=0)
    most = TIMES * mebibytes + min(BESIDES, 0.5 * mebibytes)
    here = workers = on_disk = 0.0
    for pause_after in (arms // 2, -1):
        scales = Scales(states, pause_after)
        try:
            result = found(checkpoints=no_memory, on_event=scales.weigh)
        except Paused:
            assert pause_after > 0
        here, workers = max(here, scales.here), max(workers, scales.workers)
        on_disk = max(on_disk, scales.on_disk)
    assert result.digest == expected.digest, "another digest"
    assert result.state is not None
    assert result.state[1] == result.state[-1] == result.level, "another state"
    del result
    assert here <= most, f"{here:.0f} MB for a state of {mebibytes} MB on {runner}"
    # A worker has its own interpreter, and what the trainer imports.
    assert workers <= most + 100, f"{workers:.0f} MB in a worker for a state of {mebibytes} MB"
    # A worker may write a state while the one that it has written before does not count yet.
    in_flight = 2 * workers_there if workers_there else 1
    assert on_disk <= 1.01 * mebibytes * (arms + in_flight), f"{on_disk:.0f} MB of states"
    kept = disk(states)
    assert kept <= 1.01 * mebibytes * arms, f"{kept:.0f} MB are left"
    limit = int(2.5 * mebibytes * 2**20)
    found(checkpoints=Checkpoints(memory=0, disk=limit))
    left = disk(states)
    assert left * 2**20 <= limit, f"{left:.0f} MB are left of a limit of {limit / 2**20:.0f}"
    for file in states.iterdir():
        file.unlink()
    return {
        f"MB at most, on {runner}": here,
        **({"MB in a worker": workers} if workers else {}),
        f"MB on the disk at most, on {runner}": on_disk,
        "MB of them kept": kept,
        "MB kept with a limit": left,
    }


def run(tries: range, folder: Path) -> Figures:
    """As many arms as there are tries, serially and on worker processes."""
    mebibytes = MEBIBYTES if len(tries) >= ARMS else SMALL
    figures: dict[str, int | float] = {
        "arms": len(tries),
        "MiB of a state": Most(mebibytes),
        "other digests": 0,
    }
    for runner in ("serial", "processes"):
        with replayable(f"faults.big_states.weigh({runner!r}, {len(tries)}, {mebibytes}, …)"):
            figures |= weigh(runner, len(tries), mebibytes, folder)
    return figures


BIG_STATES = Campaign(
    "F22",
    "states of a gibibyte, paused and resumed",
    run,
    ARMS,
    4,
    (*SEARCHING, "faults/big_states.py", "faults/processes.py"),
)
