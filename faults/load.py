"""F21: many arms. What a loss costs when there are 100,000 of them, and what a million takes.

A loss is durable when it is told, so there are at most as many in a second as the disk can sync.
Beside that, an arm more must not make the others dearer, readers must not disturb the writer, and
a million arms must fit: policy, loop and ledger into a minute and half a gigabyte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import Any

from faults.big_states import forget_the_peak, memory
from faults.campaign import SEARCHING, Campaign, Figures, Most, replayable
from faults.processes import forked
from lastarm import Configs, Serial, SuccessiveHalving, Uniform, UniformAllocation, loop, search
from lastarm.events import Event, Loss, Opened, Pull, Told, Work
from lastarm.journal import Unwritten, read
from lastarm.ledger import Ledger
from lastarm.space.drawn import Drawn

ARMS = 100_000
IN_MEMORY = 10  # times as many arms are searched without a journal
FEW = 1000
DEARER = 1.5  # times as much as among few arms may a loss cost among many
SECONDS, MEGABYTES = 60.0, 500.0  # of a million arms
NOISE = 8.0  # MB
READERS = 50
GROUP = 100  # losses that are synced together, where the cost of all else is measured


class Line:
    """An arm whose loss falls to its own limit, in no time."""

    def start(self, config: Any, seed: int) -> tuple[float, int]:
        """Not pulled yet."""
        return config["x"], 0

    def train(self, state: tuple[float, int], pulls: int) -> tuple[float, int]:
        """Further."""
        return state[0], state[1] + pulls

    def loss(self, state: tuple[float, int]) -> float:
        """What is left."""
        return state[0] + 1 / state[1]


class AtOnce:
    """A runner that knows all losses, so that nothing but deciding and accounting takes time."""

    def __init__(self) -> None:
        self._started: list[Pull] = []

    @property
    def free(self) -> int:
        """One at a time."""
        return 1 - len(self._started)

    def start(self, pull: Pull, attempt: int) -> None:
        """Take it."""
        self._started.append(pull)

    def wait(self, seconds: float) -> list[Told]:
        """Its loss."""
        started, self._started = self._started, []
        return [Loss(pull, pull.arm * 7919 % 1009 + 1 / pull.upto, Work(1)) for pull in started]

    def state(self, pull: Pull) -> Any:
        """There is none."""
        return None

    def close(self) -> None:
        """Nothing is held."""


def syncs(folder: Path) -> float:
    """How often a line is written and synced in a second, by nothing but the disk."""
    seconds = []
    with (folder / "bare").open("wb", buffering=0) as file:
        for _ in range(200):
            began = perf_counter()
            file.write(b"x" * 250)
            os.fsync(file.fileno())
            seconds.append(perf_counter() - began)
    return 1 / median(seconds)


def durable(number: int, folder: Path) -> Figures:
    """Losses that are synced one by one; then the same while others read the journal."""
    before = syncs(folder)
    times: list[float] = []
    readers: list[int] = []
    configs = Configs([{"x": arm / number} for arm in range(number)])
    one_by_one = partial(
        search,
        Line(),
        configs,
        policy=UniformAllocation(number, number),
        runner=partial(Serial, group=1),
        checkpoints=False,
    )

    def note(event: Event) -> None:
        if isinstance(event, Loss):
            times.append(perf_counter())

    def begin_to_read(event: Event) -> None:
        if isinstance(event, Opened):
            readers.extend(forked(partial(_read_on, read_by_many)) for _ in range(many))

    alone = one_by_one(journal=folder / "durable.jsonl", on_event=note)
    waits = [later - sooner for sooner, later in pairwise(times)]
    possible = max(before, syncs(folder))
    read_by_many, many = folder / "read.jsonl", max(1, READERS * number // FEW)
    disturbed = one_by_one(journal=read_by_many, on_event=begin_to_read)
    ends = [os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) for reader in readers]
    assert ends == [0] * many, f"a reader failed: {ends}"
    assert disturbed.digest == alone.digest, "another digest"
    return {
        "losses a second, each synced": Most(1 / median(waits)),
        "syncs a second, by the disk alone": Most(possible),
        "ms until a loss counts, median": 1e3 * median(waits),
        "ms, of 99 in 100": 1e3 * quantiles(waits, n=100)[98],
        "readers of a growing journal": Most(many),
    }


def _read_on(journal: Path) -> None:
    """What is read later begins with what was read before."""
    before: list[Event] = []
    for _ in range(3):
        now = read(journal)
        assert repr(now[: len(before)]) == repr(before), "what was read has changed"
        before = now


def cost(arms: int, journal: Path) -> float:
    """Processor seconds of a loss, in a search with a journal."""
    configs = Configs([{"x": arm / arms} for arm in range(arms)])
    began = process_time()
    search(
        Line(),
        configs,
        policy=UniformAllocation(arms, arms),
        runner=partial(Serial, group=GROUP),
        journal=journal,
        checkpoints=False,
    )
    return (process_time() - began) / arms


def among_many(arms: int, folder: Path) -> Figures:
    """What a loss costs among many arms, and among few."""
    few, many = [], []
    for turn in range(3):  # by turns, because others use the machine as well
        few += [cost(FEW, folder / f"few-{turn}-{number}.jsonl") for number in range(3)]
        many.append(cost(arms, folder / f"many-{turn}.jsonl"))
        if turn < 2:
            (folder / f"many-{turn}.jsonl").unlink()
    ratio = min(many) / min(few)
    # In short, nothing is said about times: the machine may be busy with other tests.
    assert ratio <= DEARER or arms < ARMS, f"a loss costs {ratio:.2f} times as much"
    began = perf_counter()
    events = read(folder / "many-2.jsonl")
    seconds = perf_counter() - began
    return {
        "arms with a journal": Most(arms),
        "µs of a loss": 1e6 * min(many),
        "times as much as among 1,000": ratio,
        "lines read": Most(len(events)),
        "s to read a million lines": 1e6 * seconds / len(events),
    }


def core(arms: int) -> None:
    """Policy, loop and ledger, and nothing else."""
    policy, ledger = SuccessiveHalving(arms, 20 * arms), Ledger()
    for event in loop.run(policy, AtOnce(), Unwritten(), Drawn({} for _ in range(arms))):
        ledger.add(event)
    assert ledger.digest(policy.recommendation)


def whole(arms: int) -> None:
    """All of a search: configs, states and the result as well."""
    policy = SuccessiveHalving(arms, 20 * arms)
    search(Line(), {"x": Uniform(0, 1)}, policy=policy, progress=False)


def measured(action: Callable[[int], None], arms: int, folder: Path) -> Mapping[str, float]:
    """Processor seconds and MB at most of an action, in a process of its own."""
    told = folder / f"{action.__name__}.json"

    def act() -> None:
        before, began = forget_the_peak(), process_time()
        action(arms)
        took = {"s": process_time() - began, "MB": memory("self", "VmHWM") - before}
        told.write_text(json.dumps(took))

    assert not os.waitpid(forked(act), 0)[1], f"{action.__name__} failed"
    found: dict[str, float] = json.loads(told.read_text())
    return found


def in_memory(arms: int, folder: Path) -> Figures:
    """What many arms take without a journal."""
    own, everything = (measured(action, arms, folder) for action in (core, whole))
    part = arms / 1_000_000
    assert own["s"] <= SECONDS or part < 1, f"{own['s']:.0f} s for {arms:,} arms"
    assert own["MB"] <= MEGABYTES * part + NOISE, f"{own['MB']:.0f} MB for {arms:,} arms"
    return {
        "arms in memory": Most(arms),
        "processor s of policy, loop and ledger": own["s"],
        "MB of them": own["MB"],
        "processor s with drawing, training and the result": everything["s"],
        "MB with configs, states and the result": everything["MB"],
    }


def run(tries: range, folder: Path) -> Figures:
    """As many arms as there are tries, and ten times as many without a journal."""
    arms = len(tries)
    with replayable(f"faults.load.run({tries}, …)"):
        one_by_one = durable(min(FEW, arms // 20), folder)
        many = among_many(arms, folder)
        return {**one_by_one, **many, **in_memory(IN_MEMORY * arms, folder)}


LOAD = Campaign(
    "F21",
    "100,000 arms with a journal, a million without",
    run,
    ARMS,
    2000,
    (*SEARCHING, "faults/big_states.py", "faults/load.py", "faults/processes.py"),
)
