"""The figures of the page, drawn again from the tables that lie beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lastarm.errors import InvalidArgument
from lastarm.papers.jamieson2015 import (
    figures,
    good_arms,
    page,
    table1,
    theorems,
    tightness,
    traces,
)
from lastarm.papers.jamieson2015.experiments import COMPLETION, RIDGE, SVM, Experiment
from lastarm.papers.jamieson2015.page import Row
from lastarm.report.figures.drawing import Figure

Draw = Callable[[list[Row], str], Figure]


def _compared(experiment: Experiment) -> Draw:
    unit = f"{experiment.pull} each"
    return lambda rows, title: figures.comparison(
        rows, title=title, unit=unit, ylabel=experiment.error
    )


DRAWN: dict[str, Draw] = {
    "traces": traces.drawn,
    "ridge": _compared(RIDGE),
    "grid": lambda rows, title: figures.cells(rows),
    "svm": _compared(SVM),
    "completion": _compared(COMPLETION),
    "table1": lambda rows, title: table1.drawn(rows),
    "theorem1-and-2": lambda rows, title: theorems.drawn(rows),
    "theorem1-sharper": lambda rows, title: tightness.drawn(rows),
    "theorem3": lambda rows, title: figures.ranks(rows, theorems.OF_THEOREM_3),
    "theorem4": lambda rows, title: figures.regrets(rows, good_arms.RIVALS),
    "doubling": lambda rows, title: figures.doubling(rows),
    "reductions": lambda rows, title: figures.missed(rows, len({row["trial"] for row in rows})),
    "subsets": lambda rows, title: figures.found(rows),
}
"""By what a key begins with: how its figure is drawn from its rows. Example 4's needs searches."""


def redrawn(folder: Path | str, key: str) -> Figure:
    """The figure of a part, from `key.csv` and the title in `key.json`."""
    folder = Path(folder)
    known = [draw for start, draw in DRAWN.items() if key.startswith(start)]
    if not known:
        rule = f"figures can be drawn again for {', '.join(DRAWN)}"
        raise InvalidArgument.of("key", key, rule, "Run its part again")
    title = page.read(folder / f"{key}.json").title
    return known[0](page.rows_of(folder / f"{key}.csv"), title)
