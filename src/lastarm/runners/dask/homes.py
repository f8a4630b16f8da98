"""Where the states of arms are between two pulls: futures on the workers of a Dask cluster."""

from __future__ import annotations

from typing import NamedTuple

from distributed import Future

from lastarm.runners.dask.cluster import Seats


class Home(NamedTuple):
    """Where an arm's state is."""

    state: Future
    level: int
    worker: str
    movable: bool
    on_disk: int  # the size of its checkpoint, 0 if there is none

    @property
    def pinned(self) -> bool:
        """Whether only its worker can go on with it."""
        return not self.movable and not self.on_disk


class Homes:
    """The homes of arms. Those whose states are also on the disk take so many bytes at most."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._homes: dict[int, Home] = {}
        self._on_disk: dict[int, int] = {}  # arm → size, the one that came last is the last
        self._size = 0  # of those

    def of(self, arm: int, seats: Seats) -> Home | None:
        """The home of an arm, if its state is still there."""
        home = self._homes.get(arm)
        # A worker that was retired in good order has given its states to others.
        if home and (
            home.state.status in ("cancelled", "lost")
            or seats.was_given_up(home.worker)
            or (not home.movable and home.worker not in seats.known())
        ):
            self.pop(arm)
            return None
        return home

    def put(self, arm: int, home: Home) -> None:
        """An arm's state is there now; the oldest that are also on the disk make room for it."""
        self.pop(arm)
        self._homes[arm] = home
        if home.on_disk:
            self._on_disk[arm] = home.on_disk
            self._size += home.on_disk
            while self._size > self._memory:
                self.pop(next(iter(self._on_disk)))

    def pop(self, arm: int) -> Home | None:
        """Forget the home of an arm; Dask releases its state when nobody has it any more."""
        self._size -= self._on_disk.pop(arm, 0)
        return self._homes.pop(arm, None)

    def clear(self) -> None:
        """Forget all."""
        self._homes.clear()
        self._on_disk.clear()
        self._size = 0
