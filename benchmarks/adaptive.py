"""Arms chosen by a forest of random trees, against arms drawn at random, on recorded curves.

Hyperband (eta 3, all its brackets), and ASHA and horizon-halving of 64 arms with the budget that
those brackets take, on each table of a folder that has the hyperparameters of its rows. An arm is
a point of the unit cube, with a side for each hyperparameter, scaled so that the recorded values
fill it evenly; its curve is that of the nearest recorded configuration. Several arms may so have
one curve, which costs whoever draws them close together. The forest is as it comes: batches of 8
arms, a third of all arms random. Its form was looked at on these tables before, with 8 other seeds
and Hyperband, and made no difference that lasted; horizon-halving was added when the other two had
shown no gain.

"Loss" is that of the recommended arm where it was last looked at: what was found. "Rank" is that
of its row by final loss among all rows of the table: 0 is the best, 1 the worst. Differences are
paired: with the same seed the random draws that both share are the same. ± is half a 95 %
interval, 1.96 standard errors of the mean stratified by table. It tells what other seeds would
have given, not other tables.

    .venv-bench/bin/python benchmarks/adaptive.py FOLDER [--help]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm import (
    ASHA,
    Forest,
    HorizonHalving,
    Hyperband,
    Policy,
    RecordedCurves,
    Uniform,
    search,
)
from lastarm.policies.hyperband import brackets
from lastarm.trainers.recorded import Position
from league_curves import normalised_ranks
from record import Cell, Record

NORMAL = 1.96  # standard errors on either side of a 95 % interval


class Table(NamedTuple):
    """A file of recorded curves, and where its rows lie in the unit cube."""

    name: str
    losses: NDArray[np.float64]  # [row, pulls - 1]
    points: NDArray[np.float64]  # [row, hyperparameter]
    hyperparameters: list[str]

    @property
    def family(self) -> str:
        """What the file's name begins with."""
        return self.name.partition("_")[0]


class Found(NamedTuple):
    """What a search came to."""

    loss: float
    rank: float
    distinct: float  # rows among its arms, as a share of them
    pulls: int


class Nearest(RecordedCurves):
    """Arms whose curves are those of the nearest recorded configurations."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.losses)
        self._table = table

    def row(self, config: Mapping[str, Any]) -> int:
        """The nearest row; of several the first."""
        point = [config[name] for name in self._table.hyperparameters]
        return int(((self._table.points - point) ** 2).sum(axis=1).argmin())

    def start(self, config: Mapping[str, Any], seed: int) -> Position:
        """The beginning of that row."""
        return Position(self.row(config), 0)


def tables(folder: Path) -> list[Table]:
    """The tables of a folder that say what the hyperparameters of their rows were."""
    found = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            if not {"losses", "config", "hp_names"} <= set(arrays):
                print(f"{path.stem} has no configs, and is left out", file=sys.stderr)
                continue
            values, names = arrays["config"], arrays["hp_names"].tolist()
        _, places = zip(*(np.unique(v, return_inverse=True) for v in values.T), strict=True)
        points = np.stack([place / max(1, place.max()) for place in places], axis=1)
        found.append(Table(path.stem, RecordedCurves.load(path).losses, points, names))
    return found


def policies(table: Table, seed: int) -> dict[str, Policy]:
    """All with the budget that Hyperband's brackets take."""
    columns = table.losses.shape[1]
    every = brackets(columns, eta=3)
    budget, arms = sum(bracket.pulls for bracket in every), sum(bracket.arms for bracket in every)
    return {
        "hyperband": Hyperband(arms, budget, max_pulls=columns, seed=seed),
        "asha": ASHA(budget, budget, max_pulls=columns),
        "horizon-halving": HorizonHalving(64, budget, max_pulls=columns),
    }


def play(table: Table, seed: int) -> dict[str, tuple[Found, Found]]:
    """Each policy with random arms, and with chosen ones."""
    trainer, ranks = Nearest(table), normalised_ranks(table.losses[:, -1])
    space = {name: Uniform(0, 1) for name in table.hyperparameters}

    def found(policy: Policy, sampler: Forest | None) -> Found:
        result = search(trainer, space, policy=policy, sampler=sampler, seed=seed, progress=False)
        assert result.spent.pulls <= policy.budget
        assert result.loss is not None
        assert result.config is not None
        rows = [trainer.row(result.configs[arm]) for arm in result.curves]
        distinct = len(set(rows)) / len(rows)
        rank = float(ranks[trainer.row(result.config)])
        return Found(result.loss, rank, distinct, result.spent.pulls)

    return {
        name: (found(policy, None), found(policy, Forest()))
        for name, policy in policies(table, seed).items()
    }


def play_all(files: list[Table], seeds: int) -> dict[str, NDArray[np.float64]]:
    """Policy → [table, seed, random or chosen, what it came to]; one process on each core."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = [[pool.submit(play, file, seed) for seed in range(seeds)] for file in files]
        found = []
        for file, row in zip(files, tasks, strict=True):
            found.append([task.result() for task in row])
            print(f"{file.name} is played", file=sys.stderr)
    return {name: np.array([[one[name] for one in row] for row in found]) for name in found[0][0]}


def difference(pairs: NDArray[np.float64]) -> tuple[float, float]:
    """The mean over tables of chosen less random, and half its 95 % interval."""
    differences = pairs[:, :, 1] - pairs[:, :, 0]
    variances = differences.var(axis=1, ddof=1) / differences.shape[1]
    return differences.mean(), NORMAL * sqrt(variances.sum()) / len(differences)


def compared(found: Mapping[str, NDArray[np.float64]], rows: list[int]) -> dict[str, Any]:
    """A row for each policy: what both came to on some of the tables."""
    shown: dict[str, dict[str, Cell]] = {}
    for name, of in found.items():
        loss, rank, distinct, pulls = np.moveaxis(of[rows], -1, 0)
        lower, equal = (loss[..., 1] < loss[..., 0]).mean(), (loss[..., 1] == loss[..., 0]).mean()
        shown[name] = {
            "pulls": float(pulls.mean()),
            "loss, random": f"{loss[..., 0].mean():.4f}",
            "loss, forest": f"{loss[..., 1].mean():.4f}",
            "difference": "{:+.4f} ± {:.4f}".format(*difference(loss)),
            "lower / equal": f"{lower:.0%} / {equal:.0%}",
            "rank, random": f"{rank[..., 0].mean():.4f}",
            "rank, forest": f"{rank[..., 1].mean():.4f}",
            "its difference": "{:+.4f} ± {:.4f}".format(*difference(rank)),
            "distinct rows": f"{distinct[..., 0].mean():.0%}, {distinct[..., 1].mean():.0%}",
        }
    return shown


def main(arguments: list[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(
        description="Random and chosen arms on recorded curves. Without options it writes its "
        "part of RESULTS.md; with any, it only prints."
    )
    parser.add_argument("folder", type=Path, help="of .npz tables with `config` and `hp_names`.")
    parser.add_argument("--seeds", type=int, default=20, help="for each file. [default: 20]")
    given = parser.parse_args(arguments)
    if given.seeds < 2:
        parser.error(f"--seeds {given.seeds} is too few for an interval. Give at least 2.")
    files = tables(given.folder)
    if not files:
        parser.error(f"{given.folder} has no .npz table with `losses`, `config` and `hp_names`.")

    began = perf_counter()
    found = play_all(files, given.seeds)
    took = perf_counter() - began

    packages = ["lastarm", "numpy", "scikit-learn"]
    record = Record("adaptive", "python benchmarks/adaptive.py FOLDER", packages)
    record.note(__doc__.partition("\n\n")[2].rpartition("\n\n")[0])
    names = ", ".join(file.name for file in files)
    record.note(f"{given.seeds} seeds for each of: {names}.")
    families = list(dict.fromkeys(file.family for file in files))
    for family in [None, *families] if len(families) > 1 else families:
        rows = [k for k, file in enumerate(files) if family in (None, file.family)]
        record.table(family or "All tables", compared(found, rows))
    record.table(
        "Loss of chosen less random arms, table by table",
        {
            file.name: {
                name: "{:+.4f} ± {:.4f}".format(*difference(of[[k], :, :, 0]))
                for name, of in found.items()
            }
            for k, file in enumerate(files)
        },
    )
    record.section("What playing takes")
    searches = 2 * len(found) * len(files) * given.seeds
    record.row(f"all {searches:,} searches, {os.cpu_count()} at a time", took, "s")
    if given == parser.parse_args([str(given.folder)]):
        record.write()


if __name__ == "__main__":
    main()
