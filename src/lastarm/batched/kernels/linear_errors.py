"""How wrong many linear models are, over the same rows."""

from __future__ import annotations

import numpy as np

from lastarm.batched.arrays import Array
from lastarm.batched.kernels.block_products import BLOCK, padded, predict
from lastarm.batched.kernels.compiled import compiled


@compiled
def squared_errors(weights: Array, intercepts: Array, which: Array, X: Array, Y: Array) -> Array:
    """The sum of each model's squared errors, over all rows."""
    totals = np.zeros(len(weights))
    w, x, predictions = room(weights)
    for begin in range(0, len(X), BLOCK):
        for t in range(look(w, intercepts, X, begin, x, predictions)):
            for model in range(len(totals)):
                error = np.float64(predictions[t, model] - Y[begin + t, which[model]])
                totals[model] += error * error
    return totals


@compiled
def mistakes(weights: Array, intercepts: Array, X: Array, labels: Array, targets: int) -> Array:
    """How often the `targets` models of each arm, or its only one, are for another class."""
    totals = np.zeros(len(weights) // targets, np.int64)
    w, x, predictions = room(weights)
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
def room(weights: Array) -> tuple[Array, Array, Array]:
    """The weights in whole registers, and places for a block and for what they say of it."""
    w = padded(weights, len(weights))
    w[:, : weights.shape[1]] = weights
    return w, padded(weights, BLOCK), np.empty((BLOCK, len(weights)), weights.dtype)


@compiled
def look(w: Array, intercepts: Array, X: Array, begin: int, x: Array, predictions: Array) -> int:
    """Predict for the rows of a block, and say how many they are."""
    count = min(BLOCK, len(X) - begin)
    x[:count, : X.shape[1]] = X[begin : begin + count]
    predict(w, x, predictions)
    for t in range(count):
        for model in range(len(intercepts)):
            predictions[t, model] += intercepts[model]
    return count
