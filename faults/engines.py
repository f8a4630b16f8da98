"""Real engines to do harm to, on loopback, started here and stopped at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from time import sleep
from typing import NamedTuple

import dask
from distributed import Client, LocalCluster

from lastarm.runners import MakeRunner
from lastarm.runners.dask import Dask
from lastarm.runners.ray import Ray
from lastarm.runners.ray.local import LocalRay

WORKERS = 2


class Engine(NamedTuple):
    """An engine that runs: a runner on it, with this lease, and how it is waited for and ended."""

    runner: MakeRunner
    lease: float
    wait_until_whole: Callable[[], None]
    end: Callable[[], None]


@contextmanager
def dask_engine(lease: float = 2.0) -> Iterator[Engine]:
    """A cluster with worker processes that are replaced when they die."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # that workers die is what it is for
    try:
        with (
            # A local cluster does without a worker that is away so long after one was lost.
            dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
            LocalCluster(
                n_workers=WORKERS,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            runner = partial(Dask, client=client, lease=lease)
            yield Engine(runner, lease, partial(_wait_for_workers, client), cluster.close)
    finally:
        logger.setLevel(level)


@contextmanager
def ray_engine(lease: float = 3.0) -> Iterator[Engine]:
    """A Ray whose workers are the runner's own, and are all there when it begins."""
    with closing(LocalRay(WORKERS)) as own:
        runner = partial(Ray, workers=WORKERS, lease=lease)
        yield Engine(runner, lease, lambda: None, own.close)


def _wait_for_workers(client: Client) -> None:
    for _ in range(1200):
        if len(client.nthreads()) == WORKERS:
            return
        sleep(0.1)
    raise AssertionError("a worker has not come back within two minutes")
