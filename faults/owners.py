"""F15: two processes want one journal. One of them gets it, and when it dies, another one."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from random import Random
from time import monotonic, sleep

from faults.campaign import REFERENCE, SEARCHING, Campaign, Figures
from faults.disk import in_memory
from faults.processes import forked
from faults.reference import Reference
from lastarm.errors import LastarmError
from lastarm.events import Event

EARLIEST_DEATH = 0.01  # seconds within which one that is opening the journal dies


class Racer:
    """A process that begins the search when it is released, and resumes it when it is freed."""

    def __init__(self, reference: Reference) -> None:
        waits, self._lets = os.pipe()
        self._heard, says = os.pipe()

        def race() -> None:
            os.close(self._lets)
            os.read(waits, 1)
            seen: list[Event] = []

            def own(event: Event) -> None:
                if not seen:
                    os.write(says, b"owner")
                    os.read(waits, 1)
                seen.append(event)

            try:
                reference.play(on_event=own)
            except LastarmError as error:
                os.write(says, f"{error}".encode())

        self.process = forked(race)
        os.close(waits)
        os.close(says)

    def let_go(self) -> None:
        """Begin, or go on."""
        with suppress(BrokenPipeError):  # it may be over
            os.write(self._lets, b".")

    def said(self) -> str:
        """Its outcome, as soon as it is known: that it is the owner, or who is."""
        return os.read(self._heard, 1000).decode()

    def end(self, *, kill: bool = False) -> None:
        """Let it end, or end it."""
        if kill:
            os.kill(self.process, signal.SIGKILL)
        self.let_go()
        os.waitpid(self.process, 0)
        os.close(self._lets)
        os.close(self._heard)


def owners(tries: range, folder: Path) -> Figures:
    """Races; in every third the owner is killed, and two others race to take over."""
    slowest = 0.0
    takeovers = 0
    with in_memory(folder) as place:
        reference = Reference(place)
        for seed in tries:
            reference.clear()
            owner, _ = _race(reference, f"race {seed}")
            if seed % 3 == 2:
                takeovers += 1
                owner.end(kill=True)
                early = Racer(reference)
                early.let_go()
                sleep(Random(seed).uniform(0, EARLIEST_DEATH))
                early.end(kill=True)
                owner, seconds = _race(reference, f"race {seed}, after the owner's death")
                slowest = max(slowest, seconds)
            owner.end()
            reference.resumed(f"race {seed}")
    return {
        "races": len(tries) + takeovers,
        "owners killed": takeovers,
        "races with no owner, or two": 0,
        "s was the slowest takeover": slowest,
    }


def _race(reference: Reference, fault: str) -> tuple[Racer, float]:
    """Two begin at once; the one that owns the journal now, and how long it took to know."""
    racers = [Racer(reference) for _ in range(2)]
    began = monotonic()
    for racer in racers:
        racer.let_go()
    said = {racer: racer.said() for racer in racers}
    seconds = monotonic() - began
    winners = [racer for racer in racers if said[racer] == "owner"]
    losers = [racer for racer in racers if racer not in winners]
    try:
        assert len(winners) == 1, f"{fault}: {len(winners)} owners: {list(said.values())}"
        # At that very moment the owner may not yet have written down who it is.
        named = re.search(r"in use by (process \d+ on|another process)", said[losers[0]])
        assert named, f"{fault}: it was told {said[losers[0]]!r}"
    except AssertionError:
        for winner in winners:
            winner.end()
        raise
    finally:
        for loser in losers:
            loser.end()
    return winners[0], seconds


OWNERS = Campaign(
    "F15",
    "two processes race for one journal",
    owners,
    full=300,
    short=12,
    paths=(*SEARCHING, *REFERENCE, "faults/owners.py", "faults/processes.py"),
)
