"""Children to do harm to: forked where everything is imported already, so that they begin at once.

Bugs that are planted here are planted in them, too.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

MARK = "LASTARM_FAULTS"
SECONDS_FOR_ORPHANS = 5.0


def forked(action: Callable[[], None]) -> int:
    """A child that performs the action and ends with exit code 0, or 1 if that raised."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a test may have left a thread behind
        child = os.fork()
    if child:
        return child
    try:
        action()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def orphans(mark: str) -> list[int]:
    """The processes that were started with this mark in their environment and will not end.

    They have some seconds to do so. Where the system does not list processes, nobody is found.
    """
    until = monotonic() + SECONDS_FOR_ORPHANS
    while (found := _marked(f"{MARK}={mark}".encode())) and monotonic() < until:
        sleep(0.01)
    return found


def _marked(wanted: bytes) -> list[int]:
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in environment.read_bytes().split(b"\0"):  # empty for one that has ended
                found.append(int(environment.parent.name))
        except OSError:
            continue
    return found
