"""The stretches of a search that was extended: what each spent, and what it came to."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from rich import box
from rich.table import Table

from lastarm.result import Result


def stretches(result: Result) -> list[dict[str, Any]]:
    """Each as an object: its budget, what was spent in it, and its answer, if it has one."""
    sums = [*(stretch.before for stretch in result.stretches), result.spent]
    return [
        {
            "budget": stretch.budget,
            "pulls": after.pulls - before.pulls,
            "observations": after.observations - before.observations,
            "repeated": after.repeated - before.repeated,
            "complete": stretch.closed is not None,
            "arm": None,
            "level": None,
            "loss": None,
            "test_loss": None,
        }
        | (
            {
                "arm": closed.arm,
                "level": closed.upto,
                "loss": dict(result.curves.get(closed.arm, [])).get(closed.upto),
                "test_loss": closed.test_loss,
            }
            if (closed := stretch.closed)
            else {}
        )
        for stretch, (before, after) in zip(result.stretches, pairwise(sums), strict=True)
    ]


def stretches_table(result: Result) -> Table:
    """The same for people."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("budget", "pulls", "looks", "recommended", "after", "loss", "test loss"):
        table.add_column(heading, justify="right")
    for row in stretches(result):
        losses = (row["loss"], row["test_loss"])
        table.add_row(
            f"{row['budget']:,}",
            f"{row['pulls']:,}",
            f"{row['observations']:,}",
            f"arm {row['arm']}" if row["complete"] else "not closed",
            f"{row['level']:,}" if row["complete"] else "",
            *("" if loss is None else f"{loss:.6g}" for loss in losses),
        )
    return table
