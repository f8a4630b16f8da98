"""F1 and F2: the coordinator is killed, at random instants and at every call that it makes."""

from __future__ import annotations

import os
import select
import signal
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple

from faults.campaign import REFERENCE, SEARCHING, Campaign, Figures, Most
from faults.disk import Call, in_memory, shuffled, watched
from faults.processes import MARK, forked, orphans
from faults.reference import (
    BUDGET,
    GROUPED,
    Reference,
    check_finished,
    pulls_in_flight,
    seen_in,
    whole,
)
from lastarm.events import Event, Loss

PACE = 0.005  # seconds a pull: a whole search takes longer than a life
LONGEST = 0.4  # seconds of a life
HANGS = 60.0  # seconds until the first loss
MOST_LIVES = 200


class Life(NamedTuple):
    """How one run of a search ended: whether by a kill, and how long resuming took."""

    killed: bool
    resuming: float


def random_kills(tries: range, folder: Path) -> Figures:
    """Searches are killed again and again, until they are done; half of the kills with workers.

    Most kills count their time from the first loss that is new in this life, so that workers have
    begun by then; the rest fall where it opens, replays and starts them.
    """
    random = Random(tries.start)
    kills: Counter[int | None] = Counter()  # by the number of workers
    searches = 0
    slowest = 0.0
    while kills.total() < len(tries):
        searches += 1
        reference = Reference(folder / f"search-{searches}")
        workers = 2 if kills[2] <= kills[None] else None
        for number in count(1):
            fault = f"search {searches}, life {number}"
            before = reference.standing()
            life = _lived(
                reference,
                workers,
                random.uniform(0, LONGEST),
                since_first_loss=random.random() < 0.75,
            )
            if workers:
                left = orphans(str(reference.journal))
                assert not left, f"{fault}: processes {left} were left behind"
            lost = reference.lost(reference.counted())
            assert not lost, f"{fault}: it lost {lost}"
            again = reference.repeated(before)
            assert not again, f"{fault}: it repeated {again}"
            if not life.killed:
                break
            kills[workers] += 1
            slowest = max(slowest, life.resuming)
            assert number < MOST_LIVES, f"{fault}: it does not get on"
        check_finished(reference.journal, whole(), f"search {searches}")
    return {
        "kills": kills.total(),
        "of them with workers": kills[2],
        "searches": searches,
        "acknowledged losses lost": 0,
        "acknowledged pulls repeated": 0,
        "arms stuck": 0,
        "other digests": 0,
        "orphans after 5 s": 0,
        "s was the slowest resume": slowest,
    }


def _lived(
    reference: Reference, workers: int | None, seconds: float, *, since_first_loss: bool
) -> Life:
    """Play in a child, and kill it some time after it began or after its first loss."""
    told, tells = os.pipe()
    said = reference.disk.parent / "said"  # also by workers, of its death
    known = reference.counted()

    def live() -> None:
        os.close(told)
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.environ[MARK] = str(reference.journal)
        to_tell = [b"resumed", b"new loss"]

        def tell(event: Event) -> None:
            is_new = isinstance(event, Loss) and seen_in(event) not in known
            if len(to_tell) == 2 or (to_tell and is_new):
                os.write(tells, to_tell.pop(0)[:1])

        reference.play(on_event=tell, seconds_per_pull=PACE, workers=workers)

    began = monotonic()
    child = forked(live)
    os.close(tells)
    resuming, until = 0.0, began + (HANGS if since_first_loss else seconds)
    ended = False
    while not ended and (left := until - monotonic()) > 0:
        if select.select([told], [], [], left)[0]:
            word = os.read(told, 1)
            ended = not word
            if word == b"r":
                resuming = monotonic() - began
            elif word == b"n" and since_first_loss:
                until = monotonic() + seconds
    hangs = not ended and monotonic() - began > HANGS
    os.close(told)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert not hangs, f"no new loss within {HANGS:.0f} s: {said.read_text()}"
    assert code in (0, -signal.SIGKILL), f"exit code {code}: {said.read_text()}"
    return Life(code != 0, resuming)


def killed(reference: Reference, nth: int, **changed: Any) -> bool:
    """Play in a child that is killed at its nth point; whether it lived to see that point."""

    def live() -> None:
        points = count()

        def at(call: Call) -> None:
            if call.when != "after" and next(points) == nth:
                os.kill(os.getpid(), signal.SIGKILL)

        with watched(reference.disk, at):
            reference.play(**{"runner": GROUPED, **changed})

    _, status = os.waitpid(forked(live), 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def kills_everywhere(tries: range, folder: Path) -> Figures:
    """Before and within calls that change the disk: points in random order, each of them once.

    After a call the files are as they are before the next one, when more counts.
    """
    points = 0
    with in_memory(folder) as place:
        reference = Reference(place)
        there_are = _number_of_points(reference)
        for nth in shuffled(there_are)[tries.start : tries.stop]:
            fault = f"killed at point {nth} of {there_are}"
            reference.clear()
            assert killed(reference, nth), f"{fault}: there is none"
            in_flight = pulls_in_flight(reference.journal) if reference.journal.exists() else 0
            result = reference.resumed(fault)
            repeated = result.spent.repeated
            assert repeated == in_flight, f"{fault}: {repeated} and not {in_flight} pulls again"
            steps = sum(training.end - training.begin for training in reference.trained())
            assert BUDGET <= steps <= BUDGET + in_flight, f"{fault}: {steps} steps were trained"
            points += 1
    there = {"points": points, "there are": Most(there_are)}
    return {**there, "losses lost": 0, "other digests": 0}


def _number_of_points(reference: Reference) -> int:
    calls: list[Call] = []
    with watched(reference.disk, calls.append):
        reference.play(runner=GROUPED)
    return sum(call.when != "after" for call in calls)


PATHS = (*SEARCHING, *REFERENCE, "faults/kills.py", "faults/processes.py")
RANDOM_KILLS = Campaign("F1", "SIGKILL at random instants", random_kills, 1000, 6, PATHS)
KILLS_EVERYWHERE = Campaign(
    "F2", "SIGKILL at every call that changes the disk", kills_everywhere, 1000, 52, PATHS
)
