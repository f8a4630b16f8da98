"""How often the range of `likely_gain` is right, and how often the audit is, on recorded curves.

    python benchmarks/worth.py FOLDER

Every second table of the folder, by name, is for choosing the range; the others are kept apart.
Searches by halving are played on rows that are drawn from a table, with budgets from a tenth to a
half of training all of them to the end, and then extended to twice the budget. Where that takes an
arm past the end of its recorded curve, the truth is not known, and the search is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lastarm import HorizonHalving, SuccessiveHalving
from lastarm.events import Event, Loss, Pull
from lastarm.ledger import Ledger
from lastarm.theory import audit
from lastarm.theory.audit import ends_lower
from lastarm.theory.gain import HIGH, LOW, likely_gain, scale_of_gain

SEEDS, ARMS, SHARES = 40, (8, 16, 32, 64), (0.1, 0.25, 0.5)


class Case(NamedTuple):
    """A search, and what came of it."""

    table: str
    kept: bool  # whether its table is kept apart
    policy: str
    ratio: float  # of the gain to the scale
    inside: bool
    wrong: bool  # whether another arm ends lower
    flagged: bool  # whether the truly best arm was a close call, if it is; else whether any was


def play(policy: Any, losses: Any, rows: Any, told: list[Event]) -> None:
    """Let the policy have all that it asks for."""
    while pulls := policy.ask(sys.maxsize):
        for pull in pulls:
            row = losses[rows[pull.arm]]
            loss = Loss(pull, float(row[min(pull.upto, len(row)) - 1]))
            told += [pull, loss]
            policy.tell(loss)


def case(name: str, losses: Any, kept: bool, policy: Any, rows: Any, budget: int) -> Case | None:
    """One search and its extension; None if the truth is not known."""
    told: list[Event] = []
    play(policy, losses, rows, told)
    before, first = Ledger(told), policy.recommendation
    policy.extend(2 * budget)
    play(policy, losses, rows, told)
    after, second = Ledger(told), policy.recommendation
    deepest = max(event.upto for event in told if isinstance(event, Pull))
    ends = [ledger.curves[arm][-1][1] for ledger, arm in ((before, first), (after, second))]
    if deepest > losses.shape[1] or not all(map(isfinite, ends)):
        return None
    gain, found = ends[0] - ends[1], likely_gain(before.curves, first, before.causes())
    scale = scale_of_gain(before.curves, first, before.causes())
    if found is None or scale is None:
        return None
    better = ends_lower(losses[rows], first)
    close = {one.arm for one in audit(before.curves, first, before.causes()).close_calls}
    flagged = better[0] in close if better else bool(close)
    inside = found.low <= gain <= found.high
    return Case(name, kept, policy.name, gain / scale, inside, bool(better), flagged)


def cases(folder: Path) -> Iterator[Case]:
    """All searches."""
    for place, path in enumerate(sorted(folder.glob("*.npz"))):
        losses = np.load(path, allow_pickle=False)["losses"].astype(float)
        rows_there, steps = losses.shape
        for seed in range(SEEDS):
            arms = min(rows_there, ARMS[seed % len(ARMS)])
            rows = np.random.default_rng([place, seed]).choice(rows_there, arms, replace=False)
            for share in SHARES:
                budget = max(int(arms * steps * share), arms * (arms - 1).bit_length())
                for policy in (
                    SuccessiveHalving(arms, budget),
                    HorizonHalving(arms=arms, budget=budget, max_pulls=steps),
                ):
                    found = case(path.stem, losses, place % 2 == 1, policy, rows, budget)
                    if found:
                        yield found


def line(name: str, found: list[Case]) -> str:
    """A row of the table."""
    inside = sum(one.inside for one in found) / len(found)
    wrong, right = [one for one in found if one.wrong], [one for one in found if not one.wrong]
    flagged, alarms = (sum(one.flagged for one in some) for some in (wrong, right))
    return (
        f"| {name} | {len(found):,} | {100 * inside:.0f} % | {flagged:,} of {len(wrong):,} | "
        f"{alarms:,} of {len(right):,} |"
    )


def main() -> None:
    """Print the range that the one half gives, and the table of the other."""
    found = list(cases(Path(sys.argv[1])))
    chosen, kept = ([one for one in found if one.kept == which] for which in (False, True))
    low, high = np.quantile([one.ratio for one in chosen], [0.05, 0.95])
    print(f"{len(chosen):,} searches give {low:.3g} to {high:.3g}; used are {LOW} to {HIGH}\n")
    headings = ("searches", "gain within the range", "best arm flagged", "false alarms")
    print("| " + " | ".join(["curves kept apart", *headings]) + " |")
    print("| --- | --- | --- | --- | --- |")
    for name in sorted({one.table for one in kept}):
        print(line(name, [one for one in kept if one.table == name]))
    for policy in sorted({one.policy for one in kept}):
        print(line(policy, [one for one in kept if one.policy == policy]))
    print(line("all", kept))


if __name__ == "__main__":
    main()
