"""The Ray cluster: one of our own on this machine, whether it is still there, and its room."""

from __future__ import annotations

import math
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import psutil  # Ray brings it along
import ray

from lastarm.errors import ClusterLost, EngineNotStarted, Stuck
from lastarm.runners.performer import said
from lastarm.runners.ray import compat

GONE = (
    "the Ray cluster is gone. Resume the search: with its journal, the same call goes on from the "
    "last loss that was saved, on another cluster or with another runner."
)
LOOK = 1.0  # seconds between two looks

# When it runs, the number of a process that ended long before may belong to another one.
UNDERTAKER = """
read _
for p; do
    case "$(cat /proc/$p/cmdline || ps -o args= -p $p)" in
        *"$0"* | ray::*) kill -9 $p
    esac
done
rm -r "$0"
"""


class LocalRay:
    """A Ray of our own on this machine, for a caller who has not started one.

    It listens on loopback only, prints nothing, and has neither dashboard nor telemetry.
    """

    def __init__(self, cpus: int | None) -> None:
        self._session = ""
        self._family: set[Any] = set()
        self._undertaker: subprocess.Popen[bytes] | None = None
        self._speak_again = compat.silence()
        try:
            address = _started(cpus)
            self._session = address["session_dir"]
            self._note_family()  # when the head was killed, not all can be found any more
            if os.name == "posix":  # if this process is killed, some of Ray's stay for a minute
                family = [str(process.pid) for process in self._family]
                self._undertaker = subprocess.Popen(
                    ["/bin/sh", "-c", UNDERTAKER, self._session, *family],
                    stdin=subprocess.PIPE,  # which ends with this process
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            if address["node_ip_address"] != compat.LOOPBACK:
                raise Stuck(
                    f"Ray {ray.__version__} would listen beyond this machine. Start it yourself, "
                    "with ray.init() and as you want it to be; the runner will use it."
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it, with all of its processes, and delete what they wrote."""
        if self._undertaker:
            self._undertaker.kill()
            self._undertaker.communicate()
        self._note_family()
        ray.shutdown()
        self._speak_again()
        for process in self._family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._family, timeout=5)
        if self._session:
            shutil.rmtree(self._session, ignore_errors=True)

    def _note_family(self) -> None:
        for child in psutil.Process().children() if self._session else []:
            with suppress(psutil.NoSuchProcess):
                if any(self._session in word for word in child.cmdline()):
                    self._family |= {child, *child.children(recursive=True)}


def _started(cpus: int | None) -> Mapping[str, Any]:
    try:
        return compat.start_on_loopback(cpus)
    except (Exception, SystemExit) as error:  # what Ray raises here is not documented
        folder = os.environ.get("RAY_TMPDIR", "/tmp")
        raise EngineNotStarted(
            "Ray",
            said(error).rstrip("."),
            f"Check that {folder}, where it writes (RAY_TMPDIR), is a folder with room, with a "
            "short path and yours to write to; that memory and processes are not limited too "
            "much; and that ray.init() works by itself. Or call ray.init() before the search, as "
            "you want it to be: the runner will use it",
        ) from error


class ClusterWatch:
    """Whether the cluster's head is there, and Ray's process on this machine.

    Without these nothing goes on. Ray waits for a minute for either, in case it is started again,
    and then ends this process. So they are looked for here, and `ClusterLost` is raised when they
    have been gone for `patience` seconds.
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
        """When to look again, by the monotonic clock."""
        return self._looked + LOOK

    def look(self) -> None:
        """Look whether they are there, from time to time."""
        now = monotonic()
        if now < self.next_look:
            return
        suspended = now > self._looked + self._patience  # this process was, and could not look
        if suspended or all(map(_answers, self._addresses)):
            self._seen = now
        self._looked = monotonic()
        if now > self._seen + self._patience:
            raise self._lost()

    def require(self) -> None:
        """Look at once: a worker died, and if they did, no pull is the cause."""
        if not any(all(map(_answers, self._addresses)) for _ in range(3)):
            raise self._lost()

    @contextmanager
    def needed(self) -> Iterator[None]:
        """Within, Ray's errors about its own end become `ClusterLost`."""
        if not ray.is_initialized():  # or Ray would start another, unasked
            raise self._lost()
        try:
            yield
        except (ray.exceptions.RaySystemError, ConnectionError) as error:
            raise self._lost() from error

    def _lost(self) -> ClusterLost:
        self.gone = True
        return ClusterLost(GONE)


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


def room(needed: Mapping[str, float]) -> int:
    """How many pulls the machines of the cluster have room for, if each takes what is needed."""
    machines = [machine["Resources"] for machine in ray.nodes() if machine["Alive"]]
    needed = needed or {"CPU": 1}
    return sum(
        # 1 // 0.2 is 4.
        min(math.floor(has.get(name, 0) / amount + 1e-9) for name, amount in needed.items())
        for has in machines
    )
