"""What a file system must be asked for: that a name survives a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable, where that can be asked for."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
