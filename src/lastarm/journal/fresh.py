"""How an old journal makes room for a new one: it is kept, with its states, by another name."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from lastarm.errors import JournalNotWritten
from lastarm.journal.disk import Folder, sync_folder
from lastarm.journal.lines import Other, decode
from lastarm.journal.lock import held


def set_aside(path: Path, states_of: Callable[[Path], Path] | None) -> Path | None:
    """Rename a journal to `path`.old-1, or the next number that is free, and its states with it.

    - `path`: the journal
    - `states_of`: the folder of the states of a journal, by its path; None if states are not kept

    The new path can be used as a journal. None, and nothing is renamed, if there is no journal: a
    file that is not one stays, and is refused when it is opened. A journal that another process
    writes to is refused here.
    """
    path = Path(os.path.realpath(path))
    with held(path):
        try:
            if not _is_journal(path):
                return None
            with Folder(path.parent) as folder:
                old, states = _reserved(folder, path, states_of)
                if states_of and states:
                    os.rename(states_of(path), states)
                    sync_folder(states.parent)
                # The journal comes last: if we are killed before, it can still be resumed.
                folder.replace(old.name, by=path.name)
            sync_folder(path.parent)
        except OSError as error:
            raise JournalNotWritten(path, error) from error
    return old


def _is_journal(path: Path) -> bool:
    try:
        with Folder(path.parent) as folder, os.fdopen(folder.open(path.name), "rb") as file:
            line = decode(file.readline().rstrip(b"\n"))
    except OSError:
        return False
    return isinstance(line, Other) and line.fields.get("event") == "opened"


def _reserved(
    folder: Folder, path: Path, states_of: Callable[[Path], Path] | None
) -> tuple[Path, Path | None]:
    """A new name for the journal, which is taken by an empty file; one for its states, if any."""
    for number in count(1):
        old = path.with_name(f"{path.name}.old-{number}")
        states = states_of(old) if states_of and states_of(path).is_dir() else None
        if states and os.path.lexists(states):
            continue
        with suppress(FileExistsError):
            os.close(folder.create(old.name))
            break
    return old, states
