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
    after so many seconds in any case. One within another tells the outer one, too: whoever runs
    many searches learns of a signal that came when a search was about to end anyway.
    """
    stop = Stop(seconds)
    handler = _Handler(stop)
    if threading.current_thread() is threading.main_thread():
        handler.install()
    try:
        yield stop
    finally:
        handler.restore()


class _Handler:
    """What is done at the first signal, in place of what was done before."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            # One that is ignored, as under nohup, stays so; None was not set from Python.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self)

    def restore(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def __call__(self, number: int, frame: FrameType | None) -> None:
        outer = self._before[number]
        self._stop.note(number)
        self.restore()
        if isinstance(outer, _Handler):
            outer(number, frame)
            return
        with suppress(OSError, ValueError, AttributeError):
            if os.isatty(sys.stderr.fileno()):
                os.write(
                    sys.stderr.fileno(),
                    b"\nFinishing the pulls that are under way; once more to leave at once.\n",
                )
