"""One page of HTML with everything in it: no server, no network, no code but its two scripts.

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
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lastarm.errors import InvalidArgument
from lastarm.events import Event
from lastarm.report.page.story import story

OURS = '<meta name="generator" content="lastarm">'  # by which a page that we wrote is known


def write_report(output: str | Path, events: Sequence[Event], **known: Any) -> Path:
    """Write the page of a search to a file, and give back its path.

    What else is `known` of the search is told to `story`. A file that is there already is replaced
    if it is such a page, and left alone if it is anything else.
    """
    output = Path(output)
    if not output.parent.is_dir():
        raise InvalidArgument(
            f"the folder of {output} is not there, so no report can be written to it. Make the "
            "folder, or name another file."
        )
    if os.path.exists(output) and not _is_report(output):
        raise InvalidArgument(
            f"{output} is there already, and is no report of lastarm. Name another file for the "
            "report, or move that one away."
        )
    page = rendered(story(events, **known))
    new = output.with_name(f".lastarm-{secrets.token_hex(8)}")  # nobody's file has this name
    try:
        with new.open("x", encoding="utf-8", newline="\n") as file:
            file.write(page)
        os.replace(new, output)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise InvalidArgument(
            f"no report can be written to {output}: {error.strerror or error}. Name another file."
        ) from error
    return output


def rendered(told: dict[str, Any]) -> str:
    r"""The page that shows a story.

    >>> page = rendered({"headline": "</script><b>"})
    >>> page[page.index('id="told">') :][:60]
    'id="told">{"headline":"\\u003c/script>\\u003cb>"}</script>...'
    """
    # Inside a script element, even one of data, only "<" can begin anything.
    data = json.dumps(told, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "style": _part("page.css"),
        "story": data,
        "library": _charts(),
        "script": "".join(map(_part, ("drawing.js", "curves.js", "charts.js", "page.js"))),
    }
    allowed = " ".join(_checksum(parts[script]) for script in ("library", "script"))
    parts["rules"] = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    # In one pass, so that nothing of the story is taken for a place to be filled.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page.html"))


def _charts() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script."""
    try:
        library = importlib.import_module("vl_convert")
    except ImportError:
        raise InvalidArgument(
            "the charts of a report need vl-convert-python, which is not installed: "
            "pip install 'lastarm[report]'."
        ) from None
    script: str = library.javascript_bundle()
    return script.replace("</script", "<\\/script")


def _part(name: str) -> str:
    return (files("lastarm.report.page") / name).read_text(encoding="utf-8")


def _checksum(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return OURS.encode() in file.read(500)
