"""The workers of a Dask cluster: which there are, and how many pulls each can perform."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from lastarm.errors import ClusterLost, InvalidArgument, WorkersNotStarted
from lastarm.runners.performer import said

SURVEY = 0.5  # seconds between two looks at the cluster
ANSWER = 5.0  # seconds that the scheduler has for an answer
PATIENCE = 30.0  # seconds without any, after which it is given up, unless the lease is longer
UNMANNED = 60.0  # seconds without any worker, after which there is a warning


class DaskWorker(NamedTuple):
    """A worker: how many pulls it can perform at once, and when it last gave a sign of life."""

    address: str
    slots: int  # 0 while it is paused, or about to leave
    nanny: bool
    seen: float  # as the scheduler has it
    noticed: float  # by the monotonic clock


class Workers:
    """Which workers there are, by their identity: a new one may have an old one's address.

    They come and go. One that is frozen is given up, and replaced if it has a nanny. With
    `nannies`, those that have none are not used.
    """

    def __init__(
        self, client: Any, lease: float, resources: Mapping[str, float], *, nannies: bool
    ) -> None:
        self._client, self._lease = client, lease
        self._resources, self._nannies = resources, nannies
        self.known: dict[str, DaskWorker] = {}  # as they were when last looked at
        self.given_up: set[str] = set()  # although they may still be there
        self._surveyed = -math.inf
        self._unanswered = math.inf  # since when the scheduler gives no answer
        self._last_manned = monotonic()
        self.survey()
        if nannies and not all(worker.nanny for worker in self.known.values()):
            raise InvalidArgument(
                "pull_seconds is not valid where workers have no nanny: a nanny restarts a worker "
                "whose pull takes too long. Start workers with a nanny, as LocalCluster does "
                "unless it has processes=False, or leave pull_seconds out.",
                argument="pull_seconds",
            )

    @property
    def until_survey(self) -> float:
        """In how many seconds it is time to look at the cluster again."""
        return max(0.0, self._surveyed + min(SURVEY, self._lease / 4) - monotonic())

    def give_up(self, worker: str) -> None:
        """Do without a worker, and let Dask replace it meanwhile, which takes seconds."""
        self.given_up.add(worker)
        if known := self.known.pop(worker, None):
            threading.Thread(target=self._replace, args=[known.address], daemon=True).start()

    def survey(self) -> None:
        """Look which workers are there, and give up those that were silent for too long."""
        began = monotonic()
        try:
            workers = self._client.run_on_scheduler(_workers, callback_timeout=ANSWER)
        except ImportError as error:
            raise WorkersNotStarted(
                "the Dask scheduler could not load what it was sent. Install lastarm where the "
                "scheduler is",
                said(error),
            ) from error
        except OSError as error:  # the client notices by itself if that is for good
            self._unanswered = min(self._unanswered, began)
            if monotonic() > self._unanswered + max(self._lease, PATIENCE):
                raise ClusterLost(
                    "the Dask scheduler does not answer. Resume the search when it does, or "
                    "with another runner."
                ) from error
            return
        # After a pause of this process, as on a suspended machine, all seem to be silent.
        paused = monotonic() > self._surveyed + max(self._lease / 2, 2 * SURVEY)
        self._surveyed, self._unanswered = monotonic(), math.inf
        before, self.known = self.known, {}
        for worker, (address, threads, resources, nanny, seen) in workers.items():
            known = before.get(worker)
            silent = known is not None and known.seen == seen and not paused
            noticed = known.noticed if known and silent else self._surveyed
            slots = self._slots(threads, resources) if nanny or not self._nannies else 0
            if worker not in self.given_up:
                self.known[worker] = DaskWorker(address, slots, nanny, seen, noticed)
        for worker, known in list(self.known.items()):
            if self._surveyed > known.noticed + self._lease:
                self.give_up(worker)
        self._warn_if_there_is_none()

    def _warn_if_there_is_none(self) -> None:
        if any(worker.slots for worker in self.known.values()):
            self._last_manned = monotonic()
        elif monotonic() > self._last_manned + UNMANNED:
            self._last_manned = math.inf
            needed = f" with {self._resources}" if self._resources else ""
            needed += " that has a nanny" if self._nannies else ""
            warnings.warn(
                f"the Dask cluster has had no worker{needed} for {UNMANNED:g} s. The search "
                "waits until there is one; Ctrl-C ends it with what it has found.",
                stacklevel=2,
            )

    def _slots(self, threads: int, resources: Mapping[str, float]) -> int:
        # 1 // 0.2 is 4.0: a fifth is a little more than it seems.
        times = (resources.get(name, 0) / need for name, need in self._resources.items())
        return min([threads, *(math.floor(often + 1e-9) for often in times)])

    def _replace(self, address: str) -> None:
        with suppress(Exception):  # it may be gone
            self._client.restart_workers([address], timeout=60, raise_for_error=False)


def _workers(dask_scheduler: Any) -> dict[str, tuple[str, int, dict[str, float], bool, float]]:
    return {
        worker.server_id: (
            address,
            worker.nthreads if worker.status.name == "running" else 0,
            dict(worker.resources),
            worker.nanny is not None,
            worker.last_seen,
        )
        for address, worker in dask_scheduler.workers.items()
    }
