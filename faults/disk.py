"""Every call by which a search changes its disk, as a place where a fault can be."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple
from unittest.mock import patch

from lastarm.checkpoints import StateFolder
from lastarm.events import Pull

MEMORY = Path("/dev/shm")
KINDS = ("fsync", "replace", "unlink", "mkdir")


class Call(NamedTuple):
    """A call that is about to be made, has been made, or is half made, if it is a write."""

    kind: Literal["create", "write", "truncate", "fsync", "replace", "unlink", "mkdir"]
    path: Path
    when: Literal["before", "within", "after"]
    source: Path | None = None  # of what is replaced


At = Callable[[Call], None]
"""What happens there: nothing, a note, an error or the end of the process."""

Files = dict[str, bytes]
"""What is on a disk, by name."""


def as_state(given: Any) -> bytes:
    """The file of a state, as a search writes it: what is in another form is never unpickled."""
    with TemporaryDirectory() as folder:
        states = StateFolder(Path(folder), None, durable=True)
        states.save(Pull(0, 1), given)
        return states.file(Pull(0, 1)).read_bytes()


def shuffled(points: int) -> list[int]:
    """The numbers of all points, in an order that is always the same: the first few are fair."""
    return Random(0).sample(range(points), points)


@contextmanager
def in_memory(folder: Path) -> Iterator[Path]:
    """A folder in memory where there is such a thing, else within the one that was given.

    A killed process leaves its files alike in either; only a power cut tells them apart, and that
    one we play ourselves.
    """
    place = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else folder
    with tempfile.TemporaryDirectory(prefix="lastarm-faults-", dir=place) as name:
        yield Path(name)


def files_of(disk: Path) -> Files:
    """What is there, except for locks."""
    paths = [path for path in disk.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(disk)): path.read_bytes() for path in paths}


def lay_out(files: Files, disk: Path) -> None:
    """Put files there, in a folder that is empty."""
    for name, content in files.items():
        path = disk / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)  # a state that others may write to is none of ours


@contextmanager
def watched(folder: Path, at: At) -> Iterator[None]:
    """Within, `at` is told of every call that changes what is in the folder.

    These are the calls that journal, lock and checkpoints make, of `os` and of files that they
    open; writes are done in two halves.
    """
    paths: dict[int, str] = {}  # what an open descriptor is of
    real_open, real_fdopen = os.open, os.fdopen

    def is_ours(named: str) -> bool:
        return named == str(folder) or named.startswith(f"{folder}{os.sep}")

    def name_of(given: Any, folder: int | None) -> str:
        """The path of what is given as a descriptor, as a path, or as a name in an open folder."""
        if isinstance(given, int):
            return paths.get(given, "")
        return os.fspath(given) if folder is None else os.path.join(paths[folder], given)

    def around(kind: Any, call: Any) -> Any:
        """A function of `os` that is first given a path, or a descriptor."""

        def made(given: Any, *others: Any, **options: Any) -> Any:
            named = name_of(given, options.get("src_dir_fd", options.get("dir_fd")))
            if not is_ours(named):
                return call(given, *others, **options)
            path, source = Path(named), None
            if kind == "replace":
                path, source = Path(name_of(others[0], options.get("dst_dir_fd"))), path
            at(Call(kind, path, "before", source))
            result = call(given, *others, **options)
            at(Call(kind, path, "after", source))
            return result

        return made

    class Watched(io.FileIO):
        def __init__(self, descriptor: int, mode: str, path: Path) -> None:
            super().__init__(descriptor, mode)
            self._path = path

        def write(self, data: Any) -> int:
            at(Call("write", self._path, "before"))
            written = 0
            if half := len(data) // 2:
                written = super().write(data[:half])
                at(Call("write", self._path, "within"))
            written += super().write(data[half:])
            at(Call("write", self._path, "after"))
            return written

        def truncate(self, size: int | None = None) -> int:
            at(Call("truncate", self._path, "before"))
            size = super().truncate(size)
            at(Call("truncate", self._path, "after"))
            return size

    create = around("create", real_open)

    def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        call = create if flags & os.O_CREAT else real_open
        descriptor: int = call(path, flags, *arguments, **options)
        paths[descriptor] = name_of(path, options.get("dir_fd"))
        return descriptor

    def fdopened(descriptor: int, mode: str = "r", buffering: int = -1, **options: Any) -> Any:
        named = paths.get(descriptor, "")
        if mode == "rb" or not is_ours(named):
            return real_fdopen(descriptor, mode, buffering, **options)
        file = Watched(descriptor, mode.replace("b", ""), Path(named))
        if buffering == 0:
            return file
        return io.BufferedRandom(file) if "+" in mode else io.BufferedWriter(file)

    with ExitStack() as stack:
        for owner, name, instead in (
            (os, "open", opened),
            (os, "fdopen", fdopened),
            *((os, name, around(name, getattr(os, name))) for name in KINDS),
        ):
            stack.enter_context(patch.object(owner, name, instead))
        yield
