"""What becomes of a journal whose file disappears, or is changed, while a search writes to it.

Linux lets a process write to a file that has no name any more, and says nothing. So the file is
compared with what was written at every sync. If it is not the same, all lines are saved in a new
file beside it. They come from memory, because the file may have been truncated: a compressed copy
takes 45 to 130 bytes a line, two fifths of the file at most.

Seen at the next sync, or when the journal is closed: a file that was deleted, moved, replaced,
truncated or added to, and one that was changed within. The latter is known by the time of its last
change, so a change within the same tick of the clock of the file system (some milliseconds) is
found only when the journal is opened again, by its checksums.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO

from lastarm.errors import JournalNotWritten
from lastarm.journal.disk import Folder, sync_folder

BLOCK = 1 << 16
REPLACED = "was replaced: another file has its name now"


class WrittenLines:
    """All that the open file of a journal holds, in memory.

    - `path`: the name of the file
    - `file`: the file, open; what it holds now is copied
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self._compressor, self._size = zlib.compressobj(1), 0
        self._packed: list[bytes] = []  # pieces, since one large array would be moved as it grows
        self._suspect = 0  # the size from which on a file with another time is read
        file.seek(0)
        for block in iter(partial(file.read, BLOCK), b""):
            self.add(block)
        self.note()

    def add(self, lines: bytes) -> None:
        """Keep what is about to be written."""
        if piece := self._compressor.compress(lines):
            self._packed.append(piece)
        self._size += len(lines)

    def note(self) -> None:
        """Remember when we wrote to the file."""
        self._noted = os.fstat(self._file.fileno())

    def name_lost(self) -> str:
        """Why the file's name no longer leads to it; empty if it does."""
        try:
            there = self._path.stat()
        except OSError as error:
            return f"is not there any more ({error.strerror or error})"
        return "" if os.path.samestat(there, self._noted) else REPLACED

    def difference(self, *, last: bool = False) -> str:
        """What is not as it should be with the file; empty if nothing is.

        A file with another time is read. If it holds what it should, it is read again only when it
        has doubled, or if this look is the `last`: file systems may change times by themselves.
        """
        if lost := self.name_lost():
            return lost
        try:
            there = os.fstat(self._file.fileno())
            if there.st_size != self._size:
                return f"has {there.st_size} bytes, and {self._size} were written"
            suspect = last or self._size >= self._suspect
            if there.st_mtime_ns != self._noted.st_mtime_ns and suspect:
                if not self._is_in_file():
                    return "holds something else than what was written"
                self._noted, self._suspect = there, 2 * self._size
        except OSError as error:
            return f"cannot be read any more ({error.strerror or error})"
        return ""

    def rescued(self, what: str) -> JournalNotWritten:
        """Save all lines in a new file; the error that says where it is."""
        try:
            saved = self._save()
        except OSError as error:
            return JournalNotWritten(self._path, error, what=what)
        return JournalNotWritten(self._path, what=what, rescued=saved, taken=what == REPLACED)

    def _save(self) -> Path:
        """In the folder of the journal; if that is gone or full, among temporary files."""
        try:
            return self._save_in(self._path.parent)
        except OSError:
            return self._save_in(Path(tempfile.gettempdir()))

    def _save_in(self, folder: Path) -> Path:
        for number in count(1):
            new = folder / f"{self._path.name}.rescued-{number}"
            try:
                with Folder(Path(os.path.realpath(folder))) as there:
                    descriptor = there.create(new.name)
                break
            except FileExistsError:
                continue
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(self._blocks())
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            new.unlink(missing_ok=True)
            raise
        sync_folder(folder)
        return new

    def _is_in_file(self) -> bool:
        with self._path.open("rb") as file:
            return all(file.read(len(block)) == block for block in self._blocks())

    def _blocks(self) -> Iterator[bytes]:
        unpacker = zlib.decompressobj()
        for piece in [*self._packed, self._compressor.copy().flush()]:
            yield unpacker.decompress(piece)
