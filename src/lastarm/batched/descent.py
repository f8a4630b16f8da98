"""Stochastic gradient descent of many linear models at a time, over the same samples.

A block is eight samples. The products of all weights with them, before the block, are computed
together; what each step within the block changes about the predictions for the next samples is
known from the products of the samples with each other; and the weights are changed once a block.
That is the same descent as step by step, with a third of the trips to the memory, and a model's
numbers are the same to the last bit whichever models are beside it.
"""

from __future__ import annotations

from math import log
from typing import cast

import numpy as np

from lastarm.batched.arrays import Array
from lastarm.batched.compiled import compiled, contracted, reassociated
from lastarm.batched.powers import powers, powers_single

BLOCK = 8
PER_BIT = -1 / log(2)
LARGEST = 1e12  # a gradient beyond this is cut off, as scikit-learn does

HINGE, PERCEPTRON, SQUARED_HINGE, MODIFIED_HUBER, LOG, SQUARED = range(6)
ZEROTH, FIRST, SECOND, EVEN = (cast(int, np.uint64(n)) for n in (0, 1, 2, BLOCK - 2))


@compiled
def descend(
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
    """One step a sample for every row of `weights`, a model each.

    Models `bounds[g]` to `bounds[g + 1]` are of one loss. A model's target is the column of `Y`
    that `which` names. With a, b, c, d as its `pace`, the step that comes after t others is of
    length (a + b·f)/(c + d·t), where f is in the row of the sample and its `column` of `factors`.
    A step leaves at least `least` times the weights that were there, and counts `lifts` times for
    the intercept.
    """
    models, features = weights.shape
    kind = weights.dtype
    falling = bool(np.any(pace[3] != 0))
    x = np.empty((BLOCK, features), kind)
    products = np.empty((BLOCK, BLOCK), kind)
    targets = np.empty((BLOCK, models), kind)
    predictions = np.empty((BLOCK, models), kind)
    changes = np.zeros((BLOCK, models), kind)
    kept, eta, work = np.empty(models, kind), np.empty(models, kind), np.empty(models, kind)
    for begin in range(0, len(rows), BLOCK):
        count = min(BLOCK, len(rows) - begin)
        for t in range(count):
            row = rows[begin + t]
            for k in range(features):
                x[t, k] = X[row, k]
            if Y.shape[1] == 1:
                y = Y[row, 0]
                for model in range(models):
                    targets[t, model] = y
            else:
                for model in range(models):
                    targets[t, model] = Y[row, which[model]]
        for t in range(count, BLOCK):  # the last block may be short
            x[t] = 0
            changes[t] = 0
        predict(x, x, products)
        predict(weights, x, predictions)
        kept[:] = 1
        for t in range(np.uint64(count)):
            set_steps(eta, pace, falling, factors, column, begin, t, done)
            correct(t, predictions, products, changes, kept, intercepts)
            for g in range(len(losses)):
                step(
                    t,
                    bounds[g],
                    bounds[g + 1],
                    losses[g],
                    predictions,
                    targets,
                    eta,
                    work,
                    changes,
                )
            shrink(t, changes, eta, penalties, least, kept, lifts, intercepts)
        change(weights, x, changes, kept)


# In what follows no index has a sign: looking whether one is negative would cost as much as all
# the rest. Nor are there slices, each of which is counted as a user of its array.


@contracted
def set_steps(
    eta: Array,
    pace: Array,
    falling: bool,
    factors: Array,
    column: Array,
    begin: int,
    t: int,
    done: int,
) -> None:
    """How long the next step of each model is."""
    sample = np.uint64(begin) + np.uint64(t)
    turn = np.float64(np.uint64(done) + sample)
    a, b, c, d = ZEROTH, FIRST, SECOND, FIRST + SECOND
    if factors.shape[1] == 1:
        factor = factors[sample, ZEROTH]
        for i in range(np.uint64(len(eta))):
            eta[i] = pace[a, i] + pace[b, i] * factor
    else:
        for i in range(np.uint64(len(eta))):
            eta[i] = pace[a, i] + pace[b, i] * factors[sample, column[i]]
    if falling:
        for i in range(np.uint64(len(eta))):
            eta[i] /= pace[c, i] + pace[d, i] * turn


@reassociated
def predict(weights: Array, x: Array, predictions: Array) -> None:
    """The products of all weights with the samples of a block, eight at a time."""
    models, features = weights.shape
    for model in range(models):
        w = weights[model]
        p0 = p1 = p2 = p3 = p4 = p5 = p6 = p7 = w.dtype.type(0)
        for k in range(features):
            v = w[k]
            p0 += v * x[0, k]
            p1 += v * x[1, k]
            p2 += v * x[2, k]
            p3 += v * x[3, k]
            p4 += v * x[4, k]
            p5 += v * x[5, k]
            p6 += v * x[6, k]
            p7 += v * x[7, k]
        predictions[0, model] = p0
        predictions[1, model] = p1
        predictions[2, model] = p2
        predictions[3, model] = p3
        predictions[4, model] = p4
        predictions[5, model] = p5
        predictions[6, model] = p6
        predictions[7, model] = p7


@contracted
def correct(
    t: int,
    predictions: Array,
    products: Array,
    changes: Array,
    kept: Array,
    intercepts: Array,
) -> None:
    """The predictions for sample t, after the steps that were taken before in the block."""
    models = np.uint64(len(kept))
    for i in range(models):
        predictions[t, i] = kept[i] * predictions[t, i] + intercepts[i]
    for u in range(ZEROTH, t & EVEN, SECOND):  # two at a time: a loop has its price
        v = u + FIRST
        g, h = products[t, u], products[t, v]
        for i in range(models):
            p = predictions[t, i] + g * changes[u, i]
            predictions[t, i] = p + h * changes[v, i]
    if t & FIRST:
        u = t - FIRST
        g = products[t, u]
        for i in range(models):
            predictions[t, i] += g * changes[u, i]


@contracted
def step(
    t: int,
    low: int,
    high: int,
    loss: int,
    predictions: Array,
    targets: Array,
    eta: Array,
    work: Array,
    changes: Array,
) -> None:
    """By how much of sample t the weights change: −η times the derivative of the loss."""
    zero, one, two = eta.dtype.type(0), eta.dtype.type(1), eta.dtype.type(2)
    most = eta.dtype.type(LARGEST)
    if loss == SQUARED:
        for i in range(low, high):
            slope = max(-most, min(most, predictions[t, i] - targets[t, i]))
            changes[t, i] = -eta[i] * slope
    elif loss in (HINGE, PERCEPTRON):
        margin = one if loss == HINGE else zero
        for i in range(low, high):
            y = targets[t, i]
            changes[t, i] = eta[i] * y if predictions[t, i] * y <= margin else zero
    elif loss in (SQUARED_HINGE, MODIFIED_HUBER):
        steepest = two if loss == MODIFIED_HUBER else most / two
        for i in range(low, high):
            y = targets[t, i]
            missing = max(zero, min(steepest, one - predictions[t, i] * y))
            changes[t, i] = eta[i] * two * y * missing
    else:
        for i in range(low, high):
            work[i] = abs(predictions[t, i] * targets[t, i])
        powers_of_e = work[low:high]
        if eta.itemsize == 8:
            powers(PER_BIT, powers_of_e, powers_of_e)
        else:
            powers_single(PER_BIT, powers_of_e, powers_of_e)
        for i in range(low, high):
            y, small = targets[t, i], work[i]
            part = small if predictions[t, i] * y > zero else one
            changes[t, i] = eta[i] * y * part / (one + small)  # 1/(1 + e^z)


@contracted
def shrink(
    t: int,
    changes: Array,
    eta: Array,
    penalties: Array,
    least: Array,
    kept: Array,
    lifts: Array,
    intercepts: Array,
) -> None:
    """What step t does beside: the intercepts, and the penalty on all that was there before."""
    models, one = np.uint64(len(kept)), kept.dtype.type(1)
    for i in range(models):
        intercepts[i] += lifts[i] * changes[t, i]
    for i in range(models):
        eta[i] = max(least[i], one - eta[i] * penalties[i])  # what is left of the weights
    for i in range(models):
        kept[i] *= eta[i]
    for u in range(ZEROTH, t & EVEN, SECOND):
        v = u + FIRST
        for i in range(models):
            changes[u, i] *= eta[i]
            changes[v, i] *= eta[i]
    if t & FIRST:
        u = t - FIRST
        for i in range(models):
            changes[u, i] *= eta[i]


@reassociated
def change(weights: Array, x: Array, changes: Array, kept: Array) -> None:
    """The weights after the block."""
    models, features = weights.shape
    for model in range(models):
        w, keep = weights[model], kept[model]
        c0, c1, c2, c3 = changes[0, model], changes[1, model], changes[2, model], changes[3, model]
        c4, c5, c6, c7 = changes[4, model], changes[5, model], changes[6, model], changes[7, model]
        for k in range(features):
            w[k] = keep * w[k] + (
                (c0 * x[0, k] + c1 * x[1, k] + c2 * x[2, k] + c3 * x[3, k])
                + (c4 * x[4, k] + c5 * x[5, k] + c6 * x[6, k] + c7 * x[7, k])
            )


@compiled
def squared_errors(weights: Array, intercepts: Array, which: Array, X: Array, Y: Array) -> Array:
    """The sum of each model's squared errors, over all rows."""
    totals = np.zeros(len(weights))
    x = np.zeros((BLOCK, X.shape[1]), weights.dtype)
    predictions = np.empty((BLOCK, len(weights)), weights.dtype)
    for begin in range(0, len(X), BLOCK):
        count = min(BLOCK, len(X) - begin)
        x[:count] = X[begin : begin + count]
        predict(weights, x, predictions)
        for t in range(count):
            for model in range(len(totals)):
                error = predictions[t, model] + intercepts[model] - Y[begin + t, which[model]]
                totals[model] += np.float64(error) * np.float64(error)
    return totals


@compiled
def mistakes(weights: Array, intercepts: Array, X: Array, labels: Array, targets: int) -> Array:
    """How often the `targets` models of each arm, or its only one, are for another class."""
    totals = np.zeros(len(weights) // targets, np.int64)
    x = np.zeros((BLOCK, X.shape[1]), weights.dtype)
    predictions = np.empty((BLOCK, len(weights)), weights.dtype)
    for begin in range(0, len(X), BLOCK):
        count = min(BLOCK, len(X) - begin)
        x[:count] = X[begin : begin + count]
        predict(weights, x, predictions)
        for t in range(count):
            for arm in range(len(totals)):
                best = 0
                if targets == 1:
                    best = 1 if predictions[t, arm] + intercepts[arm] > 0 else 0
                else:
                    highest = predictions[t, arm * targets] + intercepts[arm * targets]
                    for k in range(1, targets):
                        value = predictions[t, arm * targets + k] + intercepts[arm * targets + k]
                        if value > highest:
                            best, highest = k, value
                totals[arm] += best != labels[begin + t]
    return totals
