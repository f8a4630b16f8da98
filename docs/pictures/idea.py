"""Draws the pictures of docs/idea.md from what policies do. Run by `make pictures`."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from lastarm import (
    ASHA,
    Configs,
    Loss,
    Policy,
    RecordedCurves,
    Result,
    Simulated,
    SuccessiveHalving,
    UniformAllocation,
    search,
)
from lastarm.journal import Unwritten
from lastarm.loop import run
from lastarm.runners import Arms

BLUE, GREY, ORANGE = "#0072b2", "#9a9a9a", "#d55e00"
BLUES = ("#c6dbef", "#85bbdd", "#4292c6", "#1561a9")  # rung by rung


def main() -> None:
    """Draw all of them; the same bytes every time."""
    mpl.rcParams["svg.hashsalt"] = "lastarm"
    for draw in (spending, slow_starter, waiting):
        name = f"{draw.__name__.replace('_', '-')}.svg"
        draw().savefig(Path(__file__).with_name(name), metadata={"Date": None})


def spending() -> Any:
    """The same budget, spent evenly and by halving: a bar is an arm, a shade a rung."""
    arms, budget = 16, 256
    losses = np.repeat(np.arange(arms)[:, None], budget, axis=1)  # arm 0 is the best, and so on
    figure, both = plt.subplots(
        1, 2, figsize=(8, 3.6), sharey=True, layout="constrained", width_ratios=(1, 2.6)
    )
    for axes, policy, shades, how in (
        (both[0], UniformAllocation(arms, budget), (GREY,), "evenly"),
        (both[1], SuccessiveHalving(arms, budget), BLUES, "by halving"),
    ):
        result = played(losses, policy)
        levels = [0, *sorted({level for curve in result.curves.values() for level, _ in curve})]
        for arm, curve in result.curves.items():
            for (level, _), begin, shade in zip(curve, levels, shades, strict=False):
                color = ORANGE if arm == result.arm else shade
                axes.barh(arm, level - begin, left=begin, color=color, edgecolor="white")
                axes.plot(level, arm, "o", color="black", markersize=2.5)
        spent = result.spent
        axes.set_title(f"{how}\n{spent.pulls} pulls, {spent.observations} looks", loc="left")
        axes.set_xticks(levels)
        axes.set_xlim(0, levels[-1] + 1)
        _label(axes, "pulls of an arm")
    both[0].set_yticks([0, arms - 1], ["best", "worst"])
    both[0].invert_yaxis()
    both[0].set_ylabel(f"{arms} arms")
    return figure


def slow_starter() -> Any:
    """The best arm begins badly: a small budget drops it, a larger one does not."""
    limits = np.array([0.06, 0.14, 0.2, 0.27, 0.33, 0.4, 0.46, 0.52])
    speeds = np.array([6.0, 0.9, 1.5, 0.7, 1.2, 0.6, 1.0, 0.8])
    steps = np.arange(1, 129)
    losses = limits[:, None] + 0.9 / (1 + steps / speeds[:, None])
    figure, both = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True, layout="constrained")
    for axes, budget in zip(both, (48, 384), strict=True):
        result = played(losses, SuccessiveHalving(len(losses), budget))
        for arm, curve in result.curves.items():
            color, end = ORANGE if arm == 0 else BLUE, "o" if arm == result.arm else "X"
            axes.plot(steps, losses[arm], color=color, alpha=0.35, linewidth=1)
            axes.plot(*zip(*curve, strict=True), "o-", color=color, markersize=3, linewidth=2)
            axes.plot(*curve[-1], end, color=color, markersize=8)
        fate = "found" if result.arm == 0 else f"dropped after {result.curves[0][-1][0]} pulls"
        axes.set_title(f"budget {budget}\nthe slow starter is {fate}", loc="left")
        axes.set_xscale("log")
        axes.set_xticks(2 ** np.arange(8), [f"{2**k}" for k in range(8)])
        axes.minorticks_off()
        _label(axes, "pulls of an arm")
    both[0].set_ylabel("loss")
    return figure


def waiting() -> Any:
    """Arms of different speeds on four workers: halving waits for the last of a rung."""
    pool, budget, workers = 64, 256, 4
    random = np.random.default_rng(3)
    losses = np.repeat(random.permutation(pool)[:, None], budget, axis=1)
    seconds = random.lognormal(0, 0.4, pool).tolist()
    configs = [{"row": row} for row in range(pool)]
    figure, both = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
    policies = SuccessiveHalving(16, budget), ASHA(pool, budget, max_pulls=60, eta=2)
    for axes, policy in zip(both, policies, strict=True):
        trainer = RecordedCurves(losses)
        runner = Simulated(Arms(trainer, configs), workers=workers, seconds_per_pull=seconds)
        pulls = 0
        for event in run(policy, runner, Unwritten(), configs):
            if isinstance(event, Loss):
                worker, took = int(event.work.worker.split()[1]), event.work.train_seconds
                axes.barh(worker, took, left=runner.now - took, color=BLUE, edgecolor="white")
                pulls += event.work.trained
        axes.set_title(f"{policy.name}: {pulls} pulls in {runner.now:.0f} s", loc="left")
        axes.set_yticks(range(workers), [f"worker {k + 1}" for k in range(workers)])
        axes.invert_yaxis()
        _label(axes, "")
    both[1].set_xlabel("seconds")
    return figure


def played(losses: Any, policy: Policy) -> Result:
    """A search on recorded curves, a row an arm."""
    rows = Configs([{"row": row} for row in range(len(losses))])
    return search(RecordedCurves(losses), rows, policy=policy)


def _label(axes: Any, below: str) -> None:
    axes.title.set_fontsize(10)
    axes.set_xlabel(below)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
