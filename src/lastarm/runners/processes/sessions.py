"""Ending a process for good: with all that it started, also what it put into groups of its own."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def end_session(leader: int) -> None:
    """Kill every process of the session that `leader` leads, itself last."""
    for member in _members(leader):
        if member not in (leader, os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _members(leader: int) -> list[int]:
    """The processes of a session; where the system does not list them, nobody but its leader."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # After the name, in brackets: its state, parent, group, session.
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[3]) == leader:
                members.append(int(stat.parent.name))
    return members or [leader]
