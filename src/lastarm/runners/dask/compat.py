"""What the Dask runner uses of Dask that is not public, or public by name only.

No other file uses a name from `PRIVATE`. docs/decisions.md says why these are needed (2026-11-18).
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, cast

from dask.sizeof import sizeof
from distributed import Client, Future
from distributed.utils import sync

PRIVATE = (
    "_broker",
    "_event_handlers",
    "client_releases_keys",
    "futures",
    "scheduler_comm",
    "update_data",
    "wants_what",
)


def connection(client: Client) -> Any:
    """The client's connection to the scheduler; another one after every reconnect.

    Without this name, a connection that was lost for a moment goes unnoticed until pulls that were
    under way then fail as lost.
    """
    return getattr(client, "scheduler_comm", None)


def is_wanted(worker: Any, key: str) -> bool:
    """On a worker: whether a task that runs here has not been given up."""
    task = worker.state.tasks.get(key)
    # One whose trainer uses Dask is long-running.
    return task is not None and task.state in ("executing", "long-running")


def leave(worker: Any, key: str, value: Any, client: str) -> None:
    """On a worker: leave a value here, as data of the cluster that this client wants.

    A task could only return it, and then Dask would compute a value that was lost once more.
    Without these names a pull fails as lost, and in the end the search says so.
    """

    async def update() -> None:
        worker.update_data({key: value})
        await worker.scheduler.update_data(
            who_has={key: [worker.address]}, nbytes={key: sizeof(value)}, client=client
        )

    sync(worker.loop, update)


def left_value(client: Client, key: str) -> Future:
    """The future of a value that a worker has left.

    The value is there already, and Dask says so only to those who had asked before. Without this
    name, the future looks pending, and only the state of the winner is not found at the end.
    """
    future = Future(key, client)
    with suppress(AttributeError, KeyError):
        client.loop.add_callback(client.futures[key].finish)
    return future


def forget_topic(client: Client, topic: str, seconds: float) -> None:
    """Forget the handler of a topic's events after a while, when no more of them can come.

    Dask forgets no handler by itself, and complains of events that have none. Without this name
    the handler, and what it refers to, stays with the client.
    """
    handlers = getattr(client, "_event_handlers", {})
    client.loop.add_callback(client.loop.call_later, seconds, handlers.pop, topic, None)


def draw_apart() -> None:
    """On a worker: have Dask draw its random numbers from a generator of its own.

    Its threads draw from the global one of `random`, in the middle of what an arm draws from that.
    Without this, losses of loops that count on this generator differ from run to run. What Dask
    has in its place is all of the module, with another generator.
    """
    apart, own, common = (
        ModuleType(random.__name__),
        random.Random(),
        cast(Any, random.random).__self__,
    )

    def of_own(value: Any) -> Any:
        if value is random:
            return apart
        drawn = getattr(value, "__self__", None) is common
        return getattr(own, value.__name__) if drawn else value

    vars(apart).update({name: of_own(value) for name, value in vars(random).items()})
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("dask", "distributed", "tornado"):
            vars(module).update({name: of_own(value) for name, value in vars(module).items()})


def clear_away(dask_scheduler: Any, identity: str, client: str) -> None:
    """On the scheduler: remove the events of a search, and states that were left at its end.

    Without these names they stay until the client is closed.
    """

    def release() -> None:
        if known := dask_scheduler.clients.get(client):
            keys = [task.key for task in known.wants_what if str(task.key).startswith(identity)]
            dask_scheduler.client_releases_keys(keys=keys, client=client)

    release()
    dask_scheduler._broker.truncate(identity)
    for seconds in (1, 10):  # a worker may have been about to leave one
        dask_scheduler.loop.call_later(seconds, release)
