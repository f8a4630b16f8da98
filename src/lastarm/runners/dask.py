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

from lastarm.errors import InvalidArgument, LastarmError, Stuck, time_limit
from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.runners.dask_seats import Seats
from lastarm.runners.orders import Boxed, Carried, Kit, amounts, carried_on, order, unpacked
from lastarm.runners.performer import Task, said
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
    in_hand: bool  # whether the worker has none before it
    since: float = math.inf  # when it began, by the monotonic clock, once that was told


class Left(NamedTuple):
    """What a pull sends back: what became of it, and what state is left on the worker."""

    told: Told
    level: int = 0  # 0: none
    movable: bool = True


class Begun:
    """What a pull sends first: the trainer is loaded, the state is here, and now it trains."""


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
        if not isinstance(client, Client) or client.asynchronous or client.status != "running":
            raise InvalidArgument(
                f"{client!r} will not do: give a distributed.Client that is connected, made "
                "without asynchronous=True, such as Client(cluster)."
            )
        self._limit = time_limit("pull_seconds", pull_seconds, "the most that a pull may take")
        self._arms, self._client = arms, client
        self._resources = amounts(resources)
        lease = time_limit("lease", lease, "how long a worker may give no sign of life")
        self._seats = Seats(client, lease, self._resources)
        self._short = False  # whether pulls are
        self._home: dict[int, Home] = {}
        self._flights: dict[str, Flight] = {}  # by the key of what is told
        self._waiting: deque[Task] = deque()  # for a worker; those of suspects for one alone
        self._not_sent: deque[Told] = deque()
        self._messages: queue.SimpleQueue[tuple[str, Left | Begun | None]] = queue.SimpleQueue()
        self._kit = Kit.of(arms)
        client.subscribe_topic(
            self._kit.identity, lambda event: self._messages.put(pickle.loads(event[1]))
        )
        self._kits: dict[str, Future] = {}  # worker → the kit there
        self._seen_folder = True
        self._demand: Future | None = None

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
        self._ask_for_a_worker()
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
            self._client.run_on_scheduler(
                _clear_away, identity=self._kit.identity, client=self._client.id
            )
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
            if home and not home.movable and home.worker not in self._seats.known():
                del self._home[task.pull.arm]
                home = None
            if _suspected(task):
                fit = {home.worker} if home and not home.movable else room
                room = {w: n for w, n in room.items() if w in fit and not self._busy(w)}
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
        seat = self._seats.known()[worker]
        if worker not in self._kits:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")  # a trainer has its data
                self._kits[worker] = self._client.submit(
                    pickle.loads, pickle.dumps(self._kit), workers=[seat.address], pure=False
                )
        unique = f"{self._kit.identity}-{uuid.uuid4().hex}"
        key, state = f"{unique}-pull", f"{unique}-state"
        done = self._client.submit(
            _perform,
            self._kits[worker],
            pickle.dumps(sent),
            home and home.state,
            home and (home.level, home.movable),
            (key, state, self._client.id),
            key=key,
            workers=[seat.address],
            resources=self._resources or None,
            pure=False,
            retries=0,
        )
        level = max(task.known[0] if task.known else 0, home.level if home else 0)
        in_hand = self._busy(worker) < seat.slots
        self._flights[key] = Flight(task, done, state, worker, level, in_hand)
        done.add_done_callback(lambda future: self._messages.put((key, None)))

    def _take(self, key: str, left: Left | Begun | None) -> list[Told]:
        flight = self._flights.get(key)
        if flight is None:
            return []  # it was told, or given up, before
        if isinstance(left, Begun):
            flight.since = monotonic()
            return []
        self._leave(key)
        if left is None:  # it ended otherwise than by telling
            return self._lost(flight, f"its worker or its state was lost ({_cause(flight.done)})")
        told, level, movable = left
        arm = flight.task.pull.arm
        if level:
            state = Future(flight.state, self._client)
            # It is there already, and Dask says so only to those who had asked before.
            self._client.loop.add_callback(self._client.futures[flight.state].finish)
            self._home[arm] = Home(state, level, flight.worker, movable)
        self._short = told.work.train_seconds + told.work.loss_seconds < SHORT
        if isinstance(told, Loss) and not told.saved and movable:
            self._warn_of_unseen_folder()
        return [told]

    def _leave(self, key: str) -> None:
        """A pull is off its worker's hands, and what waited there longest is in them."""
        worker = self._flights.pop(key).worker
        for behind in self._flights.values():
            if behind.worker == worker and not behind.in_hand:
                behind.in_hand = True
                break

    def _ask_for_a_worker(self) -> None:
        """Where there is none: a cluster that adapts has one only when something is to be done."""
        if any(self._seats.slots().values()):
            self._demand = None
        elif self._demand is None:
            self._demand = self._client.submit(int, pure=False, resources=self._resources or None)

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
        self._leave(flight.done.key)
        with suppress(Exception):
            flight.done.cancel(force=True, reason="given up by lastarm")

    def _lost(self, flight: Flight, why: str) -> list[Told]:
        alone = ", with no other pull on it" if _suspected(flight.task) else ""
        return [_failure(flight, why + alone, lost=True)]


def _suspected(task: Task) -> bool:
    return task.attempt >= ATTEMPTS_OF_LOST


def _failure(flight: Flight, why: str, *, lost: bool = False) -> Failure:
    # How much of it was done nobody knows: at most this.
    trained = flight.task.pull.upto - flight.level if flight.in_hand else 0
    work = Work(trained, worker=flight.worker, attempt=flight.task.attempt)
    return Failure(flight.task.pull, why, work=work, lost=lost)


def _cause(done: Future) -> str:
    """Why a task did not tell; what no arm is to blame for is raised."""
    error = None
    if done.status == "error":
        with suppress(TimeoutError):
            error = done.exception(timeout=5)
    if isinstance(error, LastarmError):
        raise error
    if isinstance(error, ImportError):
        raise Stuck(
            f"a worker could not load what it was sent: {said(error)}. Install lastarm, and what "
            "the trainer needs, where the workers are."
        ) from error
    return said(error) if error else str(done.status)


def _perform(
    kit: Kit,
    sent: bytes,
    boxed: Boxed | None,
    carried: tuple[int, bool] | None,
    names: tuple[str, str, str],
) -> None:
    """On a worker: train and look, leave the state here for the client, and tell it."""
    worker = get_worker()
    before = Carried(carried[0], boxed.state, carried[1]) if boxed and carried else None
    key, left_as, client = names
    unpacked(kit)
    worker.log_event(kit.identity, pickle.dumps((key, Begun())))
    told, after = carried_on(kit, pickle.loads(sent), before, worker.id)
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
    worker.log_event(kit.identity, pickle.dumps((key, left)))


def _clear_away(dask_scheduler: Any, identity: str, client: str) -> None:
    """On the scheduler: what pulls have told, and states that were left when nobody waited."""

    def release() -> None:
        if known := dask_scheduler.clients.get(client):
            keys = [task.key for task in known.wants_what if str(task.key).startswith(identity)]
            dask_scheduler.client_releases_keys(keys=keys, client=client)

    release()
    dask_scheduler._broker.truncate(identity)
    for seconds in (1, 10):  # a worker may have been about to leave one
        dask_scheduler.loop.call_later(seconds, release)
