"""The same descent for few models: one at a time within a block, to the same last bit.

What a step changes about the predictions for the next samples of the block is put into all eight
of them at once, where `descent` does the like for many models at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lastarm.batched.arrays import Array, Index
from lastarm.batched.kernels.block_products import (
    BLOCK,
    change,
    fetch,
    multiply,
    padded,
    predict,
    take,
)
from lastarm.batched.kernels.compiled import contracted
from lastarm.batched.kernels.loss_gradients import (
    HINGE,
    LARGEST,
    LOG,
    PER_BIT,
    PERCEPTRON,
    SQUARED,
    SQUARED_HINGE,
)
from lastarm.batched.kernels.powers_of_two import power, power_single


@contracted
def descend_few(
    weights: Array,
    intercepts: Array,
    pace: Array,
    penalties: Array,
    least: Array,
    lifts: Array,
    which: Array,
    bounds: Array,
    losses: Array,
    column: Array,
    factors: Array,
    X: Array,
    Y: Array,
    rows: Array,
    done: int,
) -> None:
    """As `descend`, which says what the arguments are."""
    models, features = weights.shape
    kind = weights.dtype
    w, x = padded(weights, models), padded(weights, BLOCK)
    w[:, :features] = weights
    products = np.zeros((BLOCK, BLOCK), kind)
    predictions = np.empty((models, BLOCK), kind)
    changes, left = np.zeros((models, BLOCK), kind), np.ones((models, BLOCK), kind)
    kept = np.empty(models, kind)
    loss = np.empty(models, np.int64)
    for g in range(len(losses)):
        loss[bounds[g] : bounds[g + 1]] = losses[g]
    for begin in range(0, len(rows), BLOCK):
        count = min(BLOCK, len(rows) - begin)
        take(X, rows, begin, count, x)
        multiply(x, products)
        predict(w, x, predictions.T)
        for t in range(count):
            sample = begin + t
            fetch(X, rows[min(sample + BLOCK, len(rows) - 1)])
            turn = kind.type(done + sample)
            for i in range(models):
                eta = pace[0, i] + pace[1, i] * factors[sample, column[i]]
                if pace[3, i] != 0:
                    eta /= pace[2, i] + pace[3, i] * turn
                p = predictions[i, t] + intercepts[i]
                y = Y[rows[sample], which[i]]
                if loss[i] == LOG:
                    z = abs(p * y)
                    if weights.itemsize == 8:
                        small = kind.type(power(PER_BIT * z))
                    else:
                        small = kind.type(power_single(np.float32(PER_BIT * z)))
                    part = small if p * y > 0 else kind.type(1)
                    c = eta * y * part / (kind.type(1) + small)
                else:
                    c = changed(loss[i], eta, p, y, kind.type(1), kind.type(LARGEST))
                intercepts[i] += lifts[i] * c
                remains = max(least[i], kind.type(1) - eta * penalties[i])
                changes[i, t], left[i, t] = c, remains
                carry(i, t, predictions, products, c, remains)
        for i in range(models):
            keep = kind.type(1)
            for t in range(count - 1, -1, -1):
                changes[i, t] *= keep
                keep *= left[i, t]
            kept[i] = keep
        change(w, x, changes.T, kept)
    weights[:] = w[:, :features]


@contracted
def carry(
    i: Index, t: Index, predictions: Array, products: Array, change: float, remains: float
) -> None:
    """What model i predicts for the samples of the block, after its step for sample t."""
    p, g, r = predictions, products, remains
    p0, p1 = p[i, 0] * r + g[t, 0] * change, p[i, 1] * r + g[t, 1] * change
    p2, p3 = p[i, 2] * r + g[t, 2] * change, p[i, 3] * r + g[t, 3] * change
    p4, p5 = p[i, 4] * r + g[t, 4] * change, p[i, 5] * r + g[t, 5] * change
    p6, p7 = p[i, 6] * r + g[t, 6] * change, p[i, 7] * r + g[t, 7] * change
    p[i, 0], p[i, 1], p[i, 2], p[i, 3] = p0, p1, p2, p3
    p[i, 4], p[i, 5], p[i, 6], p[i, 7] = p4, p5, p6, p7


@contracted
def changed(loss: int, eta: Any, p: Any, y: Any, one: Any, most: Any) -> Any:
    """−η times the derivative of the loss: see `loss_gradients`."""
    zero, two = one - one, one + one
    if loss == SQUARED:
        return -eta * max(-most, min(most, p - y))
    if loss == HINGE:
        return eta * y if p * y <= one else zero
    if loss == PERCEPTRON:
        return eta * y if p * y <= zero else zero
    if loss == SQUARED_HINGE:
        return eta * two * y * max(zero, min(most / two, one - p * y))
    return eta * two * y * max(zero, min(two, one - p * y))
