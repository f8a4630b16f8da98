"""Stochastic gradient descent of many linear models at a time, over the same samples.

The products of all weights with the samples of a block, before the block, are computed together;
what each step within the block changes about the predictions for the next samples is known from
the products of the samples with each other; and the weights are changed once a block. That is the
same descent as step by step, with a third of the trips to the memory, and a model's numbers are
the same to the last bit whichever models are beside it.
"""

from __future__ import annotations

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
from lastarm.batched.kernels.compiled import compiled, contracted
from lastarm.batched.kernels.loss_gradients import (
    HINGE,
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
from lastarm.batched.kernels.powers_of_two import powers

ZEROTH, FIRST, SECOND, THIRD, FOURTH = (np.uint64(n) for n in range(5))
AHEAD = np.uint64(BLOCK)


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
    (models, features), kind = weights.shape, weights.dtype
    falling = bool(np.any(pace[3] != 0))
    w, x = padded(weights, models), padded(weights, BLOCK)
    w[:, :features] = weights
    products, predictions = np.empty((BLOCK, BLOCK), kind), np.empty((BLOCK, models), kind)
    changes, left = np.zeros((BLOCK, models), kind), np.ones((BLOCK, models), kind)
    kept, eta = np.empty(models, kind), np.empty(models, kind)
    targets, work = np.empty(models, kind), np.empty(models, kind)
    for begin in range(0, len(rows), BLOCK):
        count = min(BLOCK, len(rows) - begin)
        take(X, rows, begin, count, x)
        multiply(x, products)
        predict(w, x, predictions)
        for t in range(np.uint64(count)):
            sample = np.uint64(begin) + t
            fetch(X, rows[min(sample + AHEAD, np.uint64(len(rows) - 1))])
            if Y.shape[1] == 1:
                fill(targets, Y[rows[sample], 0])
            else:
                pick(targets, Y, rows[sample], which)
            if factors.shape[1] == 1:
                set_lengths(eta, pace, factors[sample, ZEROTH])
            else:
                pick_lengths(eta, pace, factors, sample, column)
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
                low, high, loss = bounds[g], bounds[g + 1], losses[g]
                if loss == SQUARED:
                    squared(t, low, high, predictions, targets, eta, changes)
                elif loss in (HINGE, PERCEPTRON):
                    hinge(t, low, high, predictions, targets, eta, changes, loss == HINGE)
                elif loss in (SQUARED_HINGE, MODIFIED_HUBER):
                    straight = loss == MODIFIED_HUBER
                    squared_hinge(t, low, high, predictions, targets, eta, changes, straight)
                else:
                    margins(t, low, high, predictions, targets, work)
                    powers(PER_BIT, work, low, high, work)
                    logistic(t, low, high, predictions, targets, eta, changes, work)
            lift(t, changes, lifts, intercepts)
            shrink(t, eta, penalties, least, left)
        fill(kept, 1)
        settle(np.uint64(count), changes, left, kept)
        change(w, x, changes, kept)
    weights[:] = w[:, :features]


# What follows is done for every sample, so it must not cost more than it has to for few models.
# No index has a sign: looking whether one is negative would cost as much as all the rest. There
# are no slices, and one loop a function: else each array's users are counted, at a like price.


@contracted
def fill(targets: Array, target: float) -> None:
    """The target is the same for all."""
    for i in range(np.uint64(len(targets))):
        targets[i] = target


@contracted
def pick(targets: Array, Y: Array, row: Index, which: Array) -> None:
    """Each model has a target of its own."""
    for i in range(np.uint64(len(targets))):
        targets[i] = Y[row, which[i]]


@contracted
def set_lengths(eta: Array, pace: Array, factor: float) -> None:
    """How long the next step of each model is: a + b·f."""
    for i in range(np.uint64(len(eta))):
        eta[i] = pace[ZEROTH, i] + pace[FIRST, i] * factor


@contracted
def pick_lengths(eta: Array, pace: Array, factors: Array, sample: Index, column: Array) -> None:
    """The same, where models have other factors."""
    for i in range(np.uint64(len(eta))):
        eta[i] = pace[ZEROTH, i] + pace[FIRST, i] * factors[sample, column[i]]


@contracted
def divide_lengths(eta: Array, pace: Array, turn: Index) -> None:
    """Over c + d·t."""
    t = eta.dtype.type(turn)
    for i in range(np.uint64(len(eta))):
        eta[i] /= pace[SECOND, i] + pace[THIRD, i] * t


# Before sample t there were others in the block. The step for sample u left a part of what had
# been there, and changed the weights by some of sample u.


@contracted
def after_four(t: Index, predictions: Array, products: Array, changes: Array, left: Array) -> None:
    """What is predicted for sample t after the first four steps of the block."""
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
    """After steps u and u + 1."""
    v = u + FIRST
    a, b = products[u, t], products[v, t]
    for i in range(np.uint64(predictions.shape[1])):
        p = predictions[t, i] * left[u, i] + a * changes[u, i]
        predictions[t, i] = p * left[v, i] + b * changes[v, i]


@contracted
def after_one(
    t: Index, u: Index, predictions: Array, products: Array, changes: Array, left: Array
) -> None:
    """After step u."""
    a = products[u, t]
    for i in range(np.uint64(predictions.shape[1])):
        predictions[t, i] = predictions[t, i] * left[u, i] + a * changes[u, i]


@contracted
def add(t: Index, predictions: Array, intercepts: Array) -> None:
    """The intercepts."""
    for i in range(np.uint64(len(intercepts))):
        predictions[t, i] += intercepts[i]


@contracted
def lift(t: Index, changes: Array, lifts: Array, intercepts: Array) -> None:
    """The intercepts change too, where there are any."""
    for i in range(np.uint64(len(lifts))):
        intercepts[i] += lifts[i] * changes[t, i]


@contracted
def shrink(t: Index, eta: Array, penalties: Array, least: Array, left: Array) -> None:
    """What the penalty leaves of all that was there before."""
    one = eta.dtype.type(1)
    for i in range(np.uint64(len(eta))):
        left[t, i] = max(least[i], one - eta[i] * penalties[i])


@contracted
def settle(count: Index, changes: Array, left: Array, kept: Array) -> None:
    """What is left of each change when the block ends, and of the weights before it."""
    for back in range(FIRST, count + FIRST):
        t = count - back
        for i in range(np.uint64(len(kept))):
            changes[t, i] *= kept[i]
            kept[i] *= left[t, i]
