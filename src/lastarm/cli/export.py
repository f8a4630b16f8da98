"""`lastarm export`: a journal in forms that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from lastarm.cli import display
from lastarm.errors import InvalidArgument
from lastarm.journal import read
from lastarm.report.exports import tables
from lastarm.result import Result


def export(
    journal: str,
    output: str | None,
    rows: str | None,
    optuna: str | None,
    name: str | None,
    level: Any,
) -> None:
    """Export a search as CSV, or as an Optuna study."""
    if output is None and optuna is None:
        raise InvalidArgument(
            "no output is given. Use -o FILE for CSV, or --optuna URL for a study."
        )
    if optuna is None and (name is not None or level is not None):
        raise InvalidArgument("--name and --level belong to a study. Add --optuna URL.")
    if output is None and rows is not None:
        raise InvalidArgument("--format belongs to a file. Add -o FILE.")
    events = read(journal)
    result = Result.of(events)
    if output is not None:
        if Path(output).exists() and Path(output).samefile(journal):
            raise InvalidArgument(
                f"{output} is the journal itself, and is not replaced. Name another file."
            )
        if rows is None and not output.endswith(".csv"):
            rule = "its name does not say what to write"
            way_out = "Use a name that ends in .csv, or add --format"
            raise InvalidArgument.of("output", output, rule, way_out)
        if rows == "events" or (rows is None and output.endswith("events.csv")):
            count = tables.write_csv(
                output, tables.EVENT_COLUMNS, tables.event_rows(events, result.metric)
            )
            written = f"{count:,} events"
        else:
            count = tables.write_csv(output, tables.ARM_COLUMNS, tables.arm_rows(result))
            written = f"{count:,} arms"
        display.say(f"Wrote {written} to {escape(display.plain(output))}.")
    if optuna is not None:
        study = result.to_optuna(optuna, name or Path(journal).stem, level=level)
        display.say(
            f"Wrote {len(study.trials):,} trials to the study "
            f"{escape(display.plain(study.study_name))}."
        )
