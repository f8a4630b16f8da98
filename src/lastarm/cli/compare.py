"""`lastarm replay --compare`: every policy at one budget, in one table."""

from __future__ import annotations

from math import isfinite
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable

from lastarm.cli import display
from lastarm.cli.table import Table
from lastarm.errors import AllArmsFailed, BudgetTooSmall
from lastarm.policies import POLICIES
from lastarm.policies.named import takes
from lastarm.theory import ends_lower


def compare(table: Table, options: dict[str, Any]) -> tuple[list[dict[str, Any]], int | None]:
    """What each policy found and spent, and the signal that stopped it all, if one did."""
    found: list[dict[str, Any]] = []
    failed: list[AllArmsFailed] = []
    for name in POLICIES:
        known = {key: value for key, value in options.items() if takes(name, key)}
        try:
            result, rows = table.play(table.policy(name, **known))
        except (BudgetTooSmall, AllArmsFailed) as error:
            found.append({"policy": name, "error": str(error)})
            failed += [error] if isinstance(error, AllArmsFailed) else []
            continue
        if result.stopped_by:
            return found, result.stopped_by
        assert result.arm is not None
        curves = table.curves.losses[rows]
        found.append(
            {
                "policy": name,
                "arm": rows[result.arm],
                "loss": result.loss,
                "final_loss": float(curves[result.arm, -1]),
                "better_arms": len(ends_lower(curves, result.arm)),
                "pulls": result.spent.pulls,
                "observations": result.spent.observations,
            }
        )
    if failed and all("error" in row for row in found):
        raise failed[0]
    return found, None


def print_comparison(found: list[dict[str, Any]], table: Table, budget: int) -> None:
    """The same as a table for people."""
    rich = RichTable(box=box.SIMPLE_HEAD)
    rich.add_column("policy", no_wrap=True)
    for heading in ("arm", "loss", "final", "better", "pulls", "looks"):
        rich.add_column(heading, justify="right", no_wrap=True)
    for row in found:
        if "error" in row:
            continue
        final = row["final_loss"]
        rich.add_row(
            row["policy"],
            f"{row['arm']}",
            f"{row['loss']:.4g}",
            f"{final:.4g}" if isfinite(final) else "diverged",
            f"{row['better_arms']:,}",
            f"{row['pulls']:,}",
            f"{row['observations']:,}",
        )
    full = len(table.rows) * table.columns
    display.say(
        f"{len(table.rows):,} arms with a budget of {budget:,} pulls, {budget / full:.1%} of "
        f"training all of them to the end."
    )
    display.console.print(rich)
    display.say("Final: the loss at the end of that arm's curve. Better: how many arms end lower.")
    for row in found:
        if "error" in row:
            display.say(f"{row['policy']}: {escape(row['error'])}")
