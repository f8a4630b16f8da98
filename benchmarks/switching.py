"""What the order of pulls saves where states are too large to stay in memory, on a virtual clock.

    python benchmarks/switching.py

64 arms by successive halving, two pulls each in the first rung. A pull takes 1 s and moving a
state 5 s. All workers together have memory for 8 states, or for all. "plain" is what the ledger
compares with: pulls as asked for, by the workers in turn, each with the states that it trained
last. "as asked" is played: pulls as asked for, by the worker that has the state if that is idle,
and the states with the lowest losses in memory. "ours" is what a search does. The figures are
those of a simulation, means over 20 draws of curves, and the same on any machine.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from lastarm import Configs, Result, SuccessiveHalving, search
from lastarm.runners import Arms, Simulated
from lastarm.trainers import RecordedCurves
from record import Cell, Record

ARMS, PULLS, MOVE, SEEDS = 64, 768, 5.0, range(20)


def as_asked(arms: Arms, **given: Any) -> Simulated:
    """Simulated workers that are given pulls as the policy asks for them."""
    runner = Simulated(arms, **given)
    del runner.waiting
    return runner


def found(seed: int, runner: Any) -> Result:
    """The search of a seed: falling curves, and which is best is chance."""
    losses = np.random.default_rng(seed).random((ARMS, 1)) + 1 / np.arange(1, 500)
    policy = SuccessiveHalving(ARMS, PULLS)
    configs = Configs([{"row": row} for row in range(ARMS)])
    return search(RecordedCurves(losses), configs, policy=policy, runner=runner)


def measured(workers: int, memory: int | None) -> dict[str, Cell]:
    """Moves and seconds over all seeds, as asked and by us."""
    moves, seconds, digests = [], [], []
    for make in (as_asked, Simulated):
        runner = partial(make, workers=workers, states_in_memory=memory, seconds_per_move=MOVE)
        results = [found(seed, runner) for seed in SEEDS]
        moves.append(fmean(result.spent.moves for result in results))
        clocks = [result.utilisation for result in results]
        seconds.append(fmean(clock.seconds for clock in clocks if clock))
        digests.append([result.digest for result in results])
    assert digests[0] == digests[1], "the order decides nothing"
    return {
        "moves, plain": fmean(result.spent.plain_moves for result in results),
        "moves, as asked": moves[0],
        "moves, ours": moves[1],
        "seconds, as asked": seconds[0],
        "seconds, ours": seconds[1],
    }


def main() -> None:
    """Print a table: moves and seconds, by workers and memory."""
    record = Record("switching", "python benchmarks/switching.py", ["lastarm", "numpy"])
    record.note(__doc__.partition("\n\n")[2].partition("\n\n")[2].rstrip())
    memories: list[tuple[int, int | None]] = [
        (1, 8),
        (2, 4),
        (4, 2),
        (2, None),
        (4, None),
        (8, None),
    ]
    record.table(
        "By workers × the states that each has memory for",
        {
            f"{workers} × {memory or 'all'}": measured(workers, memory)
            for workers, memory in memories
        },
    )
    record.write()


if __name__ == "__main__":
    main()
