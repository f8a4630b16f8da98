"""`lastarm replay --audit`: how close the eliminations were, by estimate and in truth."""

from __future__ import annotations

from math import isfinite
from typing import Any

from rich import box
from rich.table import Table as RichTable

from lastarm.cli import display
from lastarm.cli.table import Played, Table
from lastarm.theory import Truth, audit

MOST_SHOWN = 10


def audited(played: Played, table: Table) -> dict[str, Any]:
    """The audit and the truth as one object; arms are rows of the file."""
    if played.result.arm is None:
        return {}
    report = audit(played.result.curves, played.result.arm, out=played.result.failures)
    truth = Truth.of(table.curves.losses[played.rows], played.result.arm)
    return {
        "eliminations": [
            {
                "arm": played.rows[e.arm],
                "level": e.level,
                "loss": e.loss,
                "margin": e.margin,
                "moved": e.moved,
                "close": e.close,
            }
            for e in report.eliminations
        ],
        "close_calls": len(report.close_calls),
        "unknown": sum(e.moved is None for e in report.eliminations),
        "diverged": report.diverged,
        "budget": report.budget,
        "truth": {
            "better_arms": [played.rows[arm] for arm in truth.better],
            "budget": truth.budget,
        },
    }


def print_audit(found: dict[str, Any]) -> None:
    """The same for people."""
    if not found:
        return
    eliminations, truth = found["eliminations"], found["truth"]
    display.say(
        f"\nAudit, an estimate and never a proof: of {len(eliminations):,} arms that were "
        f"dropped, {found['close_calls']:,} were close calls."
    )
    if found["unknown"]:
        display.say(
            f"{found['unknown']:,} lost where nobody went on, so nothing is known of how they "
            "would have moved."
        )
    if found["diverged"]:
        display.say(f"{found['diverged']:,} more failed or diverged.")
    rich = RichTable(box=box.SIMPLE_HEAD)
    for heading in ("arm", "dropped at", "its loss", "had to fall by", "others moved", ""):
        rich.add_column(heading, justify="right")
    for row in eliminations[:MOST_SHOWN]:
        rich.add_row(
            f"{row['arm']}",
            f"{row['level']:,}",
            f"{row['loss']:.6g}",
            f"{row['margin']:.6g}",
            "nobody went on" if row["moved"] is None else f"{row['moved']:.6g}",
            "close" if row["close"] else "",
        )
    display.console.print(rich)
    if len(eliminations) > MOST_SHOWN:
        display.say(f"… and {len(eliminations) - MOST_SHOWN:,} that were not as close.")
    display.say(
        "A call is close when some arm that went on from that level moved as far as the dropped "
        "one would have had to fall to win."
    )
    covers = f"{found['budget']:,.0f}" if isfinite(found["budget"]) else "none would"
    display.say(f"The budget above which Theorem 1 would cover what was seen: {covers}.")
    better = truth["better_arms"]
    known = {row["arm"]: row["close"] for row in eliminations}
    close = sum(known.get(arm, False) for arm in better)
    display.say(
        "In truth, which the whole curves tell: "
        + (
            f"{len(better):,} arms end lower, the best of them arm {better[0]}; "
            f"{close:,} of them are among the close calls."
            if better
            else "no arm ends lower than the recommended one."
        )
    )
