"""The Dask runner: pulls as tasks of a `distributed.Client`, states as futures on its workers.

A pull is one task, and its argument is the arm's state where it lies: it goes to the worker that
has it, and where that one is busy Dask moves the state. What a pull leaves behind is put into the
cluster as data, not as the result of a task. So a state that is lost with its worker is lost: Dask
does not train it again behind our back, and what is trained again is booked. What became of a pull
comes as an event of Dask's, which is here before a result could be asked for.
"""

from __future__ import annotations

import math
import pickle
import queue
import uuid
import warnings
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

from lastarm.errors import CheckpointNotWritten, InvalidArgument, Stuck, time_limit
from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.runners.dask_seats import Seats
from lastarm.runners.orders import Boxed, Carried, Kit, carried_on, order
from lastarm.runners.performer import Task
from lastarm.runners.protocol import ATTEMPTS_OF_LOST, Arms

try:
    from dask.sizeof import sizeof
    from distributed import Client, Future, get_worker
    from distributed.utils import sync
except ImportError as error:
    raise ImportError(
        "Dask is needed to run on its workers. Install it with pip install 'lastarm[dask]'."
    ) from error

SHORT = 0.25  # seconds of a pull that is not worth waiting for Dask's messages
GONE = "the Dask scheduler is gone. Resume with another client, or without one."


class Home(NamedTuple):
    """Where an arm's state is."""

    state: Future
    level: int
    worker: str
    movable: bool


@dataclass
class Flight:
    """A pull under way."""

    task: Task
    done: Future
    state: str  # the key that its state will have
    worker: str
    level: int  # how far the arm had come
    since: float  # when it began, by the monotonic clock; inf while it waits for another


class Left(NamedTuple):
    """What a pull sends back: what became of it, and what state is left on the worker."""

    told: Told
    level: int = 0  # 0: none
    movable: bool = True


class Dask:
    """Performs pulls on the workers of a Dask cluster.

    As many pulls are under way as the workers have threads, or as often as they have what a pull
    takes of Dask's `resources`, such as {"GPU": 1}. While pulls are short, each worker has one
    more waiting, since Dask takes some 15 ms to hand out a task; an asynchronous policy decides on
    that one a little earlier.

    A worker that died, or that gave no sign of life for `lease` seconds, is done without; Dask
    alone gives up a frozen one after minutes. Its pulls come back as failures whose worker was
    `lost`, and what it may still bring is ignored. From the third attempt on, such an arm has a
    worker to itself, so that only one that brings it down by itself is blamed. A worker whose pull
    takes longer than `pull_seconds` is restarted, and that is the arm's failure.

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
        if client.asynchronous:
            raise InvalidArgument(
                "an asynchronous Dask client will not do: give one made without asynchronous=True."
            )
        self._limit = time_limit("pull_seconds", pull_seconds, "the most that a pull may take")
        self._arms, self._client = arms, client
        self._resources = dict(resources or {})
        lease = time_limit("lease", lease, "how long a worker may give no sign of life")
        self._seats = Seats(client, lease, self._resources)
        self._short = False  # whether pulls are
        self._home: dict[int, Home] = {}
        self._flights: dict[str, Flight] = {}  # by the key of what is told
        self._waiting: deque[Task] = deque()  # for a worker; those of suspects for one alone
        self._not_sent: deque[Told] = deque()
        self._messages: queue.SimpleQueue[tuple[str, Left | None]] = queue.SimpleQueue()
        self._kit = Kit.of(arms)
        client.subscribe_topic(
            self._kit.identity, lambda event: self._messages.put(pickle.loads(event[1]))
        )
        self._kits: dict[str, Future] = {}  # worker → the kit there
        self._seen_folder = True

    @property
    def free(self) -> int:
        """How many pulls the workers can take on now."""
        return 0 if self._waiting else sum(self._room().values())

    def start(self, pull: Pull, attempt: int) -> None:
        """Submit the pull to the worker that has the arm's state, if it has room, or another."""
        self._waiting.append(self._arms.task(pull, attempt))
        self._submit_the_waiting()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back."""
        if self._client.status != "running":
            raise Stuck(GONE)
        self._submit_the_waiting()
        if self._not_sent:
            return [self._not_sent.popleft()]
        first = min((flight.since for flight in self._flights.values()), default=math.inf)
        late = max(0.0, first + self._limit - monotonic())
        results: list[Told] = []
        with suppress(queue.Empty):
            timeout = min(seconds, late, self._seats.until_survey)
            results += self._take(*self._messages.get(timeout=timeout))
            while True:
                results += self._take(*self._messages.get_nowait())
        return results + self._give_up_the_late() + self._do_without_the_lost()

    def state(self, pull: Pull) -> Any:
        """The arm's state, from its checkpoint or from the worker that has it."""
        saved = self._arms.index.load(pull) if self._arms.index else None
        home = self._home.get(pull.arm)
        if saved is None and home and home.level == pull.upto and home.movable:
            with suppress(Exception):  # then it is not at hand
                return home.state.result(timeout=30).state
        return saved

    def close(self) -> None:
        """Cancel what is under way; what a worker has begun it brings to its end for nobody."""
        with suppress(Exception):  # the cluster may be gone, and then nothing is under way
            self._client.cancel([flight.done for flight in self._flights.values()], force=True)
            self._client.unsubscribe_topic(self._kit.identity)
            self._client.run_on_scheduler(_forget_events, topic=self._kit.identity)
        self._flights.clear()
        self._home.clear()
        self._kits.clear()
        self._kit.put_away()

    def _room(self) -> dict[str, int]:
        """How many pulls each worker can take on; those that can take none are not there."""
        load = Counter(flight.worker for flight in self._flights.values())
        alone = {f.worker for f in self._flights.values() if _suspected(f.task)}
        room = {
            worker: slots + self._short - load[worker]
            for worker, slots in self._seats.slots().items()
            if slots and worker not in alone
        }
        return {worker: places for worker, places in room.items() if places > 0}

    def _submit_the_waiting(self) -> None:
        while self._waiting:
            task, room = self._waiting[0], self._room()
            home = self._home.get(task.pull.arm)
            if _suspected(task):
                room = {worker: n for worker, n in room.items() if not self._busy(worker)}
            elif home and (home.worker in room or not home.movable):
                room = {home.worker: 1}
            if not room:
                return
            try:
                self._submit(self._waiting.popleft(), max(room, key=lambda worker: room[worker]))
            except Exception as error:
                if self._client.status != "running":
                    raise Stuck(GONE) from error
                raise

    def _busy(self, worker: str) -> int:
        return sum(flight.worker == worker for flight in self._flights.values())

    def _submit(self, task: Task, worker: str) -> None:
        sent = order(task)
        if isinstance(sent, Failure):
            self._not_sent.append(sent)
            return
        home = self._home.pop(task.pull.arm, None)
        home = home if home and home.level <= task.pull.upto else None
        address, slots = self._seats.address(worker), self._seats.slots()[worker]
        if worker not in self._kits:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")  # a trainer has its data
                self._kits[worker] = self._client.submit(
                    pickle.loads, pickle.dumps(self._kit), workers=[address], pure=False
                )
        key, state = f"lastarm-pull-{uuid.uuid4().hex}", f"lastarm-state-{uuid.uuid4().hex}"
        done = self._client.submit(
            _perform,
            self._kit.identity,
            self._kits[worker],
            pickle.dumps(sent),
            home and home.state,
            home and (home.level, home.movable),
            (key, state, self._client.id),
            key=key,
            workers=[address],
            resources=self._resources or None,
            pure=False,
            retries=0,
        )
        level = max(task.known[0] if task.known else 0, home.level if home else 0)
        since = monotonic() if self._busy(worker) < slots else math.inf
        self._flights[key] = Flight(task, done, state, worker, level, since)
        done.add_done_callback(lambda future: self._messages.put((key, None)))

    def _take(self, key: str, left: Left | None) -> list[Told]:
        flight = self._flights.pop(key, None)
        if flight is None:
            return []  # it was told, or given up, before
        if left is None:  # it ended otherwise than by telling
            error = flight.done.exception(timeout=1) if flight.done.status == "error" else None
            if isinstance(error, CheckpointNotWritten):
                raise error
            return self._lost(flight, f"its worker or its state was lost ({flight.done.status})")
        told, level, movable = left
        arm = flight.task.pull.arm
        if level:
            state = Future(flight.state, self._client)
            # It is there already, and Dask says so only to those who had asked before.
            self._client.loop.add_callback(self._client.futures[flight.state].finish)
            self._home[arm] = Home(state, level, flight.worker, movable)
        self._short = told.work.train_seconds + told.work.loss_seconds < SHORT
        for behind in self._flights.values():
            if behind.worker == flight.worker and behind.since == math.inf:
                behind.since = monotonic()
                break
        if isinstance(told, Loss) and not told.saved and movable:
            self._warn_of_unseen_folder()
        return [told]

    def _warn_of_unseen_folder(self) -> None:
        if self._kit.folder and self._seen_folder:
            self._seen_folder = False
            warnings.warn(
                f"the workers do not see {self._kit.folder}: states stay in their memory, and "
                "what is lost there is trained again. Put the journal, or `checkpoints`, into a "
                "folder that all workers see.",
                stacklevel=2,
            )

    def _give_up_the_late(self) -> list[Told]:
        late = [f for f in self._flights.values() if monotonic() >= f.since + self._limit]
        for flight in late:
            self._forget(flight)
            self._seats.give_up(flight.worker)
        why = f"no result within {self._limit:g} s, so its worker was restarted"
        return [_failure(flight, why) for flight in late]

    def _do_without_the_lost(self) -> list[Told]:
        """Forget what was on workers that are gone; their pulls begin anew, somewhere else."""
        workers = self._seats.slots()
        self._kits = {worker: kit for worker, kit in self._kits.items() if worker in workers}
        # A worker that was retired in good order has given its states to others.
        self._home = {
            arm: home
            for arm, home in self._home.items()
            if home.state.status not in ("cancelled", "lost")
            and not self._seats.was_given_up(home.worker)
        }
        lost = [flight for flight in self._flights.values() if flight.worker not in workers]
        for flight in lost:
            self._forget(flight)
        return [told for flight in lost for told in self._lost(flight, "its worker died or froze")]

    def _forget(self, flight: Flight) -> None:
        del self._flights[flight.done.key]
        with suppress(Exception):
            flight.done.cancel(force=True, reason="given up by lastarm")

    def _lost(self, flight: Flight, why: str) -> list[Told]:
        if flight.since == math.inf:  # it waited behind another, and is to be blamed for nothing
            self._waiting.append(flight.task)
            return []
        alone = ", with no other pull on it" if _suspected(flight.task) else ""
        return [_failure(flight, why + alone, lost=True)]


def _suspected(task: Task) -> bool:
    return task.attempt >= ATTEMPTS_OF_LOST


def _failure(flight: Flight, why: str, *, lost: bool = False) -> Failure:
    # How much of it was done nobody knows: at most this.
    trained = flight.task.pull.upto - flight.level
    work = Work(trained, worker=flight.worker, attempt=flight.task.attempt)
    return Failure(flight.task.pull, why, work=work, lost=lost)


def _perform(
    identity: str,
    kit: Kit,
    sent: bytes,
    boxed: Boxed | None,
    carried: tuple[int, bool] | None,
    names: tuple[str, str, str],
) -> None:
    """On a worker: train and look, leave the state here for the client, and tell it."""
    worker = get_worker()
    before = Carried(carried[0], boxed.state, carried[1]) if boxed and carried else None
    told, after = carried_on(identity, lambda: kit, pickle.loads(sent), before, worker.id)
    key, left_as, client = names
    task = worker.state.tasks.get(key)
    if task is None or task.state != "executing":
        return  # given up: nobody wants it

    async def leave(state: Boxed) -> None:
        worker.update_data({left_as: state})
        await worker.scheduler.update_data(
            who_has={left_as: [worker.address]}, nbytes={left_as: sizeof(state)}, client=client
        )

    left = Left(told)
    if after is not None:
        sync(worker.loop, leave, Boxed(after.state, sizeof(after.state)))
        left = Left(told, after.level, after.movable)
    worker.log_event(identity, pickle.dumps((key, left)))


def _forget_events(dask_scheduler: Any, topic: str) -> None:
    dask_scheduler._broker.truncate(topic)
