"""The `lastarm` command: a file for each subcommand, and what several of them share.

Shared are `ending` and `memory` (how the command ends, also before it has begun), `command` (what
it does with its words and with errors), `options` (options and how their values are read) and
`display` (how a search looks on a terminal). Nothing is decided or computed here that the library
could do.

Exit codes: 0 done, 1 all arms failed, 2 bad input, or what the system does not give: an open
output, memory, threads, workers; 3 the journal cannot be used, 130 and 143 stopped by Ctrl-C and
SIGTERM, 141 the reader of the output is gone.
"""

from __future__ import annotations

import sys
from importlib import import_module

from lastarm.cli.ending import Signals, complain, first_cause, open_streams
from lastarm.cli.memory import NOT_ENOUGH, has_room_for

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes a while to import, and signals are to be heard before that
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code; an error is one line, never a traceback.

    Little is imported before the signals are listened to, because a signal that comes earlier ends
    the command without a word.
    """
    signals = Signals()
    try:
        sys.exit(_code(arguments, signals))
    finally:
        if arguments is None:
            signals.leave_at_once()  # what is left to do is to end
        else:
            signals.restore()


def _code(arguments: Sequence[str] | None, signals: Signals) -> int:
    if not open_streams():
        complain(
            "standard output is closed, so there is no place for the answer. Send it to "
            "/dev/null if you do not need it."
        )
        return 2
    if not has_room_for(_load_and_multiply):
        complain(NOT_ENOUGH)
        return 2
    try:
        command = import_module("lastarm.cli.command")
    except (ImportError, MemoryError, OSError) as error:
        complain(f"lastarm could not be loaded: {first_cause(error)}.")
        return 2
    code: int = command.run(arguments, signals)
    return code


def _load_and_multiply() -> None:
    """What every search does: NumPy takes more memory when it first multiplies matrices."""
    import_module("lastarm.cli.tune")
    numpy = import_module("numpy")
    numpy.ones((256, 256)) @ numpy.ones((256, 256))
