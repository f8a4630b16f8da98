"""The tables and the figure, from what was played."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import isnan, sqrt
from pathlib import Path
from statistics import NormalDist, fmean, median

import numpy as np
from numpy.typing import NDArray

from arena.contenders.entered import CHOSEN, ENTERED, REFERENCE
from arena.problems.noisy import NOISY
from arena.results import BUDGETS, Played, known
from arena.scales import Scale, stored
from lastarm.report.figures.drawing import Figure, draw, house, legend, log
from lastarm.report.figures.palette import Look
from record import DEHB, Cell, Record

ENOUGH = 8  # tasks; with fewer, an interval is over seeds


class Family:
    """What was played on the problems of one family.

    - `tasks`: the problems.
    - `regret`, `test`: contender → [task, seed, budget], nan where it was not played.
    - `seconds`: contender → the same, the processor time that it took for itself.
    """

    def __init__(self, name: str, played: Sequence[Played], scale: dict[str, Scale]) -> None:
        self.name = name
        self.tasks = list(dict.fromkeys(one.problem for one in played))
        seeds = 1 + max(one.seed for one in played)
        names = [one.name for one in ENTERED if any(one.name == p.contender for p in played)]
        shape = (len(self.tasks), seeds, len(BUDGETS))
        self.regret, self.test, self.seconds = (
            {name: np.full(shape, np.nan) for name in names} for _ in range(3)
        )
        for one in played:
            if one.contender not in self.regret:
                continue
            of, task = scale[one.problem.removesuffix(NOISY)], self.tasks.index(one.problem)
            for k, budget in enumerate(BUDGETS):
                if budget in one.final:
                    place = (task, one.seed, k)
                    self.regret[one.contender][place] = of.regret(one.final[budget])
                    self.test[one.contender][place] = of.test_regret(one.test[budget])
                    self.seconds[one.contender][place] = one.seconds[budget]

        for values in [*self.regret.values(), *self.test.values(), *self.seconds.values()]:
            tasks = np.isfinite(values).any(axis=1).sum(axis=0)
            values[:, :, tasks < tasks.max()] = np.nan  # a mean over fewer tasks is another mean

    @property
    def tested(self) -> bool:
        """Whether there are test losses."""
        return any(np.isfinite(values).any() for values in self.test.values())


def interval(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """The mean over tasks, and half its 95 % interval: over tasks, or over seeds if they are few.

    - `values`: [task, seed], nan where it was not played. Tasks without any are left out; None if
      there are none left.
    """
    values = values[np.isfinite(values).any(axis=1)]
    if not len(values):
        return None
    mean = fmean(np.nanmean(values, axis=1))
    if len(values) >= ENOUGH:
        each = np.nanmean(values, axis=1)
    else:
        each = np.array([np.nanmean(row) for row in values.T if np.isfinite(row).all()])
    if len(each) < 2:
        return mean, float("nan")
    return mean, student(len(each) - 1) * float(each.std(ddof=1)) / sqrt(len(each))


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution.

    >>> [round(student(k), 2) for k in (1, 2, 4, 9, 23)]
    [12.71, 4.3, 2.78, 2.26, 2.07]
    """
    few = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}
    if freedom in few:
        return few[freedom]
    z = NormalDist().inv_cdf(0.975)  # then Cornish and Fisher's expansion is near enough
    g1, g2 = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + g1 / freedom + g2 / freedom**2


def shown(value: tuple[float, float] | None, sign: str = "") -> str:
    """A mean and its interval."""
    if value is None:
        return "–"
    mean, half = value
    mean = 0.0 if abs(mean) < 0.0005 else mean
    return f"{mean:{sign}.3f}" + ("" if isnan(half) else f" ± {half:.3f}")


def regrets(of: dict[str, NDArray[np.float64]]) -> dict[str, dict[str, Cell]]:
    """A row for each contender: the mean regret at each budget."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, values in of.items():
        rows[name] = {
            f"{budget}": shown(interval(values[:, :, k])) for k, budget in enumerate(BUDGETS)
        }
        rows[name]["tasks × seeds"] = _count(values)
    return rows


def _count(values: NDArray[np.float64]) -> str:
    there = np.asarray(np.isfinite(values).any(axis=2))
    seeds = there.sum(axis=1)[there.any(axis=1)]
    fewest, most = int(seeds.min()), int(seeds.max())
    return f"{len(seeds)} × {fewest}" + (f"…{most}" if fewest < most else "")


def compared(of: dict[str, NDArray[np.float64]], whom: str) -> dict[str, dict[str, Cell]]:
    """A row for each contender: its regret as a share of `whom`'s, and less it, in pairs."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, values in of.items():
        if name == whom:
            continue
        rows[name] = {}
        for k, budget in enumerate(BUDGETS):
            both = np.isfinite(values[:, :, k]) & np.isfinite(of[whom][:, :, k])
            ours, theirs = (np.where(both, of[n][:, :, k], np.nan) for n in (name, whom))
            one, other, apart = interval(ours), interval(theirs), interval(ours - theirs)
            if one and other and apart:
                rows[name][f"{budget}"] = f"×{one[0] / other[0]:.2f} ({shown(apart, '+')})"
            else:
                rows[name][f"{budget}"] = "–"
    return rows


def ahead(of: dict[str, NDArray[np.float64]], whom: str) -> dict[str, dict[str, Cell]]:
    """At each budget, who is ahead of `whom` on the same tasks and seeds, told apart or not."""
    rows: dict[str, dict[str, Cell]] = {"ahead, beyond the interval": {}, "ahead, within it": {}}
    for k, budget in enumerate(BUDGETS):
        clearly, perhaps = list[str](), list[str]()
        for name, values in of.items():
            apart = interval(values[:, :, k] - of[whom][:, :, k])
            if name == whom or apart is None or apart[0] >= 0:
                continue
            (clearly if apart[0] < -apart[1] else perhaps).append(name)
        rows["ahead, beyond the interval"][f"{budget}"] = "; ".join(clearly) or "none"
        rows["ahead, within it"][f"{budget}"] = "; ".join(perhaps) or "none"
    return rows


def pairs(family: Family, whom: str) -> dict[str, dict[str, Cell]]:
    """A row for each problem: how much lower the regret is than the reference's."""
    rows: dict[str, dict[str, Cell]] = {}
    for number, task in enumerate(family.tasks):
        rows[task] = {}
        for what, values in (("validation", family.regret), ("test", family.test)):
            for k, budget in enumerate(BUDGETS):
                apart = values[whom][number, :, k] - values[REFERENCE][number, :, k]
                if np.isfinite(apart).any():
                    rows[task][f"{what}, {budget}"] = f"{np.nanmean(apart):+.3f}"
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    signs = {column: [row[column] for row in rows.values() if column in row] for column in columns}
    rows["lower on"] = {
        column: f"{sum(str(cell).startswith('-') for cell in cells)} of {len(cells)}"
        for column, cells in signs.items()
    }
    return rows


def takes(families: Sequence[Family]) -> dict[str, dict[str, Cell]]:
    """A row for each contender: the seconds that it takes for itself."""
    rows: dict[str, dict[str, Cell]] = {}
    for entered in ENTERED:
        there = [of.seconds[entered.name] for of in families if entered.name in of.seconds]
        for k, budget in enumerate(BUDGETS):
            values = (
                np.concatenate([of[:, :, k].ravel() for of in there]) if there else np.array([])
            )
            values = values[np.isfinite(values)]
            if len(values):
                rows.setdefault(entered.name, {})[f"{budget}"] = f"{median(values):.2g} s"
    return rows


def write_page(arena: Path) -> None:
    """Write the tables below the protocol, and draw the curves."""
    scale, families, used = stored(arena), [], set()
    for file in sorted((arena / "results").glob("*.csv")):
        if played := [one for one in known(file) if one.problem.removesuffix(NOISY) in scale]:
            families.append(Family(file.stem.replace("-", " "), played, scale))
            used |= {one.contender for one in played}
    playing = [one for one in ENTERED if one.name in used]
    beside, apart = (
        list(dict.fromkeys(name for one in playing if one.apart == away for name in one.packages))
        for away in (False, True)
    )
    record = Record("arena", "make arena", ["lastarm", "numpy", *beside])
    if apart:
        record.beside(DEHB, [*apart, "numpy"])
    record.note("![Regret against budget](arena.png)")
    for family in families:
        title = f"{family.name}, {len(family.tasks)} tasks"
        over = "tasks" if len(family.tasks) >= ENOUGH else "seeds"
        record.table(f"{title}: mean regret, ± over {over}", regrets(family.regret))
        if REFERENCE in family.regret:
            record.table(
                f"{title}: regret as a share of that of “{REFERENCE}”, and less it, in pairs",
                compared(family.regret, REFERENCE),
            )
        if CHOSEN in family.regret:
            record.table(f"{title}: who is ahead of “{CHOSEN}”", ahead(family.regret, CHOSEN))
        if family.tested:
            record.table(f"{title}: mean regret by test loss, ± over {over}", regrets(family.test))
            if {REFERENCE, CHOSEN} <= family.regret.keys():
                record.table(
                    f"{title}: regret of “{CHOSEN}” less that of “{REFERENCE}”",
                    pairs(family, CHOSEN),
                )
    record.table("Processor time of the method itself, median of a search", takes(families))
    record.write(arena / "README.md")
    picture(families, arena / "arena.png")


def picture(families: Sequence[Family], file: Path) -> None:
    """A panel for each family: the mean regret against the budget."""
    markers, columns = cycle("o^vDPX<>ph*"), 2
    looks = {}
    for number, entered in enumerate(ENTERED):
        dashes = ("-", (0, (5, 2)), (0, (1, 1.5)))[number // 10 % 3]
        looks[entered.name] = Look(entered.name, f"C{number % 10}", dashes, next(markers), 1.2)
    looks[REFERENCE] = Look(REFERENCE, "#000000", "-", "s", 2.6)
    looks[CHOSEN] = Look(CHOSEN, "#D55E00", "-", "D", 2.8)
    with house():
        lines = -(-len(families) // columns)
        figure = Figure(figsize=(12, 1.8 + 4.2 * lines))
        panels = list(figure.subplots(lines, columns, squeeze=False).ravel())
        for family, axes in zip(families, panels, strict=False):
            for name, values in family.regret.items():
                means = [interval(values[:, :, k]) for k in range(len(BUDGETS))]
                there = [(b, m[0]) for b, m in zip(BUDGETS, means, strict=True) if m]
                draw(axes, looks[name], *zip(*there, strict=True))
            log(axes, "xy")
            axes.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
            axes.xaxis.minorticks_off()
            axes.set(title=f"{family.name}, {len(family.tasks)} tasks")
            axes.set(xlabel="budget, full trainings", ylabel="mean regret")
        for axes in panels[len(families) :]:
            axes.set_visible(False)
        legend(figure, panels[: len(families)], 3)
        figure.savefig(file, dpi=130)
