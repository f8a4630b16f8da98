"""A search as tables: of its arms, its observations and its events; as DataFrames and as CSV."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from lastarm.errors import InvalidArgument
from lastarm.events import Closed, Event, Loss, Opened
from lastarm.journal.lines import fields_of
from lastarm.plain import readable, renamed
from lastarm.result import Result
from lastarm.trainers.metric import LOSS, Metric

ARM_COLUMNS = ("arm", "recommended", "pulls", "loss", "error", "losses")
EVENT_COLUMNS = (
    *("record", "event", "arm", "upto", "loss", "test_loss", "trained", "train_seconds"),
    *("loss_seconds", "worker", "attempt", "retried", "lost", "error", "budget"),
    *("config", "metrics"),
)
MOST_METRICS = 1000  # columns of a table of arms
FORMULA = ("=", "+", "-", "@", "'", "＝", "＋", "－", "＠")

Row = dict[str, Any]


def arm_rows(result: Result) -> list[Row]:
    """A row for each arm that was pulled, as it stands.

    It has `ARM_COLUMNS`; the figure by its name, if it is not the loss itself; the arm's settings;
    and what the trainer told beside the latest loss. Settings keep their names, unless one is the
    name of a column that every search has.
    """
    standings = result.standings()
    latest = {
        at.arm: result.told_beside(at.arm, *result.curves[at.arm][-1])
        for at in standings
        if at.arm not in result.failures
    }
    metrics = dict.fromkeys(name for told in latest.values() for name in told)
    shown = set(islice(metrics, MOST_METRICS))
    settings = {name for at in standings for name in result.configs[at.arm]}
    own = {*ARM_COLUMNS, *renamed("param", dict.fromkeys(settings), ARM_COLUMNS)}
    rows = []
    for at in standings:
        row = at._asdict()
        row |= {"recommended": at.arm == result.arm, "losses": [*result.curves.get(at.arm, [])]}
        row |= (figure := result.metric.beside({"loss": at.loss}, own))
        row |= renamed("param", result.configs[at.arm], ARM_COLUMNS)
        told = latest.get(at.arm, {})
        told = {name: value for name, value in told.items() if name in shown}
        rows.append(row | renamed("metric", told, {*own, *figure}))
    return rows


def dataframe(result: Result, *, curves: bool) -> Any:
    """The arms, or with `curves` the observations, as a DataFrame: see `Result.to_dataframe`."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise InvalidArgument(
            "a DataFrame needs pandas, which is not installed: pip install pandas. Or read "
            "`curves` and `configs` as they are."
        ) from None
    if not curves:
        rows = arm_rows(result)
        return pandas.DataFrame(rows, columns=all_columns(ARM_COLUMNS, rows))
    own = ("arm", "pulls", "loss", "error")
    figure = partial(result.metric.beside, taken=own)
    return pandas.DataFrame(
        {"arm": arm, "pulls": upto, "loss": loss}
        | figure({"loss": loss})
        | renamed("metric", result.told_beside(arm, upto, loss), {*own, *figure({"loss": loss})})
        for arm, curve in sorted(result.curves.items())
        for upto, loss in curve
    )


def all_columns(columns: Sequence[str], rows: Iterable[Row]) -> list[str]:
    """These columns, and then any others that the rows have."""
    return list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))


def event_rows(events: Iterable[Event], metric: Metric = LOSS) -> Iterator[Row]:
    """A row for each event, as the journal spells it: those of `EVENT_COLUMNS` that it has.

    The figures of losses follow under their own names, if they are not the losses themselves.
    """
    for record, event in enumerate(events, start=1):
        row = {"record": record, **fields_of(event)}
        match event:
            case Opened(policy=policy):
                row["budget"] = policy.get("budget")
            case Loss(value=loss):
                row["loss"] = loss
            case Closed(test_loss=loss):
                row["test_loss"] = loss
        known = {name: row[name] for name in EVENT_COLUMNS if row.get(name) is not None}
        losses: Row = {name: known[name] for name in ("loss", "test_loss") if name in known}
        yield known | metric.beside(losses, EVENT_COLUMNS)


def write_csv(path: str | Path, columns: Sequence[str], rows: Iterable[Row]) -> int:
    """Write rows under these columns, and any others that they have; return how many there are.

    A row is one line of UTF-8, whatever is in it. A number is written so that it reads back bit
    for bit. A text that a spreadsheet would take for a formula gets a ' before it, and what is not
    printable is escaped: see `as_cell`.
    """
    rows = list(rows)
    columns = all_columns(columns, rows)
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(as_cell(name) for name in columns)
            for row in rows:
                writer.writerow(as_cell(row[name]) if name in row else "" for name in columns)
    except OSError as error:
        why = f"{path} cannot be written: {error.strerror or error}. Name a file in a folder that "
        why += "exists and that you may write to."
        raise InvalidArgument(why, argument="path", given=path) from error
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
