"""`lastarm reproduce`: the paper's figures, table and theorems, run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lastarm.arguments import whole_number
from lastarm.cli import display
from lastarm.cli.words.reproduce import PARTS
from lastarm.errors import InvalidArgument, JournalError
from lastarm.papers.jamieson2015 import page
from lastarm.papers.jamieson2015.page import Part, Settings, Stopped

PAPER = "lastarm.papers.jamieson2015"


def reproduce(
    part: str,
    trials: Any,
    quick: bool,
    again: bool,
    data: str | None,
    workers: Any,
    out: Path | None,
    seed: Any,
) -> int:
    """Run the paper's experiments again, and check its claims."""
    if part == "all" and data is not None:
        raise InvalidArgument(
            f"--data {data} is for one experiment, not for all. Name the experiment, such as "
            "`lastarm reproduce ridge`."
        )
    if data is not None and part in ("table1", "theorems", "reductions", "subsets"):
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
    if again:
        return _again(part, settings)
    try:
        for name, function in functions.items():
            began = monotonic()
            with _progress(name) as show:
                found: Part = function(replace(settings, progress=show))
            _tell(found)
            display.say(f"{name}: {round(monotonic() - began):,} s")
    except JournalError:
        display.say("If this is another run, or uses other data, name another folder with --out.")
        raise
    except Stopped as stopped:
        display.say("Stopped. The same command continues from here.")
        return 128 + stopped.signal
    display.say(f"The page: {page.write_page(settings.out)}")
    return 0


def _again(part: str, settings: Settings) -> int:
    """Judge and draw from the rows that are there; then write the page."""
    if part not in (*page.PARALLEL, "all"):
        raise InvalidArgument(
            f"--again is not valid: {part} has no trials to judge again. Name one of "
            f"{', '.join(page.PARALLEL)}, or all for those of which there are rows."
        )
    comparisons = import_module(f"{PAPER}.comparisons")
    for experiment in (comparisons.RIDGE, comparisons.SVM, comparisons.COMPLETION):
        there = any(settings.out.glob(f"{experiment.name}-*.csv"))
        if part == experiment.name or (part == "all" and there):
            for found in comparisons.again(experiment, settings):
                _tell(found)
    display.say(f"The page: {page.write_page(settings.out)}")
    return 0


def _tell(found: Part) -> None:
    for claim in found.claims:
        display.say(f"{claim.claim}: {claim.holds}")
        display.say(f"    paper: {claim.paper}")
        display.say(f"    ours:  {claim.ours} ({claim.data})")


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn(name), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    unseen = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=unseen) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
