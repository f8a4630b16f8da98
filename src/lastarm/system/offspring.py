"""Processes that come from this one: none of them speaks for it, and none outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import traceback
from contextlib import suppress
from types import TracebackType
from typing import NoReturn, Self
from weakref import WeakSet

# Its standard input ends when the process dies that has the other end, however it dies. A program
# may send signals to its whole group; only the one that it cannot survive ends the guard.
# Python's resource tracker is killed last: it removes what others have left in shared memory once
# they are dead, and then ends by itself. There is one for multiprocessing, and one for joblib.
CLEANS_UP = "resource_tracker"  # in the command of such a process
GUARD = f"""
trap "" HUP INT TERM
group=$$
test "$1" && {{ read group || exit; }}
read _
others= trackers=
for stat in /proc/[0-9]*/stat; do
    read -r line < "$stat" && set -- ${{line##*) }} && test "$3" = "$group" || continue
    process=${{stat%/stat}} words=
    read -r words < "$process/cmdline"
    case $words in
        *{CLEANS_UP}*) trackers=1 ;;
        *) test "$process" = /proc/$$ || others="$others ${{process#/proc/}}" ;;
    esac
done
test "$trackers" && {{ kill -9 $others; sleep 1; }}
kill -9 "-$group"
"""
GUARD_NAME = "lastarm-guard"  # as it is shown in lists of processes


class ThisProcess:
    """The process in which this is made. A child that is forked within ends there.

    Foreign code may fork a child that comes back to us, by a return or by an error such as that of
    `sys.exit`. The child has a copy of all that this process has: pipes, files, the search itself.
    So it ends where it comes back, with the exit code that Python would give, but nothing is sent,
    written, flushed or removed.

    >>> with ThisProcess():
    ...     child = os.fork()
    ...     if child == 0:
    ...         raise SystemExit(7)
    >>> os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    7
    """

    def __init__(self) -> None:
        self._id = os.getpid()

    def __enter__(self) -> None:
        """Foreign code begins."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Foreign code ends, and so does a child."""
        if os.getpid() != self._id:
            _end(error)


def _end(error: BaseException | None) -> NoReturn:
    """End this process as Python does after this error, without any of its work."""
    code: object = 0 if error is None else 1
    said = ""
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
        if not isinstance(code, int):
            code, said = 1, f"{code}\n"
    elif error is not None:
        said = "".join(traceback.format_exception(error))
    with suppress(BaseException):
        os.write(2, said.encode(errors="replace"))
    os._exit(code & 0xFF if isinstance(code, int) else 1)


class Guard:
    """A process that ends a process group as soon as this process is dead, however it died.

    :param leads: whether the guard leads a new group, `group`, in which processes can be started.
        If not, nothing is guarded before `watch` is called.

    A process that is killed cannot end what it has started, and the system does so only for its
    own children, not for theirs. So a shell waits beside it.

    Use it as a context, or call `close`. Then a group that the guard leads is ended, and another
    one is left alone.
    """

    def __init__(self, *, leads: bool = True) -> None:
        self._leads = leads
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, GUARD_NAME, *([] if leads else ["is told which group"])],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=not leads,  # so that no signal to others reaches it
            process_group=0 if leads else None,
        )
        self.group = self._shell.pid
        _guards.add(self)

    def watch(self, group: int) -> None:
        """Guard a group that another process leads, from now on. Call it once.

        Make the guard before that process and tell it at once, since a process that is frozen
        while it starts cannot end by itself. It must not start others until this was called: let
        it wait for a word from this process.

        :param group: the number of the group, which is that of the process that leads it.
        """
        assert self._shell.stdin
        self.group = group
        with suppress(BrokenPipeError):  # somebody has killed the guard
            self._shell.stdin.write(f"{group}\n".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the guard, with the group that it leads."""
        if self._leads:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
        self._shell.kill()  # before its input ends, or it would act
        self._shell.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close our end of its input."""
        assert self._shell.stdin
        self._shell.stdin.close()


_guards: WeakSet[Guard] = WeakSet()


def _let_go_in_child() -> None:
    """A forked child must not keep guards waiting when its parent is dead."""
    for guard in _guards:
        guard.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
