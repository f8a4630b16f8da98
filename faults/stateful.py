"""F12: a search that is stepped, failed, crashed, stopped and resumed in every order.

Hypothesis plays the user, the workers and the machine's power switch, and shrinks what goes wrong
to a few steps. The model is a list of what had counted: it is to be in the journal for good, and
nothing of it is to be done again.
"""

from __future__ import annotations

import signal
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest.mock import patch

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from faults.campaign import DECIDING, RUNNING, Campaign, Figures, replayable
from faults.problems import PLAYED, PROBLEMS, TO_WIN, checked, problem
from lastarm import loop
from lastarm.errors import JournalRepaired
from lastarm.events import Event, Failure, Loss, Opened, Pull, Told, Work
from lastarm.journal import Journal
from lastarm.ledger import Ledger
from lastarm.policies import ASHA
from lastarm.policy import describe, fresh
from lastarm.runners import Arms
from lastarm.runners.performer import Performer
from lastarm.signals import Stop

RETRIES = 2


class Move(NamedTuple):
    """What a wait brings: which pull comes back and how, and whether what is late comes too."""

    which: int = 0
    how: str = "as it is"
    late: bool = False


MOVES = st.builds(
    Move,
    st.integers(0, 3),
    st.sampled_from(["as it is", "twice", "failed", "lost", "given up", "not at all"]),
    st.booleans(),
)


class ByHand:
    """Workers that do as they are told, a move a wait; without moves they do their work."""

    def __init__(self, arms: Arms, workers: int) -> None:
        self.moves: list[Move] = []
        self._arms = arms
        self._performer = Performer(arms.trainer, arms.states())
        self._workers = workers
        self._started: list[tuple[Pull, int]] = []
        self._late: list[Told] = []

    @property
    def free(self) -> int:
        """Workers without a pull."""
        return self._workers - len(self._started)

    def start(self, pull: Pull, attempt: int) -> None:
        """Take it on."""
        self._started.append((pull, attempt))

    def wait(self, seconds: float) -> list[Told]:
        """Make a move."""
        move = self.moves.pop(0) if self.moves else Move()
        results: list[Told] = []
        if move.late:
            results, self._late = self._late, []
        if move.how == "not at all":
            return results
        pull, attempt = self._started.pop(move.which % len(self._started))
        work = Work(attempt=attempt)
        wrong = Loss(pull, TO_WIN, work)  # what must not be believed, when it comes
        if move.how in ("failed", "lost", "given up") and attempt <= RETRIES:
            if move.how == "given up":
                self._late.append(wrong)
            return [*results, Failure(pull, move.how, work=work, lost=move.how == "lost")]
        if move.how == "twice":
            self._late.append(wrong)
        return [*results, self._performer.perform(self._arms.task(pull, attempt))]

    def state(self, pull: Pull) -> Any:
        """Not asked for here."""

    def close(self) -> None:
        """Nothing runs on."""


class Noting(Journal):
    """A journal that knows how much of it is on the disk, so that a crash can take the rest."""

    def sync(self) -> None:
        """As ever."""
        super().sync()
        self.durable = self.path.stat().st_size


class Searching(RuleBasedStateMachine):
    """One search, from its beginning to its end."""

    def __init__(self, folder: Path, seen: Counter[str]) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(dir=folder)) / "journal"
        self.seen = seen
        self.counted: list[Told] = []
        self.events: Iterator[Event] | None = None  # None while it is down

    @initialize(number=st.integers(0, PROBLEMS - 1), workers=st.integers(1, 4))
    def begin(self, number: int, workers: int) -> None:
        """One of the problems."""
        self.asked = problem(number)
        self.seen["searches"] += 1
        self.open(workers)

    @rule(moves=st.lists(MOVES, max_size=8), events=st.integers(1, 12))
    @precondition(lambda self: self.events)
    def step(self, moves: list[Move], events: int) -> None:
        """Continue for some events; the workers make these moves."""
        self.runner.moves += moves
        for _ in range(events):
            self.advance()

    @rule(moves=st.lists(MOVES, max_size=4), events=st.integers(0, 12))
    @precondition(lambda self: self.events)
    def interrupt(self, moves: list[Move], events: int) -> None:
        """Ctrl-C: what is under way is finished, and nothing is begun."""
        if self.stop.signal is None:
            self.seen["Ctrl-C"] += 1
            self.stop.note(signal.SIGINT)
        self.step(moves, events)

    @rule(kept=st.integers(0, 400))
    @precondition(lambda self: self.events)
    def crash(self, kept: int) -> None:
        """The journal keeps what was synced, and at most this number of bytes more."""
        self.seen["crashes"] += 1
        self.down()
        with self.path.open("r+b") as file:
            file.truncate(min(self.journal.durable + kept, self.path.stat().st_size))

    @rule(workers=st.integers(1, 4))
    @precondition(lambda self: not self.events)
    def resume(self, workers: int) -> None:
        """The same call again."""
        self.seen["resumed"] += 1
        self.open(workers)

    def open(self, workers: int) -> None:
        """All anew but the journal."""
        policy = self.policy = fresh(self.asked.policy)
        opened = Opened(self.asked.seed, describe(policy), space={}, trainer={})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JournalRepaired)
            self.journal = Noting(self.path, opened)
        self.journal.durable = self.path.stat().st_size
        arms = Arms(self.asked.trainer, self.asked.configs, self.asked.seed)
        self.runner, self.stop = ByHand(arms, workers), Stop()
        run = loop.run(
            policy, self.runner, self.journal, arms.configs, retries=RETRIES, stop=self.stop
        )
        self.ledger, self.before = Ledger(), len(self.journal.events)
        self.events = checked(run, self.journal.events, self.counted)

    def down(self) -> None:
        """Nothing is left but the journal."""
        self.journal.close()
        self.events = None

    def advance(self) -> bool:
        """Continue for one event; False if there is none."""
        if self.events is None:
            return False
        event = next(self.events, None)
        if event is None:
            assert self.policy.finished or self.stop()
            if self.stop() and not self.policy.finished:
                self.seen["stopped"] += 1
            self.down()
            return False
        self.ledger.add(event)
        self.before -= 1
        assert self.before >= 0 or not (isinstance(event, Pull) and self.stop()), "begun too late"
        return True

    def teardown(self) -> None:
        """Whatever has happened, the same call comes to the answer."""
        if not hasattr(self, "asked"):
            return
        if self.events:
            self.down()
        self.open(workers=2)
        with closing(self.journal):
            while self.advance():
                pass
        assert self.policy.finished
        if not isinstance(self.policy, ASHA):
            digest = self.ledger.digest(self.policy.recommendation)
            assert digest == self.asked.digest, "another digest"
            assert self.ledger.spent.pulls == self.asked.pulls, "another number of pulls"


def run(tries: range, folder: Path, *, shrink: bool = True) -> Figures:
    """Play that many searches; what goes wrong is then made as short as possible."""
    problem.cache_clear()
    seen: Counter[str] = Counter()
    how = settings(
        max_examples=len(tries),
        stateful_step_count=20,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    # What a crash takes is decided here; the disk need not be waited for.
    with replayable(f"faults.stateful.run({tries}, FOLDER)"), patch("os.fsync"):
        machine = cast(Any, lambda: Searching(folder, seen))  # what makes one will do
        machine = seed(tries.start)(machine)
        run_state_machine_as_test(machine, settings=how)
    return {**seen, "broken": 0}


STATEFUL = Campaign(
    "F12",
    "steps, failures, crashes and Ctrl-C in every order",
    run,
    full=5_000,
    short=30,
    paths=(
        *DECIDING,
        *RUNNING,
        "src/lastarm/journal/*.py",
        *PLAYED,
        "faults/stateful.py",
    ),
)
