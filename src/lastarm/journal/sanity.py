"""What a journal may hold to be shown: numbers that a search can have, and settings with an end.

Every event that can be written can be read again, and a journal may be anybody's: in a few bytes
it may claim an arm of 400 digits, or a setting that is a list in a list in a list, 500 times.
Whoever tells, draws or exports events asks here first, and may then rely on their
numbers. Losses may be anything, as those of real searches are.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from lastarm.arguments import MOST
from lastarm.errors import JournalError
from lastarm.events import Closed, Event, Extended, Failure, Loss, Opened, Pull

MOST_ARMS = 10**7  # a few bytes must not take all memory
MOST_SECONDS = 1e12  # 30,000 years
MOST_NESTED = 64


def require_sane(events: Iterable[Event]) -> None:
    """Refuse events that no search has, naming the first of them.

    >>> require_sane([Pull(arm=0, upto=4), Pull(arm=1, upto=2**80)])
    Traceback (most recent call last):
    lastarm.errors.JournalError: line 2 of the journal has upto=1208925819614629174706176, which no
    search has: it is from 0 to 9,223,372,036,854,775,807. Ask whoever made the journal.
    """
    for line, event in enumerate(events, start=1):
        counts: dict[str, Any] = {}
        seconds: dict[str, float] = {}
        told: Any = None
        match event:
            case Pull(arm, upto, told):
                counts = {"arm": arm, "upto": upto}
            case Loss(pull, work=work) | Failure(pull, work=work):
                counts = {"arm": pull.arm, "upto": pull.upto}
                counts |= {"trained": work.trained, "attempt": work.attempt}
                counts |= {"moves": work.moves}
                seconds = {
                    "train_seconds": work.train_seconds,
                    "loss_seconds": work.loss_seconds,
                    "move_seconds": work.move_seconds,
                }
                told = event.metrics if isinstance(event, Loss) else None
            case Extended(budget):
                counts = {"budget": budget}
            case Closed(arm, upto, _, trained):
                counts = {"arm": arm, "upto": upto, "trained": trained}
            case Opened(seed, policy, space, trainer):
                given = policy.get("budget")
                counts = {"seed": seed} | ({"budget": given} if isinstance(given, int) else {})
                told = [policy, space, trainer]
        for name, count in counts.items():
            most = MOST_ARMS - 1 if name == "arm" else MOST
            if not 0 <= count <= most:
                raise _refused(line, f"{name}={reprlib.repr(count)}", f"from 0 to {most:,}")
        for name, time in seconds.items():
            if not 0 <= time <= MOST_SECONDS:  # nor nan
                raise _refused(line, f"{name}={time}", f"from 0 to {MOST_SECONDS:,.0f}")
        if told and _is_nested(told):
            what = "something in lists or mappings within each other"
            raise _refused(line, what, f"at most {MOST_NESTED} deep")


def _refused(line: int, what: str, rule: str) -> JournalError:
    return JournalError(
        f"line {line} of the journal has {what}, which no search has: it is {rule}. Ask whoever "
        "made the journal."
    )


def _is_nested(value: Any) -> bool:
    """Whether lists or mappings in it are more than so many deep."""
    together = [value]
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
