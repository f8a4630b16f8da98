"""The workers of a Dask cluster: how many pulls each can take, and which of them are alive."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from lastarm.errors import InvalidArgument, Stuck
from lastarm.runners.performer import said

SURVEY = 0.5  # seconds between two looks at the cluster
ANSWER = 5.0  # seconds that the scheduler has for an answer
PATIENCE = 30.0  # seconds without any, after which it is given up, if the lease is no longer
UNMANNED = 60.0  # seconds without any worker, after which that is said


class Seat(NamedTuple):
    """A worker: how many pulls it can perform at once, and when a sign of life was noticed."""

    address: str
    slots: int  # 0 while it is paused, or about to leave
    nanny: bool
    seen: float  # as the scheduler has it
    noticed: float  # by the monotonic clock


class Seats:
    """Which workers there are, by their identity: a new one may have an old one's address.

    They come and go; one that froze is done without, and replaced if it has a nanny. With
    `nannies`, those that have none are not used.
    """

    def __init__(
        self, client: Any, lease: float, resources: Mapping[str, float], *, nannies: bool
    ) -> None:
        self._client, self._lease = client, lease
        self._resources, self._nannies = resources, nannies
        self._seats: dict[str, Seat] = {}
        self._given_up: set[str] = set()
        self._surveyed = -math.inf
        self._unanswered = math.inf  # since when the scheduler gives no answer
        self._last_manned = monotonic()
        self.survey()
        if nannies and not all(seat.nanny for seat in self._seats.values()):
            raise InvalidArgument(
                "pull_seconds will not do where workers have no nanny, since nobody could restart "
                "one whose pull takes too long. Start workers with a nanny, as LocalCluster does "
                "unless it has processes=False, or do without pull_seconds."
            )

    @property
    def until_survey(self) -> float:
        """In how many seconds it is time to look at the cluster again."""
        return max(0.0, self._surveyed + min(SURVEY, self._lease / 4) - monotonic())

    def known(self) -> Mapping[str, Seat]:
        """The workers as they were when the cluster was last looked at."""
        return self._seats

    def was_given_up(self, worker: str) -> bool:
        """Whether a worker is done without, although it may still be there."""
        return worker in self._given_up

    def give_up(self, worker: str) -> None:
        """Do without a worker, and have Dask replace it meanwhile, which takes seconds."""
        self._given_up.add(worker)
        if seat := self._seats.pop(worker, None):
            threading.Thread(target=self._replace, args=[seat.address], daemon=True).start()

    def survey(self) -> None:
        """Look who is there, and give up who has been silent for too long."""
        began = monotonic()
        try:
            run = self._client._run_on_scheduler
            workers = self._client.sync(run, _workers, callback_timeout=ANSWER)
        except ImportError as error:
            raise Stuck(
                f"the Dask scheduler could not load what it was sent: {said(error)}. Install "
                "lastarm where the scheduler is."
            ) from error
        except OSError as error:  # the client notices by itself if that is for good
            self._unanswered = min(self._unanswered, began)
            if monotonic() > self._unanswered + max(self._lease, PATIENCE):
                raise Stuck(
                    "the Dask scheduler does not answer. Go on when it does, or without it."
                ) from error
            return
        # After a pause of ours, such as a suspended machine, everybody seems to be silent.
        paused = monotonic() > self._surveyed + max(self._lease / 2, 2 * SURVEY)
        self._surveyed, self._unanswered = monotonic(), math.inf
        before, self._seats = self._seats, {}
        for worker, (address, threads, resources, nanny, seen) in workers.items():
            known = before.get(worker)
            silent = known is not None and known.seen == seen and not paused
            noticed = known.noticed if known and silent else self._surveyed
            slots = self._slots(threads, resources) if nanny or not self._nannies else 0
            if worker not in self._given_up:
                self._seats[worker] = Seat(address, slots, nanny, seen, noticed)
        for worker, seat in list(self._seats.items()):
            if self._surveyed > seat.noticed + self._lease:
                self.give_up(worker)
        self._warn_if_nobody_is_there()

    def _warn_if_nobody_is_there(self) -> None:
        if any(seat.slots for seat in self._seats.values()):
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
        with suppress(Exception):  # if it is gone, so be it
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
