"""When to stop: by Ctrl-C and SIGTERM, the second time at once; or by a time limit."""

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
    """Says whether a search has to stop, and why; what is in flight has GRACE seconds then."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.signal: int | None = None
        self._at = monotonic() + seconds

    def __call__(self) -> bool:
        """Whether to start nothing more."""
        return monotonic() >= self._at

    def note(self, number: int) -> None:
        """Stop now, because of a signal."""
        self.signal = number
        self._at = min(self._at, monotonic())

    @property
    def at_once(self) -> bool:
        """Whether what is in flight has had its time."""
        return monotonic() >= self._at + GRACE


@contextmanager
def stop_on_signals(seconds: float = math.inf) -> Iterator[Stop]:
    """Within, the first SIGINT or SIGTERM is noted, and the next acts as it always did.

    - `seconds`: after which the search has to stop in any case

    Only the main thread can receive signals; in other threads nothing is changed. One within
    another tells the outer one as well: so code that runs many searches learns of a signal that
    came when a search was about to end anyway.
    """
    stop = Stop(seconds)
    handler = _Handler(stop)
    if threading.current_thread() is threading.main_thread():
        handler.install()
    try:
        yield stop
    finally:
        handler.remove()


class _Handler:
    """Notes the first signal, and hands every other to the handlers that were there before.

    A signal can come while another is handled, between any two steps of this code. So the handlers
    of before are never forgotten, and nothing depends on which one is in force.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._process = os.getpid()
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        _installed.append(self)
        for number in (signal.SIGINT, signal.SIGTERM):
            # A signal that is ignored, as under nohup, stays so; None was not set from Python.
            if (before := signal.getsignal(number)) not in (signal.SIG_IGN, None):
                self._before[number] = before
                signal.signal(number, self)

    def remove(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if self in _installed:
            _installed.remove(self)

    def let_end(self) -> None:
        """In a forked child: SIGTERM acts as it always did."""
        before = self._before.get(signal.SIGTERM)
        if signal.getsignal(signal.SIGTERM) is self:
            signal.signal(signal.SIGTERM, before)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        first = self._stop.signal is None
        if number == signal.SIGTERM and os.getpid() != self._process:
            first = False  # a child that a trainer has forked, as a pool does, is meant to end
        self._stop.note(number)
        for each, before in self._before.items():
            if signal.getsignal(each) is self:
                signal.signal(each, before)
        before = self._before[number]
        if isinstance(before, _Handler):
            before(number, frame)
        elif first:
            _say_how_to_leave()
        elif callable(before):
            before(number, frame)
        else:
            signal.signal(number, before)
            signal.raise_signal(number)


_installed: list[_Handler] = []  # the inner ones last


def _let_children_end() -> None:
    """A child that a trainer has forked, as a pool does, is meant to end by SIGTERM.

    Its parent may wait for that. A handler in Python would not do: if the signal comes just before
    the child waits for a lock, the handler is never called. Ctrl-C stays noted, and does nothing
    else, so that a pull that is under way can be finished.
    """
    for handler in reversed(_installed):
        handler.let_end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_children_end)


def _say_how_to_leave() -> None:
    with suppress(OSError, ValueError, AttributeError):
        if os.isatty(sys.stderr.fileno()):
            os.write(
                sys.stderr.fileno(),
                b"\nFinishing the pulls that are under way; press again to leave at once.\n",
            )
