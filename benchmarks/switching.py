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
from typing import Any

import numpy as np

from lastarm import Configs, Result, SuccessiveHalving, search
from lastarm.runners import Arms, Simulated
from lastarm.trainers import RecordedCurves

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


def main() -> None:
    """Print a table: moves and seconds, by workers and memory, over all seeds."""
    print("| workers | states in memory of each | moves: plain | as asked | ours |", end="")
    print(" seconds: as asked | ours |\n| --- | --- | --- | --- | --- | --- | --- |")
    for workers, memory in [(1, 8), (2, 4), (4, 2), (2, None), (4, None), (8, None)]:
        given: dict[str, Any] = {"workers": workers, "states_in_memory": memory}
        moves, seconds, digests = [], [], []
        for make in (as_asked, Simulated):
            results = [
                found(seed, partial(make, seconds_per_move=MOVE, **given)) for seed in SEEDS
            ]
            moves.append(np.mean([result.spent.moves for result in results]))
            clocks = [result.utilisation for result in results]
            seconds.append(np.mean([clock.seconds for clock in clocks if clock]))
            digests.append([result.digest for result in results])
        assert digests[0] == digests[1], "the order decides nothing"
        plain = np.mean([result.spent.plain_moves for result in results])
        figures = [f"{figure:,.0f}" for figure in (plain, *moves, *seconds)]
        print(f"| {workers} | {memory or 'all'} | {' | '.join(figures)} |")


if __name__ == "__main__":
    main()
