"""Draws demo.png, the README's picture, from what `lastarm demo` does. Run by `make pictures`."""

from pathlib import Path

import matplotlib.pyplot as plt

from lastarm import SuccessiveHalving, UniformAllocation, search
from lastarm.cli.demo import ARMS, BUDGET, SPACE, DigitsNetwork
from lastarm.report.figures.palette import ACCENT, DIM


def main() -> None:
    """Play the demo and draw every loss that was looked at."""
    trainer = DigitsNetwork()
    halving = search(trainer, SPACE, policy=SuccessiveHalving(ARMS, BUDGET))
    uniform = search(trainer, SPACE, policy=UniformAllocation(ARMS, BUDGET))

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    halving.plot.curves(axes)
    (level,) = {curve[-1][0] for curve in uniform.curves.values()}
    seen = [curve[-1][1] for curve in uniform.curves.values()]
    axes.plot([level] * ARMS, seen, "_", color=DIM, markersize=9)

    assert halving.arm is not None
    last = halving.curves[halving.arm][-1][0]
    axes.annotate(
        f"the last arm: loss {halving.loss:.3f}\nafter {last} passes",
        (last, halving.loss or 0),
        (0, 30),
        textcoords="offset points",
        color=ACCENT,
        ha="right",
    )
    axes.annotate(
        f"with the same budget, uniform allocation trains\n"
        f"all {ARMS} for {level} passes: best loss {uniform.loss:.3f}",
        (level, 1),
        (14, 0),
        textcoords="offset points",
        color=DIM,
        va="center",
    )
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
