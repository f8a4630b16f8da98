"""What the Ray runner uses of Ray that is not public, and what happens where it is missing.

No other file uses a name from `PRIVATE`. docs/decisions.md says why these are needed (2026-11-18).
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ray

try:
    from ray._private import ray_constants
    from ray._private import worker as driver
except ImportError:
    ray_constants = driver = None

PRIVATE = ("_private", "ENABLE_RAY_CLUSTER", "print_to_stdstream", "_node_ip_address")

LOOPBACK = "127.0.0.1"


def start_on_loopback(cpus: int | None) -> Mapping[str, Any]:
    """Start a Ray that listens on this machine only, if that is possible; its `address_info`.

    Ray takes "127.0.0.1" for its address only where it believes that it cannot form a cluster, as
    on macOS and Windows. Elsewhere it puts the address of the network there, and its processes
    listen to everybody. So it is made to believe that. Without these names it may not, and then
    the address in `address_info` is another one: whoever calls this has to look.
    """
    with _as_it_was():
        if hasattr(ray_constants, "ENABLE_RAY_CLUSTER"):
            ray_constants.ENABLE_RAY_CLUSTER = False
        logging.getLogger("ray").setLevel(logging.ERROR)
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        context = ray.init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            _node_ip_address=LOOPBACK,
        )
    info: Mapping[str, Any] = context.address_info
    return info


def silence() -> Callable[[], None]:
    """Keep Ray from printing that workers died, until what is returned is called.

    It prints to standard output, where only answers belong. Without this name it goes on to print.
    """
    prints = getattr(driver, "print_to_stdstream", None)
    if prints is None:
        return lambda: None
    driver.print_to_stdstream = lambda *_, **__: None
    return lambda: setattr(driver, "print_to_stdstream", prints)


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Afterwards, what we or Ray changed for the start is as it was."""
    logger = logging.getLogger("ray")
    cluster, level = getattr(ray_constants, "ENABLE_RAY_CLUSTER", None), logger.level
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if cluster is not None:
            ray_constants.ENABLE_RAY_CLUSTER = cluster
        logger.setLevel(level)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_terminate)
