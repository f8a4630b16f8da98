"""What it would cost to perform pulls just as they are asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

ON_DISK = -1


class Plain:
    """Counts the states that the plain order would move, to compare with those that were.

    In it, pulls are dealt to the workers in turn, as they are asked for. Each worker keeps the
    states of the arms that it trained last, as many as fit into `memory`; any other that it needs
    is moved, from the disk or from another worker.

    >>> plain = Plain(workers=1, memory=2, size=lambda arm: 1)
    >>> rungs = [0, 1, 2, 3], [0, 2, 3]
    >>> [[plain.moves(arm) for arm in rung] for rung in rungs]
    [[False, False, False, False], [True, True, True]]

    The size of a state is what `size` says of its arm, or what was last seen of it.
    """

    def __init__(
        self, workers: int, memory: float, size: Callable[[int], float] | None = None
    ) -> None:
        self._memory, self._size = memory, size
        self._shelves = [OrderedDict[int, float]() for _ in range(max(1, workers))]
        self._used = [0.0] * len(self._shelves)
        self._at: dict[int, int] = {}  # arm → the worker that has it; new ones are nowhere
        self._turn = 0

    @property
    def workers(self) -> int:
        """How many workers take turns."""
        return len(self._shelves)

    def moves(self, arm: int) -> bool:
        """Whether the next in turn, which is to train this arm, has to have its state moved."""
        worker = self._turn % len(self._shelves)
        self._turn += 1
        at = self._at.get(arm)
        size = 0.0
        if at is not None and at != ON_DISK:
            size = self._shelves[at].pop(arm)
            self._used[at] -= size
        if self._size:
            size = self._size(arm)
        self._shelves[worker][arm] = size
        self._used[worker] += size
        self._at[arm] = worker
        self._make_room(worker)
        return at is not None and at != worker

    def trained(self, arm: int, size: float) -> None:
        """An arm's state is that large now."""
        size = self._size(arm) if self._size else size
        at = self._at.setdefault(arm, ON_DISK)
        if at != ON_DISK:
            self._used[at] += size - self._shelves[at][arm]
            self._shelves[at][arm] = size
            self._make_room(at)

    def _make_room(self, worker: int) -> None:
        shelf = self._shelves[worker]
        while shelf and self._used[worker] > self._memory:
            arm, size = shelf.popitem(last=False)
            self._used[worker] -= size
            self._at[arm] = ON_DISK
