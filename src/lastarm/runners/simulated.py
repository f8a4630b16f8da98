"""The simulated runner: as many workers as you like, on a clock that does not tick by itself."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from lastarm.arguments import as_float, whole_number
from lastarm.errors import InvalidArgument
from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.runners.asides import Asides
from lastarm.runners.performer import Performer
from lastarm.runners.protocol import Arms
from lastarm.runners.turns import Turns


class Memories:
    """Which states each worker has in memory: at most `states`, those with the lowest losses."""

    def __init__(self, workers: int, states: float) -> None:
        self.home: dict[int, int] = {}  # arm → the worker that has it
        self._states = states
        self._held: list[dict[int, float]] = [{} for _ in range(workers)]  # arm → its loss

    def take(self, arm: int) -> int | None:
        """Take an arm's state out; the worker that had it, if any had."""
        home = self.home.pop(arm, None)
        if home is not None:
            del self._held[home][arm]
        return home

    def put(self, worker: int, arm: int, loss: float) -> None:
        """A worker has an arm's state now, and lets go of another if that is one too many."""
        self.take(arm)
        held = self._held[worker]
        held[arm], self.home[arm] = loss if math.isfinite(loss) else math.inf, worker
        if len(held) > self._states:
            self.take(max(held, key=lambda arm: (held[arm], arm)))


class Simulated:
    """Workers on a virtual clock, with the faults of real ones, in microseconds of real time.

    - `arms`: the arms of the search
    - `workers`: how many pulls can be under way
    - `seconds_per_pull`: how long one step of training takes, for all arms or for each
    - `seconds_per_look`: how long it takes to look at a loss
    - `straggling`: the chance that an attempt takes `slowdown` times as long
    - `slowdown`: see `straggling`
    - `failing`: the chance that a worker dies during an attempt, of which nothing is left then
    - `duplicating`: the chance that a result comes back a second time, later
    - `lease`: after how many seconds an attempt is given up as failed. Its worker goes on, and
      brings a result that is late
    - `seconds_per_move`: how long it takes to bring a state to a worker that does not have it. By
      default, states are everywhere
    - `states_in_memory`: how many states each worker has in memory, of the arms that it trained
      those with the lowest losses

    What happens to an attempt depends only on the seed, its pull and its number. The losses are
    those of the serial runner.

    >>> from lastarm.trainers import RecordedCurves
    >>> two = RecordedCurves([[0.5, 0.4], [0.6, 0.3]])
    >>> arms = Arms(two, [{"row": 0}, {"row": 1}])
    >>> runner = Simulated(arms, workers=2, seconds_per_pull=[3, 1])
    >>> runner.start(Pull(arm=0, upto=2), attempt=1)
    >>> runner.start(Pull(arm=1, upto=2), attempt=1)
    >>> [(loss.pull.arm, loss.value, runner.now) for loss in runner.wait()]
    [(1, 0.3, 2.0)]
    >>> [(loss.pull.arm, loss.value, runner.now) for loss in runner.wait()]
    [(0, 0.4, 6.0)]
    """

    def __init__(
        self,
        arms: Arms,
        *,
        workers: int = 1,
        seconds_per_pull: float | Sequence[float] = 1.0,
        seconds_per_look: float = 0.0,
        straggling: float = 0.0,
        slowdown: float = 10.0,
        failing: float = 0.0,
        duplicating: float = 0.0,
        lease: float = math.inf,
        seconds_per_move: float | None = None,
        states_in_memory: int | None = None,
    ) -> None:
        for name, chance in (
            ("straggling", straggling),
            ("failing", failing),
            ("duplicating", duplicating),
        ):
            if not 0 <= as_float(chance) <= 1:
                rule = f"{name} is a chance"
                raise InvalidArgument.of(name, chance, rule, "Use a number from 0 to 1")
        whole_number("workers", workers, 1, "how many pulls can be under way")
        times = {"seconds_per_pull": seconds_per_pull, "seconds_per_look": seconds_per_look}
        times |= {"slowdown": slowdown, "seconds_per_move": seconds_per_move or 0.0}
        for name, given in times.items():
            each: Any = given if name == "seconds_per_pull" and np.ndim(given) == 1 else [given]
            if not all(0 <= as_float(time) < math.inf for time in each):
                rule = f"{name} is a time in seconds"
                raise InvalidArgument.of(name, given, rule, "Use finite numbers of at least 0")
        if np.ndim(seconds_per_pull) and np.shape(seconds_per_pull) != (len(arms.configs),):
            rule = f"its shape is {np.shape(seconds_per_pull)}, for {len(arms.configs)} arms"
            way_out = "Use one time for all arms, or one for each"
            raise InvalidArgument.of("seconds_per_pull", seconds_per_pull, rule, way_out)
        if not as_float(lease) > 0:
            rule, way_out = "lease is a time in seconds", "Use a number greater than 0, or inf"
            raise InvalidArgument.of("lease", lease, rule, way_out)
        if states_in_memory is not None:
            whole_number("states_in_memory", states_in_memory, 1, "how many a worker can keep")
        self.now = 0.0
        self.has_own_groups = True  # since the real clock must not decide what is told when
        self._arms = arms
        self._states = arms.states()
        self._performer = Performer(arms.trainer, self._states)
        self.asides = Asides()
        self._idle = list(range(workers))  # a heap, so that the lowest number works first
        self._seconds_per_pull = np.broadcast_to(seconds_per_pull, len(arms.configs))
        self._seconds_per_look = seconds_per_look
        self._straggling, self._slowdown = straggling, slowdown
        self._failing, self._duplicating, self._lease = failing, duplicating, lease
        self._level: dict[int, int] = {}
        self._order = count()  # results of one moment come back in the order of their making
        # A heap, by time: when, which of them, the worker, what, and how far the arm is then.
        self._results: list[tuple[float, int, int | None, Told, int | None]] = []
        self._seconds_per_move = seconds_per_move
        if seconds_per_move is not None:
            states = math.inf if states_in_memory is None else states_in_memory
            self._memories = Memories(workers, states)
            self.turns: Turns[int] = Turns(
                home=self._memories.home.get,
                slots=lambda: dict.fromkeys(sorted(self._idle), 1),
                switch_seconds=seconds_per_move,
                restarts=arms.restarts,
            )

    @property
    def free(self) -> int:
        """How many workers are idle."""
        return len(self._idle)

    def start(self, pull: Pull, attempt: int) -> None:
        """Give the pull to an idle worker, and decide at once what will become of it."""
        task = self._arms.task(pull, attempt)
        worker, home = self._idle[0], None
        if self._seconds_per_move is not None:
            placed = self.turns.place(task)
            assert placed is not None
            worker, home = placed, self._memories.take(pull.arm)
        self._idle.remove(worker)
        heapq.heapify(self._idle)
        chance = np.random.default_rng([self._arms.seed, pull.arm, pull.upto, attempt]).random(5)
        # A checkpoint may be from before the search was resumed.
        level = max(self._level.get(pull.arm, 0), task.saved_level)
        steps = pull.upto - (level if task.can_use(level) else 0)
        training = steps * float(self._seconds_per_pull[pull.arm])
        if chance[0] < self._straggling:
            training *= self._slowdown
        work = Work(steps, training, self._seconds_per_look, f"worker {worker}", attempt)
        if self._seconds_per_move is not None and steps < pull.upto and home != worker:
            training += self._seconds_per_move
            work = work._replace(
                train_seconds=training, moves=1, move_seconds=self._seconds_per_move
            )
        seconds = training + self._seconds_per_look

        reached: int | None = None
        if chance[1] < self._failing:
            seconds *= float(chance[2])  # it dies part of the way through
            lost = work._replace(train_seconds=min(training, seconds), loss_seconds=0.0)
            result: Told = Failure(pull, "the simulated worker died", work=lost)
        else:
            result = self._performer.perform(task)._replace(work=work)
            self.asides.take(result, self._performer.aside)
            held = self._states.held(pull.arm)
            reached = pull.upto if isinstance(result, Loss) else held.level if held else 0
            if chance[3] < self._duplicating:
                self._deliver(seconds * (1 + 5 * float(chance[4])), None, result)
        if seconds > self._lease:
            given_up = Failure(pull, f"no result within {self._lease:g} s", work=work)
            self._deliver(self._lease, None, given_up)
        self._deliver(seconds, worker, result, reached)

    def _deliver(
        self, seconds: float, worker: int | None, result: Told, reached: int | None = None
    ) -> None:
        """Bring back a result in that many seconds; then the worker, if any, is idle.

        How far the arm is trained then is what it has `reached`, if that is known.
        """
        entry = self.now + seconds, next(self._order), worker, result, reached
        heapq.heappush(self._results, entry)

    def wait(self, seconds: float = 0.0) -> list[Told]:
        """Move the clock on to the next result, and bring back all of that moment."""
        results = []
        self.now = self._results[0][0]
        while self._results and self._results[0][0] == self.now:
            _, _, worker, result, reached = heapq.heappop(self._results)
            results.append(result)
            if worker is not None:
                heapq.heappush(self._idle, worker)
                if self._seconds_per_move is not None and isinstance(result, Loss):
                    self._memories.put(worker, result.pull.arm, result.value)
            if reached is not None:
                self._level[result.pull.arm] = reached
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, kept from its last pull or from a checkpoint."""
        state = self._states.get(pull)
        return self._arms.index.load(pull) if state is None and self._arms.index else state

    def close(self) -> None:
        """Nothing is left running."""
