"""What a search of a model costs in CPU seconds of one thread, beside the training itself.

    .venv-bench/bin/python benchmarks/models.py [FAMILY …] [--data made digits] [--a9a FILE.npz]
        [--kept FILE.json]

lastarm is `HalvingSearch` as it comes, told the arms and what full training is: it spends a fifth
of what training all arms fully takes. It is set against

- the floor: the same arms to the same levels, each by one plain `fit` and one look at VAL;
- bare `update()` calls: the same trees on one Dataset or QuantileDMatrix that all arms share, and
  that is built once within this time; no looks;
- scikit-learn's HalvingRandomSearchCV, by the same parameter that counts pulls;
- scikit-learn's RandomizedSearchCV of as many arms as can be fully trained for lastarm's pulls;
- Optuna with its SuccessiveHalvingPruner, by its own callbacks for LightGBM, XGBoost and CatBoost,
  and else by `partial_fit` or `warm_start`, a report after every pull.

All have the same arms, and the same TRAIN and VAL (a fifth). A model is judged by its accuracy.
None trains its winner again. The contenders take turns in each round, in one process that has
loaded and compiled all it needs before. Every figure is a median over the rounds, which differ in
the seed. "Full trainings" are lastarm's CPU seconds by those of the mean arm, trained fully in one
`fit` with one look. The error is that of the arm that was found, trained fully, on TEST.

Without a part chosen, all is measured and written down; a part is only printed. With `--kept FILE`
a run that was stopped continues: it measures what is not in the file, and puts it there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

from lastarm import Configs
from lastarm.errors import InvalidArgument
from lastarm.sklearn import HalvingSearch
from models_arms import ARMS, FAMILIES, SIZES, Clock, Setting, Spent, Task
from models_peers import Levels, floor, halving, optunas, randomized, updates
from record import Cell, Record

OURS, FLOOR, UPDATES = "lastarm", "the floor", "bare update()"
HALVING, RANDOM, OPTUNA = "HalvingRandomSearchCV", "RandomizedSearchCV", "Optuna"
PEERS = (HALVING, RANDOM, OPTUNA)
FULL = "full trainings"
COMMAND = ".venv-bench/bin/python benchmarks/models.py"


class Measured(NamedTuple):
    """Medians of a setting, by contender; empty if lastarm does not train such a model."""

    cpu: dict[str, Cell]
    wall: dict[str, Cell]
    pulls: dict[str, Cell]
    error: dict[str, Cell]


def ours(task: Task, seed: int) -> tuple[Spent, Levels]:
    """HalvingSearch of all arms, and how far it brought each."""
    clock = Clock()
    search = HalvingSearch(
        task.family.estimator,
        Configs(task.arms),
        n_arms=len(task.arms),
        max_pulls=task.max_pulls,
        cv=[(task.learnt, task.judged)],
        refit="keep",
        random_state=seed,
    )
    search.fit(*task.searched)
    spent = clock.spent(search.best_index_, search.spent_.pulls)
    return spent, {arm: curve[-1][0] for arm, curve in search.result_.curves.items()}


def one_round(task: Task, seed: int) -> dict[str, Spent]:
    """All contenders, beginning with another peer in every round."""
    found = {}
    found[OURS], levels = ours(task, seed)
    contenders = {
        FLOOR: lambda: floor(task, levels),
        HALVING: lambda: halving(task, seed),
        RANDOM: lambda: randomized(task, seed, found[OURS].pulls),
        OPTUNA: lambda: optunas(task, seed),
    }
    if task.setting.family.startswith(("lightgbm", "xgboost")):
        contenders[UPDATES] = lambda: updates(task, levels)
    names, turn = list(contenders), seed % len(contenders)
    return found | {name: contenders[name]() for name in names[turn:] + names[:turn]}


def measure(setting: Setting, rounds: int) -> Measured | None:
    """A setting in a process of its own; None if lastarm does not train such a model."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # it is we who say when to stop
    try:
        one_round(Task(Setting(setting.family, setting.data, 2, setting.a9a, few=True)), 0)
    except InvalidArgument as refused:
        print(f"{setting.family} is left out: {refused}", file=sys.stderr)
        return None
    task = Task(setting)
    found = [one_round(task, seed) for seed in range(rounds)]
    names = [name for name in (OURS, FLOOR, UPDATES, *PEERS) if name in found[0]]
    cpu = {name: median(each[name].cpu for each in found) for name in names}
    seconds, errors = zip(*task.fully, strict=True)
    finders = [name for name in names if found[0][name].arm is not None]
    error = {
        name: median(errors[arm] for each in found if (arm := each[name].arm) is not None)
        for name in finders
    }
    return Measured(
        {**cpu, FULL: cpu[OURS] / fmean(seconds)},
        {name: median(each[name].wall for each in found) for name in names},
        {name: median(each[name].pulls for each in found) for name in names},
        {**{name: 100 * e for name, e in error.items()}, "the best arm": 100 * min(errors)},
    )


def goals(setting: Setting, cpu: dict[str, Cell]) -> Iterator[tuple[str, float, str]]:
    """What must show, of one setting: what it is, what was reached, and the goal."""
    values = {name: value for name, value in cpu.items() if isinstance(value, float)}
    us, at_least = values[OURS], values[FLOOR]
    kind, drawing, _ = setting.family.partition("-")
    if kind in ("lightgbm", "xgboost"):
        if setting.data == "made" and setting.max_pulls == 64:
            yield "÷ bare update()", us / values[UPDATES], "≤ 1.25"
        if setting.data == "made":
            goal = {24: "≥ 3", 64: "≥ 1.7" if kind == "lightgbm" else ""}[setting.max_pulls]
            yield "Optuna ÷ lastarm", values[OPTUNA] / us, "" if drawing else goal
        else:
            goal = "≤ 1" if setting.data == "digits" else "≤ 0.5"
            yield "÷ the floor", us / at_least, goal
    most = {
        ("histogram", "made", 24): "≤ 0.35",
        ("mlp", "digits", 32): "≤ 0.35",
        ("lbfgs", setting.data, setting.max_pulls): "≤ 2.2",
        ("forest", "digits", 32): "≤ 1.3",
    }.get((setting.family, setting.data, setting.max_pulls))
    if most:
        yield "÷ the floor", us / at_least, most
    if (setting.family, setting.data) == ("mlp", "digits"):
        yield "fastest peer ÷ lastarm", min(values[name] for name in PEERS) / us, "≥ 1.8"
    if ARMS[setting.data] == 16 and kind in ("lightgbm", "xgboost", "histogram", "mlp", "forest"):
        yield "16 settings, in full trainings", values[FULL], "< 6"


def missed(value: float, goal: str) -> bool:
    """Whether a goal such as "≤ 1.25" was missed."""
    sense, _, limit = goal.partition(" ")
    return (
        bool(goal)
        and not {
            "≤": value <= float(limit),
            "<": value < float(limit),
            "≥": value >= float(limit),
        }[sense]
    )


def write_down(record: Record, found: dict[Setting, Measured]) -> None:
    """Tables for each data set and length of training, and the goals."""
    for data in SIZES:
        pulls = dict.fromkeys(setting.max_pulls for setting in found if setting.data == data)
        titles = {
            setting: f"{FAMILIES[setting.family].title}, {setting.max_pulls} pulls"
            if len(pulls) > 1
            else FAMILIES[setting.family].title
            for setting in found
            if setting.data == data
        }
        for what, column in (
            ("CPU seconds", "cpu"),
            ("Wall seconds", "wall"),
            ("Pulls", "pulls"),
            ("Error on TEST of the arm that was found, in %", "error"),
        ):
            rows = {title: getattr(found[setting], column) for setting, title in titles.items()}
            if rows:
                record.table(f"{SIZES[data]}, {ARMS[data]} arms: {what}", rows)
    record.section("What must show, in CPU seconds")
    for setting, measured in found.items():
        title = f"{FAMILIES[setting.family].title}, {setting.data}, {setting.max_pulls} pulls"
        for what, value, goal in goals(setting, measured.cpu):
            record.row(
                f"{title}: {what}",
                value,
                "",
                goal=f"{goal}{', missed' if missed(value, goal) else ''}",
            )


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description="What a search of a model costs.")
    parser.add_argument("family", nargs="*", help=f"some of {', '.join(FAMILIES)}; default: all")
    parser.add_argument("--data", nargs="+", choices=SIZES, help="default: all that there is")
    parser.add_argument("--a9a", metavar="FILE.npz", help="a9a, as arrays X, y, X_test, y_test")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--kept", metavar="FILE.json", type=Path, help="keep what was measured")
    given = parser.parse_args()
    if unknown := set(given.family) - FAMILIES.keys():
        parser.error(f"unknown: {', '.join(unknown)}. Use some of {', '.join(FAMILIES)}.")
    if given.data and "a9a" in given.data and not given.a9a:
        parser.error("a9a is read from a file: use --a9a FILE.npz")
    settings = [
        Setting(family, data, max_pulls, given.a9a)
        for data in given.data or SIZES
        if data != "a9a" or given.a9a
        for family in given.family or FAMILIES
        for max_pulls in FAMILIES[family].max_pulls[data]
    ]
    file = f" --a9a {Path(given.a9a).name}" if given.a9a else ""
    rounds = f" --rounds {given.rounds}" if given.rounds != 3 else ""
    packages = ["lastarm", "scikit-learn", "lightgbm", "xgboost", "optuna", "numpy", "numba"]
    packages += ["catboost"] if "catboost" in FAMILIES else []
    record = Record("models", f"{COMMAND}{file}{rounds}", packages)
    record.note(__doc__.partition("\n\n")[2].partition("\n\n")[2].rpartition("\n\n")[0])
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    kept = json.loads(given.kept.read_text()) if given.kept and given.kept.exists() else {}
    found = {}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for setting in settings:
            name = f"{setting.family} {setting.data} {setting.max_pulls}, {given.rounds} rounds"
            if name not in kept:
                measured = pool.submit(measure, setting, given.rounds).result()
                print(name, measured, flush=True)
                kept[name] = measured and measured._asdict()
                if given.kept:
                    given.kept.write_text(json.dumps(kept, indent=1))
            if kept[name]:
                found[setting] = Measured(**kept[name])
    write_down(record, found)
    if not given.family and not given.data:
        record.write()


if __name__ == "__main__":
    main()
