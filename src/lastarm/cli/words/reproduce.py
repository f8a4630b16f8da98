"""The words of `lastarm reproduce`."""

from __future__ import annotations

from pathlib import Path

import click

from lastarm.cli.options import seed_option, whole_option
from lastarm.cli.words import deed

PARTS = {
    "traces": ["traces.traces"],
    "ridge": ["comparisons.ridge"],
    "grid": ["grid.grid_of_choices"],
    "svm": ["comparisons.svm", "comparisons.svm_together"],
    "completion": ["comparisons.completion"],
    "table1": ["table1.table1"],
    "theorems": [
        "theorems.budgets_needed",
        "tightness.rung_by_rung",
        "theorems.adversary_at_work",
        "good_arms.theorem_4",
        "theorems.doubling_trick",
    ],
    "reductions": ["reductions.reductions"],
    "subsets": ["examples.subsets", "examples.linear_svm"],
}  # in the order of the page, with the functions of each


@click.command()
@click.argument("part", type=click.Choice([*PARTS, "all"]))
@whole_option(
    "--trials",
    help="How often parts with trials are repeated. [default: as in the paper]",
)
@click.option("--quick", is_flag=True, help="Small data, few trials: under a minute for all.")
@click.option(
    "--again",
    is_flag=True,
    help="Run nothing: judge and draw ridge, svm or completion from the rows in OUT.",
)
@click.option(
    "--data",
    metavar="PATH",
    help="Data to use instead of the built-in: a file (.npz with X and y, .csv, ratings), or "
    "year-prediction-msd or movielens-100k, which are downloaded. Not for all.",
)
@whole_option(
    "--workers",
    default=1,
    show_default=True,
    help="How many trials of ridge, svm and completion run at a time, each in a process.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where results go, and the journals to resume from. [default: jamieson2015, or "
    "jamieson2015-quick]",
)
@seed_option
@deed
def reproduce() -> None:
    """Run the paper's experiments again, and check its claims.

    \b
    traces      figure 1: validation errors of many kernel SVMs
    ridge       section 5.1: ridge regression, seven policies
    grid        section 5.1 under other choices of what the paper does not say
    svm         section 5.2: kernel SVM
    completion  section 5.3: matrix completion
    table1      how many losses each policy observes
    theorems    budgets that suffice, the adversary, the doubling trick
    reductions  section 2: stochastic arms and max-bandits
    subsets     examples 1 and 4: feature subsets, linear SVM
    all         all of these, on built-in data

    Numbers are written to OUT as CSV, figures as PNG and SVG, and the result of each claim to the
    page OUT/README.md. With --again, the rules for claims are applied to the numbers in OUT.
    Searches have journals: the same command continues where it was stopped.
    """  # noqa: D301 (click keeps the lines of a paragraph that begins with this mark)
