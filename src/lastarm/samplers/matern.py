"""A Gaussian process with a Matérn 5/2 kernel: what is expected of a number at rows not yet seen.

With NumPy alone, so that it is the same wherever lastarm runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEPS = 25  # of the search for the most probable hyperparameters
JITTER = 1e-8  # of the variance that the values have: for rows that are the same
SMALL = 48  # a triangular matrix of this size is inverted at once


class Belief(NamedTuple):
    """What is thought of the logarithm of a positive number before any data: a normal one."""

    mean: float
    deviation: float


AMPLITUDE = Belief(0.0, 1.0)  # of the variance; values have a variance of 1
NOISE = Belief(log(1e-3), 1.5)  # of the variance of the noise
LENGTH_DEVIATION = 1.0


def length(count: int) -> Belief:
    """What is thought of the length scales of `count` parameters, each of which is 0 to 1.

    Distances grow with the square root of their number, and length scales have to as well: Hvarfner,
    Hellsten & Nardi, "Vanilla Bayesian optimization performs great in high dimensions" (2024).
    """
    return Belief(log(count) / 2, LENGTH_DEVIATION)


class Hyperparameters(NamedTuple):
    """Those of the process itself.

    - `lengths`: the length scale of each parameter: how far rows have to be apart in it to tell
      hardly anything of each other.
    - `amplitude`: the variance of the values, without their noise.
    - `noise`: the variance of the noise.
    """

    lengths: Array
    amplitude: float
    noise: float


def kernel(one: Array, other: Array) -> Array:
    """The correlation of each row of `one` with each of `other`, where distances are scaled.

    (1 + √5 r + 5/3 r²) exp(−√5 r) for the distance r.
    """
    r = sqrt(5) * _distances(one, other)
    return (1 + r + r * r / 3) * np.exp(-r)


def _distances(one: Array, other: Array) -> Array:
    squares = (one * one).sum(axis=1)[:, None] + (other * other).sum(axis=1) - 2 * one @ other.T
    return np.sqrt(np.maximum(squares, 0))


def inverse_of(lower: Array) -> Array:
    """The inverse of a lower triangular matrix, by halves: most of the work is in products."""
    size = len(lower)
    if size <= SMALL:
        return np.tril(np.linalg.inv(lower))
    half = size // 2
    first, last = inverse_of(lower[:half, :half]), inverse_of(lower[half:, half:])
    inverse = np.zeros_like(lower)
    inverse[:half, :half], inverse[half:, half:] = first, last
    inverse[half:, :half] = -last @ (lower[half:, :half] @ first)
    return inverse


@dataclass(frozen=True)
class Posterior:
    """What is expected after `values` were seen at `rows`.

    - `hyperparameters`: of the process.
    - `parameters`: for each column, the number of the parameter that it belongs to.
    - `rows`, `values`: what was seen.
    - `weights`: K⁻¹ y, for the means.
    - `root`: the inverse of the Cholesky factor of K, for the variances.
    """

    hyperparameters: Hyperparameters
    parameters: NDArray[np.int64]
    rows: Array
    values: Array
    weights: Array
    root: Array

    @classmethod
    def of(
        cls,
        rows: Array,
        parameters: NDArray[np.int64],
        values: Array,
        hyperparameters: Hyperparameters,
    ) -> Self:
        """Rasmussen & Williams, "Gaussian processes for machine learning" (2006), algorithm 2.1."""
        _, amplitude, noise = hyperparameters
        scaled = rows / hyperparameters.lengths[parameters]
        covariance = amplitude * kernel(scaled, scaled)
        np.fill_diagonal(covariance, amplitude + noise + JITTER)
        root = inverse_of(np.linalg.cholesky(covariance))
        return cls(hyperparameters, parameters, rows, values, root.T @ (root @ values), root)

    def believing(self, rows: Array) -> Self:
        """What is expected if the values at more rows come out as they are expected now."""
        values = np.append(self.values, self.at(rows)[0])
        every = np.vstack([self.rows, rows])
        return self.of(every, self.parameters, values, self.hyperparameters)

    def covariances(self, one: Array, other: Array) -> Array:
        """Those between rows, before anything was seen."""
        scales = self.hyperparameters.lengths[self.parameters]
        return self.hyperparameters.amplitude * kernel(one / scales, other / scales)

    def at(self, rows: Array) -> tuple[Array, Array, Array]:
        """The means and variances at rows, and with them L⁻¹ k, from which covariances follow."""
        known = self.covariances(self.rows, rows)
        explained = self.root @ known
        variances = self.hyperparameters.amplitude - (explained * explained).sum(axis=0)
        return self.weights @ known, np.maximum(variances, JITTER), explained


def fit(rows: Array, parameters: NDArray[np.int64], values: Array) -> Hyperparameters:
    """The most probable hyperparameters, to two decimals of their logarithms.

    They are found by BFGS. It ends close to where it would on another computer, and rounding makes
    it the same place.

    - `rows`, `values`: what was seen. The values have a mean of 0 and a variance of 1.
    - `parameters`: for each column, the number of the parameter that it belongs to.
    """
    count = int(parameters.max(initial=-1)) + 1
    beliefs = np.array([*[length(max(count, 1))] * count, AMPLITUDE, NOISE])
    found = _minimum(rows, parameters, values, beliefs)
    lengths, amplitude, noise = np.split(np.exp(np.round(found, 2)), [count, count + 1])
    return Hyperparameters(lengths, float(amplitude[0]), float(noise[0]))


def improbability(
    logs: Array, rows: Array, parameters: NDArray[np.int64], values: Array, beliefs: Array
) -> tuple[float, Array]:
    """−log of the probability of hyperparameters and values, up to a constant, and its gradient.

    - `logs`: the logarithms of the length scales, of the amplitude and of the noise.
    - `rows`, `parameters`, `values`: as in `fit`.
    - `beliefs`: the mean and deviation that each of the `logs` has before any data.

    Rasmussen & Williams (2006), equations 5.8 and 5.9.
    """
    count = len(logs) - 2
    amplitude, noise = np.exp(logs[-2:]).tolist()
    scaled = rows / np.exp(logs[:count])[parameters]
    r = sqrt(5) * _distances(scaled, scaled)
    decay = amplitude * np.exp(-r)
    covariance = (1 + r + r * r / 3) * decay
    np.fill_diagonal(covariance, amplitude)
    noisy = covariance.copy()
    np.fill_diagonal(noisy, amplitude + noise + JITTER)
    lower = np.linalg.cholesky(noisy)
    root = inverse_of(lower)
    weights = root.T @ (root @ values)
    off = (logs - beliefs[:, 0]) / beliefs[:, 1]
    score = values @ weights / 2 + np.log(np.diag(lower)).sum() + off @ off / 2

    slope = (root.T @ root - np.outer(weights, weights)) / 2  # of the score, in K
    pull = slope * ((5 / 3) * (1 + r) * decay)
    by_column = 2 * (pull.sum(axis=1) @ scaled**2 - (scaled * (pull @ scaled)).sum(axis=0))
    gradient = np.concatenate(
        [
            np.bincount(parameters, by_column, count),
            [(slope * covariance).sum(), noise * np.trace(slope)],
        ]
    )
    return float(score), gradient + off / beliefs[:, 1]


def _minimum(
    rows: Array, parameters: NDArray[np.int64], values: Array, beliefs: Array
) -> Array:
    """The hyperparameters of the least improbability: Nocedal & Wright (2006), algorithm 6.1."""
    most = 4 * beliefs[:, 1]

    def improbable(logs: Array) -> tuple[float, Array]:
        return improbability(logs, rows, parameters, values, beliefs)

    x = beliefs[:, 0].copy()
    score, gradient = improbable(x)
    inverse = np.eye(len(x)) / max(1.0, float(np.linalg.norm(gradient)))
    for step in range(STEPS):
        direction = -inverse @ gradient
        direction *= min(1.0, 2 / max(float(np.abs(direction).max()), 1e-300))
        expected = float(direction @ gradient)
        for part in (1.0, 0.4, 0.16, 0.064, 0.0256):
            new = np.clip(x + part * direction, beliefs[:, 0] - most, beliefs[:, 0] + most)
            new_score, new_gradient = improbable(new)
            if new_score <= score + 1e-4 * part * expected:
                break
        else:
            break  # as low as it gets
        moved, turned = new - x, new_gradient - gradient
        gained, curvature = score - new_score, float(moved @ turned)
        x, score, gradient = new, new_score, new_gradient
        if gained < 1e-3:
            break
        if curvature > 1e-10:
            if step == 0:
                inverse = np.eye(len(x)) * curvature / (turned @ turned)
            turn = np.eye(len(x)) - np.outer(moved, turned) / curvature
            inverse = turn @ inverse @ turn.T + np.outer(moved, moved) / curvature
    return x
