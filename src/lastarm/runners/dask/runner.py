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
from typing import Any

from distributed import Client, Future

from lastarm.arguments import time_limit
from lastarm.errors import InvalidArgument, LastarmError, Stuck
from lastarm.events import Failure, Loss, Pull, Told, Work
from lastarm.runners.dask.cluster import ANSWER, Seats
from lastarm.runners.dask.homes import Home, Homes
from lastarm.runners.dask.worker import Begun, Errand, Left, clear_away, perform
from lastarm.runners.performer import Task, said
from lastarm.runners.protocol import ATTEMPTS_OF_LOST, Arms
from lastarm.runners.remote import Kit, amounts, order
from lastarm.runners.turns import Waiting

SHORT = 0.25  # seconds of a pull that is not worth waiting for Dask's messages
GONE = (
    "the Dask scheduler is gone, if only for a moment: what was on its workers is lost. Go on "
    "with a client that is connected, or without one."
)


@dataclass
class Flight:
    """A pull under way."""

    task: Task
    done: Future
    state: str  # the key that its state will have
    worker: str
    level: int  # how far the arm had come
    home: Home | None  # where its state is, too, if it went to another worker
    in_hand: bool  # whether the worker has none before it
    since: float = math.inf  # when it began, by the monotonic clock, once that was told


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
    takes longer than `pull_seconds` is restarted, and that is the arm's failure; workers that have
    no nanny to restart them are not used then.

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
        self._connection = client.scheduler_comm  # another one after every reconnect
        self._resources = amounts(resources)
        lease = time_limit("lease", lease, "how long a worker may give no sign of life")
        self._seats = Seats(client, lease, self._resources, nannies=self._limit < math.inf)
        self._short = False  # whether pulls are
        self._homes = Homes(arms.memory)
        self.waiting = Waiting(
            home=self._worker_of,
            idle=self._room,
            switch_seconds=arms.switch_seconds,
        )
        self._flights: dict[str, Flight] = {}  # by the key of what is told
        self._waiting: deque[Task] = deque()  # for their worker, or a suspect's for one alone
        self._not_sent: deque[Told] = deque()
        messages: queue.SimpleQueue[tuple[str, Left | Begun]] = queue.SimpleQueue()
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
        # What waits for its worker holds up nobody; a suspect waits until others are done.
        return 0 if any(map(_suspected, self._waiting)) else sum(self._room().values())

    def start(self, pull: Pull, attempt: int) -> None:
        """Submit the pull to the worker that has the arm's state, if it has room, or another."""
        self._waiting.append(self._arms.task(pull, attempt))
        self._submit_the_waiting()

    def wait(self, seconds: float) -> list[Told]:
        """What has come back."""
        if not self._connected:
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
        results += self._take_all() + self._give_up_the_late()
        if not self._seats.until_survey and self._connected:
            self._seats.survey()
            results += self._take_all()  # also of workers that are gone by now
            if self._connected:  # else all seem to be lost, and the next wait says why
                results += self._do_without_the_lost() + self._take_note_of_the_ended()
        return results

    def state(self, pull: Pull) -> Any:
        """The arm's state, from its checkpoint or from the worker that has it."""
        saved = self._arms.index.load(pull) if self._arms.index else None
        home = self._homes.of(pull.arm, self._seats)
        if saved is None and home and home.level == pull.upto and home.movable:
            with suppress(Exception):  # then it is not at hand
                return home.state.result(timeout=30).state
        return saved

    def close(self) -> None:
        """Cancel what is under way; what a worker has begun it brings to its end for nobody."""
        client, identity = self._client, self._kit.identity
        with suppress(Exception):  # the cluster may be gone, and then nothing is under way
            client.cancel([flight.done for flight in self._flights.values()], force=True)
            client.unsubscribe_topic(identity)
            # Dask forgets no handler by itself, and complains of messages that have none.
            forget = client._event_handlers.pop
            client.loop.add_callback(client.loop.call_later, 10, forget, identity, None)
            if client.status == "running":
                run, given = client._run_on_scheduler, {"identity": identity, "client": client.id}
                client.sync(run, clear_away, **given, callback_timeout=ANSWER)
        self._flights.clear()
        self._homes.clear()
        self._kits.clear()
        self._demand = None
        self._kit.put_away()

    @property
    def _connected(self) -> bool:
        """Whether it always was: a client that connects again has lost all that it had."""
        client = self._client
        return client.status == "running" and client.scheduler_comm is self._connection

    def _room(self) -> dict[str, int]:
        """How many pulls each worker can take on; those that can take none are not there."""
        load = Counter(flight.worker for flight in self._flights.values())
        alone = {f.worker for f in self._flights.values() if _suspected(f.task)}
        room = {
            worker: seat.slots + self._short - load[worker]
            for worker, seat in self._seats.known().items()
            if seat.slots and worker not in alone
        }
        return {worker: places for worker, places in room.items() if places > 0}

    def _submit_the_waiting(self) -> None:
        for _ in range(len(self._waiting)):
            task = self._waiting.popleft()
            worker = self._worker_for(task)
            if worker is None:
                self._waiting.append(task)
                continue
            try:
                self._submit(task, worker)
            except Exception as error:
                if not self._connected:
                    raise Stuck(GONE) from error
                raise

    def _worker_for(self, task: Task) -> str | None:
        """The one that has the arm's state, if that has room, or has to; else the freest."""
        room, home = self._room(), self._homes.of(task.pull.arm, self._seats)
        if _suspected(task):
            room = {worker: places for worker, places in room.items() if not self._busy(worker)}
        if home and (home.worker in room or home.pinned):
            return home.worker if home.worker in room else None
        return max(room, key=lambda worker: room[worker], default=None)

    def _worker_of(self, arm: int) -> str | None:
        home = self._homes.of(arm, self._seats)
        return home.worker if home else None

    def _busy(self, worker: str) -> int:
        return sum(flight.worker == worker for flight in self._flights.values())

    def _submit(self, task: Task, worker: str) -> None:
        sent = order(task)
        if isinstance(sent, Failure):
            self._not_sent.append(sent)
            return
        home = self._homes.pop(task.pull.arm)
        if home and not (home.level <= task.pull.upto and (home.movable or home.worker == worker)):
            home = None
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
            perform,
            self._kits[worker],
            pickle.dumps(sent),
            home and home.state,
            home and (home.level, home.movable),
            Errand(key, state, self._client.id, timed=self._limit < math.inf),
            key=key,
            workers=[seat.address],
            resources=self._resources or None,
            pure=False,
            retries=0,
        )
        level = max(task.known[0] if task.known else 0, home.level if home else 0)
        in_hand = self._busy(worker) < seat.slots
        elsewhere = home if home and home.worker != worker else None
        self._flights[key] = Flight(task, done, state, worker, level, elsewhere, in_hand)

    def _take_all(self) -> list[Told]:
        results: list[Told] = []
        while not self._messages.empty():
            results += self._take(*self._messages.get())
        return results

    def _take(self, key: str, left: Left | Begun) -> list[Told]:
        flight = self._flights.get(key)
        if flight is None:
            return []  # it was told, or given up, before
        if isinstance(left, Begun):
            flight.since = monotonic()
            return []
        self._leave(key)
        told, level, movable = left
        if flight.home:  # how long it takes Dask to move a state, it does not say
            told = told._replace(work=told.work._replace(moves=1))
        arm = flight.task.pull.arm
        if level:
            state = Future(flight.state, self._client)
            # It is there already, and Dask says so only to those who had asked before.
            self._client.loop.add_callback(state._state.finish)
            saved = told.saved.size if isinstance(told, Loss) and told.saved else 0
            self._homes.put(arm, Home(state, level, flight.worker, movable, saved))
        self._short = told.work.train_seconds + told.work.loss_seconds < SHORT
        if self._folder_seen and movable and isinstance(told, Loss) and not told.saved:
            self._folder_seen = False
            self._kit.warn_of_unseen_folder()
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
        if any(seat.slots for seat in self._seats.known().values()):
            self._demand = None
        elif self._demand is None:
            self._demand = self._client.submit(int, pure=False, resources=self._resources or None)

    def _give_up_the_late(self) -> list[Told]:
        late = [f for f in self._flights.values() if monotonic() >= f.since + self._limit]
        for flight in late:
            self._forget(flight)
            self._seats.give_up(flight.worker)
        why = f"no result within {self._limit:g} s, so its worker was restarted"
        return [_failure(flight, why) for flight in late]

    def _do_without_the_lost(self) -> list[Told]:
        """Forget what was on workers that are gone; their pulls begin anew, somewhere else."""
        workers = self._seats.known()
        self._kits = {worker: kit for worker, kit in self._kits.items() if worker in workers}
        lost = [flight for flight in self._flights.values() if flight.worker not in workers]
        for flight in lost:
            self._forget(flight)
            if flight.home and not self._seats.was_given_up(flight.worker):
                self._homes.put(flight.task.pull.arm, flight.home)
        return [told for flight in lost for told in self._lost(flight, "its worker died or froze")]

    def _take_note_of_the_ended(self) -> list[Told]:
        """Pulls that ended otherwise than by telling: what is told is here before the end."""
        ended = [key for key, flight in self._flights.items() if flight.done.status != "pending"]
        results = self._take_all()
        if not self._connected:
            return results  # they ended because of that, and the next wait says so
        for key in ended:
            if flight := self._flights.get(key):
                why = f"its worker or its state was lost ({_cause(flight.done)})"
                self._leave(key)
                results += self._lost(flight, why)
        return results

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
