"""Example 1: the best subset of features, found by stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from statistics import median
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from lastarm.integers import ceil_log
from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.descent import SubsetRegression, Table
from lastarm.papers.jamieson2015.parts import Claim, Holds, Part, Settings, command, write
from lastarm.papers.jamieson2015.searches import searched
from lastarm.policies import POLICIES
from lastarm.space import Configs
from lastarm.trainers import Config, arm_seed

Row = dict[str, Any]
RIVALS = ("successive-halving", "uniform")
DECAYS = (0.8, 0.9, 0.97)
TRAIN, VAL = 1000, 500  # rows
DOUBLINGS, QUICK_DOUBLINGS = 8, 6  # budgets, of which the least is n⌈log₂ n⌉

TEXT = """\
Every subset of {d} of {D} features is an arm: {n} of them. y = Σ w_j·x_j + e over all features,
with |w_j| = q^j in a random order and of random signs, for q = 0.8, 0.9 and 0.97; features and e
are normal with variance 1, features with correlations of 0.3. A pull is a step of stochastic
gradient descent on one sample of TRAIN (1,000 rows), of a size O(1/t) that is the same for all
arms; the loss is the mean squared error on VAL (500 rows). The best subset is the one whose exact
least-squares fit on TRAIN has the least error on VAL. What a policy needs is the least budget from
which on it finds that subset with all budgets tried, which double from n⌈log₂ n⌉; where it fails
with the last, the next, untried, is taken. Halving needs less if the median of uniform
allocation's need over halving's is at least 2; "in part" is from 1 to 2. {trials} trials for each
q."""


def subsets(settings: Settings) -> Part:
    """Find the best subset with halving and with uniform allocation, budget by budget."""
    D, d = (7, 2) if settings.quick else (12, 3)
    trials = settings.trials or (3 if settings.quick else 20)
    arms: list[Config] = [{"features": list(chosen)} for chosen in combinations(range(D), d)]
    n, doublings = len(arms), QUICK_DOUBLINGS if settings.quick else DOUBLINGS
    budgets = [n * ceil_log(n, 2) * 2**k for k in range(doublings)]
    rows: list[Row] = []
    games = [(q, trial) for q in DECAYS for trial in range(trials)]
    for done, (q, trial) in enumerate(games, start=1):
        train, val = made(D, q, seed=[settings.seed, trial])
        best = best_subset(arms, train, val)
        trainer = SubsetRegression(train, val, seed=arm_seed(settings.seed, trial))
        journals = settings.journals / "subsets" / f"q-{q}" / f"trial-{trial}"
        for policy in RIVALS:
            for budget in budgets:
                found = searched(
                    trainer,
                    Configs(arms),
                    POLICIES[policy](n, budget),
                    journals / f"{policy}-{budget}.jsonl",
                )
                rows.append(
                    {"q": q, "trial": trial, "policy": policy, "n": n, "budget": budget}
                    | {"pulls": found.spent.pulls, "arm": found.arm, "best": best}
                    | {"found": found.arm == best, "loss": round(found.loss or 0.0, 9)}
                )
        settings.progress(done, len(games))
    figures.save(_figure(rows), settings.out, "subsets")
    part = Part(
        "subsets",
        "Example 1: the best subset of features",
        " ".join(TEXT.format(d=d, D=D, n=n, trials=trials).split()),
        _claims(rows, budgets),
        ["subsets"],
        command("subsets", settings),
    )
    write(part, rows, settings.out)
    return part


def made(D: int, q: float, seed: Sequence[int]) -> tuple[Table, Table]:
    """TRAIN and VAL: D correlated features, of which each weighs q times as much as another."""
    random = np.random.default_rng(seed)
    own, common = random.normal(size=(TRAIN + VAL, D)), random.normal(size=(TRAIN + VAL, 1))
    X = sqrt(0.7) * own + sqrt(0.3) * common
    w = random.permutation(q ** np.arange(D)) * random.choice([-1, 1], D)
    y = X @ w + random.normal(size=TRAIN + VAL)
    return (X[:TRAIN], y[:TRAIN]), (X[TRAIN:], y[TRAIN:])


def best_subset(arms: Sequence[Config], train: Table, val: Table) -> int:
    """The arm whose least-squares fit on TRAIN has the least error on VAL: its ν is the least."""
    limits = []
    for arm in arms:
        (X, y), (X_val, y_val) = train, val
        w = np.linalg.lstsq(X[:, arm["features"]], y, rcond=None)[0]
        limits.append(float(((X_val[:, arm["features"]] @ w - y_val) ** 2).mean()))
    return int(np.argmin(limits))


def needed(found: Sequence[bool], budgets: Sequence[int]) -> int:
    """The least budget from which on all are successes; past the last, twice that.

    >>> needed([True, False, True, True], [10, 20, 40, 80]), needed([True, False], [10, 20])
    (40, 40)
    """
    tail = next((k for k, right in enumerate(reversed(found)) if not right), len(found))
    return budgets[-tail] if tail else 2 * budgets[-1]


def factors(rows: Sequence[Row], budgets: Sequence[int]) -> dict[float, list[float]]:
    """For each q, by how much uniform allocation's need exceeds halving's, trial by trial."""
    found: dict[tuple[float, int, str], list[bool]] = {}
    for row in rows:
        found.setdefault((row["q"], row["trial"], row["policy"]), []).append(row["found"])
    need = {key: needed(right, budgets) for key, right in found.items()}
    return {
        q: [need[(*key[:2], "uniform")] / need[key] for key in need if key[::2] == (q, RIVALS[0])]
        for q in sorted({row["q"] for row in rows})
    }


def _claims(rows: Sequence[Row], budgets: Sequence[int]) -> list[Claim]:
    by_q = factors(rows, budgets)
    every = [factor for of_q in by_q.values() for factor in of_q]
    n, middle = rows[0]["n"], median(every)
    holds: Holds = "yes" if middle >= 2 else "in part" if middle >= 1 else "no"
    fewer, more = sum(factor > 1 for factor in every), sum(factor < 1 for factor in every)
    listed = ", ".join(f"{median(of_q):g} with q = {q}" for q, of_q in by_q.items())
    return [
        Claim(
            "Examples 1 and 2: Successive Halving finds the best subset with a smaller budget",
            f"a factor of n/(4⌈log₂ n⌉) = {n / (4 * ceil_log(n, 2)):.1f}, were the limits a/n",
            f"a factor of {middle:g} in the median ({listed}); less is needed in {fewer} of "
            f"{len(every)} trials, more in {more}",
            "made data",
            holds,
        )
    ]


def _figure(rows: Sequence[Row]) -> Figure:
    """The share of trials in which the best subset is found, against the budget."""
    with style.context(["default", figures.HOUSE]):
        figure = Figure(figsize=(10, 4.2))
        for axes, q in zip(figure.subplots(1, len(DECAYS), sharey=True), DECAYS, strict=True):
            for policy in RIVALS:
                look = figures.LOOKS[policy]
                at: dict[int, list[bool]] = {}
                for row in rows:
                    if row["q"] == q and row["policy"] == policy:
                        at.setdefault(row["budget"], []).append(row["found"])
                share = [sum(found) / len(found) for found in at.values()]
                style_ = {"color": look.colour, "lw": look.width, "marker": look.marker}
                axes.plot(list(at), share, label=look.label, **style_)
            axes.set(xscale="log", title=f"weights fall by q = {q}", ylim=(-0.03, 1.03))
            axes.set(xlabel="budget (samples, all arms)")
        figure.axes[0].set_ylabel("share of trials that find the best subset")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        figure.suptitle(f"Example 1: the best of {rows[0]['n']} subsets of features")
    return figure
