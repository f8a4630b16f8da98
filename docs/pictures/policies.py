"""Plays every policy on a folder of recorded curves; draws policies.png, writes ../policies.md.

    .venv/bin/python docs/pictures/policies.py FOLDER

FOLDER holds `.npz` tables as `lastarm replay` reads them; only averages of them are kept.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from lastarm import Configs, RecordedCurves, Serial, search
from lastarm.cli.options import takes
from lastarm.errors import AllArmsFailed, BudgetTooSmall
from lastarm.policies import POLICIES
from lastarm.theory import ends_lower

ARMS, DRAWS, SHARES = 64, 30, (0.05, 0.10, 0.20, 0.40)
COLORS = [*(f"C{k}" for k in range(10)), "black", "navy", "teal", "gold", "darkred"]

Scores = dict[tuple[str, float], list[tuple[float, float, int]]]


def main(folder: Path) -> None:
    """Play, average over draws and then over files, draw and write."""
    files = sorted(folder.glob("*.npz"))
    with Pool() as pool:
        per_file = pool.map(play_file, files)
    average = {
        (name, share): np.mean([np.mean(scores[name, share], axis=0) for scores in per_file], 0)
        for name in POLICIES
        for share in SHARES
    }
    draw(average, len(files))
    write(average)


def play_file(path: Path) -> Scores:
    """Rank of the recommended arm, pulls and looks, for every policy, budget and draw of arms."""
    table = RecordedCurves.load(path)
    scores: Scores = defaultdict(list)
    for seed in range(DRAWS):
        rows = np.random.default_rng(seed).choice(len(table.losses), ARMS, replace=False)
        for share in SHARES:
            for name in POLICIES:
                budget = int(share * ARMS * table.losses.shape[1])
                scores[name, share].append(play(table, rows.tolist(), name, budget, seed))
    return scores


def play(
    table: RecordedCurves, rows: list[int], name: str, budget: int, seed: int
) -> tuple[float, float, int]:
    """Rank of the recommended arm, share of the budget spent, looks."""
    options: dict[str, Any] = {"budget": budget}
    if takes(name, "max_pulls"):
        options["max_pulls"] = table.losses.shape[1]
    if takes(name, "seed"):
        options["seed"] = seed
    try:
        policy = POLICIES[name](arms=len(rows), **options)
    except BudgetTooSmall as error:  # play on as many arms as the budget reaches
        policy = POLICIES[name](arms=error.most_arms, **options)
    try:
        result = search(
            table,
            Configs([{"row": row} for row in rows[: policy.arms]]),
            policy=policy,
            runner=partial(Serial, group=1 if name == "asha" else 256),
            checkpoints=False,
        )
    except AllArmsFailed:
        return 1.0, 1.0, 0
    assert result.arm is not None
    rank = len(ends_lower(table.losses[rows], result.arm)) / (len(rows) - 1)
    return rank, result.spent.pulls / budget, result.spent.observations


def draw(average: dict[tuple[str, float], Any], files: int) -> None:
    """One line a policy: how good its recommendation is, against the budget and against looks."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
    for name, color in zip(POLICIES, COLORS, strict=True):
        ranks = [max(average[name, share][0], 1e-4) for share in SHARES]
        looks = [average[name, share][2] for share in SHARES]
        bold = 2.5 if name == "successive-halving" else 1.2
        line = (0, (2, 3)) if name == "exponential-gap" else "-"  # it lies on uniform
        style: dict[str, Any] = {"color": color, "linestyle": line, "label": name}
        style |= {"marker": "o", "markersize": 4}
        left.plot([100 * share for share in SHARES], ranks, linewidth=bold, **style)
        right.plot(looks, ranks, linewidth=bold, **style)
    left.set_xlabel("budget, share of training all arms to the end")
    left.set_ylabel("mean normalised rank of the recommended arm (0 is best)")
    right.set_xlabel("looks at a loss")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    left.set_xticks([100 * share for share in SHARES], [f"{share:.0%}" for share in SHARES])
    left.minorticks_off()
    right.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.suptitle(f"{ARMS} arms, {DRAWS} draws from each of {files} tables of recorded curves")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=150)


def write(average: dict[tuple[str, float], Any]) -> None:
    """The same as a table, into the page."""
    page = Path(__file__).parent.parent / "policies.md"
    head, _, tail = page.read_text().partition("<!-- table -->")
    tail = tail.partition("<!-- end of table -->")[2]
    lines = [
        "| policy | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |",
        "| --- |" + " --- |" * len(SHARES),
    ]
    for name in POLICIES:
        found = [average[name, share] for share in SHARES]
        cells = [f"{rank:.4f} · {looks:,.0f} · {spent:.0%}" for rank, spent, looks in found]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    table = "\n".join(lines)
    page.write_text(f"{head}<!-- table -->\n\n{table}\n\n<!-- end of table -->{tail}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
