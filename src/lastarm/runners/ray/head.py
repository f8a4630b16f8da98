"""Whether the Ray cluster is still there: Ray would end this process rather than say so."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

from lastarm.errors import Stuck
from lastarm.runners.ray.local import ray

GONE = (
    "the Ray cluster is gone. Resume the search: with its journal, the same call goes on from the "
    "last loss that was saved, on another cluster or with another runner."
)
LOOK = 1.0  # seconds between two looks


class Head:
    """The head of the cluster, and Ray's process on this machine: without them nothing goes on.

    Ray waits for a minute for either, in case it is started again, and then ends this process. So
    they are looked for here, and `Stuck` is raised when they are gone for `patience` seconds.
    """

    def __init__(self, patience: float) -> None:
        self.gone = False
        self._patience = max(2 * LOOK, min(patience, 30.0))  # or no look would be in time
        self._addresses: list[tuple[str, int]] = []
        self._looked = self._seen = monotonic()

    def find(self) -> None:
        """Begin to look for those that can be seen from here."""
        self._addresses = [address for address in _addresses() if _answers(address)]
        self._looked = self._seen = monotonic()

    @property
    def next_look(self) -> float:
        """When, by the monotonic clock."""
        return self._looked + LOOK

    def look(self) -> None:
        """Look whether they are there, from time to time."""
        now = monotonic()
        if now < self.next_look:
            return
        suspended = now > self._looked + self._patience  # it is we who were not there
        if suspended or all(map(_answers, self._addresses)):
            self._seen = now
        self._looked = monotonic()
        if now > self._seen + self._patience:
            raise self._lost()

    def require(self) -> None:
        """Look at once: a worker died, and if they did, it is not to blame."""
        if not any(all(map(_answers, self._addresses)) for _ in range(3)):
            raise self._lost()

    @contextmanager
    def needed(self) -> Iterator[None]:
        """Within, what Ray has to say of its end is said as ours."""
        if not ray.is_initialized():  # or Ray would start another, unasked
            raise self._lost()
        try:
            yield
        except (ray.exceptions.RaySystemError, ConnectionError) as error:
            raise self._lost() from error

    def _lost(self) -> Stuck:
        self.gone = True
        return Stuck(GONE)


def _addresses() -> list[tuple[str, int]]:
    addresses: list[tuple[str, int]] = []
    with suppress(Exception):  # a client of a far cluster sees neither
        here = ray.get_runtime_context()
        host, _, port = here.gcs_address.rpartition(":")
        addresses.append((host.strip("[]"), int(port)))
        addresses += [
            (machine["NodeManagerAddress"], machine["NodeManagerPort"])
            for machine in ray.nodes()
            if machine["NodeID"] == here.get_node_id()
        ]
    return addresses


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=LOOK / 2).close()
    except OSError:
        return False
    return True
