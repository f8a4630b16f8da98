"""The errors of many linear models on the same rows."""

from __future__ import annotations

import numpy as np

from lastarm.batched.arrays import Array
from lastarm.batched.kernels.block_products import BLOCK, in_whole_registers, predict
from lastarm.batched.kernels.compiled import compiled


@compiled
def squared_errors(weights: Array, intercepts: Array, columns: Array, X: Array, Y: Array) -> Array:
    """The sum of squared errors of each model on its column of Y."""
    totals = np.zeros(len(weights))
    w, x = in_whole_registers(weights)
    predictions = np.empty((BLOCK, len(weights)), weights.dtype)
    for begin in range(0, len(X), BLOCK):
        for t in range(look(w, intercepts, X, begin, x, predictions)):
            for model in range(len(totals)):
                error = np.float64(predictions[t, model] - Y[begin + t, columns[model]])
                totals[model] += error * error
    return totals


@compiled
def count_mistakes(
    weights: Array, intercepts: Array, X: Array, labels: Array, targets: int
) -> Array:
    """The number of rows for which the `targets` models of an arm name a wrong class."""
    totals = np.zeros(len(weights) // targets, np.int64)
    w, x = in_whole_registers(weights)
    predictions = np.empty((BLOCK, len(weights)), weights.dtype)
    for begin in range(0, len(X), BLOCK):
        for t in range(look(w, intercepts, X, begin, x, predictions)):
            label = labels[begin + t]
            if targets == 1:
                for arm in range(len(totals)):
                    totals[arm] += (predictions[t, arm] > 0) != label
            else:
                for arm in range(len(totals)):
                    best, highest = 0, predictions[t, arm * targets]
                    for k in range(1, targets):
                        value = predictions[t, arm * targets + k]
                        if value > highest:
                            best, highest = k, value
                    totals[arm] += best != label
    return totals


@compiled
def look(w: Array, intercepts: Array, X: Array, begin: int, x: Array, predictions: Array) -> int:
    """Predict for the rows of a block; returns the number of rows."""
    count = min(BLOCK, len(X) - begin)
    x[:count, : X.shape[1]] = X[begin : begin + count]
    predict(w, x, predictions)
    for t in range(count):
        for model in range(len(intercepts)):
            predictions[t, model] += intercepts[model]
    return count
