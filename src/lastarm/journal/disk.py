"""Making files and their names survive a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Make what is in a file durable, whichever process has written it."""
    _sync(path, os.O_RDWR)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, where that can be asked for."""
    if os.name == "posix":
        _sync(path, os.O_RDONLY)


def make_folder(path: Path) -> None:
    """Make a folder that is ours alone, in folders whose names are durable if they are new."""
    around = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(around):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def _sync(path: Path, how: int) -> None:
    descriptor = os.open(path, how)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
