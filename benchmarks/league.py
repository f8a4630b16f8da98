"""The league: every policy, and the peers' schedulers, on every file of recorded curves.

A draw is 64 rows of a file, shuffled, and all contenders play on the same draws. A budget is a
share of training all 64 to the end of their curves. The score is the rank by final loss, among all
64, of the arm that is recommended: 0 is the best, 1 the worst, ties share theirs, arms that
diverged come last, and to recommend none is as bad as the worst. Ranks are averaged over the draws
of a file, then over files. Differences are paired, draw by draw; ± is half a 95 % interval, 1.96
standard errors of the mean stratified by file. It tells what other draws from these files would
have given, not other files, and the best is chosen by the same draws, which flatters it a little.
"≤ 3n looks" are those who at no budget and on no draw looked more often than that.

Policies come as they are registered, with their defaults; who takes `max_pulls` is told the length
of the curves. Where a budget does not reach all arms, as at 2 and 5 %, a policy that refuses it
plays on as many of the 64 as it does reach, which for literal halving is where n·⌈log₂ n⌉ fits.
"Fully train a random few" spends all on arms trained to the end. A pull past the end of a curve
counts, and changes nothing. One worker pulls. Policies that look at every pull are slow to play,
and play on a fifth of the draws.

Optuna's pruner, Ray Tune's and Syne Tune's ASHA are as they come, but told full training. They
never heard of a budget: they take the arms in the order of the draw, look at their rungs only, and
are stopped where the next step no longer fits; the lowest latest loss is their recommendation. An
arm that they stopped is lost to them, so they can end with much of a large budget unspent. A loss
that diverged is told as it is: Optuna stops such an arm, the other two can let it go on.

    .venv-bench/bin/python benchmarks/league.py FOLDER [--help]
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from lastarm import (
    EnvelopeHalving,
    HorizonHalving,
    Policy,
    SuccessiveHalving,
    UniformAllocation,
)
from lastarm.errors import BudgetTooSmall, InvalidArgument
from lastarm.policies import POLICIES
from lastarm.policies.horizon_halving import Choice, lowest_losses
from lastarm.policies.named import name_of
from lastarm.report.figures.drawing import Figure, draw, house, legend, log
from lastarm.report.figures.palette import Look
from league_curves import (
    ARMS,
    LOOKS,
    PERCENTS,
    SPENT,
    Draw,
    Found,
    Played,
    Scores,
    Table,
    play,
    tables,
)
from record import Cell, Record

DEFAULT = name_of(None, max_pulls=1)
BUDGETS = tuple(enumerate(PERCENTS))
Contender = Callable[[Draw, list[int]], list[Played]]
"""What it comes to on a draw with each of the budgets."""


class Version1(HorizonHalving):
    """Horizon-halving as it was: all arms go on by their losses."""

    def choice(self) -> Choice:
        """The lowest losses."""
        return lowest_losses


BEFORE = "horizon-halving, version 1"
VARIANTS: dict[str, tuple[type, dict[str, Any]]] = {  # of registered policies
    "successive-halving eta=3": (SuccessiveHalving, {"eta": 3}),
    BEFORE: (Version1, {}),
}
SLOW = ("lucb", "lil-ucb", "exp3")  # they look at every pull
FIGURE = Path(__file__).with_name("league.png")
LINEAR = 0.001  # the rank below which the axis is linear
CHUNK = 25  # draws that a process plays at a time


def registered(
    kind: Any, options: dict[str, Any], drawn: Draw, budgets: list[int]
) -> list[Played]:
    """A policy of this kind."""
    known = {"max_pulls": drawn.columns, "seed": drawn.number}
    fields = kind.__dataclass_fields__
    given = {key: value for key, value in known.items() if key in fields} | options

    def begin(budget: int) -> Policy:
        policy: Policy
        try:
            policy = kind(drawn.arms, budget, **given)
        except BudgetTooSmall as error:
            policy = kind(error.most_arms, budget, **given)
        return policy

    return [play(begin(budget), drawn, budget) for budget in budgets]


def random_few(drawn: Draw, budgets: list[int]) -> list[Played]:
    """As many arms as can be fully trained, at least one."""
    few = [max(1, budget // drawn.columns) for budget in budgets]
    return [
        play(UniformAllocation(arms, min(budget, arms * drawn.columns)), drawn, budget)
        for arms, budget in zip(few, budgets, strict=True)
    ]


def contenders(alone: bool) -> dict[str, Contender]:
    """All who enter, by the names that the tables have for them."""
    entered: dict[str, Contender] = {"fully train a random few": random_few}
    for name, (kind, options) in ({n: (POLICIES[n], {}) for n in POLICIES} | VARIANTS).items():
        entered[name] = partial(registered, kind, options)
    return entered if alone else entered | importlib.import_module("league_peers").PEERS


def play_draws(
    table: Table, numbers: range, draws: int, entered: dict[str, Contender]
) -> dict[str, list[list[Played]]]:
    """Some of the draws from a table, by all who play on them."""
    found: dict[str, list[list[Played]]] = {name: [] for name in entered}
    for number in numbers:
        drawn = Draw(table, number)
        budgets = [drawn.budget(percent) for percent in PERCENTS]
        for name, contender in entered.items():
            if name not in SLOW or number < max(2, draws // 5):
                found[name].append(contender(drawn, budgets))
    return found


def play_all(files: list[Table], draws: int, entered: dict[str, Contender]) -> Found:
    """All draws from all tables, one process on each core."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = [
            [
                pool.submit(play_draws, table, numbers, draws, entered)
                for numbers in (range(draws)[k : k + CHUNK] for k in range(0, draws, CHUNK))
            ]
            for table in files
        ]
        found: Found = {name: [] for name in entered}
        for table, chunks in zip(files, tasks, strict=True):
            parts = [chunk.result() for chunk in chunks]
            print(f"{table.name} is played", file=sys.stderr)
            for name, cells in found.items():
                cells.append(np.array([played for part in parts for played in part[name]]))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Play, print and draw."""
    parser = argparse.ArgumentParser(
        description="Every policy and the peers' schedulers on recorded curves. Without options "
        "it writes its part of RESULTS.md, and league.png; with any, it only prints."
    )
    parser.add_argument("folder", type=Path, help="of .npz tables as `lastarm replay` reads them.")
    parser.add_argument("--draws", type=int, default=100, help="from each file. [default: 100]")
    parser.add_argument("--quick", action="store_true", help="ten draws.")
    parser.add_argument("--alone", action="store_true", help="leave the peers out.")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw it there.")
    given = parser.parse_args(arguments)
    plain = given == parser.parse_args([str(given.folder)])
    draws = 10 if given.quick else given.draws
    if draws < 2:
        parser.error(f"--draws {draws} is too few for an interval. Give at least 2.")
    try:
        files, entered = tables(given.folder), contenders(given.alone)
    except InvalidArgument as error:
        parser.error(str(error))
    except ImportError as error:
        parser.error(f"the peers are in .venv-bench. Use its Python, or give --alone. ({error})")

    began = perf_counter()
    scores = Scores(files, play_all(files, draws, entered))
    took = perf_counter() - began

    peers = [] if given.alone else ["optuna", "ray", "syne-tune"]
    packages = ["lastarm", "numpy", "matplotlib", *peers]
    record = Record("league", "python benchmarks/league.py FOLDER", packages)
    record.note(__doc__.partition("\n\n")[2].rpartition("\n\n")[0])
    shapes = ", ".join(
        f"{file.name} ({' × '.join(map(str, file.losses.shape))})" for file in files
    )
    record.note(f"{draws} draws from each of: {shapes}.")
    report(record, scores, SuccessiveHalving.name)
    record.section("What playing takes")
    searches = len(PERCENTS) * sum(len(cell) for row in scores.found.values() for cell in row)
    record.row(f"all {searches:,} searches, {os.cpu_count()} at a time", took, "s")
    if plain:
        record.note("![Rank against budget and against looks](league.png)")
        record.write()
    if plain or given.figure:
        picture(scores, SuccessiveHalving.name, given.figure or FIGURE)


def report(record: Record, scores: Scores, halving: str) -> None:
    """The ranks, then budget by budget who is told apart from whom, and the winners."""
    record.table(f"Mean normalised rank, all {len(scores.tables)} files", ranks(scores, None))
    if len(scores.families) > 1:
        for family in scores.families:
            record.table(f"Mean normalised rank, {family}", ranks(scores, family))
    for k, percent in BUDGETS:
        best, frugal = scores.best(k, list(scores.found)), scores.best(k, scores.frugal)
        record.table(
            f"{percent} %, all files: the best is {best}; of those that look ≤ 3n times, {frugal}",
            {
                name: {
                    "rank": scores.mean(name, k),
                    **ratio(scores.mean(name, k), scores.mean(halving, k)),
                    "− halving": scores.difference(name, halving, k),
                    "− best": scores.difference(name, best, k),
                    "− best of ≤ 3n looks": scores.difference(name, frugal, k),
                    "looks": scores.mean(name, k, LOOKS),
                    "% spent": 100 * scores.mean(name, k, SPENT),
                }
                for name in scores.found
            },
        )
    for other in (halving, BEFORE, EnvelopeHalving.name):
        title = f"{DEFAULT}, the default, compared with {other}"
        record.table(title, by_family(scores, DEFAULT, other))
    record.table("The winners", winners(scores, halving))


def ranks(scores: Scores, family: str | None) -> dict[str, dict[str, Cell]]:
    """The mean rank at every budget."""
    return {
        name: {
            **{f"{percent} %": scores.mean(name, k, family=family) for k, percent in BUDGETS},
            f"looks at {PERCENTS[-1]} %": scores.mean(name, -1, LOOKS, family),
            "draws a file": len(cells[0]),
        }
        for name, cells in scores.found.items()
    }


def by_family(scores: Scores, name: str, other: str) -> dict[str, dict[str, Cell]]:
    """The rank of one as a share of the other's, and the difference, in each family of files."""
    rows: dict[str, dict[str, Cell]] = {}
    for family in [*scores.families, None]:
        files = sum(family in (None, table.family) for table in scores.tables)
        row = rows.setdefault(f"{family or 'all'} ({files})", {})
        for k, percent in BUDGETS:
            those = scores.mean(other, k, family=family)
            share = (
                {f"{percent} %, ÷": scores.mean(name, k, family=family) / those} if those else {}
            )
            row |= {**share, f"{percent} %, −": scores.difference(name, other, k, family)}
    return rows


def winners(scores: Scores, halving: str) -> dict[str, dict[str, Cell]]:
    """Who won at every budget, and who may as well have."""
    rows: dict[str, dict[str, Cell]] = {}
    for k, percent in BUDGETS:
        for whom, among in {"": list(scores.found), ", ≤ 3n looks": scores.frugal}.items():
            winner = scores.best(k, among)
            behind = {name: scores.difference(name, winner, k) for name in among if name != winner}
            level = [name for name, (mean, half) in behind.items() if mean <= half]
            rows[f"{percent} %{whom}"] = {
                "winner": winner,
                "rank": scores.mean(winner, k),
                **ratio(scores.mean(winner, k), scores.mean(halving, k)),
                "looks": scores.mean(winner, k, LOOKS),
                "not told apart from it": ", ".join(level) or "none",
            }
    return rows


def ratio(rank: float, halving: float) -> dict[str, Cell]:
    """To literal halving, where that is not perfect."""
    return {"÷ halving": rank / halving} if halving else {}


def picture(scores: Scores, halving: str, file: Path) -> None:
    """Two panels: the rank against the budget, and against looks with the middle one."""
    middle = len(PERCENTS) // 2
    markers = cycle("o^vDPX<>ph*")
    with house():
        figure = Figure(figsize=(12, 7))
        left, right = figure.subplots(1, 2, sharey=True)
        for number, name in enumerate(scores.found):
            dashes = ("-", (0, (5, 2)), (0, (1, 1.5)))[number // 10 % 3]
            look = Look(name, f"C{number % 10}", dashes, next(markers), 1.4)
            if name == halving:
                look = Look(name, "#000000", "-", "s", 2.6)
            if name == DEFAULT:
                look = Look(name, "C2", "-", "D", 2.6)
            draw(left, look, PERCENTS, [scores.mean(name, k) for k, _ in BUDGETS])
            draw(right, look, [scores.mean(name, middle, LOOKS)], [scores.mean(name, middle)])
            right.lines[-1].set(ms=9)
        left.set(ylabel="mean normalised rank of the recommended arm (0 is best)")
        left.set(xlabel="budget, % of training all arms fully")
        right.set(xlabel=f"looks at a loss, with a budget of {PERCENTS[middle]} %")
        lowest = min(scores.mean(name, k) for name in scores.found for k, _ in BUDGETS)
        for axes in (left, right):
            log(axes, "x")
            if lowest > LINEAR:
                axes.set_yscale("log")
            else:  # a rank may be 0
                axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.4)
                axes.set_ylim(bottom=0)
        left.set_xticks(PERCENTS, [f"{percent} %" for percent in PERCENTS])
        left.xaxis.minorticks_off()
        figure.suptitle(f"Up to {ARMS} arms drawn from each of {len(scores.tables)} files")
        legend(figure, [left, right], 4)
        figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
