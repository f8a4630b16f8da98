"""A Ray of our own on this machine, for whoever has not started one: nobody else can reach it."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

try:
    import psutil  # Ray brings it along
    import ray
    from ray._private import ray_constants
    from ray._private import worker as driver
except ImportError as error:
    raise ImportError(
        "the Ray runner needs Ray, which is not installed: pip install 'lastarm[ray]'"
    ) from error

from lastarm.errors import Stuck

__all__ = ["LocalRay", "ray"]

LOOPBACK = "127.0.0.1"
# By then, the number of a process that ended long before may be somebody else's.
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
    """Ray on this machine, listening on loopback only, quiet, without a dashboard or telemetry.

    Ray takes "127.0.0.1" for its address only where it believes that it cannot form a cluster, as
    on macOS and Windows; elsewhere it puts the address of the network there, and its processes
    listen to everybody. So it is made to believe that, and what came of it is looked at.
    """

    def __init__(self, cpus: int | None) -> None:
        self._session = ""
        self._family: set[Any] = set()
        self._undertaker: subprocess.Popen[bytes] | None = None
        # Ray tells of dead workers on standard output, where only answers belong.
        self._print, driver.print_to_stdstream = driver.print_to_stdstream, _print_nothing
        try:
            with _as_it_was():
                ray_constants.ENABLE_RAY_CLUSTER = False
                logging.getLogger("ray").setLevel(logging.ERROR)
                os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
                address = ray.init(
                    address="local",
                    num_cpus=cpus,
                    include_dashboard=False,
                    log_to_driver=False,
                    configure_logging=False,
                    _node_ip_address=LOOPBACK,
                ).address_info
            self._session = address["session_dir"]
            self._note_family()  # when the head has been killed, not all can be found any more
            if os.name == "posix":  # if this process is killed, some of Ray's stay for a minute
                family = [str(process.pid) for process in self._family]
                self._undertaker = subprocess.Popen(
                    ["/bin/sh", "-c", UNDERTAKER, self._session, *family],
                    stdin=subprocess.PIPE,  # which ends with this process
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            if address["node_ip_address"] != LOOPBACK:
                raise Stuck(
                    f"Ray {ray.__version__} would listen beyond this machine. Start it yourself, "
                    "with ray.init() and as you want it to be; the runner will use it."
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it, with all of its processes, and clear away what they wrote."""
        if self._undertaker:
            self._undertaker.kill()
            self._undertaker.communicate()
        self._note_family()
        ray.shutdown()
        driver.print_to_stdstream = self._print
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


def _print_nothing(*_: Any, **__: Any) -> None:
    pass


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Afterwards, what was changed for the moment, by us or by Ray, is as it was."""
    logger = logging.getLogger("ray")
    cluster, level = ray_constants.ENABLE_RAY_CLUSTER, logger.level
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = cluster
        logger.setLevel(level)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_terminate)
