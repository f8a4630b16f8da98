"""When to stop: Ctrl-C and SIGTERM, once in good order and twice at once; or a time limit."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType
from typing import Any

GRACE = 10.0


class Stop:
    """Says whether, and why, the search is to stop; what is in flight then has GRACE seconds."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.signal: int | None = None
        self._at = monotonic() + seconds

    def __call__(self) -> bool:
        """Whether to start nothing more."""
        return monotonic() >= self._at

    def note(self, number: int) -> None:
        """A signal asked for it."""
        self.signal = number
        self._at = min(self._at, monotonic())

    @property
    def at_once(self) -> bool:
        """Whether what is in flight has had time enough to come home."""
        return monotonic() >= self._at + GRACE


@contextmanager
def stop_on_signals(seconds: float = math.inf) -> Iterator[Stop]:
    """Within, the first SIGINT or SIGTERM is noted; the next acts as it always did.

    Only the main thread can receive signals; elsewhere nothing is changed. The search is to stop
    after so many seconds in any case.
    """
    stop = Stop(seconds)
    before: dict[int, Any] = {}

    def note(number: int, _frame: FrameType | None) -> None:
        stop.note(number)
        restore()
        with suppress(OSError, ValueError, AttributeError):
            if os.isatty(sys.stderr.fileno()):
                os.write(
                    sys.stderr.fileno(),
                    b"\nFinishing the pulls that are under way; once more to leave at once.\n",
                )

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            # One that is ignored, as under nohup, stays so; None was not set from Python.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()
