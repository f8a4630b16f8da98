"""The paper's first figure: the validation errors of many kernel SVMs as they are trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from lastarm.events import Pull
from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.experiments import SVM, searched
from lastarm.papers.jamieson2015.page import Claim, Part, Row, Settings, command, verdict
from lastarm.policies.parts.budgeted import InRounds
from lastarm.policy import Algorithm, ranking
from lastarm.report.figures.drawing import Figure
from lastarm.trainers import arm_seed


@dataclass(eq=False)
class AllTheWay(InRounds):
    """Train every arm with an even share of the budget, and look at it ever more rarely.

    >>> [pull.upto for pull in AllTheWay(arms=1, budget=100).ask(1)]
    [100]
    >>> AllTheWay(arms=2, budget=20).levels()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """

    name: ClassVar[str] = "all-the-way"

    def levels(self) -> list[int]:
        """From each to the next an eighth more, and at least 1."""
        levels, last = [1], self.budget // self.arms
        while levels[-1] < last:
            levels.append(min(last, levels[-1] + max(1, levels[-1] // 8)))
        return levels

    def algorithm(self) -> Algorithm:
        """All arms, level by level."""
        losses: dict[int, float] = {}
        for level in self.levels():
            losses = yield [Pull(arm, upto=level) for arm in range(self.arms)]
        return ranking(losses)[0]


def traces(settings: Settings) -> Part:
    """Train the arms of an SVM trial for two passes over TRAIN, and 4,096 pulls at most."""
    data = SVM.load(settings.data, quick=settings.quick)
    seed = arm_seed(settings.seed, 0)
    pulls = 128 if settings.quick else min(4096, 2 * int(0.72 * len(data.y)))
    key = f"traces-{data.name}"
    result = searched(
        SVM.problem(data, seed),
        SVM.space,
        AllTheWay(SVM.arms, SVM.arms * pulls),
        settings.journals / f"{key}{'-quick' * settings.quick}.jsonl",
        seed=seed,
    )
    settings.progress(1, 1)
    curves = result.curves
    last = {arm: curve[-1][1] for arm, curve in curves.items()}
    ranks = ranking(last)
    title = f"Validation error of {SVM.arms} kernel SVMs on {data.name}"
    steps = [
        after - before for curve in curves.values() for (_, before), (_, after) in pairwise(curve)
    ]
    rising = sum(step > 0 for step in steps) / sum(step != 0 for step in steps)
    best, worst = last[ranks[0]], last[ranks[-1]]
    part = Part(
        key=key,
        title=title,
        text=(
            f"{data.about} The arms of one trial of the SVM experiment, each trained for "
            f"{pulls:,} pulls of one sample and looked at {len(curves[0])} times. In colour: the "
            "arm that ends lowest, the one that was lowest after a third of the looks, the middle "
            "one and the one that ends highest."
        ),
        claims=[
            Claim(
                "High variability in model quality across hyperparameter settings",
                "shown by a figure (here: the worst has at least twice the error of the best)",
                f"final validation errors from {best:.3f} to {worst:.3f}",
                data.name,
                verdict(worst > 0 and worst >= 2 * best),
            ),
            Claim(
                "Losses may exhibit a high degree of non-monotonicity",
                "shown by a figure (here: at least a quarter of all changes are upwards)",
                f"{rising:.0%} of all changes from look to look are upwards",
                data.name,
                verdict(rising >= 0.25),
            ),
        ],
        command=command("traces", settings),
    )
    rows = [
        {"arm": arm, **result.configs[arm], "pulls": level, "val_loss": loss}
        for arm, curve in sorted(curves.items())
        for level, loss in curve
    ]
    return figures.publish(part, drawn(rows, title), rows, settings)


def drawn(rows: Sequence[Row], title: str) -> Figure:
    """Every arm, and four of them in colour."""
    curves: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        curves.setdefault(row["arm"], []).append((row["pulls"], row["val_loss"]))
    ranks = ranking({arm: curve[-1][1] for arm, curve in curves.items()})
    early = ranking({arm: curve[len(curve) // 3][1] for arm, curve in curves.items()})
    marked = dict.fromkeys([ranks[0], early[0], ranks[len(ranks) // 2], ranks[-1]])
    return figures.traces(
        curves, title=title, ylabel="fraction of VAL on the wrong side", highlight=list(marked)
    )
