"""How the command ends by a signal or without an output, from its first moment on.

Nothing is imported here that takes time.
"""

from __future__ import annotations

import _thread
import io
import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, TextIO


class Terminated(KeyboardInterrupt):
    """SIGTERM, where no search listens. All that lets Ctrl-C pass lets this pass, too."""


class Signals:
    """What Ctrl-C and SIGTERM do while no search listens to them.

    At first and at last, while modules are loaded and while Python ends, they end the process at
    once: an exception that is raised there can be lost, or ends in a traceback. In between
    (`interrupt`) they raise, so that what is open is closed.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self.before: dict[int, Any] = {}  # children that arms have forked get these back
        self._interrupts = False
        self._unraisable = sys.unraisablehook
        for number in (signal.SIGINT, signal.SIGTERM):
            # One that is ignored, as under nohup, stays so; None was not set from Python.
            if (before := signal.getsignal(number)) not in (signal.SIG_IGN, None):
                try:
                    signal.signal(number, self)
                except ValueError:  # not the main thread, which alone can listen
                    return
                self.before[number] = before

    def interrupt(self) -> None:
        """From now on, raise KeyboardInterrupt or Terminated."""
        self._interrupts = True
        sys.unraisablehook = self._lost

    def leave_at_once(self) -> None:
        """From now on, end at once."""
        self._interrupts = False

    def restore(self) -> None:
        """Put back what was there before."""
        for number, before in self.before.items():
            signal.signal(number, before)
        sys.unraisablehook = self._unraisable

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if os.getpid() != self._process:  # a child that was forked, such as one of a pool
            before = self.before[number]
            if callable(before):
                before(number, frame)
            else:
                signal.signal(number, before)
                signal.raise_signal(number)
        elif self._interrupts:
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated
        else:
            _leave(number)

    def _lost(self, unraisable: Any) -> None:
        """Python drops what is raised in a callback, as it runs them between any two steps."""
        if os.getpid() == self._process and issubclass(unraisable.exc_type, KeyboardInterrupt):
            _leave(signal_of(unraisable.exc_value))
        self._unraisable(unraisable)


def signal_of(interrupt: BaseException | None) -> int:
    """The signal that raised this."""
    return signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT


STOPPED = "stopped at once."
NO_THREAD = "no thread could be started. Raise the limits of processes and memory (ulimit -u, -v)."


def _leave(number: int) -> None:
    why, code = STOPPED, 128 + number
    if number == signal.SIGINT and not _can_start_a_thread():
        why, code = NO_THREAD, 2  # NumPy's matrix library sends this signal to itself then
    # Not by print, which may be in the middle of another line.
    with suppress(OSError):
        os.write(2, f"lastarm: {why}\n".encode())
    os._exit(code)


def _can_start_a_thread() -> bool:
    try:
        _thread.start_new_thread(int, ())
    except RuntimeError:
        return False
    return True


def open_streams() -> bool:
    """Open what is closed of standard input, output and error; whether the output was open.

    Otherwise the next file that is opened, such as a journal, would be the standard output of all
    code that does not ask, and of every child.
    """
    was_open = sys.stdout is not None
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            raw = io.FileIO(number, "r+", closefd=False)
            setattr(sys, name, io.TextIOWrapper(io.BufferedRandom(raw), encoding="utf-8"))
    return was_open


def complain(sentence: str) -> None:
    """Print a sentence of the command on standard error."""
    note(f"lastarm: {sentence}")


def note(sentence: str) -> None:
    """Print a sentence on standard error, beside the answer. If that is not possible, do without.

    A character that the terminal does not know is written as its number.
    """
    try:
        print(sentence, file=sys.stderr, flush=True)
    except OSError:  # its reader is gone, or the disk is full
        to_nowhere(sys.stderr)


def to_nowhere(stream: TextIO) -> None:
    """Drop what is written there, also what Python still writes when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # where it is not a file, but a text in memory
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def first_cause(error: BaseException) -> str:
    """What an error that was raised from others says in the first place."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return str(error) or "there is not enough memory"
