"""F4: the power is cut. The disk holds what was synced, and any part of what was written since."""

from __future__ import annotations

import warnings
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Lock
from typing import NamedTuple

from faults.campaign import REFERENCE, SEARCHING, Campaign, Figures
from faults.disk import Call, Files, in_memory, lay_out, watched
from faults.reference import GROUPED, Reference, Seen, Standing, seen_in
from lastarm.checkpoints import Checkpoints
from lastarm.errors import JournalError, StateNotLoaded
from lastarm.events import Closed, Event, Loss
from lastarm.journal import read
from lastarm.searching import load

IMAGES = 50  # of each search
LAST = 6  # moments at the end of a search, which are tried more often
SECTORS = (64, 512)  # smaller ones tear more, and larger ones leave more lines whole


class File(NamedTuple):
    """What a file holds, and what of it was synced."""

    written: bytes = b""
    synced: bytes = b""


Named = tuple[Path, int | None]
"""A name and the number of the file that has it now, or None where it was removed."""


@dataclass
class Disk:
    """A disk with a memory before it: files by number, their names, and what was synced of both.

    What happens to the names in a folder gets to the disk in its order, whenever the disk likes,
    but at the latest when the folder is synced. A folder has a name in its parent, too.
    """

    folders: set[Path]
    files: dict[int, File]
    names: dict[Path, int]
    synced_names: dict[Path, int]
    waiting: dict[Path, list[list[Named]]] = field(default_factory=dict)  # by folder
    honest: bool = True  # else it says that it has synced, and has not

    @classmethod
    def of(cls, root: Path, *, honest: bool) -> Disk:
        """A disk that holds what is there, for good."""
        paths = list(root.rglob("*"))
        files = [b"" if path.is_dir() else path.read_bytes() for path in paths]
        names = {path: number for number, path in enumerate(paths)}
        return Disk(
            {root, *(path for path in paths if path.is_dir())},
            {number: File(content, content) for number, content in enumerate(files)},
            dict(names),
            dict(names),
            honest=honest,
        )

    def note(self, call: Call) -> None:
        """Follow a call that was made."""
        path = call.path
        if call.when == "before":
            return
        if call.kind not in ("unlink", "replace"):
            self._know(path, path)
        if call.kind in ("create", "write", "truncate"):
            number = self.names[path]
            self.files[number] = self.files[number]._replace(written=path.read_bytes())
        elif call.kind == "replace" and call.source:
            self._know(call.source, path)
            self._rename([(path, self.names[call.source]), (call.source, None)])
        elif call.kind == "unlink":
            self._rename([(path, None)])
        elif call.kind == "fsync" and self.honest:
            self._sync(path)

    def _know(self, path: Path, found_at: Path) -> None:
        """Take in what is new here; a worker may have made it, and have synced nothing."""
        if path in self.names or path == min(self.folders):
            return
        self._know(path.parent, found_at.parent)
        if found_at.is_dir():
            self.folders.add(path)
        self.files[len(self.files)] = File(b"" if found_at.is_dir() else found_at.read_bytes())
        self._rename([(path, len(self.files) - 1)])

    def _rename(self, change: list[Named]) -> None:
        """Do it all at once."""
        _apply(change, self.names)
        self.waiting.setdefault(change[0][0].parent, []).append(change)

    def _sync(self, path: Path) -> None:
        if path in self.folders:
            for change in self.waiting.pop(path, []):
                _apply(change, self.synced_names)
        else:
            written = self.files[self.names[path]].written
            self.files[self.names[path]] = File(written, written)

    def cut(self, random: Random) -> Files:
        """The files that are found when the power is back."""
        names = dict(self.synced_names)
        for changes in self.waiting.values():
            for change in changes[: random.randint(0, len(changes))]:
                _apply(change, names)
        root = min(self.folders)
        lost = self.folders - names.keys() - {root}
        return {
            str(path.relative_to(root)): _torn(self.files[number], random)
            for path, number in names.items()
            if path not in self.folders and path.parent not in lost
        }

    def copy(self) -> Disk:
        """The disk as it is now."""
        waiting = {folder: list(changes) for folder, changes in self.waiting.items()}
        return Disk(
            set(self.folders), dict(self.files), dict(self.names), dict(self.synced_names), waiting
        )


def _apply(change: list[Named], names: dict[Path, int]) -> None:
    for path, number in change:
        names.pop(path, None)
        if number is not None:
            names[path] = number


def _torn(file: File, random: Random) -> bytes:
    """Each sector as it was synced or as it was written; what is neither is zeros."""
    sizes = len(file.synced), len(file.written)
    content = bytearray(file.synced.ljust(max(sizes), b"\0"))
    sector = random.choice(SECTORS)
    for start in range(0, len(content), sector):
        if random.random() < 0.5:
            content[start : start + sector] = file.written[start : start + sector].ljust(
                len(content[start : start + sector]), b"\0"
            )
    if file.written == file.synced:
        return file.written
    return bytes(content[: random.randint(min(sizes), max(sizes))])


class Moment(NamedTuple):
    """A disk at some moment, and what counted by then."""

    disk: Disk
    counted: Set[Seen]


def moments(
    reference: Reference,
    before: Set[Seen] = frozenset(),
    *,
    honest: bool = True,
    sync: bool = False,
    workers: int | None = None,
) -> list[Moment]:
    """A search after every call that it makes to its disk, and when each of its losses counts.

    So much counted before, if it is resumed.
    """
    disk = Disk.of(reference.disk, honest=honest)
    counted = set(before)
    found: list[Moment] = []
    one_at_a_time = Lock()  # another thread may sync what workers have written

    def at(call: Call) -> None:
        with one_at_a_time:
            disk.note(call)
            found.append(Moment(disk.copy(), frozenset(counted)))

    def count(event: Event) -> None:
        if isinstance(event, Loss | Closed):
            with one_at_a_time:
                counted.update([seen_in(event)] if isinstance(event, Loss) else [])
                found.append(Moment(disk.copy(), frozenset(counted)))

    with watched(reference.disk, at):
        reference.play(
            on_event=count,
            workers=workers,
            runner=None if workers else GROUPED,
            checkpoints=Checkpoints(sync=sync),
        )
    return found


def power_cuts(tries: range, folder: Path) -> Figures:
    """Disks as a power cut may leave them: all that counted is there.

    Every other search syncs each state before its loss counts: then no state is lost either. The
    others may lose states, say how much was trained again, and have the winner's state if they are
    closed. Half of each kind go on after such a cut, so that the power is cut twice; and every
    third has workers.
    """
    searches = lost = 0
    moments_of: dict[bool, list[Moment]] = {False: [], True: []}  # by whether states are synced
    number = None
    with in_memory(folder) as place:
        reference, image = Reference(place / "search"), Reference(place / "image")
        for seed in tries:
            if number != (number := 1 + seed // IMAGES):
                reference.clear()
                searches += 1
                sync, again = number % 2 == 0, number % 4 >= 2
                before: Set[Seen] = frozenset()
                if again and moments_of[sync]:
                    before = _restored(reference, moments_of[sync], seed)
                workers = 2 if number % 3 == 0 else None
                moments_of[sync] = moments(reference, before, sync=sync, workers=workers)
            found = moments_of[sync]
            counted = _restored(image, found[-LAST:] if seed % 5 == 0 else found, seed)
            fault = f"power cut {seed}"
            _check_winner(image.journal, fault)
            standing = Standing(counted, trainings=0)
            image.resumed(fault, standing, states_may_be_lost=not sync)
            lost += bool(image.repeated(standing))

        # Were fsync an empty word, that would show.
        reference.clear()
        found, lossy = moments(reference, honest=False), 0
        unsynced = range(tries.start // 10, tries.stop // 10)
        for seed in unsynced:
            lossy += bool(image.lost(_restored(image, found, seed)))
        assert lossy, "a disk that syncs nothing should have lost something"
    return {
        "images": len(tries),
        "searches": searches,
        "losses lost": 0,
        "synced states lost": 0,
        "winners lost": 0,
        "of the images lose states that are not synced": lost,
        "other digests": 0,
        "further images of a disk that does not sync": len(unsynced),
        "of them lose losses": lossy,
    }


def _check_winner(journal: Path, fault: str) -> None:
    """A search that is closed has its winner's state; what cannot be read is another's affair."""
    with suppress(JournalError), warnings.catch_warnings():
        warnings.simplefilter("ignore", StateNotLoaded)
        if any(isinstance(event, Closed) for event in read(journal)):
            assert load(journal).state is not None, f"{fault}: it lost the winner's state"


def _restored(image: Reference, found: list[Moment], seed: int) -> Set[Seen]:
    """Write down what a power cut at some moment leaves; gives what had counted by then."""
    random = Random(seed)
    moment = random.choice(found)
    image.clear()
    lay_out(moment.disk.cut(random), image.disk)
    return moment.counted


POWER_CUTS = Campaign(
    "F4",
    "the power is cut, synced bytes and any others are left",
    power_cuts,
    full=10_000,
    short=150,
    paths=(*SEARCHING, *REFERENCE, "faults/power.py"),
)
