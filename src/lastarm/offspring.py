"""Processes that come from this one, so that none of them speaks for it."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from types import TracebackType
from typing import NoReturn


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
