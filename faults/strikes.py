"""How a search on worker processes is struck from outside: kills, freezes and signals."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from random import Random
from time import sleep

from faults.processes import children

PAUSE = 0.2  # seconds at most between two blows
COORDINATOR, BOTH, FROZEN = "the coordinator", "both at once", "the coordinator of frozen workers"
WORKER, BESIDE_FROZEN = "a worker", "a worker beside a frozen one"
AFTER_CTRL_C, SIGTERM = "the coordinator after Ctrl-C", "SIGTERM"
KINDS = (FROZEN, WORKER, COORDINATOR, BOTH, AFTER_CTRL_C, BESIDE_FROZEN, SIGTERM)
GOES_ON = {WORKER, BESIDE_FROZEN}  # the life in which this happens
AT_ANY_TIME = {COORDINATOR, BOTH, FROZEN}  # also while it opens, replays and starts workers


def signalled(number: int, *processes: int) -> None:
    """Send it to those that are still there."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def strike(kind: str, coordinator: int, random: Random) -> None:
    """Strike a search, or a worker of it."""
    workers = sorted(children(coordinator))
    random.shuffle(workers)
    killed, frozen = [coordinator], list[int]()
    if kind in GOES_ON:
        killed, frozen = workers[:1], workers[1:] if kind == BESIDE_FROZEN else []
    elif kind == BOTH:
        killed = [coordinator, *workers[:1]]
        random.shuffle(killed)
    elif kind == FROZEN:
        frozen = workers
    first = {AFTER_CTRL_C: signal.SIGINT, SIGTERM: signal.SIGTERM}.get(kind)
    if first:
        signalled(first, coordinator)
    signalled(signal.SIGSTOP, *frozen)
    if kind != SIGTERM:
        sleep(random.uniform(0, PAUSE) if first or frozen else 0)
        signalled(signal.SIGKILL, *killed)
    if kind == BESIDE_FROZEN:  # which thaws
        sleep(random.uniform(0, PAUSE))
        signalled(signal.SIGCONT, *frozen)
