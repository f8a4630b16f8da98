"""What the order of pulls saves where states are too large to stay in memory, on a virtual clock.

    python benchmarks/switching.py

64 arms by successive halving, two pulls each in the first rung. A pull takes 1 s and moving a
state 5 s. All workers together have memory for 8 states, or for all. "plain" is counted and not
played: pulls as asked for, by the workers in turn, each with the states that it trained last. "as
asked" is played: pulls as asked for, by the worker that has the state if that is idle, and the
states with the lowest losses in memory. "ours" is what a search does. The figures are those of a
simulation, means over 20 draws of curves, and the same on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np

from lastarm import Configs, Result, SuccessiveHalving, search
from lastarm.events import Loss
from lastarm.runners import Arms, Simulated
from lastarm.trainers import RecordedCurves
from record import Cell, Record

ARMS, PULLS, MOVE, SEEDS = 64, 768, 5.0, range(20)


def as_asked(arms: Arms, **given: Any) -> Simulated:
    """Simulated workers that are given pulls as the policy asks for them."""
    runner = Simulated(arms, **given)
    del runner.turns
    return runner


def plain_moves(arms: Sequence[int], workers: int, memory: int | None) -> int:
    """The states that the plain order moves, when it brings these arms further, one by one.

    The workers take turns. Each keeps the states of the arms that it trained last, as many as fit;
    any other that it needs is moved, from the disk or from another worker.

    >>> plain_moves([0, 1, 2, 3, 0, 2, 3], workers=1, memory=2)
    3
    """
    kept: list[list[int]] = [[] for _ in range(workers)]
    moves, begun = 0, set()
    for turn, arm in enumerate(arms):
        here = kept[turn % workers]
        moves += arm in begun and arm not in here
        begun.add(arm)
        for states in kept:
            if arm in states:
                states.remove(arm)
        here.append(arm)
        if memory:
            del here[:-memory]
    return moves


def asked_for(seed: int) -> list[int]:
    """The arms of every rung, in the order in which the policy asks for them."""
    losses, policy = curves(seed), SuccessiveHalving(ARMS, PULLS)
    rungs: list[list[int]] = []
    while pulls := policy.ask(ARMS):
        rungs.append([pull.arm for pull in pulls])
        for pull in pulls:
            policy.tell(Loss(pull, float(losses[pull.arm, pull.upto - 1])))
    return list(chain(*rungs))


def curves(seed: int) -> Any:
    """Falling curves, and which is best is chance."""
    return np.random.default_rng(seed).random((ARMS, 1)) + 1 / np.arange(1, 500)


def found(seed: int, runner: Any) -> Result:
    """The search of a seed."""
    policy = SuccessiveHalving(ARMS, PULLS)
    configs = Configs([{"row": row} for row in range(ARMS)])
    return search(RecordedCurves(curves(seed)), configs, policy=policy, runner=runner)


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
        "moves, plain": fmean(plain_moves(asked_for(seed), workers, memory) for seed in SEEDS),
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
