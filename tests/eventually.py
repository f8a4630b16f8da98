"""How tests wait for what other processes do."""

import time
from collections.abc import Callable
from typing import Any


def eventually(true: Callable[[], Any], seconds: float = 120) -> None:
    """Wait until it is so; on a busy machine that may take long, and what never is so fails."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)
