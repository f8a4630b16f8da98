"""Watching the search at hand: on a page with a server of its own, or in the cell of a notebook.

The server is another process. It reads the journal as any reader does, so the search goes on as if
it were not there, and it ends with the search, also with one that is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from lastarm.errors import LastarmError
from lastarm.events import Event, Opened
from lastarm.report.notebook import page_below_the_cell
from lastarm.report.page.contents import contents
from lastarm.report.page.html import rendered
from lastarm.result import Result

EVERY = 1.0  # seconds between two drawings of a cell
SHARE = 0.05  # of the time that may be spent on them
ENDING = 5.0  # seconds in which a page gets the last lines


@contextmanager
def page_of(journal: Path, *, browse: bool) -> Iterator[None]:
    """Serve the page of a journal within, and say where."""
    process = subprocess.Popen(
        # Of the folder that the search is in, nothing is imported (-P).
        [sys.executable, "-P", "-m", "lastarm", "watch", "--until-closed", "--", str(journal)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=os.name == "posix",  # Ctrl-C is for the search
    )
    assert process.stdin
    assert process.stdout
    try:
        address = process.stdout.readline().strip()
        if address:  # else it has said why not
            print(f"Watch at {address}", file=sys.stderr, flush=True)
        if address and browse:
            webbrowser.open(address)
        yield
    finally:
        with suppress(OSError):
            process.stdin.close()  # which ends it
        try:
            process.wait(ENDING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@contextmanager
def cell_of(opened: Opened, journal: Path | None) -> Iterator[Callable[[Event], None]]:
    """A function that is told all events, and draws the report below a notebook's cell.

    Without a journal, what is known of the search is in `opened`.
    """
    with page_below_the_cell() as draw:
        cell = _Cell(opened, journal, draw)
        try:
            yield cell
        finally:
            cell.draw_now(running=False)


class _Cell:
    """The report of a search while it runs, drawn as often as it may be."""

    def __init__(self, opened: Opened, journal: Path | None, draw: Callable[[str], None]) -> None:
        self._events: list[Event] = [] if journal else [opened]
        self._journal, self._draw = journal, draw
        self._next = monotonic() + EVERY

    def __call__(self, event: Event) -> None:
        self._events.append(event)
        if monotonic() >= self._next:
            self.draw_now(running=True)

    def draw_now(self, *, running: bool) -> None:
        """Draw it. What cannot be drawn is left out: a search never ends by its picture."""
        began = monotonic()
        with suppress(LastarmError):
            journal = str(self._journal) if self._journal else None
            result = Result.of(self._events, journal=journal)
            self._draw(rendered(contents(result, self._events, running=running)))
        took = monotonic() - began
        self._next = monotonic() + max(EVERY, took / SHARE)
