"""One file of HTML with everything in it: no server, no network, no code but its two scripts.

What a journal says is there as JSON data, never as markup or script. The page's own rules, its
Content-Security-Policy, name the two scripts by their checksums and forbid all requests.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from lastarm.errors import InvalidArgument
from lastarm.events import Event, Failure, Loss, Opened, Pull
from lastarm.journal import read
from lastarm.report.page.contents import contents
from lastarm.result import Result

OURS = '<meta name="generator" content="lastarm">'  # by which a page that we wrote is known


def report_of(result: Result, output: str | Path) -> Path:
    """Write the page of a result: what its journal tells now, or else what it remembers itself."""
    if result.journal is None:
        return write_report(output, result, remembered(result))
    events = read(result.journal)
    told = replace(Result.of(events, journal=result.journal), utilisation=result.utilisation)
    return write_report(output, told, events)


def write_report(
    output: str | Path, result: Result, events: Sequence[Event], *, running: bool = False
) -> Path:
    """Write the page of a search to a file, and return its path.

    A file that is there already is replaced if it is such a page, and left alone if it is anything
    else.

    :param output: the file to write.
    :param result: what is known of the search.
    :param events: its events, from which `result` was made.
    :param running: whether the search is under way.
    """
    output = Path(output)
    if not output.parent.is_dir():
        raise _not_written(output, "its folder does not exist. Make it, or name another file")
    if os.path.exists(output) and not _is_report(output):
        why = "it exists and is not a report of lastarm. Name another file, or move that one away"
        raise _not_written(output, why)
    page = rendered(contents(result, events, running=running))
    new = output.with_name(f".lastarm-{secrets.token_hex(8)}")  # no other file has this name
    try:
        with new.open("x", encoding="utf-8", newline="\n") as file:
            file.write(page)
        os.replace(new, output)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise _not_written(output, f"{error.strerror or error}. Name another file") from error
    return output


def _not_written(output: Path, why: str) -> InvalidArgument:
    return InvalidArgument(f"{output} cannot be written: {why}.", argument="output", given=output)


def remembered(result: Result) -> list[Event]:
    """The events of a search that wrote none down, level by level, as its result remembers them.

    >>> seen = [Loss(Pull(0, 1), 0.5), Loss(Pull(0, 2), 0.4), Loss(Pull(1, 1), 0.6)]
    >>> events = remembered(Result.of(seen))
    >>> [event.pull for event in events if isinstance(event, Loss)]
    [Pull(arm=0, upto=1), Pull(arm=1, upto=1), Pull(arm=0, upto=2)]
    """
    events: list[Event] = []
    if result.policy:
        policy = {**result.policy, "budget": result.budget}
        events.append(Opened(seed=0, policy=policy, space=result.space, trainer={}))
    told: list[Loss | Failure] = list(result.failures.values())
    told += [
        Loss(Pull(arm, at), loss) for arm, curve in result.curves.items() for at, loss in curve
    ]
    for event in sorted(told, key=lambda event: (event.pull.upto, event.pull.arm)):
        events += [event.pull, event]
    return events


def rendered(told: dict[str, Any], library: str | None = None) -> str:
    r"""The page with these contents.

    :param told: the contents.
    :param library: what draws the charts, if that is at hand.

    >>> page = rendered({"headline": "</script><b>"})
    >>> page[page.index('id="told">') :][:60]
    'id="told">{"headline":"\\u003c/script>\\u003cb>"}</script>...'
    """
    # Inside a script element, even one of data, only "<" can begin anything.
    data = json.dumps(told, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return _page(_part("start.js"), library or chart_library(), contents=data).html


class Page(NamedTuple):
    """A page, and what its Content-Security-Policy allows it."""

    html: str
    rules: str


def live_page(library: str) -> Page:
    """The page that asks a server what to show, again and again (`lastarm.report.live`).

    :param library: what draws the charts.
    """
    room = "lastarm.report.live"
    live, begins = _part("live.html", room), _part("live.js", room)
    rules = "connect-src 'self'; "
    return _page(begins, library, contents="null", live=live, allowed=rules)


def _page(begins: str, library: str, *, contents: str, live: str = "", allowed: str = "") -> Page:
    """The page, with the script that `begins` to fill it."""
    scripts = ("drawing.js", "curves.js", "charts.js", "page.js")
    parts = {
        "style": _part("page.css"),
        "live": live,
        "contents": contents,
        "library": library,
        "kind": "live early" if live else "",
        "script": "".join(map(_part, scripts)) + begins,
    }
    codes = (parts[name].encode() for name in ("library", "script"))
    sums = (base64.b64encode(hashlib.sha256(code).digest()).decode() for code in codes)
    known = " ".join(f"'sha256-{checksum}'" for checksum in sums)
    parts["rules"] = (
        f"default-src 'none'; script-src {known}; style-src 'unsafe-inline'; "
        f"{allowed}img-src data:; base-uri 'none'; form-action 'none'"
    )
    # In one pass, so that nothing in the contents is taken for a place to be filled.
    html = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page.html"))
    return Page(html, parts["rules"])


def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script."""
    try:
        library = importlib.import_module("vl_convert")
    except ModuleNotFoundError:
        raise InvalidArgument(
            "the charts of a report need vl-convert-python, which is not installed: "
            "pip install 'lastarm[report]'."
        ) from None
    script: str = library.javascript_bundle()
    return script.replace("</script", "<\\/script")


def chart_library_made_apart() -> str:
    """The same, by another process: what makes it takes 130 MB, which a server would keep."""
    command = f"import sys; from {__name__} import chart_library as made; sys.stdout.write(made())"
    made = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path}; {command}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    return made.stdout if made.returncode == 0 else chart_library()  # which says why not


def _part(name: str, room: str = "lastarm.report.page") -> str:
    return (files(room) / name).read_text(encoding="utf-8")


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return OURS.encode() in file.read(500)
