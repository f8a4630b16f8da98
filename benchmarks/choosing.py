"""How long the Gaussian process takes to choose the arms of a bracket: milliseconds a batch.

Run by `make bench`, or alone: `python benchmarks/choosing.py`. Columns are arms that have a loss.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from lastarm import Choice, GaussianProcess, Integer, LogUniform, Uniform
from lastarm.samplers import Known, Seen
from lastarm.space import draw, encode, spare

ARMS = (10, 100, 500, 1_000, 5_000)
COUNT, ROUNDS = 6, 5  # arms that are chosen at a time, and how often that is measured
SPACES: dict[str, Any] = {
    "7 numbers": {f"x{k}": LogUniform(1e-5, 1) for k in range(7)},
    "20, of which half are conditional": [
        {
            "kind": kind,
            **{f"x{k}": LogUniform(1e-5, 1) if k % 2 else Integer(1, 99) for k in range(9)},
            **{f"{kind}{k}": Uniform(0, 1) if k % 2 else Choice("u", "v", "w") for k in range(10)},
        }
        for kind in ("trees", "network")
    ],
}


def known(space: Any, arms: int) -> Known:
    """Arms whose losses depend on three hyperparameters; a ninth of them reach the last level."""
    begun, random = draw(space, arms, seed=0), np.random.default_rng(0)
    losses = ((encode(space, begun).rows[:, :3] - 0.4) ** 2).sum(axis=1)
    losses += 0.05 * random.random(arms)
    seen = [
        Seen(config, level, float(loss) + 1 / level)
        for arm, (config, loss) in enumerate(zip(begun, losses, strict=True))
        for level in (1, 3, 9)[: 3 if arm % 9 == 0 else 2 if arm % 3 == 0 else 1]
    ]
    return Known(space, seen, begun, spare(space, begun, 1000, 0), COUNT, 0, 9)


def main() -> None:
    """Print a row for each space."""
    print("| milliseconds a batch, of processor time in brackets |", *ARMS, sep=" | ")
    print("|", "--- |" * (len(ARMS) + 1))
    for name, space in SPACES.items():
        cells = []
        for arms in ARMS:
            question, seconds = known(space, arms), []
            for _ in range(ROUNDS):
                wall, busy = perf_counter(), process_time()
                GaussianProcess().choose(question)
                seconds.append((perf_counter() - wall, process_time() - busy))
            walls, cpus = zip(*seconds, strict=True)
            cells.append(f"{1e3 * median(walls):.0f} ({1e3 * median(cpus):.0f})")
        print("|", " | ".join([name, *cells]), "|")


if __name__ == "__main__":
    main()
