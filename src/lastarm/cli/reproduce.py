"""`lastarm reproduce`: the paper's figures, table and theorems, run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lastarm.arguments import whole_number
from lastarm.cli import display
from lastarm.cli.options import seed_option, whole_option
from lastarm.errors import InvalidArgument, JournalError
from lastarm.papers.jamieson2015 import page
from lastarm.papers.jamieson2015.page import Part, Settings, Stopped

PAPER = "lastarm.papers.jamieson2015"
PARTS = {
    "traces": ["traces.traces"],
    "ridge": ["comparisons.ridge"],
    "svm": ["comparisons.svm", "comparisons.svm_together"],
    "completion": ["comparisons.completion"],
    "table1": ["table1.table1"],
    "theorems": [
        "theorems.budgets_needed",
        "theorems.adversary_at_work",
        "theorems.doubling_trick",
    ],
    "subsets": ["examples.subsets", "examples.linear_svm"],
}  # in the order of the page, with the functions of each


@click.command()
@click.argument("part", type=click.Choice([*PARTS, "all"]))
@whole_option(
    "--trials",
    help="How often ridge, svm, completion and subsets are repeated. [default: as in the paper]",
)
@click.option("--quick", is_flag=True, help="Small data, few trials: under a minute for all.")
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
def reproduce(
    part: str,
    trials: Any,
    quick: bool,
    data: str | None,
    workers: Any,
    out: Path | None,
    seed: Any,
) -> int:
    """Run the paper's experiments again, and check its claims.

    \b
    traces      figure 1: validation errors of many kernel SVMs
    ridge       section 5.1: ridge regression, seven policies
    svm         section 5.2: kernel SVM
    completion  section 5.3: matrix completion
    table1      how many losses each policy observes
    theorems    budgets that suffice, the adversary, the doubling trick
    subsets     examples 1 and 4: feature subsets, linear SVM
    all         all of these, on built-in data

    Numbers are written to OUT as CSV, figures as PNG and SVG, and the result of each claim to the
    page OUT/README.md. Searches have journals: the same command continues where it was stopped.
    """  # noqa: D301 (click keeps the lines of a paragraph that begins with this mark)
    if part == "all" and data is not None:
        raise InvalidArgument(
            f"--data {data} is for one experiment, not for all. Name the experiment, such as "
            "`lastarm reproduce ridge`."
        )
    if data is not None and part in ("table1", "theorems", "subsets"):
        raise InvalidArgument(
            f"--data {data} is not valid: {part} makes its own data. Leave it out."
        )
    try:
        names = [name for key in (PARTS if part == "all" else [part]) for name in PARTS[key]]
        parts = [name.split(".") for name in names]
        functions = {name: getattr(import_module(f"{PAPER}.{file}"), name) for file, name in parts}
    except ImportError as error:
        raise InvalidArgument(f"{error} For all of it: pip install 'lastarm[paper]'.") from error
    settings = Settings(
        out=out or Path("jamieson2015-quick" if quick else "jamieson2015"),
        trials=None if trials is None else whole_number("trials", trials, 1, "repetitions"),
        quick=quick,
        data=data,
        workers=whole_number("workers", workers, 1, "how many trials run at a time"),
        seed=whole_number("seed", seed, 0, "what all randomness is derived from"),
    )
    page.check(settings.out)
    try:
        for name, function in functions.items():
            with _progress(name) as show:
                found: Part = function(replace(settings, progress=show))
            for claim in found.claims:
                display.say(f"{claim.claim}: {claim.holds}")
                display.say(f"    paper: {claim.paper}")
                display.say(f"    ours:  {claim.ours} ({claim.data})")
    except JournalError:
        display.say("If this is another run, or uses other data, name another folder with --out.")
        raise
    except Stopped as stopped:
        display.say("Stopped. The same command continues from here.")
        return 128 + stopped.signal
    display.say(f"The page: {page.write_page(settings.out)}")
    return 0


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn(name), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    unseen = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=unseen) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
