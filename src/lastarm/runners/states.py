"""The states of arms in the process that trains them."""

from __future__ import annotations

import pickle
from contextlib import suppress
from typing import Any, NamedTuple

from lastarm.checkpoints import Folder
from lastarm.errors import CheckpointLost
from lastarm.events import Pull, Saved


class Held(NamedTuple):
    """A state in memory: how far it is trained, how large it was when it was last measured."""

    state: Any
    level: int
    size: int
    measured: int  # the level at which it was


class States:
    """Keeps states in memory while they fit into so many bytes, and in a folder otherwise.

    With `always`, every state is written to the folder as well. A state that cannot be written
    stays in memory, whatever its size.
    """

    def __init__(self, folder: Folder | None, *, memory: int, always: bool) -> None:
        self._folder = folder
        self._memory = memory
        self._always = always
        self._held: dict[int, Held] = {}  # arm → its state, the one kept last comes last
        self._size = 0
        self._moved: dict[int, tuple[int, Saved]] = {}  # arm → what memory had no room for

    def take(self, pull: Pull, known: tuple[int, Saved] | None) -> tuple[Any, int]:
        """The arm's state and level, the furthest that does not go past the pull; else (_, 0).

        It is taken out, so that a state which a failed pull left half changed is never used again.
        `known` is what the arm's furthest checkpoint is.
        """
        held = self._held.pop(pull.arm, None)
        if held:
            self._size -= held.size
            # Another worker may have gone further with this arm since.
            if (known[0] if known else 0) <= held.level <= pull.upto:
                return held.state, held.level
        moved = self._moved.pop(pull.arm, None)
        for level, saved in filter(None, (moved, known)):
            if self._folder and level <= pull.upto:
                with suppress(CheckpointLost):
                    return self._folder.load(Pull(pull.arm, level), saved), level
        return None, 0

    def keep(self, pull: Pull, state: Any) -> Saved | None:
        """Keep the state of an arm after a pull; what its checkpoint is, if there is one."""
        saved = self._folder.save(pull, state) if self._folder and self._always else None
        self.put_back(pull, state, saved.size if saved else None)
        while self._size > self._memory and self._make_room():
            pass
        return saved

    def put_back(self, pull: Pull, state: Any, size: int | None = None) -> None:
        """Hold a state in memory, without more ado."""
        before = self._held.pop(pull.arm, None)
        if size is None and before and pull.upto < 2 * before.measured:
            size, measured = before.size, before.measured
        else:  # measuring costs about as much as writing, so it is done ever more rarely
            size, measured = _size(state) if size is None else size, pull.upto
        self._size += size - (before.size if before else 0)
        self._held[pull.arm] = Held(state, pull.upto, size, measured)

    def _make_room(self) -> bool:
        for arm, held in self._held.items():
            pull = Pull(arm, held.level)
            if not held.size or self._folder is None:
                continue
            if not self._always:
                saved = self._folder.save(pull, held.state)
                if saved is None:
                    continue
                self._moved[arm] = held.level, saved
            del self._held[arm]
            self._size -= held.size
            return True
        return False

    def get(self, pull: Pull) -> Any:
        """The state of an arm at that level, or None if it is not at hand."""
        held, moved = self._held.get(pull.arm), self._moved.get(pull.arm)
        if held and held.level == pull.upto:
            return held.state
        if self._folder and moved and moved[0] == pull.upto:
            with suppress(CheckpointLost):
                return self._folder.load(pull, moved[1])
        return None


def _size(state: Any) -> int:
    """About how many bytes it holds, without copying its arrays; 0 if it cannot be written."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        rest = pickle.dumps(state, protocol=5, buffer_callback=buffers.append)
    except Exception:
        return 0
    return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)
