"""Example 4: a linear support vector machine with one hyperparameter, trained by Pegasos."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from lastarm import LogUniform, Result
from lastarm.batched.arrays import Array
from lastarm.papers.jamieson2015 import data, figures
from lastarm.papers.jamieson2015.comparisons import Curve
from lastarm.papers.jamieson2015.descent import RIVALS, LinearTrainer, Models, Table
from lastarm.papers.jamieson2015.experiments import scaled, searched
from lastarm.papers.jamieson2015.page import Claim, Holds, Part, Row, Settings, command, verdict
from lastarm.plain import fingerprint
from lastarm.policies import POLICIES
from lastarm.policies.parts.integers import ceil_log
from lastarm.space import Configs, draw
from lastarm.trainers import Config, arm_seed
from lastarm.trainers.splits import split

ARMS = 32
SIGMOIDS = (1.0, 10.0, 100.0, 1000.0)
ENOUGH = 5  # trials, to tell whether two errors are the same
POINT = 0.01

TEXT = """\
The linear classifier ⟨w, x⟩ with hinge loss and the penalty θ‖w‖² tells even from odd handwritten
digits (1,797 images of 8 × 8 grey values, standardised on TRAIN; splits are 90/10 and 80/20,
classes in proportion). θ is one of {arms} values, drawn log-uniformly from 1e-6 to 1. A pull is
one sample of TRAIN, by a step of Pegasos. The loss is the share of VAL that is not on the right
side; it often ties, and ties go to the lower arm number. There are {trials} trials, each with its
own split and its own values of θ. Fully trained means {passes} passes over TRAIN for every θ. The
error as a function of θ is not convex if its slope falls anywhere; one such trial is enough. How
many times faster halving is, is a ratio of two budgets: those with which uniform allocation and
halving first come down to the lowest mean test error of uniform allocation, with a line over the
logarithms between two budgets. "Yes" is a ratio of at least 2, "in part" more than 1. For the
footnote, 1{{z < 0}} is replaced by 1/(1 + exp(s·z)) while halving searches with the greatest of
these budgets. It holds if with the steepest, s = {steepest:g}, the mean test error changes by at
most a percentage point even with two standard errors of the paired differences added. It does not
hold if the change is larger even with these subtracted. In between, and with fewer than {enough}
trials, it is undecided."""


class LinearSVM(LinearTrainer):
    """Linear classifiers ⟨w, x⟩ without intercept, by Pegasos; the config is `{"theta": θ}`.

    With λ = 2θ the objective is λ/2·‖w‖² + the mean of max(0, 1 − y⟨w, x⟩). Sample number t is the
    step w ← (1 − 1/t)·w + 1{y⟨w, x⟩ < 1}·y·x/(λt). The loss is the fraction of VAL that is not on
    the right side. If `sigmoid` is a number s, it is the mean of 1/(1 + exp(s·y⟨w, x⟩)) instead.
    The test loss is the fraction of TEST that is not on the right side.

    Source: Shalev-Shwartz, Singer, Srebro & Cotter, "Pegasos" (Mathematical Programming, 2011),
    figure 1, without the optional projection.
    """

    def __init__(
        self, train: Table, val: Table, test: Table, *, seed: int, sigmoid: float | None = None
    ) -> None:
        super().__init__(train, seed)
        self._val, self._test, self._sigmoid = val, test, sigmoid

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Models:
        """Weights of 0."""
        theta = np.array([config["theta"] for config in configs])
        return Models.begun(theta, self._train[0].shape[1])

    def step(self, models: Models, x: Array, y: float, t: int) -> None:
        """A step of Pegasos."""
        inside = y * (models.weights * x).sum(axis=1) < 1
        models.weights *= 1 - 1 / (t + 1)  # their t is one more than ours
        models.weights += (inside * y / (2 * models.chosen * (t + 1)))[:, np.newaxis] * x

    def losses(self, batch: Models, arms: Sequence[int]) -> Array:
        """What VAL says."""
        if self._sigmoid is None:
            return _wrong(batch, arms, self._val)
        margins = _margins(batch, arms, self._val)
        return np.asarray(((1 - np.tanh(self._sigmoid * margins / 2)) / 2).mean(axis=1))

    def tests(self, batch: Models, arms: Sequence[int]) -> Array:
        """The fractions of TEST on the wrong side."""
        return _wrong(batch, arms, self._test)

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data, the seed, and how steep the sigmoid is."""
        data = fingerprint([*self._train, *self._val, *self._test])
        return {"data": data, "seed": self._seed, "sigmoid": self._sigmoid}


def _margins(batch: Models, arms: Sequence[int], table: Table) -> Array:
    X, y = table
    return np.asarray((batch.weights[list(arms)] @ X.T) * y)


def _wrong(batch: Models, arms: Sequence[int], table: Table) -> Array:
    right = _margins(batch, arms, table) > 0
    return np.asarray((~right).mean(axis=1))


class ThetaSearch(NamedTuple):
    """A search for θ; without a sigmoid, by the share of VAL that is misclassified."""

    policy: str
    budget: int
    sigmoid: float | None = None


def linear_svm(settings: Settings) -> Part:
    """Choose θ by halving and by uniform allocation, budget by budget; then with a sigmoid."""
    trials = settings.trials or (2 if settings.quick else 20)
    passes = 2 if settings.quick else 20
    budgets = [ARMS * ceil_log(ARMS, 2) * 4**k for k in range(4 if settings.quick else 5)]
    table = data.classification_table(None)
    rows: list[Row] = []
    trained: list[tuple[Array, Array]] = []
    for trial in range(trials):
        seed = arm_seed(settings.seed, trial)
        parts = parts_of(table, seed)
        every = ThetaSearch("uniform", ARMS * passes * len(parts[0][1]))  # all θ, fully trained
        searches = [ThetaSearch(policy, budget) for policy in RIVALS for budget in budgets]
        searches += [ThetaSearch(RIVALS[0], budgets[-1], s) for s in SIGMOIDS]
        arms: list[Config] = list(draw({"theta": LogUniform(1e-6, 1.0)}, ARMS, seed))
        journals = settings.journals / "linear-svm" / f"trial-{trial}"
        for asked in (*searches, every):
            policy, budget, s = asked
            found = searched(
                LinearSVM(*parts, seed=seed, sigmoid=s),
                Configs(arms),
                POLICIES[policy](ARMS, budget),
                (journals / f"sigmoid-{s:g}" if s else journals) / f"{policy}-{budget}.jsonl",
            )
            assert found.config is not None
            assert found.loss is not None
            rows.append(
                {"trial": trial, "policy": policy, "budget": budget, "sigmoid": s or ""}
                | {"theta": found.config["theta"], "val_loss": round(found.loss, 9)}
                | {"test_error": found.test_loss}
            )
            if asked is every:
                trained.append(by_theta(found))
        settings.progress(trial + 1, trials)
    figure = figures.penalties(
        trained[0],
        {policy: of(rows, ThetaSearch(policy, budgets[-1]))[0]["theta"] for policy in RIVALS},
        {policy: mean_errors(rows, policy, budgets) for policy in RIVALS},
        everyone=float(_errors(rows, every).mean()),
        trials=trials,
    )
    part = Part(
        "linear-svm",
        "Example 4: the penalty of a linear support vector machine",
        " ".join(TEXT.split()).format(
            arms=ARMS, trials=trials, passes=passes, steepest=SIGMOIDS[-1], enough=ENOUGH
        ),
        [not_convex(trained), faster(rows, budgets), footnote(rows, budgets[-1])],
        command=command("subsets", settings),
    )
    return figures.publish(part, figure, rows, settings)


def parts_of(table: data.Table, seed: int) -> tuple[Table, Table, Table]:
    """TRAIN, VAL and TEST; features as TRAIN standardises them."""
    chosen = split(table.y, seed)
    X = scaled(table.X, chosen.train)
    train, val, test = ((X[rows], table.y[rows]) for rows in chosen)
    return train, val, test


def by_theta(trained: Result) -> tuple[Array, Array]:
    """θ in ascending order, and the last loss of each on VAL."""
    theta = np.array([config["theta"] for config in trained.configs])
    losses = np.array([trained.curves[arm][-1][1] for arm in range(len(theta))])
    order = np.argsort(theta)
    return theta[order], losses[order]


def of(rows: Sequence[Row], asked: ThetaSearch) -> list[Row]:
    """The rows of such a search, trial by trial."""
    policy, budget, sigmoid = asked
    key = (policy, budget, sigmoid or "")
    return [row for row in rows if (row["policy"], row["budget"], row["sigmoid"]) == key]


def _errors(rows: Sequence[Row], asked: ThetaSearch) -> Array:
    return np.array([row["test_error"] for row in of(rows, asked)])


def mean_errors(rows: Sequence[Row], policy: str, budgets: Sequence[int]) -> Curve:
    """The mean test error against the budget."""
    means = [float(_errors(rows, ThetaSearch(policy, budget)).mean()) for budget in budgets]
    return Curve([float(budget) for budget in budgets], means)


def not_convex(curves: Sequence[tuple[Array, Array]]) -> Claim:
    """Of ascending θ, and the losses of each, trial by trial."""
    falls = [bool((np.diff(np.diff(y) / np.diff(x)) < 0).any()) for x, y in curves]
    kinds = [len(np.unique(y)) for _, y in curves]
    return Claim(
        "Example 4: choosing θ̂ is the minimization of a function that is not necessarily even "
        "continuous, much less convex",
        "not necessarily",
        f"not convex in {sum(falls)} of {len(falls)} trials; {min(kinds)} to {max(kinds)} values "
        f"of the error on VAL for {len(curves[0][0])} values of θ",
        "digits",
        verdict(any(falls)),
    )


def faster(rows: Sequence[Row], budgets: Sequence[int]) -> Claim:
    """How many times more than halving uniform allocation needs to reach its lowest error."""
    halving, uniform = (mean_errors(rows, policy, budgets) for policy in RIVALS)
    goal = min(uniform.errors)
    theirs, ours = uniform.reaches(goal), halving.reaches(goal)
    ratio = theirs / ours
    reached = (
        f"does not reach that: {min(halving.errors):.2%} is its lowest"
        if ours == inf
        else f"does with {ours:,.0f}, {'at least ' * (ours == budgets[0])}{ratio:.1f} times faster"
    )
    return Claim(
        "Here, on Example 4: Successive Halving comes to the lowest test error of uniform "
        "allocation with fewer samples",
        "no number for this example",
        f"uniform allocation comes to {goal:.2%} with {theirs:,.0f} samples; Successive Halving "
        f"{reached}",
        "digits",
        verdict(ratio >= 2, in_part=ratio > 1),
    )


def footnote(rows: Sequence[Row], budget: int) -> Claim:
    """Whether a steep sigmoid gives the same test error, within a percentage point."""
    plain = ThetaSearch(RIVALS[0], budget)
    first = [row["theta"] for row in of(rows, plain)]
    told = []
    for s in SIGMOIDS:
        its = of(rows, plain._replace(sigmoid=s))
        same = sum(theta == row["theta"] for theta, row in zip(first, its, strict=True))
        error = np.mean([row["test_error"] for row in its])
        told.append(f"{error:.2%} with s = {s:g} (the same θ̂ in {same} of {len(first)})")
    ours = f"test error {_errors(rows, plain).mean():.2%} with 1{{z < 0}}, {', '.join(told)}"
    holds: Holds = "undecided"
    if len(first) >= ENOUGH:
        change = _errors(rows, plain._replace(sigmoid=SIGMOIDS[-1])) - _errors(rows, plain)
        error = float(change.std(ddof=1)) / sqrt(len(change))
        ours += f"; the steepest changes it by {change.mean():+.2%} ± {error:.2%}"
        by = abs(change.mean())
        if by + 2 * error <= POINT:
            holds = "yes"
        elif by - 2 * error > POINT:
            holds = "no"
    return Claim(
        "these technical issues can usually be usurped by replacing 1{z < 0} with a very steep "
        "sigmoid",
        "no number (here: the same test error, to a percentage point)",
        ours,
        "digits",
        holds,
    )
