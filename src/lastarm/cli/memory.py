"""Whether there is memory for a library that ends its process where memory is refused."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

if sys.platform == "win32":

    def _is_limited() -> bool:
        return False

else:
    import resource

    def _is_limited() -> bool:
        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


NOT_ENOUGH = "there is not enough memory. Free some, or raise its limit (ulimit -v)."


def has_room_for(action: Callable[[], object]) -> bool:
    """Whether `action` comes to its end, tried by a child where memory is limited (ulimit -v).

    The matrix library that NumPy brings exits with code 1, and the JavaScript engine that makes a
    report's charts aborts with a trace. No exception can be caught then.
    """
    if not _is_limited():
        return True
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    code = 1
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(silent, stream)
        action()
        code = 0
    finally:
        os._exit(code)  # whatever was raised, the parent goes on
