"""What the Dask runner has done on the cluster: pulls on its workers, and tidying up."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

from dask.sizeof import sizeof
from distributed import get_worker
from distributed.utils import sync

from lastarm.events import Told
from lastarm.runners.remote import Boxed, Carried, Kit, carried_on, unpacked


class Errand(NamedTuple):
    """How a pull tells of itself: the keys of its task and of the state, and the client's name."""

    key: str
    state: str
    client: str
    timed: bool  # whether it is to say when it begins


class Left(NamedTuple):
    """What a pull sends back: what became of it, and what state is left on the worker."""

    told: Told
    level: int = 0  # 0: none
    movable: bool = True


class Begun:
    """What a timed pull sends first: the trainer is loaded, the state is here, now it trains."""


def perform(
    kit: Kit,
    sent: bytes,
    boxed: Boxed | None,
    carried: tuple[int, bool] | None,
    errand: Errand,
) -> None:
    """On a worker: train and look, leave the state here for the client, and tell it."""
    worker = get_worker()
    before = None
    if boxed and carried and not boxed.taken:
        before = Carried(carried[0], boxed.take(), carried[1])
    if errand.timed:
        unpacked(kit)
        worker.log_event(kit.identity, pickle.dumps((errand.key, Begun())))
    told, after = carried_on(kit, pickle.loads(sent), before, worker.id)
    task = worker.state.tasks.get(errand.key)
    # One whose trainer uses Dask is long-running.
    if task is None or task.state not in ("executing", "long-running"):
        return  # given up: nobody wants it

    async def leave(state: Boxed) -> None:
        worker.update_data({errand.state: state})
        await worker.scheduler.update_data(
            who_has={errand.state: [worker.address]},
            nbytes={errand.state: sizeof(state)},
            client=errand.client,
        )

    left = Left(told)
    if after is not None:
        sync(worker.loop, leave, Boxed(after.state, sizeof(after.state)))
        left = Left(told, after.level, after.movable)
    worker.log_event(kit.identity, pickle.dumps((errand.key, left)))


def clear_away(dask_scheduler: Any, identity: str, client: str) -> None:
    """On the scheduler: what pulls have told, and states that were left when nobody waited."""

    def release() -> None:
        if known := dask_scheduler.clients.get(client):
            keys = [task.key for task in known.wants_what if str(task.key).startswith(identity)]
            dask_scheduler.client_releases_keys(keys=keys, client=client)

    release()
    dask_scheduler._broker.truncate(identity)
    for seconds in (1, 10):  # a worker may have been about to leave one
        dask_scheduler.loop.call_later(seconds, release)
