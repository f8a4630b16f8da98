"""Example 4: a linear support vector machine with one hyperparameter, trained by Pegasos."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from lastarm import LogUniform, Result
from lastarm.data import digits
from lastarm.integers import ceil_log
from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.descent import Array, LinearSVM, Table
from lastarm.papers.jamieson2015.parts import Claim, Holds, Part, Settings, command, write
from lastarm.papers.jamieson2015.searches import searched
from lastarm.policies import POLICIES
from lastarm.space import Configs, draw
from lastarm.trainers import Config, arm_seed
from lastarm.trainers.splits import split

Row = dict[str, Any]
RIVALS = ("successive-halving", "uniform")
ARMS = 32
SIGMOIDS = (1.0, 10.0, 100.0, 1000.0)

TEXT = """\
The linear classifier ⟨w, x⟩ with hinge loss and the penalty θ‖w‖², θ being one of {arms} values
drawn log-uniformly from 1e-6 to 1, tells even from odd handwritten digits (1,797 images of 8 × 8
grey values, standardised on TRAIN; a tenth is TEST, a fifth of the rest VAL). A pull is one sample
of TRAIN, by a step of Pegasos. The loss is the share of VAL that is misclassified; it often ties,
and ties go to the lower arm number. {trials} trials, each with a split and values of θ of its own.
Fully trained is {passes} passes over TRAIN for every θ; the error as a function of θ is not convex
if its slopes fall anywhere, and one such trial is enough. Halving is faster by the ratio of the
greatest budget to the least with which its mean test error is at most that of uniform allocation
with the greatest: "yes" from 10 on, the paper's order of magnitude, "in part" from 2 on. For the
footnote, 1{{z < 0}} is replaced by 1/(1 + exp(s·z)) while halving searches with the greatest
budget; it holds if with the steepest, s = {steepest:g}, the mean test error changes by at most two
standard errors of the paired differences."""


def parts_of_digits(seed: int) -> tuple[Table, Table, Table]:
    """TRAIN, VAL and TEST: even digits are 1, odd ones −1; features as TRAIN standardises them."""
    images, labels = digits()
    y = np.where(labels % 2 == 0, 1.0, -1.0)
    parts = split(y, seed)
    X = images.astype(float)
    mean, spread = X[parts.train].mean(axis=0), X[parts.train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1)
    train, val, test = ((X[rows], y[rows]) for rows in parts)
    return train, val, test


def linear_svm(settings: Settings) -> Part:
    """Choose θ by halving and by uniform allocation, budget by budget; then with a sigmoid."""
    trials = settings.trials or (2 if settings.quick else 20)
    passes = 2 if settings.quick else 20
    budgets = [ARMS * ceil_log(ARMS, 2) * 4**k for k in range(4 if settings.quick else 5)]
    rows: list[Row] = []
    trained: list[Result] = []
    for trial in range(trials):
        seed = arm_seed(settings.seed, trial)
        train, val, test = parts_of_digits(seed)
        arms: list[Config] = list(draw({"theta": LogUniform(1e-6, 1.0)}, ARMS, seed))
        journals = settings.journals / "linear-svm" / f"trial-{trial}"

        games: list[tuple[str, int, float | None]]
        games = [(policy, budget, None) for policy in RIVALS for budget in budgets]
        games += [(RIVALS[0], budgets[-1], s) for s in SIGMOIDS]
        games += [("uniform", ARMS * passes * len(train[1]), None)]  # all of them, fully trained
        for policy, budget, s in games:
            trainer = LinearSVM(train, val, test, seed=seed, sigmoid=s)
            folder = journals / f"sigmoid-{s:g}" if s else journals
            found = searched(
                trainer,
                Configs(arms),
                POLICIES[policy](ARMS, budget),
                folder / f"{policy}-{budget}.jsonl",
            )
            assert found.config
            rows.append(
                {"trial": trial, "policy": policy, "budget": budget, "sigmoid": s or ""}
                | {"theta": found.config["theta"], "val_loss": round(found.loss or 0.0, 9)}
                | {"test_error": found.test_loss}
            )
        trained.append(found)
        settings.progress(trial + 1, trials)
    figures.save(_figure(rows, trained[0], budgets), settings.out, "linear-svm")
    part = Part(
        "linear-svm",
        "Example 4: the penalty of a linear support vector machine",
        " ".join(TEXT.split()).format(
            arms=ARMS, trials=trials, passes=passes, steepest=SIGMOIDS[-1]
        ),
        [_not_convex(trained), _faster(rows, budgets), _footnote(rows, budgets[-1])],
        ["linear-svm"],
        command("subsets", settings),
    )
    write(part, rows, settings.out)
    return part


def _errors(rows: Sequence[Row], policy: str, budget: int, sigmoid: float | str = "") -> Array:
    """The test errors of all trials."""
    key = (policy, budget, sigmoid)
    chosen = [row for row in rows if (row["policy"], row["budget"], row["sigmoid"]) == key]
    return np.array([row["test_error"] for row in chosen])


def by_theta(trained: Result) -> tuple[Array, Array]:
    """θ in ascending order, and the last loss of each on VAL."""
    theta = np.array([trained.configs[arm]["theta"] for arm in range(ARMS)])
    losses = np.array([trained.curves[arm][-1][1] for arm in range(ARMS)])
    order = np.argsort(theta)
    return theta[order], losses[order]


def _not_convex(trained: Sequence[Result]) -> Claim:
    curves = [by_theta(one) for one in trained]
    falls = [bool((np.diff(np.diff(y) / np.diff(x)) < 0).any()) for x, y in curves]
    kinds = [len(np.unique(y)) for _, y in curves]
    return Claim(
        "Example 4: choosing θ̂ is the minimization of a function that is not necessarily even "
        "continuous, much less convex",
        "not necessarily",
        f"not convex in {sum(falls)} of {len(falls)} trials; {min(kinds)} to {max(kinds)} values "
        f"of the error on VAL for {ARMS} values of θ",
        "digits",
        "yes" if any(falls) else "no",
    )


def _faster(rows: Sequence[Row], budgets: Sequence[int]) -> Claim:
    most = budgets[-1]
    goal = _errors(rows, "uniform", most).mean()
    halving = {budget: _errors(rows, RIVALS[0], budget).mean() for budget in budgets}
    least = next((budget for budget in budgets if halving[budget] <= goal), 0)
    factor = most / least if least else 0
    holds: Holds = "yes" if factor >= 10 else "in part" if factor >= 2 else "no"
    reached = (
        f"Successive Halving is no worse from {least:,} on, a factor of {factor:g}"
        if least
        else f"Successive Halving does not reach that: {halving[most]:.2%}"
    )
    return Claim(
        "we observe order of magnitude speed ups in our experimental results",
        "a factor of 10",
        f"with {most:,} samples uniform allocation has a test error of {goal:.2%}; {reached}",
        "digits",
        holds,
    )


def _footnote(rows: Sequence[Row], budget: int) -> Claim:
    plain = _errors(rows, RIVALS[0], budget)
    steepest = _errors(rows, RIVALS[0], budget, SIGMOIDS[-1]) - plain
    error = float(steepest.std(ddof=1)) / sqrt(len(steepest)) if len(steepest) > 1 else 0.0
    chosen = {s: [r["theta"] for r in rows if r["sigmoid"] == s] for s in SIGMOIDS}
    key = (RIVALS[0], budget, "")
    first = [r["theta"] for r in rows if (r["policy"], r["budget"], r["sigmoid"]) == key]
    same = {s: sum(a == b for a, b in zip(first, chosen[s], strict=True)) for s in SIGMOIDS}
    told = ", ".join(
        f"{_errors(rows, RIVALS[0], budget, s).mean():.2%} with s = {s:g} (the same θ̂ in "
        f"{same[s]} of {len(first)})"
        for s in SIGMOIDS
    )
    return Claim(
        "these technical issues can usually be usurped by replacing 1{z < 0} with a very steep "
        "sigmoid",
        "no number",
        f"test error {plain.mean():.2%} with 1{{z < 0}}, {told}; the steepest changes it by "
        f"{steepest.mean():+.2%} ± {error:.2%}",
        "digits",
        "yes" if abs(steepest.mean()) <= 2 * error + 1e-12 else "no",
    )


def _figure(rows: Sequence[Row], trained: Result, budgets: Sequence[int]) -> Figure:
    """The error on VAL against θ in the first trial; the mean test error against the budget."""
    full = max(row["budget"] for row in rows)
    with style.context(["default", figures.HOUSE]):
        figure = Figure(figsize=(10, 4.6))
        left, right = figure.subplots(1, 2)
        theta, losses = by_theta(trained)
        left.plot(theta, losses, color="#777777", marker=".", lw=1)
        for policy, fill in zip(RIVALS, ("none", "full"), strict=True):
            look = figures.LOOKS[policy]
            key = (0, policy, budgets[-1], "")
            (chosen,) = (
                row["theta"]
                for row in rows
                if (row["trial"], row["policy"], row["budget"], row["sigmoid"]) == key
            )
            at = [losses[theta == chosen][0]]
            mark: dict[str, Any] = {"marker": look.marker, "ms": 11, "ls": "", "mew": 2}
            left.plot([chosen], at, color=look.colour, fillstyle=fill, **mark)
            means = [_errors(rows, policy, budget).mean() for budget in budgets]
            drawn = {"color": look.colour, "lw": look.width, "marker": look.marker}
            right.plot(budgets, means, label=look.label, **drawn)
        everyone = _errors(rows, "uniform", full).mean()
        right.axhline(everyone, color="#777777", ls="--", label="all fully trained")
        left.set(xscale="log", xlabel="θ", ylabel="share of VAL misclassified, fully trained")
        left.set_title(f"the first trial; marked: chosen with B = {budgets[-1]:,}")
        right.set(xscale="log", xlabel="budget (samples, all arms)", ylabel="mean test error")
        right.set_title(f"mean of {len({row['trial'] for row in rows})} trials")
        handles, labels = right.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        figure.suptitle("Example 4: a linear support vector machine on even and odd digits")
    return figure
