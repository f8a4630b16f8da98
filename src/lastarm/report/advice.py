"""What to do next: how a search is resumed, and how it is given more to spend."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import Any

from lastarm.events import Opened
from lastarm.report.phrases import clean

RESUMABLE = ("tune", "replay")  # the commands that `lastarm resume` runs again


def advice(
    opened: Opened | None,
    journal: str | None,
    state: str,
    budget: int | None,
    nothing_left: str | None = None,
) -> list[dict[str, Any]]:
    """Sentences, each with the command that it is about, if there is one.

    More budget is not advised where there is a reason why `nothing_left` would be done with it.

    >>> opened = Opened(0, {}, {}, {}, command=("lastarm", "tune", "train.py"))
    >>> for step in advice(opened, "my search.jsonl", "complete", budget=640):
    ...     print(step["words"], step["command"])
    To train further, with twice the budget: lastarm resume 'my search.jsonl' --budget 1280
    """
    if not opened or not journal:
        return [
            {
                "words": "It kept no journal, so it cannot be resumed. The next one can:",
                "command": 'search(…, journal="search.jsonl")',
            }
        ]
    path = shlex.quote(journal)
    ended = nothing_left if state == "complete" else None
    more = 2 * budget if budget and not ended else None
    program, *words = opened.command or ("",)
    if state == "running":
        steps = [("It is running. To watch it:", f"lastarm show {path} --watch")]
    elif PurePath(str(program)).name == "lastarm" and words and words[0] in RESUMABLE:
        steps = [("To go on:", f"lastarm resume {path}")] if state == "stopped" else []
        if more:
            further = "To train further, with twice the budget:"
            steps.append((further, f"lastarm resume {path} --budget {more}"))
    else:
        begun = shlex.join(str(word) for word in opened.command) or "a session"
        again = "run the same again, with this journal"
        steps = [(f"It was begun in Python, by {begun} in {opened.folder or 'some folder'}.", "")]
        if state == "stopped":
            steps.append((f"To go on, {again}.", ""))
        if more:
            steps.append((f"To train further, {again} and a budget such as {more:,}.", ""))
    if ended:
        steps.append((f"More budget would change nothing: {ended}.", ""))
    return [{"words": clean(said), "command": clean(command)} for said, command in steps]
