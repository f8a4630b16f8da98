"""`lastarm report`: a search as one page of HTML."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from lastarm.cli import display
from lastarm.cli.memory import has_room_for
from lastarm.journal import read
from lastarm.journal.lock import is_held
from lastarm.report.page.html import chart_library, write_report
from lastarm.result import Result


@click.command()
@click.argument("journal", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The page to write. An earlier report there is replaced, any other file is not.",
)
def report(journal: str, output: str) -> None:
    """Write a search as one page of HTML.

    The page shows the answer and what it cost, every learning curve, the rungs, the settings
    against the loss, failures, and how safe the eliminations were. Pick an arm to read its story.
    The page is one file for any browser, and needs no network and no server.

    The journal is only read: nothing in it is executed, and its search may be running meanwhile.

    Example: lastarm report search.jsonl -o report.html
    """
    path = Path(journal)
    running, events = is_held(path), read(path)
    result = Result.of(events, journal=journal)
    if not has_room_for(chart_library):
        raise MemoryError
    written = write_report(output, result, events, running=running)
    size = written.stat().st_size / 1e6
    display.say(
        f"Wrote {escape(display.plain(str(written)))}, {size:.1f} MB. Open it in a browser."
    )
