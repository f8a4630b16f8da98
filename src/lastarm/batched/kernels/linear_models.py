"""The kernels of linear models: stochastic gradient descent over the same samples, and errors.

A block of samples is taken at a time. First, all weights are multiplied with its samples. Then,
sample by sample, the predictions are corrected for the steps before, which needs only the products
of the samples with each other. At the end of the block the weights are changed once. This is the
descent step by step, with a third of the trips to the memory. A model's numbers are the same to
the last bit whichever models are beside it.

Within a block, `descend` takes one sample for many models at once. With few models `descend_few`
is faster: there, a step corrects the predictions of one model for all eight samples at once. The
numbers are the same to the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lastarm.batched.arrays import Array, Index
from lastarm.batched.kernels.block_products import (
    BLOCK,
    change,
    in_whole_registers,
    multiply,
    predict,
    prefetch_row,
    take,
)
from lastarm.batched.kernels.loss_gradients import (
    HINGE,
    LARGEST,
    LOG,
    MODIFIED_HUBER,
    PER_BIT,
    PERCEPTRON,
    SQUARED,
    SQUARED_HINGE,
    hinge,
    logistic,
    margins,
    squared,
    squared_hinge,
)
from lastarm.batched.kernels.powers_of_two import power, power_single, powers
from lastarm.compiled import compiled, contracted, takes_named_tuples

ZEROTH, FIRST, SECOND, THIRD, FOURTH = (np.uint64(n) for n in range(5))
AHEAD = np.uint64(BLOCK)


class ModelArrays(NamedTuple):
    """Linear models; descending changes their weights and intercepts."""

    weights: Array  # a row per model
    intercepts: Array
    target_columns: Array  # the column of Y that each model predicts
    losses: Array  # the code of the loss of models bounds[g] to bounds[g + 1]
    bounds: Array


class StepArrays(NamedTuple):
    """The steps of each model.

    With a, b, c, d as its column of `pace`, a step after t others is of length
    (a + b·f)/(c + d·t), where f is the sample's factor in the model's `factor_columns`.
    """

    pace: Array
    factor_columns: Array
    penalties: Array
    least: Array  # the least part of the weights that a step keeps
    lifts: Array  # how much a step counts for the intercept


class SampleArrays(NamedTuple):
    """What is learnt from: these rows of X and Y, in this order."""

    X: Array
    Y: Array
    rows: Array
    factors: Array  # a row per sample
    done: int  # the number of samples before these


@takes_named_tuples
@compiled
def descend(models: ModelArrays, steps: StepArrays, samples: SampleArrays) -> None:
    """One step per sample for every model."""
    # Locals, because looking up a field within the loops would cost a tenth.
    weights, intercepts, target_columns, losses, bounds = models
    pace, factor_columns, penalties, least, lifts = steps
    X, Y, rows, factors, done = samples
    (count, features), kind = weights.shape, weights.dtype
    falling = bool(np.any(pace[3] != 0))
    w, x = in_whole_registers(weights)
    products, predictions = np.empty((BLOCK, BLOCK), kind), np.empty((BLOCK, count), kind)
    changes, left = np.zeros((BLOCK, count), kind), np.ones((BLOCK, count), kind)
    kept, eta, targets, work = (
        np.empty(count, kind),
        np.empty(count, kind),
        np.empty(count, kind),
        np.empty(count, kind),
    )
    for begin in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - begin)
        take(X, rows, begin, size, x)
        multiply(x, products)
        predict(w, x, predictions)
        for t in range(np.uint64(size)):
            sample = np.uint64(begin) + t
            prefetch_row(X, rows[min(sample + AHEAD, np.uint64(len(rows) - 1))])
            if Y.shape[1] == 1:
                fill(targets, Y[rows[sample], 0])
            else:
                pick(targets, Y, rows[sample], target_columns)
            if factors.shape[1] == 1:
                set_lengths(eta, pace, factors[sample, ZEROTH])
            else:
                pick_lengths(eta, pace, factors, sample, factor_columns)
            if falling:
                divide_lengths(eta, pace, np.uint64(done) + sample)
            if t & FOURTH:  # several at a time: a loop has its price
                after_four(t, predictions, products, changes, left)
            if t & SECOND:
                after_two(t, t & FOURTH, predictions, products, changes, left)
            if t & FIRST:
                after_one(t, t - FIRST, predictions, products, changes, left)
            add(t, predictions, intercepts)
            for g in range(len(losses)):
                span, loss = (t, bounds[g], bounds[g + 1]), losses[g]
                if loss == SQUARED:
                    squared(span, predictions, targets, eta, changes)
                elif loss in (HINGE, PERCEPTRON):
                    hinge(span, predictions, targets, eta, changes, loss == HINGE)
                elif loss in (SQUARED_HINGE, MODIFIED_HUBER):
                    squared_hinge(span, predictions, targets, eta, changes, loss != SQUARED_HINGE)
                else:
                    margins(span, predictions, targets, work)
                    powers(PER_BIT, work, bounds[g], bounds[g + 1], work)
                    logistic(span, predictions, targets, eta, changes, work)
            lift(t, changes, lifts, intercepts)
            shrink(t, eta, penalties, least, left)
        fill(kept, 1)
        settle(np.uint64(size), changes, left, kept)
        change(w, x, changes, kept)
    weights[:] = w[:, :features]


# What follows is done for every sample, so its overhead matters when there are few models.
# Indices are unsigned: a check whether one is negative would cost as much as all the rest. There
# are no slices, and one loop per function: otherwise references are counted, at a similar cost.


@contracted
def fill(targets: Array, target: float) -> None:
    """Set the same target for all models."""
    for i in range(np.uint64(len(targets))):
        targets[i] = target


@contracted
def pick(targets: Array, Y: Array, row: Index, columns: Array) -> None:
    """Set the target of each model from its column."""
    for i in range(np.uint64(len(targets))):
        targets[i] = Y[row, columns[i]]


@contracted
def set_lengths(eta: Array, pace: Array, factor: float) -> None:
    """Set the length of the next step of each model to a + b·f, with one factor f for all."""
    for i in range(np.uint64(len(eta))):
        eta[i] = pace[ZEROTH, i] + pace[FIRST, i] * factor


@contracted
def pick_lengths(eta: Array, pace: Array, factors: Array, sample: Index, column: Array) -> None:
    """Set the lengths to a + b·f, with the factor f of each model."""
    for i in range(np.uint64(len(eta))):
        eta[i] = pace[ZEROTH, i] + pace[FIRST, i] * factors[sample, column[i]]


@contracted
def divide_lengths(eta: Array, pace: Array, turn: Index) -> None:
    """Divide the lengths by c + d·t."""
    t = eta.dtype.type(turn)
    for i in range(np.uint64(len(eta))):
        eta[i] /= pace[SECOND, i] + pace[THIRD, i] * t


# The next three correct the prediction for sample t by earlier steps of the block. The step for
# sample u kept a part of the weights, `left`, and added a multiple of sample u, `changes`.


@contracted
def after_four(t: Index, predictions: Array, products: Array, changes: Array, left: Array) -> None:
    """Correct the prediction for sample t by the first four steps."""
    a, b = products[ZEROTH, t], products[FIRST, t]
    c, d = products[SECOND, t], products[THIRD, t]
    for i in range(np.uint64(predictions.shape[1])):
        p = predictions[t, i] * left[ZEROTH, i] + a * changes[ZEROTH, i]
        p = p * left[FIRST, i] + b * changes[FIRST, i]
        p = p * left[SECOND, i] + c * changes[SECOND, i]
        predictions[t, i] = p * left[THIRD, i] + d * changes[THIRD, i]


@contracted
def after_two(
    t: Index, u: Index, predictions: Array, products: Array, changes: Array, left: Array
) -> None:
    """Correct it by steps u and u + 1."""
    v = u + FIRST
    a, b = products[u, t], products[v, t]
    for i in range(np.uint64(predictions.shape[1])):
        p = predictions[t, i] * left[u, i] + a * changes[u, i]
        predictions[t, i] = p * left[v, i] + b * changes[v, i]


@contracted
def after_one(
    t: Index, u: Index, predictions: Array, products: Array, changes: Array, left: Array
) -> None:
    """Correct it by step u."""
    a = products[u, t]
    for i in range(np.uint64(predictions.shape[1])):
        predictions[t, i] = predictions[t, i] * left[u, i] + a * changes[u, i]


@contracted
def add(t: Index, predictions: Array, intercepts: Array) -> None:
    """Add the intercepts."""
    for i in range(np.uint64(len(intercepts))):
        predictions[t, i] += intercepts[i]


@contracted
def lift(t: Index, changes: Array, lifts: Array, intercepts: Array) -> None:
    """Change the intercepts of the models that learn one."""
    for i in range(np.uint64(len(lifts))):
        intercepts[i] += lifts[i] * changes[t, i]


@contracted
def shrink(t: Index, eta: Array, penalties: Array, least: Array, left: Array) -> None:
    """Set the part of the weights that the penalty keeps."""
    one = eta.dtype.type(1)
    for i in range(np.uint64(len(eta))):
        left[t, i] = max(least[i], one - eta[i] * penalties[i])


@contracted
def settle(count: Index, changes: Array, left: Array, kept: Array) -> None:
    """Compute the part of each change, and of the weights, that is left when the block ends."""
    for back in range(FIRST, count + FIRST):
        t = count - back
        for i in range(np.uint64(len(kept))):
            changes[t, i] *= kept[i]
            kept[i] *= left[t, i]


# Few models ------------------------------------------------------------------------------------


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


# Errors ----------------------------------------------------------------------------------------


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
