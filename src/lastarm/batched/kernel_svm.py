"""Support vector machines with an RBF kernel by Pegasos, many at a time: the paper's §5.2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.arguments import whole_number
from lastarm.batched.arrays import Array, common_level, float_type, require_signs, setting, tables
from lastarm.batched.kernels.pegasos import (
    POINTS,
    SAMPLES,
    Blocks,
    KernelMachines,
    Points,
    add_errors,
    loaded,
    pegasos,
    unload,
)
from lastarm.batched.sample_order import order, passes
from lastarm.errors import InvalidArgument
from lastarm.plain import fingerprint
from lastarm.trainers import Config

PIECE = 256  # pulls in one call of the kernel


@dataclass
class Machines:
    """Arms: λ, γ, the pulls so far, and α: how often each point of TRAIN was a mistake.

    `counts` has a row per arm and a column for each point that any arm of the batch has seen, in
    the order of the first pass. It may have more columns.
    """

    penalties: NDArray[np.float64]
    gammas: NDArray[np.float64]
    counts: NDArray[np.int32]
    pulls: NDArray[np.int64]


class KernelSVM:
    """Kernel machines Σ α_j y_j κ(x_j, ·) / λT, with labels ±1 and κ(x, z) = exp(−γ‖x − z‖²).

    The config is `{"lambda": λ, "gamma": γ}`. A pull is one sample (x_i, y_i); the T-th is

        if y_i Σ_j α_j y_j κ(x_j, x_i) / λT < 1:  α_i ← α_i + 1,

    which is kernelized Pegasos as in figure 3 of Shalev-Shwartz et al. (2011), with y_j in the sum
    as in their text. The samples are passes over TRAIN in random orders, the same for all arms.
    The kernel is never stored: distances are computed once for all arms, κ once for all arms of
    one γ.

    The loss is the fraction of VAL that is not on its own side. Where κ vanishes (from γ‖x − z‖² =
    745 on, or 103 in float32) a machine gives 0, which counts as wrong. The test loss is that on
    TEST.

    :param X_train: the rows to learn from.
    :param y_train: their targets.
    :param X_val: the rows that give the loss.
    :param y_val: their targets.
    :param X_test: the rows that give the test loss; left out, there is none.
    :param y_test: their targets.
    :param sigmoid: s, for the loss that is the mean of 1/(1 + exp(s·y·f(x))), which is continuous
        (the paper's footnote); left out, it is the fraction.
    :param seed: decides the order of the samples.
    :param dtype: float64 or float32.

    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    >>> y = np.sign(X[:, 0] * X[:, 1])
    >>> svm = KernelSVM(X[:200], y[:200], X[200:], y[200:])
    >>> arms = svm.start([{"lambda": 1e-3, "gamma": gamma} for gamma in (4.0, 1e5)], seeds=[0, 1])
    >>> svm.train(arms, [0, 1], pulls=400)
    >>> good, narrow = svm.losses(arms, [0, 1])
    >>> bool(good < 0.15 < narrow)
    True
    """

    def __init__(
        self,
        X_train: ArrayLike,
        y_train: ArrayLike,
        X_val: ArrayLike,
        y_val: ArrayLike,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        *,
        sigmoid: float | None = None,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self._dtype = float_type(dtype)
        parts = tables((X_train, y_train), (X_val, y_val), (X_test, y_test), self._dtype)
        require_signs(parts)
        if sigmoid is not None and not sigmoid > 0:
            way_out = "Use a number greater than 0, or leave it out for the 0/1 loss"
            raise InvalidArgument.of("sigmoid", sigmoid, "it is how steep the loss is", way_out)
        self._sigmoid = sigmoid
        self._seed = whole_number("seed", seed, 0, "what decides the order of the samples")
        X, y = parts.pop("train")
        # In the order of the first pass, so that points seen so far come first; by columns, so
        # that the distances to many points are computed at once.
        first = order(self._seed, len(y), 0)
        self._columns, self._y = _in_chunks(X[first].T), y[first]
        self._position = np.argsort(first)
        self._looks = parts
        if "test" in parts:
            self.tests = self._tests  # without TEST there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Machines:
        """Machines without points. The seeds of the arms are not used."""
        penalties = np.array([setting(config, "lambda", 1e-300) for config in configs])
        gammas = np.array([setting(config, "gamma") for config in configs])
        none = np.zeros((len(penalties), 0), np.int32)
        return Machines(penalties, gammas, none, np.zeros(len(penalties), np.int64))

    def train(self, batch: Machines, arms: Sequence[int], pulls: int) -> None:
        """Train arms of one γ side by side."""
        level, points = common_level(batch.pulls, arms), len(self._y)
        seen = min(level + pulls, points)
        if batch.counts.shape[1] < seen:  # by more than needed, to do it rarely
            batch.counts = _widened(
                batch.counts, min(max(seen, 2 * batch.counts.shape[1]), points)
            )
        chosen, gammas, bounds = _by_gamma(batch, arms)
        factors = loaded(batch.counts, chosen, seen, self._y)
        machines, train = KernelMachines(factors, gammas, bounds), Points(self._columns, self._y)
        penalties, done = batch.penalties[chosen], level
        for number, rows in passes(self._seed, points, level, level + pulls, PIECE):
            begin = done % points
            end = begin + len(rows)
            first = begin - begin % SAMPLES
            blocks = order(self._seed, points, number)[first : end + -end % SAMPLES]
            stretch = Blocks(
                self._position[blocks], begin - first, end - first, done - begin + first
            )
            pegasos(machines, penalties, train, stretch)
            done += len(rows)
        unload(factors, batch.counts, chosen, seen, self._y)
        batch.pulls[chosen] += pulls

    def losses(self, batch: Machines, arms: Sequence[int]) -> NDArray[np.float64]:
        """The fractions of VAL that are not on their side, or the means of the sigmoid."""
        return self._errors(batch, arms, "val")

    def _tests(self, batch: Machines, arms: Sequence[int]) -> NDArray[np.float64]:
        return self._errors(batch, arms, "test")

    def _errors(self, batch: Machines, arms: Sequence[int], part: str) -> NDArray[np.float64]:
        X, y = self._looks[part]
        chosen, gammas, bounds = _by_gamma(batch, arms)
        seen = min(int(batch.pulls[chosen].max()), len(self._y))
        factors = loaded(batch.counts, chosen, seen, self._y)
        machines = KernelMachines(factors, gammas, bounds)
        scales = (self._sigmoid or 0.0) / (
            batch.penalties[chosen] * np.maximum(batch.pulls[chosen], 1)
        )
        totals = np.zeros(len(chosen))
        for begin in range(0, len(y), PIECE):
            rows = slice(begin, begin + PIECE)
            add_errors(machines, scales, self._columns, X[rows], y[rows], totals)
        losses = np.empty(len(chosen))
        losses[_ranks(batch, arms)] = totals / len(y)
        return losses

    def take(self, batch: Machines, arm: int) -> Machines:
        """A copy of the arm, with the points that it has seen."""
        return Machines(
            batch.penalties[[arm]],
            batch.gammas[[arm]],
            batch.counts[[arm], : batch.pulls[arm]],
            batch.pulls[[arm]],
        )

    def gather(self, ones: Sequence[Machines]) -> Machines:
        """The rows of all arms, made equally long."""
        if len(ones) == 1:
            return ones[0]
        seen = max(one.counts.shape[1] for one in ones)
        return Machines(
            np.concatenate([one.penalties for one in ones]),
            np.concatenate([one.gammas for one in ones]),
            np.concatenate([_widened(one.counts, seen) for one in ones]),
            np.concatenate([one.pulls for one in ones]),
        )

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data and the settings."""
        columns = self._columns.swapaxes(0, 1).reshape(self._columns.shape[1], -1)
        looks = (array for part in self._looks.values() for array in part)
        data = [columns[:, : len(self._y)], self._y, *looks]
        return {"data": fingerprint(data), "sigmoid": self._sigmoid, "seed": self._seed}


def _in_chunks(columns: Array) -> Array:
    """Cut into chunks of POINTS points; the last one is filled up with 0."""
    features, points = columns.shape
    whole = np.zeros((features, points + -points % POINTS), columns.dtype)
    whole[:, :points] = columns
    return np.ascontiguousarray(whole.reshape(features, -1, POINTS).swapaxes(0, 1))


def _widened(counts: NDArray[np.int32], points: int) -> NDArray[np.int32]:
    wider = np.zeros((len(counts), points), np.int32)  # np.pad takes twenty times as long
    wider[:, : counts.shape[1]] = counts
    return wider


def _ranks(batch: Machines, arms: Sequence[int]) -> NDArray[np.int64]:
    return np.argsort(batch.gammas[list(arms)], kind="stable")


def _by_gamma(
    batch: Machines, arms: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """The arms by their γ, the different γ, and where the arms of each begin and end."""
    chosen = np.asarray(arms)[_ranks(batch, arms)]
    gammas, begins = np.unique(batch.gammas[chosen], return_index=True)
    return chosen, gammas, np.append(begins, len(chosen))
