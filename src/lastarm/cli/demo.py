"""`lastarm demo`: tune a small neural network, twice with the same budget."""

from __future__ import annotations

from typing import Any

import click
from rich import box
from rich.table import Table

from lastarm.arguments import whole_number
from lastarm.cli import display
from lastarm.cli.digits_network import SPACE, DigitsNetwork
from lastarm.cli.options import whole
from lastarm.policies import SuccessiveHalving, UniformAllocation
from lastarm.result import Result
from lastarm.searching import search

ARMS, BUDGET = 64, 768


@click.command()
@click.option(
    "--seed", type=whole, default=0, metavar="N", show_default=True, help="Decides every draw."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(seed: Any, as_json: bool) -> int:
    """Tune a small network on handwritten digits.

    There are 64 settings of learning rate, momentum, weight decay, width, batch size and initial
    scale. A pull is one pass over the training data. Successive Halving and uniform allocation get
    768 passes each. The demo takes some seconds and needs nothing but lastarm.
    """
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    trainer = DigitsNetwork(seed)
    results: dict[str, Result] = {}
    for policy in (SuccessiveHalving(ARMS, BUDGET), UniformAllocation(ARMS, BUDGET)):
        result = search(trainer, SPACE, policy=policy, seed=seed)
        if result.stopped_by:
            return 128 + result.stopped_by
        results[policy.name] = result

    misread = {name: trainer.share_misread(result.state) for name, result in results.items()}
    if as_json:
        fields = {
            name: {**result.as_dict(), "test_error": misread[name]}
            for name, result in results.items()
        }
        display.print_json({"arms": ARMS, "budget": BUDGET, **fields})
        return 0

    halving = results[SuccessiveHalving.name]
    display.say(
        f"{ARMS} settings of a small neural network that reads handwritten digits. A pull is one "
        f"pass over the training data.\nWhat Successive Halving saw with {BUDGET:,} pulls:"
    )
    display.console.print(display.rungs(halving))
    display.answer(halving)
    display.say("\nThe same settings and the same budget with uniform allocation:")
    display.console.print(_side_by_side(results, misread))
    display.say("The settings that won:")
    display.settings(halving.config or {})
    return 0


def _side_by_side(results: dict[str, Result], misread: dict[str, float]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for name in results:
        table.add_column(name, justify="right")

    found = results.values()
    rows = {
        "recommended arm": [f"{r.arm}" for r in found],
        "passes it was trained for": [f"{r.curves[r.arm or 0][-1][0]}" for r in found],
        "validation loss": [f"{r.loss:.4f}" for r in found],
        "test loss": [f"{r.test_loss:.4f}" for r in found],
        "test digits misread": [f"{share:.1%}" for share in misread.values()],
        "pulls spent": [f"{r.spent.pulls:,}" for r in found],
        "looks at a loss": [f"{r.spent.observations:,}" for r in found],
        "seconds of training": [f"{r.spent.train_seconds:.1f}" for r in found],
    }
    for label, cells in rows.items():
        table.add_row(label, *cells)
    return table
