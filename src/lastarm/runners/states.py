"""The states of arms in the process that trains them."""

from __future__ import annotations

import heapq
import sys
from array import array
from contextlib import suppress
from math import inf, isfinite
from time import perf_counter
from typing import Any, NamedTuple

from lastarm.checkpoints import StateFolder
from lastarm.checkpoints.folder import pickled
from lastarm.columns import reserve
from lastarm.errors import CheckpointLost
from lastarm.events import Pull, Saved
from lastarm.trainers import continues, finished

if sys.platform != "win32":
    import resource


SELDOM = 0.05  # seconds, in which memory fills by little


class Held(NamedTuple):
    """A state in memory, how far it is trained, about how large it is, and its loss there.

    One that is `saved`, or does not `continue`, is not written when it leaves memory: a copy of
    the latter would be of no use.
    """

    state: Any
    level: int
    size: int
    loss: float
    continues: bool
    saved: bool


class States:
    """Keeps states in memory while they fit into `memory` bytes, and in a folder otherwise.

    The state with the highest loss leaves memory first, because such arms are dropped. So when a
    rung ends that keeps at least as many arms as fit, all that are in memory go on. A state whose
    copies do not continue leaves only if no other can, because its arm is then trained again from
    zero: first the one that is furthest behind, and of these the one with the highest loss.

    With `always`, every state is written to the folder as well. A state that cannot be written
    stays in memory, whatever its size. States that memory has no room for take at most `disk`
    bytes; the oldest are deleted first, and are trained again if they are asked for.

    For the pull whose state was taken last: `moves` says whether the state had to be loaded,
    `move_seconds` how long that took and writing others to make room, and `let_go` which arms left
    memory for it. For the state that was kept last: `unsaved` says why it could not be written,
    and is empty if it was, or did not have to be.
    """

    def __init__(
        self,
        folder: StateFolder | None,
        trainer: Any,
        *,
        memory: float,
        always: bool,
        disk: float = inf,
    ) -> None:
        self._folder, self._trainer = folder, trainer
        self._memory, self._disk = memory, disk
        self._always = always
        self._held: dict[int, Held] = {}  # arm → its state
        # A heap, once memory was full: what is held, or was, in the order in which it leaves.
        self._leaving: list[tuple[bool, int, float, int, int]] = []
        self._ranked = False  # whether all that is held is in it
        self._sizes, self._measured = array("q"), array("q")  # by arm: bytes, and at which level
        self._moved: dict[int, tuple[int, Saved]] = {}  # arm → what memory had no room for
        self._asked = -inf  # when it was last asked how much this process takes
        self._measures = False  # whether states are pickled to learn how large they are
        self._in_memory = self._on_disk = 0
        self.moves, self.move_seconds = 0, 0.0
        self.let_go: list[int] = []
        self.unsaved = ""

    def take(
        self, pull: Pull, known: tuple[int, Saved] | None, *, restarts: bool = False
    ) -> tuple[Any, int]:
        """The arm's state and level, the furthest that does not go past the pull; else (_, 0).

        It is taken out, so that a state which a failed pull left half changed is never used again.
        `known` is the arm's furthest checkpoint. For a trainer that `restarts`, only a state at
        the level of the pull is of use, as one that a failed look has left, or one that more pulls
        would not change.
        """
        self.moves, self.move_seconds = 0, 0.0
        self.let_go = []
        held = self._let_go(pull.arm)
        least = pull.upto if restarts else 1
        # Another worker may have gone further with this arm since.
        usable = held and max(1, known[0] if known else 0) <= held.level <= pull.upto
        if held and usable and (held.level >= least or finished(self._trainer, held.state)):
            return held.state, held.level
        state, level = None, 0
        began = perf_counter()
        for at, saved in filter(None, (self._moved.get(pull.arm), known)):
            if self._folder and max(least, level + 1) <= at <= pull.upto:
                with suppress(CheckpointLost):
                    state, level = self._folder.load(Pull(pull.arm, at), saved), at
        self._remove_moved(pull.arm)
        if level:
            self.moves, self.move_seconds = 1, perf_counter() - began
        return state, level

    def keep(self, pull: Pull, state: Any, loss: float) -> Saved | None:
        """Keep the state of an arm after a pull; what its checkpoint is, if there is one."""
        saved, self.unsaved = None, ""
        if self._folder and self._always:
            saved = self._folder.save(pull, state)
            self.unsaved = "" if saved else self._folder.refusal
        if hasattr(self._trainer, "size"):
            self._measure(pull, max(1, int(self._trainer.size(state))))
        elif saved:
            self._measure(pull, saved.size)
        elif self._may_be_full() and (
            pull.arm >= len(self._measured) or pull.upto >= 2 * self._measured[pull.arm]
        ):
            # It costs about as much as writing, so do it rarely.
            self._measure(pull, size_of(state))
        self._hold(
            pull,
            state,
            loss=loss if isfinite(loss) else inf,
            continues=saved.continues if saved else continues(self._trainer, state),
            saved=saved is not None,
        )
        if self._in_memory > self._memory:
            began = perf_counter()
            if not self._ranked:
                self._ranked = True
                self._leaving = [_place(arm, held) for arm, held in self._held.items()]
                heapq.heapify(self._leaving)
            while self._in_memory > self._memory and self._make_room():
                pass
            self.move_seconds += perf_counter() - began
        return saved

    def put_back(self, pull: Pull, state: Any) -> None:
        """Hold a state in memory for another attempt."""
        try:
            goes_on = continues(self._trainer, state)
        except KeyboardInterrupt:
            raise
        except BaseException:  # as it may be what the attempt failed by
            goes_on = False
        self._hold(pull, state, loss=-inf, continues=goes_on, saved=False)

    def _hold(self, pull: Pull, state: Any, *, loss: float, continues: bool, saved: bool) -> None:
        self._let_go(pull.arm)
        size = self._sizes[pull.arm] if pull.arm < len(self._sizes) else 0
        held = self._held[pull.arm] = Held(state, pull.upto, size, loss, continues, saved)
        self._in_memory += size
        if self._ranked:
            heapq.heappush(self._leaving, _place(pull.arm, held))
            self._ranked = len(self._leaving) < 2 * len(self._held) + 100  # else, start again

    def _may_be_full(self) -> bool:
        """Whether states may take as much memory as they are allowed to, and could leave it.

        They cannot while all of this process never took as much. From then on they are measured.
        """
        if self._folder is None or self._always or self._memory == inf:
            return False
        now = perf_counter()
        # Where the system is slow to say, asking takes longer than a small pull.
        if not self._measures and now >= self._asked + SELDOM:
            self._asked, self._measures = now, most_resident() >= self._memory
            if not self._measures:
                return False
            for arm, held in self._held.items():
                size = size_of(held.state)
                self._measure(Pull(arm, held.level), size)
                self._held[arm] = held._replace(size=size)
                self._in_memory += size - held.size
        return self._measures

    def _measure(self, pull: Pull, size: int) -> None:
        reserve(self._sizes, pull.arm, 0)
        reserve(self._measured, pull.arm, 0)
        self._sizes[pull.arm], self._measured[pull.arm] = size, pull.upto

    def held(self, arm: int) -> Held | None:
        """What is in memory of an arm."""
        return self._held.get(arm)

    def get(self, pull: Pull) -> Any:
        """The state of an arm at that level, or None if it is not available."""
        held, moved = self._held.get(pull.arm), self._moved.get(pull.arm)
        if held and held.level == pull.upto:
            return held.state
        if self._folder and moved and moved[0] == pull.upto:
            with suppress(CheckpointLost):
                return self._folder.load(pull, moved[1])
        return None

    def _make_room(self) -> bool:
        """Let the state that is wanted least leave memory, if there is one that can."""
        while self._leaving:
            *_, minus_arm, level = heapq.heappop(self._leaving)
            arm, held = -minus_arm, self._held.get(-minus_arm)
            if held is None or held.level != level:
                continue  # it was taken since, and kept at another level
            if not held.size or self._folder is None:
                continue
            written = held.saved or not held.continues
            if not written and (self._always or not self._move(Pull(arm, level), held.state)):
                continue  # it cannot be
            self._let_go(arm)
            self.let_go.append(arm)
            return True
        return False

    def _let_go(self, arm: int) -> Held | None:
        held = self._held.pop(arm, None)
        self._in_memory -= held.size if held else 0
        return held

    def _move(self, pull: Pull, state: Any) -> bool:
        assert self._folder is not None
        saved = self._folder.save(pull, state)
        if saved is None:
            return False
        self._moved[pull.arm] = pull.upto, saved
        self._on_disk += saved.size
        while self._on_disk > self._disk:
            self._remove_moved(next(iter(self._moved)))
        return True

    def _remove_moved(self, arm: int) -> None:
        if self._folder and arm in self._moved:
            level, saved = self._moved.pop(arm)
            self._on_disk -= saved.size
            self._folder.remove(Pull(arm, level))


def _place(arm: int, held: Held) -> tuple[bool, int, float, int, int]:
    """Its place in the order in which states leave memory, with its arm and level at the end."""
    behind = 0 if held.continues else held.level
    return not held.continues, behind, -held.loss, -arm, held.level


def most_resident() -> float:
    """The most bytes that this process ever had in memory; inf where the system does not say."""
    if sys.platform == "win32":
        return inf
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def size_of(state: Any) -> int:
    """About how many bytes it holds, without copying its arrays; 0 if it cannot be written."""
    rest, arrays = _pickled(state, apart=True)
    return len(rest) + sum(array.nbytes for array in arrays)


def packed(state: Any) -> bytes | None:
    """A pickle that can be sent, with its arrays; None if the state cannot be pickled."""
    return _pickled(state)[0] or None


def _pickled(state: Any, *, apart: bool = False) -> tuple[bytes, list[memoryview]]:
    """The same as `pickled`, but empty if the state cannot be pickled, whatever that raises."""
    try:
        return pickled(state, apart=apart)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return b"", []
