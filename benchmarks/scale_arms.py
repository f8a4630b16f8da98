"""The arms of scale.py: made up, or drawn from what was recorded."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm import RecordedCurves
from lastarm.events import Loss
from lastarm.journal import read
from lastarm.trainers import Config

SPREAD = 0.5  # of the logarithm of the seconds that a pull takes


class PowerLaw:
    """Arms whose losses fall to their limits as a power of the pulls they have had."""

    def start(self, config: Config, seed: int) -> tuple[Config, int]:
        """Not yet pulled."""
        return config, 0

    def train(self, state: tuple[Config, int], pulls: int) -> tuple[Config, int]:
        """So much further on."""
        return state[0], state[1] + pulls

    def loss(self, state: tuple[Config, int]) -> float:
        """The limit, and what is left of the way to it."""
        config, pulls = state
        return float(config["limit"] + config["drop"] * pulls ** -config["power"])


class Pool(NamedTuple):
    """Arms to choose from: how they train, where their losses end, the seconds a pull takes."""

    trainer: Any
    configs: list[Config]
    ends: NDArray[np.float64]
    seconds: NDArray[np.float64]


def pool_of(
    arms: int, seed: int, times: NDArray[np.float64] | None, tables: list[RecordedCurves]
) -> Pool:
    """So many arms: made up, or drawn from what was recorded."""
    random = np.random.default_rng(seed)
    generated = random.lognormal(0.0, SPREAD, arms)
    seconds = generated if times is None else random.choice(times, arms)
    if tables:
        table = tables[seed % len(tables)]
        rows = random.integers(len(table.losses), size=arms)
        ends = np.nan_to_num(table.losses[rows, -1], nan=inf)
        return Pool(table, [{"row": int(row)} for row in rows], ends, seconds)
    limits = random.beta(2, 5, arms)
    drops, powers = random.uniform(0, 3, arms), random.uniform(0.5, 1.5, arms)
    configs: list[Config] = [
        {"limit": limit, "drop": drop, "power": power}
        for limit, drop, power in np.column_stack([limits, drops, powers]).tolist()
    ]
    return Pool(PowerLaw(), configs, limits, seconds)


def seconds_in(path: Path) -> NDArray[np.float64]:
    """The seconds of a pull, as often as they were recorded."""
    if path.suffix != ".jsonl":
        return np.loadtxt(path, ndmin=1)
    works = [event.work for event in read(path) if isinstance(event, Loss)]
    return np.array([work.train_seconds / work.trained for work in works if work.trained])
