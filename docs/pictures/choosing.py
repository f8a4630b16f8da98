"""Draws the pictures of docs/choosing.md from what a search does. Run by `make pictures`."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import sin
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from lastarm import Brackets, GaussianProcess, Pull, Uniform, search
from lastarm.journal import read
from lastarm.samplers import Known, Seen
from lastarm.samplers.matern import Posterior, fit
from lastarm.space import encode
from lastarm.space.spaces import read_space

BLUE, GREY, ORANGE = "#0072b2", "#9a9a9a", "#d55e00"


def main() -> None:
    """Draw both; the same bytes every time."""
    mpl.rcParams["svg.hashsalt"] = "lastarm"
    for draw in (brackets, expected):
        draw().savefig(Path(__file__).with_name(f"{draw.__name__}.svg"), metadata={"Date": None})


def hills(x: float) -> float:
    """A loss after full training."""
    return 0.35 + 0.25 * sin(9 * x + 0.5) + 0.6 * (x - 0.6) ** 2


def trained(config: Mapping[str, Any]) -> Iterator[float]:
    """Falls to its loss after full training."""
    pulls = 0
    while True:
        pulls += 1
        yield hills(config["x"]) + 0.5 / pulls


def brackets() -> Any:
    """A search of three brackets: a bar is an arm, and as high as it was trained."""
    with TemporaryDirectory() as folder:
        journal = Path(folder) / "search.jsonl"
        space = {"x": Uniform(0, 1)}
        result = search(
            trained, space, budget=270, max_pulls=27, journal=journal, checkpoints=False
        )
        origins = {e.arm: e.origin for e in read(journal) if isinstance(e, Pull) and e.origin}
    figure, axes = plt.subplots(figsize=(8, 2.9), layout="constrained")
    for arm, curve in result.curves.items():
        color = BLUE if origins[arm].how == "chosen" else GREY
        color = ORANGE if arm == result.arm else color
        axes.bar(arm, curve[-1][0], color=color, width=0.8)
    for color, label in ((GREY, "random"), (BLUE, "chosen by the model"), (ORANGE, "the winner")):
        axes.bar(0, 0, color=color, label=label)
    starts = np.cumsum([0, *(one["arms"] for one in _planned())])
    for number, (start, end) in enumerate(pairwise(starts), start=1):
        axes.axvline(end - 0.5, color="#dddddd", linewidth=1, zorder=0)
        axes.text((start + end - 1) / 2, 29.5, f"bracket {number}", ha="center", fontsize=9)
    axes.set(
        xlabel="arms, as they begin", ylabel="pulls of an arm", yticks=(1, 3, 9, 27), ylim=(0, 33)
    )
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 0.9))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _planned() -> list[dict[str, Any]]:
    planned: list[dict[str, Any]] = Brackets(budget=270, max_pulls=27).plan_details()["brackets"]
    return planned


def expected() -> Any:
    """What the model expects after a few arms, how sure it is, and which arms it chooses."""
    space = {"x": Uniform(0, 1)}
    begun = [{"x": x} for x in (0.05, 0.2, 0.32, 0.74, 0.95)]
    losses = np.array([hills(config["x"]) for config in begun])
    grid = [{"x": x} for x in np.linspace(0, 1, 301).tolist()]
    rows, parameters = encode(read_space(space), [*begun, *grid])
    middle, unit = losses.mean(), losses.std()
    values = (losses - middle) / unit
    n = len(begun)
    found = fit(rows[:n], parameters, values)
    means, variances, *_ = Posterior.of(rows[:n], parameters, values, found).at(rows[n:])
    means, deviations = middle + unit * means, unit * np.sqrt(variances)

    seen = [Seen(config, 27, loss) for config, loss in zip(begun, losses.tolist(), strict=True)]
    known = Known(space, seen, begun, grid[::3], count=3, seed=0, level=27)
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    xs = [config["x"] for config in grid]
    axes.fill_between(xs, means - deviations, means + deviations, color=BLUE, alpha=0.15, lw=0)
    axes.plot(xs, means, color=BLUE, label="expected, ± its deviation")
    axes.plot(
        xs, [hills(x) for x in xs], color=GREY, ls="--", lw=1, label="the loss of each config"
    )
    axes.plot([c["x"] for c in begun], losses, "o", color="black", label="arms that were trained")
    for number, one in enumerate(GaussianProcess().choose(known), start=1):
        axes.axvline(
            one.config["x"], color=ORANGE, lw=1.2, label="chosen" if number == 1 else None
        )
        axes.text(
            one.config["x"],
            1.0,
            f" {number}",
            color=ORANGE,
            transform=axes.get_xaxis_transform(),
            va="top",
        )
    axes.set(xlabel="a hyperparameter", ylabel="loss after full training")
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 0.9))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
