"""F11: whatever the workers' order, speed and luck, and however often the coordinator dies.

A schedule is all that may differ between two runs of one search: how many workers there are, how
fast, which of them straggle or die, which results come twice, late or never, which attempts stop
half-way, and at which operations of the journal the coordinator crashes. It is a function of its
number, and time in it is virtual.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from faults.campaign import DECIDING, RUNNING, Campaign, Figures, Most, replayable
from faults.problems import PLAYED, PROBLEMS, TO_WIN, checked, problem
from lastarm import loop
from lastarm.events import Event, Failure, Loss, Pull, Told
from lastarm.journal import Unwritten
from lastarm.ledger import Ledger
from lastarm.policies import ASHA
from lastarm.policy import fresh
from lastarm.runners import Arms, Serial, Simulated
from lastarm.runners.performer import Task
from lastarm.testing.runners import Drifting

RETRIES = 20  # enough that only an arm that always fails is ever out


class Stumbling(Drifting):
    """Fails, at some levels and once only, when its state is half changed."""

    def __init__(self) -> None:
        self._stumbled: set[float] = set()

    def train(self, state: list[Any], pulls: int) -> list[Any]:
        """Go on; the level is known by where the arm has drifted to."""
        at = state[1]
        state = super().train(state, pulls)
        if math.frexp(at)[0] < 0.6 and at not in self._stumbled:
            self._stumbled.add(at)
            raise RuntimeError("stumbled")
        return state


class Crash(Exception):
    """The coordinator has died."""


class Memory(Unwritten):
    """A journal of which a crash leaves what was synced, and some of what was not."""

    def __init__(self, events: Sequence[Event] = (), crash_at: float = math.inf) -> None:
        self.events = tuple(events)
        self.lines, self._durable = list(events), len(events)
        self._operations, self._crash_at = 0, crash_at

    def append(self, event: Event) -> None:
        """Take it down."""
        self._operation()
        self.lines.append(event)

    def flush(self) -> None:
        """What is flushed may be lost as well: the machine, too, can die."""
        self._operation()

    def sync(self) -> None:
        """From now on it is safe."""
        self._operation()
        self._durable = len(self.lines)

    def left(self, random: np.random.Generator) -> list[Event]:
        """What a crash leaves."""
        return self.lines[: int(random.integers(self._durable, len(self.lines), endpoint=True))]

    def _operation(self) -> None:
        if self._operations >= self._crash_at:
            raise Crash
        self._operations += 1


@dataclass(frozen=True)
class Fated(Arms):
    """Arms whose luck has a seed of its own, so that it may change while the search does not."""

    training: int = 0

    def task(self, pull: Pull, attempt: int) -> Task:
        """Luck does not change training."""
        return super().task(pull, attempt)._replace(seed=self.training)


class Schedule(Simulated):
    """Random simulated workers; a second answer to an attempt claims a winning loss."""

    def __init__(self, arms: Arms, random: np.random.Generator) -> None:
        seconds = random.choice([0.0, 1.0, 1.0, 3.0, 10.0], len(arms.configs))
        longest = 60 * float(seconds.max()) + 1
        super().__init__(
            arms,
            workers=int(random.integers(1, 9)),
            seconds_per_pull=seconds.tolist(),
            seconds_per_look=float(random.choice([0.0, 0.5])),
            straggling=float(random.choice([0.0, 0.15])),
            slowdown=float(random.choice([10.0, 1e6])),  # late, or later than the end
            failing=float(random.choice([0.0, 0.15])),
            duplicating=float(random.choice([0.0, 0.3, 1.0])),
            lease=float(random.choice([longest, math.inf])),
        )
        self.repeated = 0
        self._answered: set[tuple[Pull, int]] = set()

    def wait(self, seconds: float = 0.0) -> list[Told]:
        """The next results."""
        return list(map(self._first, super().wait(seconds)))

    def _first(self, result: Told) -> Told:
        answered = result.pull, result.work.attempt
        if answered in self._answered:
            self.repeated += 1
            return Loss(result.pull, TO_WIN, result.work)
        self._answered.add(answered)
        return result


def play(number: int) -> Figures:
    """Run the schedule of that number to its end, through all its crashes."""
    asked = problem(number % PROBLEMS)
    random = np.random.default_rng([2, number])
    trainer = Stumbling() if isinstance(asked.trainer, Drifting) else asked.trainer
    arms = Fated(trainer, asked.configs, seed=number, training=asked.seed)
    seen = Counter(schedules=1)
    counted: list[Told] = []
    events: list[Event] = []
    crashes = int(random.integers(0, 4))
    while True:
        crash_at = float(random.integers(0, 120)) if crashes else math.inf
        journal = Memory(events, crash_at)
        policy, runner = fresh(asked.policy), Schedule(arms, random)
        run = loop.run(policy, runner, journal, asked.configs, retries=RETRIES)
        events = []
        try:
            for event in checked(run, journal.events, counted):
                events.append(event)
            break
        except Crash:
            crashes -= 1
            events = journal.left(random)
            seen["crashes"] += 1
        finally:
            seen["results that came again"] += runner.repeated
    seen["attempts that failed"] += sum(isinstance(e, Failure) and e.retried for e in events)

    answer = Ledger(events)
    digest = answer.digest(policy.recommendation)
    assert policy.finished
    assert events == journal.lines, "what counted is not what is in the journal"
    assert answer.spent.pulls <= asked.policy.budget, "more was spent than there was"
    if isinstance(policy, ASHA):
        again, unused = fresh(asked.policy), Serial(arms)
        replayed = list(loop.run(again, unused, Memory(events), asked.configs, retries=RETRIES))
        assert replayed == events
        assert Ledger(replayed).digest(again.recommendation) == digest, "replay decided otherwise"
    else:
        assert digest == asked.digest, "another digest"
        assert answer.spent.pulls == asked.pulls, "another number of pulls"
    return seen


def run(tries: range, folder: Path) -> Figures:
    """Play the schedules of these numbers."""
    problem.cache_clear()
    seen: Counter[str] = Counter()
    for number in tries:
        with replayable(f"faults.schedules.play({number})"):
            seen.update(play(number))
    return {**seen, "problems": Most(min(len(tries), PROBLEMS)), "other digests": 0}


SCHEDULES = Campaign(
    "F11",
    "workers' order, speed and luck, simulated",
    run,
    full=20_000,
    short=200,
    paths=(
        *DECIDING,
        *RUNNING,
        "src/lastarm/journal/*.py",
        *PLAYED,
        "faults/schedules.py",
    ),
)
