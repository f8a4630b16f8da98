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
from lastarm.checkpoints.folder import StateFolder
from lastarm.checkpoints.index import Index
from lastarm.errors import CheckpointNotWritten, InvalidArgument
from lastarm.plain import fingerprint


@dataclass(frozen=True)
class Checkpoints:
    """Where trained states are kept, and how much of memory and disk they may take.

    States are kept in memory while they fit. Others are written to the folder; with a journal, all
    are. When the disk limit is reached, the arms that are furthest behind lose their states first.

    - `folder`: where files of states are written. By default, beside the journal; without a
      journal, in a temporary folder
    - `memory`: bytes of states that are kept in memory, by all workers of this machine together
    - `disk`: bytes of states that are kept on the disk
    """

    folder: str | Path | None = None
    memory: int = 2**30
    disk: int = 2**35

    def __post_init__(self) -> None:
        whole_number("memory", self.memory, 0, "how many bytes of states are kept in memory")
        whole_number("disk", self.disk, 0, "how many bytes of states are kept on the disk")

    @classmethod
    def of(cls, given: Checkpoints | str | Path | bool) -> Checkpoints | None:
        """The settings from what `search` is given; None if states are not kept."""
        if isinstance(given, Checkpoints):
            return given
        if not isinstance(given, str | Path | bool):
            rule = "it says where trained states are kept"
            way_out = "Use a folder, Checkpoints(…), True or False"
            raise InvalidArgument.of("checkpoints", given, rule, way_out)
        return cls(None if given is True else given) if given is not False else None

    @contextmanager
    def opened(
        self, trainer: Any, journal: str | Path | None, *, best: bool = False
    ) -> Iterator[Index]:
        """Within, the states of a search; with `best`, also those with an arm's lowest loss."""
        place = None if self.folder is None else Path(os.path.realpath(self.folder))
        if journal is not None:
            beside = Path(os.path.realpath(journal))
            path = beside.with_name(f"{beside.name}.states")
            if place:  # where states of other searches may be, with journals of the same name
                path = place / f"{beside.name}-{fingerprint(str(beside))[:8]}.states"
            folder = StateFolder(path, trainer, durable=True)
            index = Index(folder, disk=self.disk, best=best)
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
            raise CheckpointNotWritten(place or Path(tempfile.gettempdir()), error) from error
        with temporary as name:
            folder = StateFolder(Path(name), trainer, durable=False)
            yield Index(folder, disk=self.disk, best=best)
