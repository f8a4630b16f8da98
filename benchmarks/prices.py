"""Looking at a price: the cost-aware policy against itself with a fixed eta, on recorded curves.

Draws, ranks and intervals are the league's. Looks are paid for out of the budget, each with so
many pulls, and budgets are shares of what it costs to train all 64 arms fully and to look at each
of them once. `chosen` is `priced-halving` as it comes, which is told the price and chooses its
eta by it; the others keep to the eta that is named, and choose, as it does, how many arms to draw.

    .venv-bench/bin/python benchmarks/prices.py FOLDER [--help]
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from statistics import fmean

from lastarm import PricedHalving
from lastarm.errors import InvalidArgument
from lastarm.policies.parts.expectation import CHOSEN
from league import Contender, play_all
from league_curves import PERCENTS, Draw, Played, Scores, play, tables
from record import Cell, Record

PRICES = (0, 1, 10, 100)  # of a look, in pulls
FIXED = ("9/8", "5/4", "3/2", "2", "3", "4", "8")
BUDGETS = range(len(PERCENTS))


def priced(price: int, eta: str, drawn: Draw, _: list[int]) -> list[Played]:
    """With that eta, for every share of a budget that has looks in it."""
    whole = drawn.arms * (drawn.columns + price)
    budgets = [percent * whole // 100 for percent in PERCENTS]
    return [
        play(PricedHalving(drawn.arms, budget, drawn.columns, eta, look_cost=price), drawn, budget)
        for budget in budgets
    ]


def named(price: int, eta: str) -> str:
    """What a contender is called among the scores."""
    return f"{eta} at {price}"


def over_budgets(scores: Scores, price: int) -> dict[str, float]:
    """The mean rank of each eta."""
    return {
        eta: fmean(scores.mean(named(price, eta), k) for k in BUDGETS) for eta in (CHOSEN, *FIXED)
    }


def at_budget(scores: Scores, price: int, k: int) -> dict[str, Cell]:
    """The chosen eta beside the best fixed one."""
    best = scores.best(k, [named(price, eta) for eta in FIXED])
    own = named(price, CHOSEN)
    ranks = scores.mean(own, k), scores.mean(best, k)
    return {
        "chosen": ranks[0],
        "best fixed": ranks[1],
        "its eta": best.partition(" ")[0],
        **({"chosen ÷ best": ranks[0] / ranks[1]} if ranks[1] else {}),
        "chosen − best": scores.difference(own, best, k),
    }


def main(arguments: list[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(
        description="The cost-aware policy with an eta of its own choice and with fixed ones, at "
        "four prices of a look. Without options it writes its part of RESULTS.md."
    )
    parser.add_argument("folder", type=Path, help="of .npz tables as `lastarm replay` reads them.")
    parser.add_argument("--draws", type=int, default=200, help="from each file. [default: 200]")
    given = parser.parse_args(arguments)
    if given.draws < 2:
        parser.error(f"--draws {given.draws} is too few for an interval. Give at least 2.")
    try:
        files = tables(given.folder)
    except InvalidArgument as error:
        parser.error(str(error))

    entered: dict[str, Contender] = {
        named(price, eta): partial(priced, price, eta)
        for price in PRICES
        for eta in (CHOSEN, *FIXED)
    }
    scores = Scores(files, play_all(files, given.draws, entered))
    record = Record("prices", "python benchmarks/prices.py FOLDER", ["lastarm", "numpy"])
    record.note(__doc__.partition("\n\n")[2].rpartition("\n\n")[0])
    record.note(f"{given.draws} draws from each of {len(files)} files.")
    means = {f"{price} pulls": over_budgets(scores, price) for price in PRICES}
    record.table("Mean normalised rank over all budgets, by what a look costs", means)
    record.table(
        "Budget by budget",
        {
            f"{price} pulls, {percent} %": at_budget(scores, price, k)
            for price in PRICES
            for k, percent in enumerate(PERCENTS)
        },
    )
    if given.draws == parser.get_default("draws"):
        record.write()


if __name__ == "__main__":
    main()
