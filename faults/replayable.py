"""What goes wrong in a campaign says how it can be seen again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replayable(call: str) -> Iterator[None]:
    """Whatever is raised within is a broken promise, to be seen again by that call."""
    try:
        yield
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        said = "\n".join([f"{type(error).__name__}: {error}", *notes])[:4000]
        raise AssertionError(f"{said}\nSee it again with {call}") from error
