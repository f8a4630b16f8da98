"""Ctrl-C and SIGTERM: once to stop in good order, twice to leave at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Stop:
    """Says whether, and by which signal, the search was asked to stop."""

    signal: int | None = None

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.signal is not None


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Within, the first SIGINT or SIGTERM is noted; the next acts as it always did.

    Only the main thread can receive signals; elsewhere nothing is changed.
    """
    stop = Stop()
    before: dict[int, Any] = {}

    def note(number: int, _frame: FrameType | None) -> None:
        stop.signal = number
        restore()

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
