"""Draws demo.png, the README's picture, from what `lastarm demo` does. Run by `make pictures`."""

from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt

from lastarm import SuccessiveHalving, UniformAllocation, search
from lastarm.cli.demo import ARMS, BUDGET
from lastarm.cli.digits_network import SPACE, DigitsNetwork

BLUE, GREY, ORANGE = "#0072b2", "#9a9a9a", "#d55e00"


def main() -> None:
    """Play the demo and draw every loss that was looked at."""
    trainer = DigitsNetwork()
    halving = search(trainer, SPACE, policy=SuccessiveHalving(ARMS, BUDGET))
    uniform = search(trainer, SPACE, policy=UniformAllocation(ARMS, BUDGET))

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for arm, curve in halving.curves.items():
        levels, losses = zip(*curve, strict=True)
        best = arm == halving.arm
        color, width = (ORANGE, 2.5) if best else (BLUE, 0.9)
        axes.plot(
            levels, losses, color=color, linewidth=width, alpha=1 if best else 0.55, zorder=3
        )
        axes.plot(
            levels[-1], losses[-1], "o", color=color, markersize=7 if best else 3.5, zorder=3
        )
    (level,) = {curve[-1][0] for curve in uniform.curves.values()}
    seen = [curve[-1][1] for curve in uniform.curves.values()]
    axes.plot([level] * ARMS, seen, "_", color=GREY, markersize=9)

    assert halving.arm is not None
    last = halving.curves[halving.arm][-1][0]
    axes.annotate(
        f"the last arm: loss {halving.loss:.3f}\nafter {last} passes",
        (last, halving.loss or 0),
        (0, 44),
        textcoords="offset points",
        color=ORANGE,
        ha="right",
    )
    axes.annotate(
        f"with the same budget, uniform allocation trains\n"
        f"all {ARMS} for {level} passes: best loss {uniform.loss:.3f}",
        (level, 1.7),
        (12, 0),
        textcoords="offset points",
        color="#666666",
        va="center",
    )
    arms = Counter(level for curve in halving.curves.values() for level, _ in curve)
    for rung, count in arms.items():
        axes.text(rung, 4.3, f"{count} arms", color=BLUE, ha="center", va="bottom")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1.6, 160)
    axes.set_ylim(0.07, 4)  # a few that do badly lie above
    axes.set_xticks([*arms, level], [str(tick) for tick in (*arms, level)])
    axes.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
    axes.minorticks_off()
    axes.set_xlabel("passes over the training data (pulls of an arm)")
    axes.set_ylabel("validation loss")
    axes.set_title(
        f"Successive Halving of {ARMS} networks with a budget of {BUDGET} passes",
        loc="left",
        pad=24,
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
