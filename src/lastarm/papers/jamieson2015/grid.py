"""The grid of choices: what the sentences of §5.1 depend on that the paper does not say.

The losses of an arm do not depend on the policy. So every arm is trained once, its errors on VAL
and TEST are recorded after each pull, and all policies are played on the record, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from lastarm.batched.arrays import Array
from lastarm.batched.sample_order import passes
from lastarm.papers.jamieson2015 import figures
from lastarm.papers.jamieson2015.comparisons import of_ridge
from lastarm.papers.jamieson2015.data import Table, regression_table
from lastarm.papers.jamieson2015.experiments import RIDGE, InThePaper, doublings, scaled
from lastarm.papers.jamieson2015.page import Claim, Holds, Part, Row, Settings, command
from lastarm.papers.jamieson2015.theorems import played
from lastarm.policies.named import takes
from lastarm.space import draw
from lastarm.trainers import arm_seed
from lastarm.trainers.splits import split

PIECE = 512  # pulls whose errors are computed at once
FURTHER = 4  # times as many pulls have policies that look rarely, so that slower ones are seen

TEXT = """\
Ridge regression as above, all seven policies with up to {most:,} pulls, those that look rarely up
to {further:,}, {trials} trials. What the paper does not say is varied, in {cells} cells: whether
each arm has its own order of samples or all have the same; whether losses are scaled by what was
seen or by the known range from 0 to 1 (LUCB, lil'UCB, Successive Elimination and EXP3; the targets
have a variance of 1); whether what a sure policy has left goes to its arm, or it ends; and whether
budgets double from 64 or from 40, the least that Successive Halving takes. Every arm is trained
once and its errors are recorded after each pull; policies are played on the record. The last
column of a claim says in which cells it holds."""


LOOK_AT_ALL = ("lucb", "lil-ucb", "exp3")


class Choices(NamedTuple):
    """A cell of the grid."""

    samples: str = "shared"
    scale: str = "seen"
    leftovers: str = "to the arm"
    first: int = 64

    def __str__(self) -> str:
        return f"{self.samples}, {self.scale}, {self.leftovers}, {self.first}"


CELLS = tuple(
    Choices(*cell)
    for cell in product(("shared", "own"), ("seen", "known"), ("to the arm", "unspent"), (64, 40))
)


class Record(NamedTuple):
    """The errors of all arms after each pull."""

    val: Array
    test: Array


def recorded(table: Table, seed: int, pulls: int, *, own: bool) -> Record:
    """Train the arms of a trial as `RidgeRegression` does, and note the errors after each pull.

    The mean squared error is a quadratic function of the weights, so what it takes of VAL and TEST
    is their moments.
    """
    train, val, test = split(len(table.y), seed)
    X, y = scaled(table.X, train), scaled(table.y[:, None], train)[:, 0]
    configs = draw(RIDGE.space, RIDGE.arms, seed)
    penalties = np.array([config["lambda"] for config in configs])[:, np.newaxis]
    orders = np.stack(
        [
            np.concatenate([train[rows] for _, rows in passes(order, len(train), 0, pulls)])
            for order in (arm_seed(seed, arm) if own else seed for arm in range(RIDGE.arms))
        ],
        axis=1,
    )
    weights = np.zeros((RIDGE.arms, X.shape[1]))
    record = Record(*(np.empty((RIDGE.arms, pulls)) for _ in range(2)))
    moments = [Moments.of(X[rows], y[rows]) for rows in (val, test)]
    for begin in range(0, pulls, PIECE):
        path = np.empty((min(PIECE, pulls - begin), *weights.shape))
        for t, rows in enumerate(orders[begin : begin + PIECE], start=begin):
            x, eta = X[rows], 0.01 / np.sqrt(2 + t)
            error = np.einsum("ad,ad->a", weights, x) - y[rows]
            weights = (1 - 2 * eta * penalties) * weights - (2 * eta * error)[:, np.newaxis] * x
            path[t - begin] = weights
        for errors, of in zip(record, moments, strict=True):
            errors[:, begin : begin + len(path)] = of.errors(path).T
    return record


class Moments(NamedTuple):
    """What the mean squared error of any weights takes of a table."""

    second: Array
    mixed: Array
    target: float

    @classmethod
    def of(cls, X: Array, y: Array) -> Moments:
        """Means of x·xᵀ, of x·y and of y²."""
        return cls(X.T @ X / len(y), X.T @ y / len(y), float(y @ y) / len(y))

    def errors(self, weights: Array) -> Array:
        """Of many weights, along the last axis."""
        quadratic = np.einsum("...d,...d->...", weights @ self.second, weights)
        return np.asarray(quadratic - 2 * weights @ self.mixed + self.target)


class PlayedRecord:
    """The searches of a trial on its record; what two cells have in common is played once."""

    def __init__(self, record: Record, seed: int) -> None:
        self._record, self._val, self._seed = record, record.val.tolist(), seed
        self._found: dict[tuple[str, int, bool, bool], Row] = {}

    def rows(self, choices: Choices, most: int) -> Iterator[Row]:
        """All policies with all budgets of a cell."""
        for policy in RIDGE.policies:
            known = choices.scale == "known" and takes(policy, "low")
            for budget in budgets(choices, most if policy in LOOK_AT_ALL else FURTHER * most):
                row = self._search(policy, budget, known=known, ends=True)
                if choices.leftovers != "unspent" and row["pulls"] <= budget - RIDGE.arms:
                    row = self._search(policy, budget, known=known, ends=False)
                yield row

    def _search(self, policy: str, budget: int, *, known: bool, ends: bool) -> Row:
        key = policy, budget, known, ends
        if key not in self._found:
            self._found[key] = self._played(*key)
        return self._found[key]

    def _played(self, policy: str, budget: int, known: bool, ends: bool) -> Row:
        low, high = (0.0, 1.0) if known else (None, None)
        protocol = InThePaper(
            RIDGE.arms, budget, of=policy, seed=self._seed, ends=ends, low=low, high=high
        )
        level: dict[int, int] = {}

        def loss(arm: int, pulls: int) -> float:
            level[arm] = pulls
            return float(self._val[arm][pulls - 1])

        game = played(protocol, loss)
        assert game.arm is not None
        return {
            "policy": policy,
            "budget": budget,
            "pulls": game.pulls,
            "observations": game.observations,
            "arm": game.arm,
            "level": level[game.arm],
            "test_loss": round(float(self._record.test[game.arm, level[game.arm] - 1]), 9),
        }


def budgets(choices: Choices, most: int) -> list[int]:
    """The doubling sequence of a cell."""
    if choices.first == 64:
        return list(doublings(64, most))
    return [b for k in range(most.bit_length()) if (b := choices.first * 2**k) <= most]


def grid_of_choices(settings: Settings) -> Part:
    """Play all cells of a regression, and judge the sentences of §5.1 in each."""
    table = regression_table(settings.data, quick=settings.quick)
    trials = settings.trials or (2 if settings.quick else RIDGE.trials)
    most = 2**8 if settings.quick else 2**14
    rows: list[Row] = []
    for trial in range(trials):
        seed = arm_seed(settings.seed, trial)
        for samples in ("shared", "own"):
            of_trial = PlayedRecord(
                recorded(table, seed, FURTHER * most, own=samples == "own"), seed
            )
            for choices in CELLS:
                if choices.samples == samples:
                    known = {"trial": trial, **choices._asdict()}
                    rows += [known | row for row in of_trial.rows(choices, most)]
        settings.progress(trial + 1, trials)
    text = TEXT.format(most=most, further=FURTHER * most, trials=trials, cells=len(CELLS))
    part = Part(
        f"grid-{table.name}",
        f"The grid of choices on {table.name}",
        f"{table.about} {' '.join(text.split())}",
        over_cells(rows, f"{table.name}, {trials} trials"),
        command=command("grid", settings),
    )
    return figures.publish(part, figures.cells(rows), rows, settings)


def over_cells(rows: Sequence[Row], data: str) -> list[Claim]:
    """The sentences of §5.1 that need no clock: where they hold, cell by cell."""
    found: dict[str, list[tuple[Choices, Claim]]] = {}
    for choices in CELLS:
        own = [row for row in rows if Choices(*(row[f] for f in Choices._fields)) == choices]
        for claim in of_ridge(own, data, clock=False):
            found.setdefault(claim.claim, []).append((choices, claim))
    return [over(said, cells) for said, cells in found.items()]


def over(said: str, cells: Sequence[tuple[Choices, Claim]]) -> Claim:
    """One claim of all cells: it is settled where all of them agree, else it depends on them."""
    verdicts = [claim.holds for _, claim in cells]
    counts = ", ".join(f"{holds} in {verdicts.count(holds)}" for holds in dict.fromkeys(verdicts))
    first = cells[0][1]
    where = "; ".join(
        f"{holds}: {' / '.join(str(choices) for choices, claim in cells if claim.holds == holds)}"
        for holds in dict.fromkeys(verdicts)
    )
    return first._replace(
        claim=said,
        ours=f"{counts} of {len(cells)} cells; in the first one: {first.ours}",
        holds=verdicts[0] if len(set(verdicts)) == 1 else _mixed(set(verdicts)),
        choices=where,
    )


def _mixed(verdicts: set[Holds]) -> Holds:
    return "in part" if "yes" in verdicts or "in part" in verdicts else "not settled"
