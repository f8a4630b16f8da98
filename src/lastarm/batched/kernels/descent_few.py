"""The descent of few linear models, with the same numbers to the last bit as in `descent`.

Within a block, `descent` takes one sample for many models at once. Here, a step corrects the
predictions of one model for all eight samples of the block at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lastarm.batched.arrays import Array, Index
from lastarm.batched.kernels.block_products import (
    BLOCK,
    change,
    in_whole_registers,
    multiply,
    predict,
    take,
)
from lastarm.batched.kernels.compiled import contracted, takes_named_tuples
from lastarm.batched.kernels.descent import ModelArrays, SampleArrays, StepArrays
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
from lastarm.batched.kernels.prefetch import prefetch_row


@takes_named_tuples
@contracted
def descend_few(models: ModelArrays, steps: StepArrays, samples: SampleArrays) -> None:
    """One step per sample for every model, as `descend` does it."""
    weights, intercepts, target_columns, losses, bounds = models
    pace, factor_columns, penalties, least, lifts = steps
    X, Y, rows, factors, done = samples
    (count, features), kind = weights.shape, weights.dtype
    w, x = in_whole_registers(weights)
    products = np.zeros((BLOCK, BLOCK), kind)
    predictions = np.empty((count, BLOCK), kind)
    changes, left = np.zeros((count, BLOCK), kind), np.ones((count, BLOCK), kind)
    kept, loss = np.empty(count, kind), np.empty(count, np.int64)
    for g in range(len(losses)):
        loss[bounds[g] : bounds[g + 1]] = losses[g]
    for begin in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - begin)
        take(X, rows, begin, size, x)
        multiply(x, products)
        predict(w, x, predictions.T)
        for t in range(size):
            sample = begin + t
            prefetch_row(X, rows[min(sample + BLOCK, len(rows) - 1)])
            turn = kind.type(done + sample)
            for i in range(count):
                eta = pace[0, i] + pace[1, i] * factors[sample, factor_columns[i]]
                if pace[3, i] != 0:
                    eta /= pace[2, i] + pace[3, i] * turn
                p = predictions[i, t] + intercepts[i]
                y = Y[rows[sample], target_columns[i]]
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
        for i in range(count):
            keep = kind.type(1)
            for t in range(size - 1, -1, -1):
                changes[i, t] *= keep
                keep *= left[i, t]
            kept[i] = keep
        change(w, x, changes.T, kept)
    weights[:] = w[:, :features]


@contracted
def carry(
    i: Index, t: Index, predictions: Array, products: Array, change: float, remains: float
) -> None:
    """Correct the predictions of model i for the block by its step for sample t."""
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
