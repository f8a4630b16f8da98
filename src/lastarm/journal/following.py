"""A journal that is followed while another process writes it: each line is read once.

The file may not exist yet, and it may be on a disk that another machine writes to, which tells of
no changes. So it is looked at again and again, and opened anew each time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from lastarm.errors import JournalError
from lastarm.events import Event, Opened
from lastarm.journal.disk import Folder, NotAFile
from lastarm.journal.file import event_of_line, no_collection
from lastarm.journal.lines import decode
from lastarm.journal.sanity import require_sane

LONGEST = 2**26  # bytes of a line
MOST_BYTES = 2**22  # that are read in one go, so that a reader of a large journal can show how far


class News(NamedTuple):
    """What is new in a journal."""

    events: list[Event]
    anew: bool
    """Whether these are the first: the file is new, or another, or was cut off."""
    more: bool
    """Whether there was more to read."""


class Following:
    """Reads a journal as it grows.

    :param path: the file. It may not exist yet.

    >>> import tempfile
    >>> from lastarm.events import Pull
    >>> from lastarm.journal import Journal
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "search.jsonl"
    >>> following = Following(path)
    >>> following.news().events, following.trouble
    ([], 'it does not exist yet')
    >>> opened = Opened(seed=0, policy={"name": "uniform"}, space={}, trainer={})
    >>> with Journal(path, opened) as journal:
    ...     print(following.news().events)
    ...     journal.append(Pull(arm=0, upto=1))
    ...     journal.flush()
    ...     print(following.news().events)
    [Opened(...)]
    [Pull(arm=0, upto=1)]
    >>> folder.cleanup()

    A line counts when it is whole, has its checksum and follows the line before. If the file is
    another one, or is shorter than before, or does not have what was read of it any more, it is
    read from its beginning. `trouble` says why nothing more can be read at the moment.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.trouble = ""
        self.size = 0  # of the file, when it was looked at last
        self.written = 0.0  # the time of day when it was changed last, by the clock of its disk
        self._forget()

    def _forget(self) -> None:
        self.end = 0  # of what was read
        self.lines = 0
        self._last = b""  # the last line that was read
        self._sum = ""  # its checksum
        self._file: tuple[int, int] | None = None  # which file it was
        self._looked: tuple[int, int] | None = None  # its size and its time when all was read

    def news(self, most: int = MOST_BYTES) -> News:
        """What came since the last time, of `most` bytes or a little more.

        :param most: bytes.
        """
        real = Path(os.path.realpath(self.path))
        try:
            with Folder(real.parent) as folder:
                descriptor = folder.open(real.name)
        except (FileNotFoundError, NotADirectoryError):
            return self._nothing("it does not exist yet")
        except NotAFile:
            return self._nothing("it is not a file, but a folder, a pipe or a device")
        except OSError as error:
            return self._nothing(error.strerror or str(error))
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            try:
                return self._read(file.fileno(), most)
            except OSError as error:  # such as of a disk that was taken away
                return self._nothing(error.strerror or str(error))

    def _nothing(self, why: str) -> News:
        self.trouble = why
        return News([], anew=False, more=False)

    def _read(self, file: int, most: int) -> News:
        status = os.fstat(file)
        which, looked = (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
        self.size, self.written = status.st_size, status.st_mtime
        if which == self._file and looked == self._looked:
            return News([], anew=False, more=False)
        anew = which != self._file or not self._is_continued(file)
        if anew:
            self._forget()
            self._file = which
        os.lseek(file, self.end, os.SEEK_SET)
        read = os.read(file, most)
        events: list[Event] = []
        if not self.lines and read[:1] not in (b"", b"{"):
            self.trouble = "it is not a journal"
        else:
            while b"\n" not in read and len(read) <= LONGEST and (more := os.read(file, most)):
                read += more
            events, self.trouble = self._events(read)
            if len(read) > LONGEST and not events:
                self.trouble = f"line {self.lines + 1:,} is longer than any of a journal"
        there_is_more = not self.trouble and self.end < status.st_size and b"\n" in read
        self._looked = None if there_is_more else looked
        return News(events, anew, there_is_more)

    def _is_continued(self, file: int) -> bool:
        """Whether the file still has, where it was, the line that was read last."""
        if not self._last:
            return True
        os.lseek(file, self.end - len(self._last), os.SEEK_SET)
        return os.read(file, len(self._last)) == self._last

    def _events(self, read: bytes) -> tuple[list[Event], str]:
        """The events of all whole lines, up to one that is of no use, and why it is not."""
        events: list[Event] = []
        with no_collection():
            for raw in read.split(b"\n")[:-1]:
                number = self.lines + 1
                line = decode(raw)
                if line is None or line.after != self._sum:
                    return events, f"line {number:,} is not what was written there"
                try:
                    event = event_of_line(self.path, number, line)
                    if isinstance(event, Opened) != (number == 1):
                        return events, f"line {number:,} is not one that a journal has there"
                    require_sane([event], first=number)
                except JournalError as error:
                    return events, str(error)
                events.append(event)
                self.lines, self._sum = number, line.sum
                self.end, self._last = self.end + len(raw) + 1, raw + b"\n"
        return events, ""
