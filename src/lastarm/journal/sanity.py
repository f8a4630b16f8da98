"""Sanity checks: which values of a journal can be shown.

A journal may come from anywhere. In a few bytes it may claim an arm of 400 digits, or a setting
that is a list in a list in a list, 500 times. What shows, draws or exports events checks them here
first, and may then rely on their numbers. Losses may be anything, as those of real searches are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lastarm.arguments import MOST
from lastarm.errors import ImpossibleValue
from lastarm.events import Changed, Closed, Event, Extended, Failure, Loss, Opened, Pull, Started

MOST_ARMS = 10**7  # a few bytes must not take all memory
MOST_SECONDS = 1e12  # 30,000 years
MOST_NESTED = 64

OF_PULLS = ("arm", "upto")
OF_WORK = ("arm", "upto", "moves", "trained", "attempt")
SECONDS = ("train_seconds", "loss_seconds", "move_seconds")
FLAT = frozenset({str, int, float, bool, type(None)})


def require_sane(events: Iterable[Event], first: int = 1) -> None:
    """Refuse events that no search has, naming the first of them.

    :param events: some events of a journal, in their order.
    :param first: the number of the line of the first of them.

    >>> require_sane([Pull(arm=0, upto=4), Pull(arm=1, upto=2**80)])
    Traceback (most recent call last):
    lastarm.errors.ImpossibleValue: line 2 of the journal has upto=1208925819614629174706176, which
    no search has: it is from 0 to 9,223,372,036,854,775,807. Ask the person who made this journal.
    """
    for line, event in enumerate(events, start=first):
        names: tuple[str, ...] = ()
        counts: tuple[int, ...] = (0,)
        times: tuple[str, ...] = SECONDS
        seconds: tuple[float, ...] = ()
        told: dict[str, Any] = {}
        match event:
            case Pull():
                names, counts = OF_PULLS, (event.arm, event.upto)
                told = {"config": event.config} if event.config else {}
                if isinstance(event, Started) and event.at is not None:
                    times, seconds = ("at",), (event.at,)
            case Loss() | Failure():
                pull, work = event.pull, event.work
                names = OF_WORK
                counts = pull.arm, pull.upto, work.moves, work.trained, work.attempt
                seconds = work.train_seconds, work.loss_seconds, work.move_seconds
                told = {"metrics": event.metrics} if isinstance(event, Loss) else {}
            case Extended(budget):
                names, counts = ("budget",), (budget,)
            case Closed(arm, upto, _, trained):
                names, counts = ("arm", "upto", "trained"), (arm, upto, trained)
            case Opened(seed, policy, space, trainer):
                given = policy.get("budget")
                names, counts = ("seed",), (seed,)
                if isinstance(given, int):
                    names, counts = ("seed", "budget"), (seed, given)
                told = {"policy": policy, "space": space, "trainer": trainer}
            case Changed():
                pass  # names and texts
        # Of a million events, hardly any has to be looked at number by number.
        if min(counts) < 0 or max(counts) >= MOST_ARMS:
            for name, count in zip(names, counts, strict=True):
                most = MOST_ARMS - 1 if name == "arm" else MOST
                if not 0 <= count <= most:
                    raise ImpossibleValue(line, name, count, f"it is from 0 to {most:,}")
        if seconds and not (min(seconds) >= 0 and sum(seconds) <= MOST_SECONDS):  # nor nan
            for name, time in zip(times, seconds, strict=True):
                if not 0 <= time <= MOST_SECONDS:
                    raise ImpossibleValue(line, name, time, f"it is from 0 to {MOST_SECONDS:,.0f}")
        for name, value in told.items():
            if value and _is_nested(value):
                rule = f"its lists and dicts are at most {MOST_NESTED} deep"
                raise ImpossibleValue(line, name, value, rule)


def _is_nested(value: Mapping[str, Any]) -> bool:
    """Whether the lists and dicts in it are too deep."""
    if FLAT.issuperset(map(type, value.values())):
        return False
    together: list[Any] = [value]
    for _ in range(MOST_NESTED + 1):
        inner = (
            item
            for one in together
            for item in (one.values() if isinstance(one, Mapping) else one)
            if isinstance(item, Mapping | list | tuple)
        )
        # Each once: in a journal nothing is in two places, but in memory it may be in itself.
        together = list({id(item): item for item in inner}.values())
        if not together:
            return False
    return True
