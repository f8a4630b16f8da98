"""A pull that computes for 20 ms, with a state of 1 MB, in the forms that contenders want."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np

SECONDS, STATE_BYTES = 0.02, 2**20


class Busy:
    """A pull computes for so long, and an arm weighs a megabyte."""

    def start(self, config: Any, seed: int) -> Any:
        """Many numbers."""
        return np.arange(STATE_BYTES // 8, dtype=float) + seed

    def train(self, state: Any, pulls: int) -> Any:
        """Use the processor."""
        until = process_time() + SECONDS * pulls
        while process_time() < until:
            state[0] += 1
        return state

    def loss(self, state: Any) -> float:
        """Something."""
        return float(state[1])
