"""Example 1: the best subset of features, found by stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, takewhile
from math import sqrt
from statistics import median
from typing import Any

import numpy as np

from lastarm.batched.arrays import Array
from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.descent import RIVALS, LinearTrainer, Models, Table
from lastarm.papers.jamieson2015.experiments import searched
from lastarm.papers.jamieson2015.page import Claim, Holds, Part, Row, Settings, command, verdict
from lastarm.plain import fingerprint
from lastarm.policies import POLICIES
from lastarm.policies.parts.integers import ceil_log
from lastarm.space import Configs
from lastarm.trainers import Config, arm_seed

DECAYS = (0.8, 0.9, 0.97)
TRAIN, VAL = 1000, 500  # rows
DOUBLINGS, QUICK_DOUBLINGS = 8, 6  # budgets, of which the least is n⌈log₂ n⌉

TEXT = """\
Every subset of {d} of {D} features is an arm: {n} of them. y = Σ w_j·x_j + e over all features,
with |w_j| = q^j in a random order and with random signs, for q = 0.8, 0.9 and 0.97; features and e
are normal with variance 1, features with correlations of 0.3. A pull is a step of stochastic
gradient descent on one sample of TRAIN (1,000 rows), of a size O(1/t) that is the same for all
arms; the loss is the mean squared error on VAL (500 rows). The best subset is the one whose exact
least-squares fit on TRAIN has the least error on VAL. What a policy needs is the least budget such
that it finds that subset with it and with every greater one that was tried; budgets double from
n⌈log₂ n⌉. If only one of the two policies fails with the last budget, the next one, which was not
tried, is taken as its need; if both fail, the trial is left out. Halving needs less if the median
of uniform allocation's need divided by halving's is at least 2; "in part" means more than 1.
{trials} trials for each q, each with its own data."""


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
        models.weights -= (error / (self._c * (t + self._t_0)))[:, np.newaxis] * seen

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
                rows.append(
                    {"q": q, "trial": trial, "policy": policy, "n": n, "budget": budget}
                    | {"pulls": found.spent.pulls, "arm": found.arm, "best": best}
                    | {"found": found.arm == best, "loss": round(found.loss, 9)}
                )
        settings.progress(done, len(games))
    part = Part(
        "subsets",
        "Example 1: the best subset of features",
        " ".join(TEXT.format(d=d, D=D, n=n, trials=trials).split()),
        [judged(rows)],
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


def judged(rows: Sequence[Row]) -> Claim:
    """How much more uniform allocation needs than halving, where at least one need is known."""
    every, beyond = needs(rows), 2 * max(row["budget"] for row in rows)
    known = {key: pair for key, pair in every.items() if any(pair)}
    factors: dict[float, list[float]] = {}
    for (q, _), (halving, uniform) in known.items():
        factors.setdefault(q, []).append((uniform or beyond) / (halving or beyond))
    ours = "neither finds it with the greatest budget in any trial"
    holds: Holds = "undecided"
    if known:
        all_q = [factor for of_q in factors.values() for factor in of_q]
        middle = median(all_q)
        holds = verdict(middle >= 2, in_part=middle > 1)
        listed = ", ".join(f"{median(of_q):g} with q = {q}" for q, of_q in factors.items())
        lost = [sum(need is None for need in of) for of in zip(*known.values(), strict=True)]
        ours = (
            f"a factor of {middle:g} in the median ({listed}); less is needed in "
            f"{sum(factor > 1 for factor in all_q)} of {len(known)} trials, more in "
            f"{sum(factor < 1 for factor in all_q)}; with the greatest budget Successive Halving "
            f"alone fails in {lost[0]} of these, uniform allocation alone in {lost[1]}; both fail "
            f"in {len(every) - len(known)} others, which are left out"
        )
    n = rows[0]["n"]
    return Claim(
        "Examples 1 and 2: Successive Halving finds the best subset with a smaller budget",
        f"a factor of n/(4⌈log₂ n⌉) = {n / (4 * ceil_log(n, 2)):.1f}, were the limits a/n",
        ours,
        "made data",
        holds,
    )
