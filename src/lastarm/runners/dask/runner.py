"""The Dask runner: pulls as tasks of a `distributed.Client`, states as futures on its workers.

A pull is one task, and its argument is the arm's state. It goes to the worker that has the state,
or to another, and then Dask moves the state. What a pull leaves behind is put into the cluster as
data, not as the result of a task. So Dask does not train a state again that was lost with its
worker: we do, and book it. What became of a pull comes as one of Dask's events, which is here
before a result could be asked for.
"""

from __future__ import annotations

import math
import pickle
import queue
import uuid
import warnings
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

from distributed import Client, Future

from lastarm.arguments import time_limit
from lastarm.errors import ClusterLost, InvalidArgument, LastarmError, WorkersNotStarted
from lastarm.events import Failure, Loss, Pull, Told
from lastarm.runners.asides import Asides
from lastarm.runners.dask import compat
from lastarm.runners.dask.cluster import ANSWER, Workers
from lastarm.runners.dask.worker import Errand, perform
from lastarm.runners.performer import Task, said
from lastarm.runners.protocol import Arms
from lastarm.runners.remote import Kit, Report, Script, amounts, sendable
from lastarm.runners.turns import Turns, failed

SHORT = 0.25  # seconds of a pull that does not wait for Dask's messages
GONE = (
    "the Dask scheduler is gone, if only for a moment: what was on its workers is lost. Resume "
    "the search with a client that is connected, or with another runner."
)


class Home(NamedTuple):
    """Where an arm's state is between two pulls: data of the cluster, on one of its workers."""

    state: Future
    level: int
    worker: str
    movable: bool  # whether it can be copied
    continues: bool  # whether a copy can be trained further
    on_disk: int  # the size of its checkpoint, 0 if there is none to train further from
    size: int  # about how many bytes it holds there
    loss: float  # inf, if it is not known

    @property
    def bound(self) -> bool:
        """Whether only its worker can go on with it."""
        return not (self.movable and self.continues)


class Homes:
    """The homes of arms, in `memory` bytes, as far as the states there can be had again.

    States that are on the disk, too, make room first, the oldest before others. Then come those
    whose copies do not continue. Their arms are trained again from zero, so the one that is
    furthest behind is the first, and of these the one with the highest loss, as in `States`.
    """

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._homes: dict[int, Home] = {}
        self._on_disk: dict[int, int] = {}  # arm → size, the one that came last is the last
        self._from_zero: dict[int, int] = {}  # arm → size, if it would have to begin there
        self._size = 0  # of all of these

    def of(self, arm: int, workers: Workers) -> Home | None:
        """The home of an arm, if its state is still there."""
        home = self._homes.get(arm)
        # A worker that was retired, and not lost, has given its states to others.
        if home and (
            home.state.status in ("cancelled", "lost")
            or home.worker in workers.given_up
            or (home.bound and home.worker not in workers.known)
        ):
            self.pop(arm)
            return None
        return home

    def put(self, arm: int, home: Home) -> None:
        """An arm's state is there now, and others make room for it."""
        self.pop(arm)
        self._homes[arm] = home
        if home.on_disk:
            self._on_disk[arm] = home.on_disk
        elif not home.continues:
            self._from_zero[arm] = home.size
        self._size += self._on_disk.get(arm, 0) + self._from_zero.get(arm, 0)
        while self._size > self._memory:
            if self._on_disk:
                self.pop(next(iter(self._on_disk)))
            else:
                self.pop(min(self._from_zero, key=self._behind))

    def pop(self, arm: int) -> Home | None:
        """Forget the home of an arm; Dask releases a state that no future refers to."""
        self._size -= self._on_disk.pop(arm, 0) + self._from_zero.pop(arm, 0)
        return self._homes.pop(arm, None)

    def _behind(self, arm: int) -> tuple[int, float, int]:
        home = self._homes[arm]
        return home.level, -home.loss, -arm


@dataclass
class Flight:
    """A pull under way."""

    task: Task
    done: Future
    state: str  # the key that its state will have
    worker: str
    level: int  # how far the arm had come
    home: Home | None  # where its state is, too, if it went to another worker
    in_hand: bool  # whether the worker has begun it, and no other before it
    since: float = math.inf  # when it began, by the monotonic clock, once that is known


class Dask:
    """Performs pulls on the workers of a Dask cluster.

    - `arms`: the arms of the search
    - `client`: a `distributed.Client` that is connected
    - `lease`: after how many seconds without a sign of life a worker is given up as lost. Dask
      itself gives up a frozen one after minutes
    - `pull_seconds`: how long a pull may take. One that takes longer is a failure of its arm, and
      its worker is restarted; workers that have no nanny to restart them are not used then
    - `resources`: what a pull takes of Dask's resources, such as {"GPU": 1}

    As many pulls are under way as the workers have threads, or as their resources allow. While
    pulls are short, each worker has one more waiting, because Dask takes some 15 ms to hand out a
    task; an asynchronous policy decides on that one a little earlier.

    If a worker dies or is given up, its pulls come back as failures whose worker was `lost`, and
    what it may still send is ignored. From the third attempt on a pull has a worker to itself, so
    that an arm is blamed only if it brings its worker down by itself.

    Where a search saves its states, workers save theirs if they see the same folder.
    """

    def __init__(
        self,
        arms: Arms,
        *,
        client: Client,
        lease: float = 60.0,
        pull_seconds: float | None = None,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        if not isinstance(client, Client) or client.asynchronous or client.status != "running":
            rule = "it is a distributed.Client that is connected, made without asynchronous=True"
            raise InvalidArgument.of("client", client, rule, "Use one such as Client(cluster)")
        self._limit = time_limit("pull_seconds", pull_seconds, "the most that a pull may take")
        self._arms, self._client = arms, client
        self.asides = Asides()
        self._connection = compat.connection(client)
        self._resources = amounts(resources)
        lease = time_limit("lease", lease, "how long a worker may give no sign of life")
        self._workers = Workers(client, lease, self._resources, nannies=self._limit < math.inf)
        self._short = False  # whether pulls are
        self._homes = Homes(arms.memory)
        self.turns: Turns[str] = Turns(
            home=self._worker_of,
            slots=self._slots,
            under_way=lambda: [(f.worker, f.task) for f in self._flights.values()],
            only_home=self._only_home,
            alone_on_worker=True,
            switch_seconds=arms.switch_seconds,
            restarts=arms.restarts,
        )
        self._flights: dict[str, Flight] = {}  # by the key of what is told
        self._unsent: deque[Told] = deque()  # failures of arms whose configs cannot be sent
        messages: queue.SimpleQueue[tuple[str, Report | None]] = queue.SimpleQueue()
        self._messages = messages
        self._kit = Kit.of(arms)
        client.subscribe_topic(
            self._kit.identity, lambda event: messages.put(pickle.loads(event[1]))
        )
        self._kits: dict[str, Future] = {}  # worker → the kit there
        self._folder_seen = self._kit.folder is not None
        self._demand: Future | None = None

    @property
    def free(self) -> int:
        """How many pulls the workers can take on now."""
        return self.turns.free

    def worker_of(self, pull: Pull, attempt: int) -> str:
        """The worker that the pull would be started on now, or "" if that is not known yet."""
        return self.turns.expected(self._arms.task(pull, attempt)) or ""

    def start(self, pull: Pull, attempt: int) -> None:
        """Submit the pull to the worker that `turns` names, now or when that has room."""
        task = sendable(self._arms.task(pull, attempt))
        if isinstance(task, Failure):
            self._unsent.append(task)
        else:
            self.turns.start(task)
            self._dispatch()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back."""
        if not self._connected:
            raise ClusterLost(GONE)
        self._dispatch()
        self._ask_for_a_worker()
        if self._unsent:
            return [self._unsent.popleft()]
        first = min((flight.since for flight in self._flights.values()), default=math.inf)
        late = max(0.0, first + self._limit - monotonic())
        results: list[Told] = []
        with suppress(queue.Empty):
            timeout = min(seconds, late, self._workers.until_survey)
            results += self._take(*self._messages.get(timeout=timeout))
        results += self._take_all() + self._give_up_the_late()
        if not self._workers.until_survey and self._connected:
            self._workers.survey()
            results += self._take_all()  # also of workers that are gone by now
            if self._connected:  # else all seem to be lost, and the next wait says why
                results += self._do_without_the_lost() + self._take_note_of_the_ended()
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, from its checkpoint or from the worker that has it."""
        saved = self._arms.index.load(pull) if self._arms.index else None
        home = self._homes.of(pull.arm, self._workers)
        if saved is None and home and home.level == pull.upto and home.movable:
            with suppress(Exception):  # then it is not available
                return home.state.result(timeout=30).take(Script({}))
        return saved

    def close(self) -> None:
        """Cancel what is under way; a worker finishes what it has begun, and that is ignored."""
        client, identity = self._client, self._kit.identity
        with suppress(Exception):  # the cluster may be gone, and then nothing is under way
            client.cancel([flight.done for flight in self._flights.values()], force=True)
            client.unsubscribe_topic(identity)
            compat.forget_topic(client, identity, seconds=10)
            if client.status == "running":
                given = {"identity": identity, "client": client.id}
                client.run_on_scheduler(compat.clear_away, **given, callback_timeout=ANSWER)
        self._flights.clear()
        self._homes = Homes(self._arms.memory)
        self._kits.clear()
        self._demand = None
        self._kit.put_away()

    @property
    def _connected(self) -> bool:
        """Whether it always was: a client that connects again has lost all that it had."""
        client = self._client
        return client.status == "running" and compat.connection(client) is self._connection

    def _slots(self) -> dict[str, int]:
        """How many pulls each worker can have at once."""
        known = self._workers.known.items()
        return {name: worker.slots + self._short for name, worker in known if worker.slots}

    def _dispatch(self) -> None:
        for task, worker in self.turns.begin():
            try:
                self._submit(task, worker)
            except Exception as error:
                if not self._connected:
                    raise ClusterLost(GONE) from error
                raise

    def _worker_of(self, arm: int) -> str | None:
        home = self._homes.of(arm, self._workers)
        return home.worker if home else None

    def _only_home(self, task: Task) -> bool:
        home = self._homes.of(task.pull.arm, self._workers)
        return home is not None and home.bound and not home.on_disk

    def _submit(self, task: Task, worker: str) -> None:
        home = self._homes.pop(task.pull.arm)
        if home and not (task.can_use(home.level) and (not home.bound or home.worker == worker)):
            home = None
        known = self._workers.known[worker]
        if worker not in self._kits:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")  # a trainer has its data
                self._kits[worker] = self._client.submit(
                    pickle.loads, pickle.dumps(self._kit), workers=[known.address], pure=False
                )
        unique = f"{self._kit.identity}-{uuid.uuid4().hex}"
        key, state = f"{unique}-pull", f"{unique}-state"
        done = self._client.submit(
            perform,
            self._kits[worker],
            pickle.dumps(task),
            home and home.state,
            home and (home.level, home.movable),
            Errand(key, state, self._client.id, timed=self._limit < math.inf),
            key=key,
            workers=[known.address],
            resources=self._resources or None,
            pure=False,
            retries=0,
        )
        level = max(task.saved_level, home.level if home else 0)
        busy = sum(flight.worker == worker for flight in self._flights.values())
        in_hand = busy < known.slots
        elsewhere = home if home and home.worker != worker else None
        self._flights[key] = Flight(task, done, state, worker, level, elsewhere, in_hand)

    def _take_all(self) -> list[Told]:
        results: list[Told] = []
        while not self._messages.empty():
            results += self._take(*self._messages.get())
        return results

    def _take(self, key: str, report: Report | None) -> list[Told]:
        flight = self._flights.get(key)
        if flight is None:
            return []  # it came back, or was given up, before
        if report is None:  # it has begun
            flight.since = monotonic()
            return []
        self._leave(key)
        told, level = report.told, report.level
        self.asides.take(told, report.aside)
        if flight.home:  # Dask does not say how long it took to move the state
            told = told._replace(work=told.work._replace(moves=1))
        arm = flight.task.pull.arm
        if level:
            state = compat.left_value(self._client, flight.state)
            saved = told.saved if isinstance(told, Loss) else None
            loss = told.value if isinstance(told, Loss) else math.inf
            home = Home(
                state,
                level,
                flight.worker,
                report.movable,
                report.continues,
                on_disk=saved.size if saved and saved.continues else 0,
                size=report.size,
                loss=loss if math.isfinite(loss) else math.inf,
            )
            self._homes.put(arm, home)
        self._short = told.work.train_seconds + told.work.loss_seconds < SHORT
        if self._folder_seen and report.movable and isinstance(told, Loss) and not told.saved:
            self._folder_seen = False
            self._kit.warn_of_unseen_folder()
        return [told]

    def _leave(self, key: str) -> None:
        """A pull is not with its worker any more, and the one that waited longest there begins."""
        worker = self._flights.pop(key).worker
        for behind in self._flights.values():
            if behind.worker == worker and not behind.in_hand:
                behind.in_hand = True
                break

    def _ask_for_a_worker(self) -> None:
        """Where there is none: a cluster that adapts starts one when something is to be done."""
        if any(worker.slots for worker in self._workers.known.values()):
            self._demand = None
        elif self._demand is None:
            self._demand = self._client.submit(int, pure=False, resources=self._resources or None)

    def _give_up_the_late(self) -> list[Told]:
        late = [f for f in self._flights.values() if monotonic() >= f.since + self._limit]
        for flight in late:
            self._forget(flight)
            self._workers.give_up(flight.worker)
        why = f"no result within {self._limit:g} s, so its worker was restarted"
        return [_failed(flight, why) for flight in late]

    def _do_without_the_lost(self) -> list[Told]:
        """Forget what was on workers that are gone; their pulls begin again somewhere else."""
        workers = self._workers.known
        self._kits = {worker: kit for worker, kit in self._kits.items() if worker in workers}
        lost = [flight for flight in self._flights.values() if flight.worker not in workers]
        for flight in lost:
            self._forget(flight)
            if flight.home and flight.worker not in self._workers.given_up:
                self._homes.put(flight.task.pull.arm, flight.home)
        return [_failed(flight, "its worker died or froze", lost=True) for flight in lost]

    def _take_note_of_the_ended(self) -> list[Told]:
        """Pulls that ended without a report: a report is here before the end of its task."""
        ended = [key for key, flight in self._flights.items() if flight.done.status != "pending"]
        results = self._take_all()
        if not self._connected:
            return results  # they ended because of that, and the next wait says so
        for key in ended:
            if flight := self._flights.get(key):
                why = f"its worker or its state was lost ({_cause(flight.done)})"
                self._leave(key)
                results.append(_failed(flight, why, lost=True))
        return results

    def _forget(self, flight: Flight) -> None:
        self._leave(flight.done.key)
        with suppress(Exception):
            flight.done.cancel(force=True, reason="given up by lastarm")


def _failed(flight: Flight, why: str, *, lost: bool = False) -> Failure:
    level = flight.level if flight.in_hand else flight.task.pull.upto
    return failed(flight.task, flight.worker, why, level=level, lost=lost)


def _cause(done: Future) -> str:
    """Why a task gave no report; raised, if no arm is the cause."""
    error = None
    if done.status == "error":
        with suppress(TimeoutError):
            error = done.exception(timeout=5)
    if isinstance(error, LastarmError):
        raise error
    if isinstance(error, ImportError):
        raise WorkersNotStarted(
            "a worker could not load what it was sent. Install lastarm, and what the trainer "
            "needs, where the workers are",
            said(error),
        ) from error
    return said(error) if error else str(done.status)
