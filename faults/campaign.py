"""What a campaign is: a fault, how often it is tried, and figures of what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

Figures = Mapping[str, int | float]
"""What was seen, by name, in the order in which it is shown."""

Try = Callable[[int, Path], Figures]
"""Try a fault a number of times, in an empty folder. A broken promise is an `AssertionError` that
says which one, and with which seed it can be seen again."""


class Campaign(NamedTuple):
    """A fault of docs/reliability.md and how it is tried."""

    name: str  # such as "F1"
    title: str
    run: Try
    full: int  # how often in `make faults`
    short: int  # how often in `make test`


@contextmanager
def replayable(call: str) -> Iterator[None]:
    """Anything that is raised within is a broken promise; `call` shows it again."""
    try:
        yield
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        said = "\n".join([f"{type(error).__name__}: {error}", *notes])[:4000]
        raise AssertionError(f"{said}\nSee it again with {call}") from error
