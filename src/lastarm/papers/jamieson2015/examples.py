"""Examples 1 and 4: halving chooses among linear models, trained by stochastic gradient descent.

Example 1 is the best subset of features, Example 4 the penalty of a support vector machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import combinations, takewhile
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.batched.arrays import Array, common_level
from lastarm.batched.sample_order import passes
from lastarm.papers.jamieson2015 import data, figures
from lastarm.papers.jamieson2015.experiments import scaled, searched
from lastarm.papers.jamieson2015.intervals import ITERATIONS, Bounded, Sample, resampled
from lastarm.papers.jamieson2015.page import Claim, Holds, Part, Row, Settings, command, verdict
from lastarm.papers.jamieson2015.rules import RULES
from lastarm.plain import fingerprint
from lastarm.policies import POLICIES
from lastarm.policies.parts.integers import ceil_log
from lastarm.result import Result
from lastarm.space import Configs, LogUniform, draw
from lastarm.trainers import Config, arm_seed
from lastarm.trainers.splits import split

Table = tuple[Array, Array]  # rows, and a target for each
RIVALS = ("successive-halving", "uniform")


class Models(NamedTuple):
    """Linear models, a row each: what was chosen for it (features, or θ), weights and pulls."""

    chosen: Array
    weights: Array
    pulls: NDArray[np.int64]

    @classmethod
    def begun(cls, chosen: Array, features: int) -> Models:
        """Weights of 0."""
        return cls(chosen, np.zeros((len(chosen), features)), np.zeros(len(chosen), np.int64))

    def rows(self, arms: Sequence[int]) -> Models:
        """A copy of these."""
        return Models(*(array[list(arms)] for array in self))


class LinearTrainer(ABC):
    """Trains linear models: one step for each sample, and the same samples for all arms.

    The seed decides the random order of every pass over TRAIN. The arms' own seeds are not needed.
    """

    def __init__(self, train: Table, seed: int) -> None:
        self._train, self._seed = train, seed

    @abstractmethod
    def step(self, models: Models, x: Array, y: float, t: int) -> None:
        """Change the weights by the sample (x, y), after t others."""

    def train(self, batch: Models, arms: Sequence[int], pulls: int) -> None:
        """Steps for these arms, one for each pull."""
        X, y = self._train
        now, t = batch.rows(arms), common_level(batch.pulls, arms)
        for _, rows in passes(self._seed, len(y), t, t + pulls):
            for row in rows:
                self.step(now, X[row], y[row], t)
                t += 1
        batch.weights[list(arms)], batch.pulls[list(arms)] = now.weights, t

    def take(self, batch: Models, arm: int) -> Models:
        """A copy of its row."""
        return batch.rows([arm])

    def gather(self, ones: Sequence[Models]) -> Models:
        """Their rows."""
        return Models(*map(np.concatenate, zip(*ones, strict=True)))


# Example 1 -----------------------------------------------------------------------------------


DECAYS = (0.8, 0.9, 0.97)
TRAIN, VAL = 1000, 500  # rows
DOUBLINGS, QUICK_DOUBLINGS = 8, 6  # budgets, of which the least is n⌈log₂ n⌉

SUBSETS_TEXT = """\
Every subset of {d} of {D} features is an arm: {n} of them. y = Σ w_j·x_j + e over all features,
with |w_j| = q^j in a random order and with random signs, for q = 0.8, 0.9 and 0.97; features and e
are normal with variance 1, features with correlations of 0.3. A pull is a step of stochastic
gradient descent on one sample of TRAIN (1,000 rows), of a size O(1/t) that is the same for all
arms; the loss is the mean squared error on VAL (500 rows). The best subset is the one whose exact
least-squares fit on TRAIN has the least error on VAL. What a policy needs is the least budget such
that it finds that subset with it and with every greater one that was tried; budgets double from
n⌈log₂ n⌉. If a policy fails with the last budget, only a bound of its need is known. Halving needs
less if the median of uniform allocation's need divided by halving's is at least 2; "in part" means
more than 1. {trials} trials for each q, each with its own data."""


class SubsetRegression(LinearTrainer):
    """Least squares on a subset of the features; the config is `{"features": [j, …]}`.

    With the sample (x, y) after t others the step is w ← w − (w·x − y)x / (c(t + t_0)), where c is
    the least eigenvalue of the second moments of all features on TRAIN, so that the step is not
    too large for any subset, and c·t_0 is the greatest |x|². The loss is the mean squared
    error on VAL.
    """

    def __init__(self, train: Table, val: Table, *, seed: int) -> None:
        super().__init__(train, seed)
        self._val, (X, _) = val, train
        self._c = float(np.linalg.eigvalsh(X.T @ X / len(X))[0])
        self._t_0 = float((X**2).sum(axis=1).max()) / self._c

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Models:
        """Weights of 0."""
        chosen = np.array([config["features"] for config in configs])
        return Models.begun(chosen, chosen.shape[1])

    def step(self, models: Models, x: Array, y: float, t: int) -> None:
        """Against the gradient of (w·x − y)²/2."""
        seen = x[models.chosen]
        error = (models.weights * seen).sum(axis=1) - y
        models.weights[:] -= (error / (self._c * (t + self._t_0)))[:, np.newaxis] * seen

    def losses(self, batch: Models, arms: Sequence[int]) -> Array:
        """The mean squared errors on VAL."""
        X, y = self._val
        now = batch.rows(arms)
        errors = np.einsum("rad,ad->ra", X[:, now.chosen], now.weights) - y[:, np.newaxis]
        return np.asarray((errors**2).mean(axis=0))

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data, and the seed."""
        return {"data": fingerprint([*self._train, *self._val]), "seed": self._seed}


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
        seed = arm_seed(settings.seed, trial)
        train, val = made(D, q, seed)
        best = best_subset(arms, train, val)
        trainer = SubsetRegression(train, val, seed=seed)
        journals = settings.journals / "subsets" / f"q-{q}" / f"trial-{trial}"
        for policy in RIVALS:
            for budget in budgets:
                journal = journals / f"{policy}-{budget}.jsonl"
                found = searched(trainer, Configs(arms), POLICIES[policy](n, budget), journal)
                assert found.loss is not None
                assert found.arm is not None
                rows.append(
                    {"q": q, "trial": trial, "policy": policy, "n": n, "budget": budget}
                    | {"pulls": found.spent.pulls, "arm": found.arm, "best": best}
                    | {"found": found.arm == best, "loss": round(found.loss, 9)}
                    | {"level": found.curves[found.arm][-1][0]}
                )
        settings.progress(done, len(games))
    part = Part(
        "subsets",
        "Example 1: the best subset of features",
        " ".join(SUBSETS_TEXT.format(d=d, D=D, n=n, trials=trials).split()),
        [needs_less(rows)],
        command=command("subsets", settings),
    )
    return figures.publish(part, figures.found(rows), rows, settings)


def made(D: int, q: float, seed: int) -> tuple[Table, Table]:
    """TRAIN and VAL: D correlated features, with weights 1, q, q², … in a random order."""
    random = np.random.default_rng([seed, round(1000 * q)])  # another q, other data
    own, common = random.normal(size=(TRAIN + VAL, D)), random.normal(size=(TRAIN + VAL, 1))
    X = sqrt(0.7) * own + sqrt(0.3) * common
    w = random.permutation(q ** np.arange(D)) * random.choice([-1, 1], D)
    y = X @ w + random.normal(size=TRAIN + VAL)
    return (X[:TRAIN], y[:TRAIN]), (X[TRAIN:], y[TRAIN:])


def best_subset(arms: Sequence[Config], train: Table, val: Table) -> int:
    """The arm whose least-squares fit on TRAIN has the least error on VAL: it has the least ν."""
    limits = []
    for arm in arms:
        (X, y), (X_val, y_val) = train, val
        w = np.linalg.lstsq(X[:, arm["features"]], y, rcond=None)[0]
        limits.append(float(((X_val[:, arm["features"]] @ w - y_val) ** 2).mean()))
    return int(np.argmin(limits))


def needed(found: Mapping[int, bool]) -> int | None:
    """The least budget from which on all succeed, if the last one does.

    >>> needed({10: True, 20: False, 40: True, 80: True}), needed({10: True, 20: False})
    (40, None)
    """
    return min(takewhile(found.__getitem__, sorted(found, reverse=True)), default=None)


def needs(rows: Sequence[Row]) -> dict[tuple[float, int], tuple[int | None, int | None]]:
    """What halving and what uniform allocation need, for each q and trial."""
    found: dict[tuple[float, int], dict[str, dict[int, bool]]] = {}
    for row in rows:
        of = found.setdefault((row["q"], row["trial"]), {policy: {} for policy in RIVALS})
        of[row["policy"]][row["budget"]] = row["found"]
    halving, uniform = RIVALS
    return {key: (needed(of[halving]), needed(of[uniform])) for key, of in found.items()}


def needs_less(rows: Sequence[Row]) -> Claim:
    """How much more uniform allocation needs than halving, in the median over trials."""
    every, most = needs(rows), max(row["budget"] for row in rows)
    bounds = np.array([factor(*pair, beyond=2 * most) for pair in every.values()])
    rules = RULES["interval"]
    shares = resampled(len(every), rules["resamples"], rules["seed"])
    low, high = (medians(column, shares) for column in bounds.T)
    middle = Bounded(low, high, len(every))
    lost = [sum(need is None for need in of) for of in zip(*every.values(), strict=True)]
    n = rows[0]["n"]
    return Claim(
        "Examples 1 and 2: Successive Halving finds the best subset with a smaller budget",
        f"a factor of n/(4⌈log₂ n⌉) = {n / (4 * ceil_log(n, 2)):.1f}, were the limits a/n",
        f"a factor of {middle.told('{:.1f}'.format)} in the median; less is needed in "
        f"{sum(low > 1 for low, _ in bounds)} of {len(every)} trials, more in "
        f"{sum(high < 1 for _, high in bounds)}; with the greatest budget Successive Halving "
        f"fails in {lost[0]}, uniform allocation in {lost[1]}",
        "made data",
        less(middle),
        "pulls",
    )


def factor(halving: int | None, uniform: int | None, *, beyond: int) -> tuple[float, float]:
    """Bounds of uniform allocation's need divided by halving's; `beyond` is the least not tried.

    >>> factor(10, 40, beyond=80), factor(10, None, beyond=80), factor(None, 40, beyond=80)
    ((4.0, 4.0), (8.0, inf), (0.0, 0.5))
    """
    if halving is None:
        return 0.0, uniform / beyond if uniform else inf
    return (uniform / halving, uniform / halving) if uniform else (beyond / halving, inf)


def medians(numbers: Array, shares: Array) -> Array:
    """The median of the numbers, each counted as often as its share says, row by row."""
    order = np.argsort(numbers)
    ranks = np.cumsum(np.round(shares[:, order] * len(numbers)), axis=1)
    half = len(numbers) / 2
    low, high = (numbers[order][(ranks < bound).sum(axis=1)] for bound in (half, half + 0.5))
    return np.asarray(np.where(low == high, low, (low + high) / 2))


def less(ratio: Bounded) -> Holds:
    """Whether it is as great as the rule asks for; "in part" if it is surely above 1."""
    holds = ratio.is_at_least(RULES["examples"]["less"])
    above = ratio.is_at_least(float(np.nextafter(1, 2)))
    return above if holds == "no" and above != "yes" else "in part" if holds == "no" else holds


# Example 4 -----------------------------------------------------------------------------------


ARMS = 32
SIGMOIDS = (1.0, 10.0, 100.0, 1000.0)

SVM_TEXT = """\
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
these budgets. It holds if with the steepest, s = {steepest:g}, the interval of the change of the
mean test error is within a percentage point; it does not hold if all of it is outside."""


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
        models.weights[:] *= 1 - 1 / (t + 1)  # their t is one more than ours
        models.weights[:] += (inside * y / (2 * models.chosen * (t + 1)))[:, np.newaxis] * x

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
            assert found.arm is not None
            assert found.config is not None
            assert found.loss is not None
            rows.append(
                {"trial": trial, "policy": policy, "budget": budget, "sigmoid": s or ""}
                | {"theta": found.config["theta"], "val_loss": round(found.loss, 9)}
                | {"test_error": found.test_loss}
                | {"arm": found.arm, "level": found.curves[found.arm][-1][0]}
            )
            if asked is every:
                trained.append(by_theta(found))
        settings.progress(trial + 1, trials)
    figure = figures.penalties(
        trained[0],
        {policy: of(rows, ThetaSearch(policy, budgets[-1]))[0]["theta"] for policy in RIVALS},
        {policy: (budgets, _mean_errors(rows, policy, budgets)) for policy in RIVALS},
        everyone=float(_errors(rows, every).mean()),
        trials=trials,
    )
    part = Part(
        "linear-svm",
        "Example 4: the penalty of a linear support vector machine",
        " ".join(SVM_TEXT.split()).format(
            arms=ARMS, trials=trials, passes=passes, steepest=SIGMOIDS[-1]
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


def _mean_errors(rows: Sequence[Row], policy: str, budgets: Sequence[int]) -> list[float]:
    return [float(_errors(rows, ThetaSearch(policy, budget)).mean()) for budget in budgets]


def plain(rows: Sequence[Row], budgets: Sequence[int]) -> Sample:
    """The searches without a sigmoid, with these budgets."""
    own = [row for row in rows if not row["sigmoid"] and row["budget"] in budgets]
    return Sample(own, error="test_error")


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
    sample = plain(rows, budgets)
    halving, uniform = (sample.curves(policy, ITERATIONS) for policy in RIVALS)
    goal = uniform.errors.min(axis=1)
    ratio, theirs = sample.ratio(goal, *RIVALS, ITERATIONS), uniform.reach(goal)[1][0]
    return Claim(
        "Here, on Example 4: Successive Halving comes to the lowest test error of uniform "
        "allocation with fewer samples",
        "no number for this example",
        f"uniform allocation comes to {goal[0]:.2%} with {theirs:,.0f} samples, Successive "
        f"Halving {ratio.times} faster; the lowest error of Successive Halving is "
        f"{halving.errors[0].min():.2%}",
        "digits",
        less(ratio),
        "samples",
    )


def footnote(rows: Sequence[Row], budget: int) -> Claim:
    """Whether a steep sigmoid gives the same test error, within a percentage point."""
    plainly = ThetaSearch(RIVALS[0], budget)
    first = [row["theta"] for row in of(rows, plainly)]
    told = []
    for s in SIGMOIDS:
        its = of(rows, plainly._replace(sigmoid=s))
        same = sum(theta == row["theta"] for theta, row in zip(first, its, strict=True))
        error = np.mean([row["test_error"] for row in its])
        told.append(f"{error:.2%} with s = {s:g} (the same θ̂ in {same} of {len(first)})")
    ours = f"test error {_errors(rows, plainly).mean():.2%} with 1{{z < 0}}, {', '.join(told)}"
    change = _errors(rows, plainly._replace(sigmoid=SIGMOIDS[-1])) - _errors(rows, plainly)
    rules = RULES["interval"]
    means = resampled(len(change), rules["resamples"], rules["seed"]) @ change
    known = Bounded(means, means, len(change))
    ours += f"; the steepest changes it by {known.told(lambda share: f'{share:+.2%}')}"
    point = RULES["examples"]["same"]
    return Claim(
        "these technical issues can usually be usurped by replacing 1{z < 0} with a very steep "
        "sigmoid",
        "no number (here: the same test error, to a percentage point)",
        ours,
        "digits",
        known.is_within(-point, point),
    )
