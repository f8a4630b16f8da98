"""The reference search, on which faults are tried, and what is known about it from outside.

16 arms, four rungs, 30 losses. Every training is noted when it begins and every loss when it
counts, in files of ours; so whatever happens to the search, what it must still know is known.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Set
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from lastarm.errors import (
    CheckpointReplaced,
    JournalError,
    JournalRepaired,
    LastarmError,
    StatesNotTrusted,
)
from lastarm.events import Event, Loss, Pull
from lastarm.journal import read
from lastarm.ledger import Ledger
from lastarm.policies import SuccessiveHalving
from lastarm.result import Result
from lastarm.runners import Serial
from lastarm.searching import search
from lastarm.trainers import RecordedCurves
from lastarm.trainers.recorded import Position

ARMS, BUDGET = 16, 128
ROWS = [{"row": row} for row in range(ARMS)]
TABLE = [[1 / (1 + arm % 5) + (arm * step) % 7 / 9 for step in range(30)] for arm in range(ARMS)]

# By their number, not by the clock: so that a search makes the same calls each time.
GROUPED, EACH = partial(Serial, group=3), partial(Serial, group=1)

Seen = tuple[int, int, str]
"""An arm, a level and the loss there, in hex."""


class Training(NamedTuple):
    """A call of the trainer: an arm was to be brought from one level to another."""

    arm: int
    begin: int
    end: int


class Tallied(RecordedCurves):
    """Notes every training before it begins."""

    def __init__(self, tally: Path, table: Any = TABLE, seconds_per_pull: float = 0.0) -> None:
        super().__init__(table, seconds_per_pull=seconds_per_pull)
        self._tally = tally

    def train(self, state: Position, pulls: int) -> Position:
        """The place so much further on, after a note."""
        note(self._tally, f"{state.row} {state.pulls} {state.pulls + pulls}")
        return super().train(state, pulls)


def note(path: Path, line: str) -> None:
    """Add a line, whole or not at all, that a kill right after it cannot take back."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


class Standing(NamedTuple):
    """What counted at some moment, and how many trainings had begun."""

    counted: Set[Seen]
    trainings: int


class Reference:
    """The reference search: its `disk`, where faults happen, and our notes, where none does."""

    def __init__(self, folder: Path, disk: Path | None = None) -> None:
        self.disk = (disk or folder / "disk").resolve()
        self.journal = self.disk / "search.jsonl"
        self._notes = folder / "notes"
        self._tally, self._counted = self._notes / "trained", self._notes / "counted"
        self.clear()

    def clear(self) -> None:
        """Remove all traces of the search."""
        for folder in (self.disk, self._notes):
            folder.mkdir(parents=True, exist_ok=True)
            for left in folder.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def play(
        self,
        *,
        on_event: Callable[[Event], None] | None = None,
        seconds_per_pull: float = 0.0,
        **changed: Any,
    ) -> Result:
        """Begin the search, or go on with it; what counts is noted as it counts."""
        known = self.counted()

        def count(event: Event) -> None:
            if isinstance(event, Loss) and (seen := seen_in(event)) not in known:
                note(self._counted, " ".join(map(str, seen)))
            if on_event:
                on_event(event)

        arguments = {
            "trainer": Tallied(self._tally, seconds_per_pull=seconds_per_pull),
            "space": ROWS,
            "policy": SuccessiveHalving(ARMS, BUDGET),
            "journal": self.journal,
        }
        with warnings.catch_warnings():
            for known_of in (JournalRepaired, CheckpointReplaced, StatesNotTrusted):
                warnings.simplefilter("ignore", known_of)
            result = search(**{**arguments, **changed}, on_event=count)
        if isinstance(result.stopped_by, int):  # so was the campaign, and no promise is broken
            raise KeyboardInterrupt(f"signal {result.stopped_by}")
        return result

    def counted(self) -> set[Seen]:
        """The losses that counted."""
        lines = self._counted.read_text().splitlines() if self._counted.exists() else []
        return {(int(arm), int(upto), loss) for arm, upto, loss in map(str.split, lines)}

    def trained(self) -> list[Training]:
        """The trainings that began."""
        lines = self._tally.read_text().splitlines() if self._tally.exists() else []
        return [Training(*map(int, line.split())) for line in lines]

    def standing(self) -> Standing:
        """The present state, to compare with a later one."""
        return Standing(self.counted(), len(self.trained()))

    def lost(self, counted: Set[Seen]) -> Set[Seen]:
        """What counted and is not in the journal; all of it, if there is none to be read."""
        try:
            events = read(self.journal) if self.journal.exists() else []
        except JournalError:
            return counted
        return counted - {seen_in(event) for event in events if isinstance(event, Loss)}

    def repeated(self, before: Standing) -> list[Training]:
        """The trainings since then that did again what had counted."""
        levels = _levels(before)
        since = self.trained()[before.trainings :]
        return [training for training in since if training.begin < levels.get(training.arm, 0)]

    def resumed(
        self,
        fault: str,
        before: Standing | None = None,
        *,
        states_may_be_lost: bool = False,
        **changed: Any,
    ) -> Result:
        """Resume after a fault, and check all that is promised."""
        before = before or self.standing()
        assert not (lost := self.lost(before.counted)), f"{fault}: it lost {lost}"
        try:
            result = self.play(**changed)
        except LastarmError as error:
            raise AssertionError(f"{fault}: it cannot be resumed: {error}") from error
        again = self.repeated(before)
        if states_may_be_lost:
            levels = _levels(before)
            steps = sum(min(one.end, levels[one.arm]) - one.begin for one in again)
            booked = result.spent.repeated
            assert booked >= steps, f"{fault}: {steps} pulls were repeated, and it says {booked}"
        else:
            assert not again, f"{fault}: it repeated {again}"
        assert result.digest == whole().digest, f"{fault}: another digest, by {result.failures}"
        check_finished(self.journal, whole(), fault)
        return result


def _levels(standing: Standing) -> dict[int, int]:
    """Arm → how far it had come, by what counted."""
    levels: dict[int, int] = {}
    for arm, upto, _ in standing.counted:
        levels[arm] = max(upto, levels.get(arm, 0))
    return levels


def check_finished(journal: Path, expected: Result, fault: str) -> None:
    """The journal is that of a search that came to its end, and to the expected answer."""
    try:
        events = read(journal)
    except JournalError as error:
        raise AssertionError(f"{fault}: afterwards its journal cannot be read: {error}") from error
    ledger = Ledger(events)
    assert ledger.closed, f"{fault}: it has not come to its end"
    assert ledger.digest(ledger.closed.arm) == expected.digest, f"{fault}: another digest"
    assert ledger.spent.pulls == expected.spent.pulls, f"{fault}: {ledger.spent.pulls} pulls"
    done = Counter(event.pull for event in events if isinstance(event, Loss))
    stuck = {event for event in events if isinstance(event, Pull)} - done.keys()
    assert not stuck, f"{fault}: {stuck} began and never ended"
    assert set(done.values()) == {1}, f"{fault}: a loss counted twice"


def pulls_in_flight(journal: Path) -> int:
    """How many pulls, over all attempts, were under way when a journal or a life of it ended."""
    levels: dict[int, int] = {}
    in_flight: dict[Pull, int] = {}
    lost = 0
    for event in read(journal):
        if isinstance(event, Pull):
            lost += in_flight.get(event, 0)
            in_flight[event] = event.upto - levels.get(event.arm, 0)
        elif isinstance(event, Loss):
            del in_flight[event.pull]
            levels[event.pull.arm] = event.pull.upto
    return lost + sum(in_flight.values())


def seen_in(loss: Loss) -> Seen:
    """What a loss says."""
    return loss.pull.arm, loss.pull.upto, loss.value.hex()


@cache
def whole() -> Result:
    """The answer of a search that nothing happened to."""
    return search(RecordedCurves(TABLE), ROWS, policy=SuccessiveHalving(ARMS, BUDGET))
