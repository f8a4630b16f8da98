"""Where states are kept, and how many of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lastarm.arguments import whole_number
from lastarm.checkpoints.folder import Folder
from lastarm.checkpoints.index import Index
from lastarm.errors import CheckpointNotWritten, InvalidArgument
from lastarm.plain import fingerprint


@dataclass(frozen=True)
class Checkpoints:
    """Where trained states are kept: how much in memory and on the disk, in bytes, and where.

    In memory while they fit; in the folder otherwise, and always when there is a journal. Without
    a `folder` they go beside the journal, or to a temporary place where there is none. When the
    disk limit is reached, arms that are furthest behind lose theirs: dropped ones go first.
    """

    folder: str | Path | None = None
    memory: int = 2**30
    disk: int = 2**35

    def __post_init__(self) -> None:
        whole_number("memory", self.memory, 0, "how many bytes of states are kept in memory")
        whole_number("disk", self.disk, 0, "how many bytes of states are kept on the disk")

    @classmethod
    def of(cls, given: Checkpoints | str | Path | bool) -> Checkpoints | None:
        """The settings in what `search` is given: themselves, a folder, or whether at all."""
        if isinstance(given, Checkpoints):
            return given
        if not isinstance(given, str | Path | bool):
            raise InvalidArgument(
                f"checkpoints={given!r} will not do: give a folder, Checkpoints, True or False."
            )
        return cls(None if given is True else given) if given is not False else None

    @contextmanager
    def opened(
        self, trainer: Any, journal: str | Path | None, *, best: bool = False
    ) -> Iterator[Index]:
        """The states of a search; without a journal their folder is temporary."""
        place = None if self.folder is None else Path(os.path.realpath(self.folder))
        if journal is not None:
            beside = Path(os.path.realpath(journal))
            path = beside.with_name(f"{beside.name}.states")
            if place:  # where states of other searches may be, with journals of the same name
                path = place / f"{beside.name}-{fingerprint(str(beside))[:8]}.states"
            index = Index(Folder(path, trainer, durable=True), disk=self.disk, best=best)
            yield index
            index.sweep()
            return
        try:
            if place:
                place.mkdir(parents=True, exist_ok=True)
            temporary = tempfile.TemporaryDirectory(
                prefix="lastarm-", dir=place, ignore_cleanup_errors=True
            )
        except OSError as error:
            raise CheckpointNotWritten(place or tempfile.gettempdir(), error) from error
        with temporary as name:
            yield Index(Folder(Path(name), trainer, durable=False), disk=self.disk, best=best)
