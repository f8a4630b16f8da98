"""The journal: the memory of a search, a file of JSON lines that a person can read.

One process writes to it at a time. It is created whole, with its header, and after that it only
grows. What was synced is never lost. On opening, every line is verified against its checksum and
the line before. Damage among the lines that were not yet known to be on the disk is cut off, since
a crash damages nothing else. Any earlier damage is an error that changes nothing.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG, S_ISVTX
from typing import NamedTuple, Self

from lastarm.errors import (
    JournalDamaged,
    JournalError,
    JournalNotRead,
    JournalNotWritten,
    JournalRepaired,
    NotAJournal,
    NothingSealed,
    OtherFormat,
)
from lastarm.events import Event, Extended, Loss, Opened, Told
from lastarm.journal.disk import Folder, NotAFile, is_ours, sync_folder
from lastarm.journal.header import (
    budgets_of,
    header_of,
    refuse_another_search,
    warn_of_other_secrets,
    without_secrets,
)
from lastarm.journal.lines import FORMAT, Line, Other, decode, encode
from lastarm.journal.lock import held, try_to_lock
from lastarm.journal.rescue import WrittenLines
from lastarm.journal.seals import Seals, with_seal
from lastarm.journal.secret import own_secret

# How every header begins and ends: of one with a flipped bit, one of them is left.
HEADER_MARKS = (b'{"event":"opened","format":', b'"durable":0,"after":"","sum":"')


class Journal:
    """The events of one search, open for writing. The file is created if it does not exist.

    :param path: the file.
    :param opened: the header. It is written into a new journal, and compared with an old one.

    >>> import tempfile
    >>> from lastarm.events import Pull
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "search.jsonl"
    >>> opened = Opened(seed=0, policy={"name": "uniform"}, space={}, trainer={})
    >>> with Journal(path, opened) as journal:
    ...     journal.append(Pull(arm=0, upto=1))
    ...     journal.sync()
    >>> with Journal(path, opened) as journal:
    ...     journal.events
    [Opened(...), Pull(arm=0, upto=1)]
    >>> folder.cleanup()

    `events` are those that were found on opening; a torn end is cut off with a `JournalRepaired`
    warning. A search with other arguments is refused, and the error names them. A larger budget is
    not refused: the caller may `extend` the search by it. `seals` says what in it this user's
    searches have written. If no secret can be kept for that, a `NothingSealed` warning says so.
    """

    def __init__(self, path: str | Path, opened: Opened) -> None:
        self.path = _resolved(Path(path))
        self._pending: list[bytes] = []
        self._interrupted = False
        secret = own_secret()
        with ExitStack() as undo:
            undo.enter_context(held(self.path))
            try:
                if not self.path.exists():
                    _create(self.path, with_seal(without_secrets(opened), secret))
                with Folder(self.path.parent) as folder:
                    descriptor = folder.open(self.path.name, os.O_RDWR)
                self._file = undo.enter_context(os.fdopen(descriptor, "r+b", buffering=0))
                try_to_lock(self.path, self._file)  # it may have a second name, by a hard link
                with open(descriptor, "rb", closefd=False) as lines:
                    self.events, self._sum, end = _verified(self.path, lines)
                refuse_another_search(self.path, self.events, opened)
                warn_of_other_secrets(self.path, self.events, opened)
                if torn := os.fstat(descriptor).st_size - end:
                    warnings.warn(JournalRepaired(self.path, torn), stacklevel=3)
                self._file.truncate(end)
                self._file.seek(end)
                os.fsync(self._file.fileno())  # a killed writer's lines may be in memory only
                self._written = WrittenLines(self.path, self._file)
            except OSError as error:
                raise JournalNotWritten(self.path, error) from error
            self._held = undo.pop_all()
        self._lines = self._durable = len(self.events)
        self.seals = Seals(header_of(self.events), secret)
        if secret.why:
            warnings.warn(NothingSealed(self.path, secret.why), stacklevel=3)

    @property
    def budgets(self) -> list[int]:
        """The budgets that the search has had: of its header, and then what it was extended to."""
        return budgets_of(self.events)

    def extend(self, budget: int) -> None:
        """Write a larger budget, as if it had been found: the search continues with it."""
        self.append(Extended(budget))
        self.sync()
        self.events.append(Extended(budget))

    def sealed(self, told: Told) -> Told:
        """The same as it is written: with this user's seal on the state, if one was saved."""
        return self.seals.sealed(told) if isinstance(told, Loss) else told

    def append(self, event: Event) -> None:
        """Write an event; it counts once `sync` has returned."""
        line, self._sum = encode(event, self._durable, self._sum)
        self._pending.append(line)
        self._lines += 1

    def flush(self) -> None:
        """Hand the lines to the operating system: they survive this process, not a power cut."""
        if self._file.closed:
            raise JournalError(
                f"the journal {self.path} is closed, as it is in a forked child. Write to it from "
                "the process that opened it.",
                path=self.path,
            )
        if not self._pending:
            return
        self._require_same()  # our own write would hide that it was changed
        waiting = b"".join(self._pending)
        self._pending.clear()
        self._interrupted = True  # until it is done, and known to be
        self._written.add(waiting)
        try:
            while waiting:
                waiting = waiting[self._file.write(waiting) :]
            self._written.note()
            self._interrupted = False
        except OSError as error:
            raise self._broken(error) from error

    def sync(self) -> None:
        """Return when every event so far is on the disk, in the file that has the journal's name.

        If that file is not the one that was written, all lines are saved in another: see `rescue`.
        """
        self.flush()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._broken(error) from error
        self._require_same()
        self._durable = self._lines

    def close(self) -> None:
        """Close the file and release its lock. A power cut may cost what was not synced."""
        # It is closed in a forked child and after a failed write; Ctrl-C may have come in a write.
        if not self._file.closed and not self._interrupted:
            self.flush()
            self._require_same(last=True)
        self._held.close()

    def _require_same(self, *, last: bool = False) -> None:
        if what := self._written.difference(last=last):
            raise self._rescued(what)

    def _rescued(self, what: str) -> JournalNotWritten:
        self._written.add(b"".join(self._pending))
        self._pending.clear()
        try:
            return self._written.rescued(what)
        finally:
            self._held.close()

    def _broken(self, error: OSError) -> JournalNotWritten:
        # After a failed write or fsync it is not known what is on the disk, and a second fsync may
        # claim success. Give up: nothing of it has counted, and the next opening starts from what
        # it finds.
        if lost := self._written.name_lost():  # such as with a disk that was taken away
            return self._rescued(lost)
        self._held.close()
        return JournalNotWritten(self.path, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Unwritten:
    """The journal of a search that keeps none."""

    events: tuple[Event, ...] = ()
    seals = None

    def sealed(self, told: Told) -> Told:
        """As it is."""
        return told

    def append(self, event: Event) -> None:
        """Forget it."""

    def flush(self) -> None:
        """Nothing waits."""

    def sync(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is held."""


class Found(NamedTuple):
    """A journal as it was found, with what the file itself says of who could write to it."""

    events: list[Event]
    ours: bool  # whether only this user can have written to it, or put it there


def read(path: str | Path) -> list[Event]:
    """The events of a journal. Nothing is changed, and another process may be writing to it.

    :param path: the file.
    """
    return find(path).events


def find(path: str | Path) -> Found:
    """Read a journal, as `read` does, and say whose it is.

    All of it is asked of one open file, so that it is of no use to put another in its place.
    """
    path, real = Path(path), Path(os.path.realpath(path))
    try:
        with Folder(real.parent) as folder, os.fdopen(folder.open(real.name), "rb") as file:
            status, around = os.fstat(file.fileno()), folder.status
            sticky = around.st_mode & S_ISVTX  # in which only its owner may replace a file
            closed = os.name != "posix" or bool(sticky or not around.st_mode & 0o022)
            return Found(_verified(path, file)[0], is_ours(status) and closed)
    except OSError as error:
        why = "it is not a file, but a folder, a pipe or a device"
        if not isinstance(error, NotAFile):
            why = error.strerror or str(error)
        raise JournalNotRead(path, why) from error


@contextmanager
def no_collection() -> Iterator[None]:
    """Make millions of events, or walk through them, without a search for circles among them.

    There are none, since an event holds only what was in its line. To look for them would take a
    fifth of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _resolved(path: Path) -> Path:
    """The real path of the file, so that a journal with several names is one journal."""
    path = Path(os.path.realpath(path))  # `Path.resolve` meets a circle differently since 3.13
    try:
        fit = S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        fit = True  # it is created, or that fails and says why
    except OSError:  # too long a name, or links in a circle
        fit = False
    if not fit:
        raise JournalError(
            f"the journal {path} is not a file that can be written to. Name a file, or one that "
            "does not exist yet.",
            path=path,
        )
    return path


def _create(path: Path, opened: Opened) -> None:
    """The header appears whole or not at all, in a file that only this user can read and write."""
    new = f"{path.name}.new"  # ours alone: the lock is held
    with Folder(path.parent) as folder:
        try:
            with os.fdopen(folder.create_anew(new), "wb") as file:
                file.write(encode(opened, durable=0, after="")[0])
                file.flush()
                os.fsync(file.fileno())
            folder.replace(path.name, by=new)
        except OSError:
            with suppress(OSError):
                folder.unlink(new)
            raise
    sync_folder(path.parent)  # the name is durable only when the folder is


def _verified(path: Path, file: BufferedReader) -> tuple[list[Event], str, int]:
    """The events of the good lines, the checksum of the last one, and where it ends."""
    events: list[Event] = []
    checksum, end, durable, good = "", 0, 0, True
    ours = False  # whether any line of it looks as if lastarm had written it
    with no_collection():
        for raw in file:
            line = decode(raw[:-1]) if raw.endswith(b"\n") else None
            ours = ours or line is not None or any(mark in raw for mark in HEADER_MARKS)
            if line is None:
                good = False
                continue
            # Damage is excused only past the lines that some line knew to be on the disk.
            durable = max(durable, line.durable)
            good = good and line.after == checksum
            if good:
                event = event_of_line(path, len(events) + 1, line)
                if events and isinstance(event, Opened):
                    raise JournalDamaged(path, len(events) + 1, "there is a second header")
                events.append(event)
                checksum, end = line.sum, end + len(raw)
    if not ours:
        empty = not os.fstat(file.fileno()).st_size
        raise NotAJournal(path, "it is empty" if empty else "no line of it is one of a journal's")
    if not events or not isinstance(events[0], Opened):
        raise JournalDamaged(path, 1, "a journal begins with a header, and this is not one")
    if len(events) < durable:
        raise JournalDamaged(path, len(events) + 1, "it is not the line that was written there")
    return events, checksum, end


def event_of_line(path: Path, number: int, line: Line) -> Event:
    """The event of the line with this number, from 1."""
    if isinstance(line, Other) and (written := line.fields.get("format", FORMAT)) != FORMAT:
        raise OtherFormat(path, written, FORMAT)
    try:
        return line.event()
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        why = str(error)[:100]  # it may quote what the line holds
        raise JournalDamaged(path, number, f"no event can be read from it ({why})") from error
