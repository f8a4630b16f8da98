"""How a search looks on a terminal: its rungs and its answer."""

from __future__ import annotations

import json
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from math import inf, isfinite
from statistics import median
from typing import Any

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from lastarm.cli import ending
from lastarm.plain import finite, readable
from lastarm.policy import lowest
from lastarm.result import Result
from lastarm.texts import counted, printable
from lastarm.trainers import Config
from lastarm.trainers.metric import LOSS


class Terminal(Console):
    """Standard output. If its reader closes it early, the caller decides how to end."""

    def on_broken_pipe(self) -> None:
        """Raise, instead of exiting."""
        raise BrokenPipeError


console = Terminal(highlight=False)
plain = printable  # texts of others go to the terminal through this
note = ending.note  # on standard error, beside the answer

MOST_ROWS = 30
BETWEEN = 3  # characters between two columns
WIDEST_VALUE = 32  # characters, before a value takes a second line


def table(*headings: str, title: str | None = None, no_wrap: bool = False) -> Table:
    """An empty table, with columns for numbers."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in headings:
        made.add_column(heading, justify="right", no_wrap=no_wrap)
    return made


def side_by_side(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Table]:
    """Rows of texts under their headings, in as many tables as it takes to split no heading.

    Each table begins with the first column. A value may take several lines, because a number that
    is cut off is another number.
    """
    first, *widths = (
        max(cell_len(heading), *(min(cell_len(row[at]), WIDEST_VALUE) for row in rows), 1)
        for at, heading in enumerate(headings)
    )
    most = console.width - first - 2 * BETWEEN - 1
    parts: list[list[int]] = [[]]  # which columns are in which table
    room = most
    for at, width in enumerate(widths, start=1):
        if parts[-1] and width > room:
            parts.append([])
            room = most
        parts[-1].append(at)
        room -= width + BETWEEN
    made = []
    for part in parts:
        shown = table(headings[0], no_wrap=True)
        for at in part:
            heading = Text(headings[at], overflow="ellipsis", no_wrap=True)
            width = max(1, min(widths[at - 1], most))
            shown.add_column(heading, justify="right", overflow="fold", width=width)
        for row in rows:
            shown.add_row(escape(row[0]), *(escape(row[at]) for at in part))
        made.append(shown)
    return made


def rungs(result: Result, number: Callable[[int], int] = int) -> Group:
    """What was seen at each level; `number` gives the number by which the user knows an arm."""
    levels: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for arm, curve in result.curves.items():
        for upto, loss in curve:
            levels[upto][arm] = loss

    metric = result.metric
    figures = (metric.best, "of arm", "median loss" if metric == LOSS else "median")
    headings = ("brought to", "arms seen", *figures, "diverged")
    rows = []
    for row, (upto, losses) in enumerate(sorted(levels.items())):
        if len(levels) > MOST_ROWS and MOST_ROWS // 2 <= row < len(levels) - MOST_ROWS // 2:
            if row == MOST_ROWS // 2:
                rows.append(("…",) * 6)
            continue
        finite = {arm: loss for arm, loss in losses.items() if isfinite(loss)}
        best = lowest(finite)
        rows.append(
            (
                f"{upto:,}",
                f"{len(losses):,}",
                "" if best is None else metric.figure(finite[best]),
                "" if best is None else f"{number(best)}",
                metric.figure(median(finite.values())) if finite else "",
                f"{len(losses) - len(finite):,}" if len(finite) < len(losses) else "",
            )
        )
    return Group(*side_by_side(headings, rows))


def answer(result: Result, number: Callable[[int], int] = int, longest: float = inf) -> None:
    """Print the recommendation and what it took; no arm can be trained past `longest` pulls."""
    spent = result.spent
    if result.arm is None or result.loss is None:
        say("No arm has a finite loss yet.")
    else:
        level = result.level or 0
        test = "" if result.test_loss is None else f", test {_figure(result, result.test_loss)}"
        say(
            f"Recommended: [bold]arm {number(result.arm)}[/], {_figure(result, result.loss)}"
            f"{test}, after {level:,} pulls."
        )
    of_all = f" of a budget of {result.budget:,}" if result.budget else ""
    say(f"Spent: {spent.pulls:,} pulls{of_all}, {spent.observations:,} looks at a loss.")
    if spent.moving:
        say(f"{spent.moving}.")
    if spent.repeated:
        say(f"Progress was lost; at most {spent.repeated:,} pulls were trained again.")
    if result.arm is not None:
        arms, far = len(result.curves.keys() | result.failures.keys()), int(min(level, longest))
        if arms * far > spent.pulls:
            say(
                f"Training all {arms:,} arms for {far:,} pulls would take {arms * far:,}, "
                f"{arms * far / spent.pulls:.1f} times as many."
            )
    for remark in result.remarks():
        say(escape(remark))
    if result.failures:
        error = next(iter(result.failures.values())).error
        failed = counted(len(result.failures), "arm")
        say(f"{failed} failed, the first with: {escape(plain(error))}")


def _figure(result: Result, loss: float) -> str:
    return f"{escape(result.metric.label)} [bold]{result.metric.figure(loss)}[/]"


def exit_code(stopped_by: int | str | None) -> int:
    """What a shell is told of a search: 128 and the signal that stopped it, else 0."""
    return 128 + stopped_by if isinstance(stopped_by, int) else 0


def settings(config: Config) -> None:
    """Print a config, a line for each setting."""
    for name, value in config.items():
        shown = f"{value:.6g}" if isinstance(value, float) else f"{value}"
        say(f"  {escape(plain(name))} = {escape(plain(shown))}")


def stopped(journal: str | None) -> None:
    """Say that a search was stopped, and how to resume it."""
    how = "Run the same command again to start over; with --journal it would resume"
    if journal:
        how = f"{escape(plain(f'lastarm resume {shlex.quote(journal)}'))} to resume"
    say(f"Stopped before the end. {how}.")


def can_ask() -> bool:
    """Whether a person sits at a terminal, and reads what is noted."""
    streams = (sys.stdin, sys.stderr)
    return all(stream and not stream.closed and stream.isatty() for stream in streams)


def asked(question: str) -> bool:
    """Whether a person says yes; no, where none can be asked."""
    return can_ask() and click.confirm(plain(question), err=True)


def note_about_this_call(result: Result) -> None:
    """Say on standard error what an answer in JSON, the same after every resume, does not hold."""
    for sentence in result.about_this_call():
        note(plain(sentence))


def say(sentence: str) -> None:
    """Print a sentence; the terminal wraps it."""
    console.print(sentence, soft_wrap=True)


def print_json(answer: Any) -> None:
    """Print one line of JSON; a number that is not finite becomes null."""
    print(json.dumps(finite(answer), allow_nan=False, default=readable))
