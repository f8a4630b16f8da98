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
        self.before: dict[int, Any] = {}

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            # A signal that is ignored, as under nohup, stays so; None was not set from Python.
            if (before := signal.getsignal(number)) not in (signal.SIG_IGN, None):
                self.before[number] = before
                signal.signal(number, self)

    def remove(self) -> None:
        for number, before in self.before.items():
            signal.signal(number, before)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        first = self._stop.signal is None
        self._stop.note(number)
        for each, before in self.before.items():
            if signal.getsignal(each) is self:
                signal.signal(each, before)
        before = self.before[number]
        if isinstance(before, _Handler):
            before(number, frame)
        elif first:
            _say_how_to_leave()
        elif callable(before):
            before(number, frame)
        else:
            signal.signal(number, before)
            signal.raise_signal(number)


# A forked child, as of a pool, is meant to end by SIGTERM, from its first moment on, whatever it
# waits for. Python drops a signal that comes before the child has begun, and calls a handler only
# when it comes back from what it waits for. So the signal waits until the child has no handler.
_forking = threading.local()
_engines: list[Any] = []  # handlers that the engine has, in a worker of it


def end_children_by_sigterm() -> None:
    """From now on, also if the engine that this worker belongs to has a handler of its own."""
    _engines.append(signal.getsignal(signal.SIGTERM))


def _hold_back() -> None:
    _forking.mask = None
    handler = signal.getsignal(signal.SIGTERM)
    if isinstance(handler, _Handler) or handler in _engines:
        _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


def _let_through() -> None:
    if _forking.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _let_through_in_child() -> None:
    # Ours, those around it, and that of the command.
    while before := getattr(signal.getsignal(signal.SIGTERM), "before", None):
        signal.signal(signal.SIGTERM, before[signal.SIGTERM])
    if signal.getsignal(signal.SIGTERM) in _engines:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_through()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_back,
        after_in_parent=_let_through,
        after_in_child=_let_through_in_child,
    )


def _say_how_to_leave() -> None:
    with suppress(OSError, ValueError, AttributeError):
        if os.isatty(sys.stderr.fileno()):
            os.write(
                sys.stderr.fileno(),
                b"\nFinishing the pulls that are under way; press again to leave at once.\n",
            )
