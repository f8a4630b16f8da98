"""A search as tables of its arms and of its events, and how these are written as CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

from lastarm.errors import InvalidArgument
from lastarm.events import Closed, Event, Loss, Opened
from lastarm.journal.lines import fields_of
from lastarm.plain import readable
from lastarm.report.seen import Seen

ARM_COLUMNS = ("arm", "recommended", "pulls", "loss", "error", "losses")
EVENT_COLUMNS = (
    "record",
    "event",
    "arm",
    "upto",
    "loss",
    "test_loss",
    "trained",
    "train_seconds",
    "loss_seconds",
    "worker",
    "attempt",
    "retried",
    "lost",
    "error",
    "budget",
    "config",
    "metrics",
)
FORMULA = ("=", "+", "-", "@", "'", "＝", "＋", "－", "＠")

Row = dict[str, Any]


def pulled(seen: Seen) -> list[tuple[int, int, float, str]]:
    """Arm, pulls, latest loss and error of all arms that were pulled, by their numbers."""
    arms = {arm: (arm, *curve[-1], "") for arm, curve in seen.curves.items()} | {
        arm: (arm, failure.pull.upto, inf, failure.error) for arm, failure in seen.failures.items()
    }
    rows = (arms[arm] for arm in sorted(arms))
    return [(a, pulls, loss if isfinite(loss) else inf, error) for a, pulls, loss, error in rows]


def renamed(prefix: str, values: Mapping[str, Any], taken: Collection[str]) -> Row:
    """The values by their names; one with a name that is taken has the prefix before it.

    >>> renamed("param", {"loss": 1, "param_loss": 2}, taken=["loss"])
    {'param_param_loss': 1, 'param_loss': 2}
    """
    row = {}
    for name, value in values.items():
        free = name
        while free in taken or (free != name and free in values):
            free = f"{prefix}_{free}"
        row[free] = value
    return row


def arm_rows(seen: Seen) -> list[Row]:
    """A row an arm that was pulled: `ARM_COLUMNS`, then its settings by their names."""
    return [
        {
            "arm": arm,
            "recommended": arm == seen.arm,
            "pulls": pulls,
            "loss": loss,
            "error": error,
            "losses": list(seen.curves.get(arm, [])),
        }
        | renamed("param", seen.configs[arm], ARM_COLUMNS)
        for arm, pulls, loss, error in pulled(seen)
    ]


def event_rows(events: Iterable[Event]) -> Iterator[Row]:
    """A row an event, as the journal spells it: those of `EVENT_COLUMNS` that it has."""
    for record, event in enumerate(events, start=1):
        row = {"record": record, **fields_of(event)}
        match event:
            case Opened(policy=policy):
                row["budget"] = policy.get("budget")
            case Loss(value=loss):
                row["loss"] = loss
            case Closed(test_loss=loss):
                row["test_loss"] = loss
        yield {name: row[name] for name in EVENT_COLUMNS if row.get(name) is not None}


def write_csv(path: str | Path, columns: Sequence[str], rows: Iterable[Row]) -> int:
    """Write rows under these columns, and under any others that they have; how many there are.

    A row is one line of UTF-8, whatever is in it. A number is written so that it reads back bit
    for bit. A text that a spreadsheet would take for a formula has a ' before it, and what is not
    printable is escaped: see `as_cell`.
    """
    rows = list(rows)
    columns = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(as_cell(name) for name in columns)
            for row in rows:
                writer.writerow(as_cell(row[name]) if name in row else "" for name in columns)
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror or error}. Name a file in a folder that "
            "is there and that you may write to."
        ) from error
    return len(rows)


def as_cell(value: Any) -> str:
    r"""A value as text that is safe in a spreadsheet and on a terminal.

    >>> print(as_cell(-0.5), as_cell("-0.5"), as_cell("=1+1"), as_cell("two\nlines"))
    -0.5 '-0.5 '=1+1 two\nlines
    >>> print(as_cell((8, None)), as_cell(True), as_cell(float("-inf")))
    [8, null] True -inf
    """
    if isinstance(value, float):
        return repr(float(value))
    value = readable(value)
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
    return f"'{text}" if text.startswith(FORMULA) else text
