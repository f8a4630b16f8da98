"""`lastarm report`: a search as one page of HTML."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape

from lastarm.cli import display
from lastarm.cli.memory import has_room_for
from lastarm.journal import read
from lastarm.journal.lock import is_held
from lastarm.report.page.html import chart_library, write_report
from lastarm.result import Result


def report(journal: str, output: str) -> None:
    """Write a search as one page of HTML."""
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
