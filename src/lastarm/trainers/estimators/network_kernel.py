"""The kernel of networks: a pass over the rows, batch by batch, as scikit-learn makes it.

Every operation is scikit-learn's, in the same order and in the same precision. Products, functions
and sums are made by NumPy's own loops (`ufunc_loops`). What is left are sums, differences,
products, quotients and square roots of two numbers, which are the same on every machine. So the
weights are scikit-learn's to the last bit.

The parameters of a network are in one array, in scikit-learn's order: the coefficients of all
layers, then the intercepts of all layers.

numba notices changes in this file, but not in `ufunc_loops`: after one, remove `__pycache__`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, xlogy

from lastarm.compiled import compiled, takes_named_tuples
from lastarm.trainers.estimators.ufunc_loops import (
    Array,
    add_up,
    address,
    apply,
    combine,
    loop_of,
    multiply,
)

# The rows of the table of loops. Those with WIDE are for double precision, the others for that of
# the network.
MATMUL, ADD, EXP, TANH, EXPIT, XLOGY, WIDE_ADD, WIDE_XLOGY = range(8)
IDENTITY, LOGISTIC, TANGENT, RELU, SOFTMAX, EXPONENTIAL = range(6)  # activations
SQUARED, POISSON, LOG, BINARY_LOG = range(4)  # losses
DONE, NOT_FINITE, NO_WEIGHT = range(3)  # how a pass ends


class NetworkArrays(NamedTuple):
    """A network; a pass changes its parameters and moments."""

    units: Array  # of each layer, from the input to the output
    parameters: Array
    first: Array  # the moments m of Adam, or the velocities of gradient descent
    second: Array  # the moments v of Adam; empty for gradient descent


class RuleNumbers(NamedTuple):
    """How a network learns."""

    activation: int
    output: int  # the activation of the last layer
    loss: int
    wide_total: bool  # whether losses are added in double precision
    alpha: float
    rates: Array  # the learning rate of each batch
    adam: bool
    first: float  # β₁, or the momentum
    first_rest: float  # 1 − β₁
    second: float  # β₂
    second_rest: float  # 1 − β₂
    epsilon: float
    nesterov: bool


class RowArrays(NamedTuple):
    """What is learnt from."""

    X: Array
    Y: Array
    weights: Array  # empty if all rows count alike
    order: Array  # empty for the rows as they are
    batch: int  # rows of a batch


class WorkArrays(NamedTuple):
    """Room for what is computed from a batch, which need not be kept."""

    activations: Array
    deltas: Array
    gradients: Array
    targets: Array
    terms: Array  # of the loss of a regression
    wide: Array  # of that of a classification, in double precision
    weights: Array
    sums: Array  # of rows, or of columns and then of these
    wide_sums: Array


ACTIVATIONS = {
    "identity": IDENTITY,
    "logistic": LOGISTIC,
    "tanh": TANGENT,
    "relu": RELU,
    "softmax": SOFTMAX,
    "exp": EXPONENTIAL,
}
LOSSES = {
    "squared_error": SQUARED,
    "poisson": POISSON,
    "log_loss": LOG,
    "binary_log_loss": BINARY_LOG,
}


@cache
def loops_of(dtype: np.dtype[Any]) -> Array:
    """The table of loops for networks of this type; see `loop_of` for the error."""
    own = dtype.char
    functions = (
        (np.matmul, f"{own}{own}->{own}"),
        (np.add, f"{own}{own}->{own}"),
        (np.exp, f"{own}->{own}"),
        (np.tanh, f"{own}->{own}"),
        (expit, f"{own}->{own}"),
        (xlogy, f"{own}{own}->{own}"),
        (np.add, "dd->d"),
        (xlogy, "dd->d"),
    )
    return np.array([loop_of(*one) for one in functions], np.int64)


def room(units: Array, batch: int, dtype: np.dtype[Any]) -> WorkArrays:
    """Room for batches of this size."""
    outputs = units[-1]
    parameters = int(np.sum(units[:-1] * units[1:]) + np.sum(units[1:]))
    return WorkArrays(
        activations=np.empty(batch * np.sum(units), dtype),
        deltas=np.empty(batch * np.sum(units), dtype),
        gradients=np.empty(parameters, dtype),
        targets=np.empty((batch, outputs), dtype),
        terms=np.empty(batch * outputs, dtype),
        wide=np.empty(3 * batch * outputs),
        weights=np.empty(batch, dtype),
        sums=np.empty(max(batch, outputs + 1), dtype),
        wide_sums=np.empty(outputs + 1),
    )


@takes_named_tuples
@compiled
def learn(
    network: NetworkArrays,
    rule: RuleNumbers,
    rows: RowArrays,
    work: WorkArrays,
    loops: Array,
) -> tuple[float, int]:
    """A pass over the rows: the sum of their losses, and how it ended."""
    units, parameters, first, second = network
    activation, output, loss, wide_total, alpha, rates, adam = rule[:7]
    beta, rest, beta2, rest2, epsilon, nesterov = rule[7:]
    X, Y, row_weights, order, batch = rows
    activations, deltas, gradients, targets, terms, wide, weights, sums, wide_sums = work
    kind, size, outputs = parameters.dtype.type, parameters.itemsize, units[-1]
    last = batch * (np.sum(units) - outputs)  # where the outputs are among the activations
    in_double = size == 8 or loss in (LOG, BINARY_LOG)
    total = 0.0
    for turn in range(len(rates)):
        begin = turn * batch
        m = min(batch, len(X) - begin)
        inputs = address(activations) if len(order) else address(X) + begin * units[0] * size
        if len(order):
            take(X, order[begin : begin + m], activations)
        take_targets(Y, order, begin, targets[:m])
        weight, by = kind(m), weights[:0]
        if len(row_weights):
            by = weights[:m]
            for r in range(m):
                by[r] = row_weights[order[begin + r] if len(order) else begin + r]
            add_up(loops[ADD], address(by), m, sums[:1])
            weight = sums[0]
            if weight == 0:
                return total, NO_WEIGHT
        forward(units, parameters, inputs, m, batch, activation, output, activations, sums, loops)
        out = activations[last : last + m * outputs].reshape(m, outputs)
        found = mean_loss(loss, out, targets[:m], by, weight, terms, wide, sums, wide_sums, loops)
        penalty = kind(0.5 * alpha) * squares(units, parameters, sums, loops) / weight
        found = found + penalty if in_double else kind(kind(found) + penalty)
        total = total + found * m if wide_total else kind(kind(total) + kind(found) * kind(m))
        delta = deltas[last : last + m * outputs]
        subtract(out, targets[:m], by, delta)
        own = (units, parameters, gradients, activations, deltas)
        backward(own, inputs, m, batch, activation, kind(alpha), weight, loops)
        if adam:
            moments = (kind(beta), kind(rest), kind(beta2), kind(rest2), kind(epsilon))
            step_by_moments(parameters, gradients, first, second, moments, rates[turn])
        else:
            momentum, rate = kind(beta), kind(rates[turn])
            step_by_velocities(parameters, gradients, first, momentum, rate, nesterov)
    return total, DONE if np.isfinite(parameters).all() else NOT_FINITE


@compiled
def forward(
    units: Array,
    parameters: Array,
    inputs: int,
    m: int,
    batch: int,
    activation: int,
    output: int,
    activations: Array,
    sums: Array,
    loops: Array,
) -> None:
    """Compute the values of all layers for the m rows of a batch, which are at `inputs`."""
    size, layers = parameters.itemsize, len(units) - 1
    here, at, coefficients = inputs, batch * units[0], 0
    intercepts = np.sum(units[1:] * units[:-1])
    for i in range(layers):
        n, p = units[i], units[i + 1]
        A = (here, n * size, size)
        B = (address(parameters) + coefficients * size, p * size, size)
        here = address(activations) + at * size
        multiply(loops[MATMUL], A, B, here, m, n, p, size)
        values = activations[at : at + m * p]
        add_intercepts(values, parameters[intercepts : intercepts + p])
        activate(activation if i < layers - 1 else output, values, here, p, sums, loops)
        coefficients, intercepts, at = coefficients + n * p, intercepts + p, at + batch * p


@compiled
def backward(
    own: tuple[Array, Array, Array, Array, Array],
    inputs: int,
    m: int,
    batch: int,
    activation: int,
    alpha: float,
    weight: float,
    loops: Array,
) -> None:
    """Compute all gradients of a batch, from the differences of its outputs to the targets."""
    units, parameters, gradients, activations, deltas = own
    size, at = parameters.itemsize, batch * np.sum(units)
    intercepts, coefficients = len(parameters), np.sum(units[1:] * units[:-1])
    for back in range(1, len(units)):
        i = len(units) - 1 - back
        n, p = units[i], units[i + 1]
        coefficients, intercepts, at = coefficients - n * p, intercepts - p, at - batch * p
        before, there = at - batch * n, address(deltas) + at * size
        here = address(activations) + before * size if i else inputs
        A, B = (here, size, n * size), (there, p * size, size)
        place = address(gradients) + coefficients * size
        multiply(loops[MATMUL], A, B, place, n, m, p, size)
        slopes = gradients[coefficients : coefficients + n * p]
        add_penalty(slopes, parameters[coefficients : coefficients + n * p], alpha, weight)
        slopes = gradients[intercepts : intercepts + p]
        sum_columns(deltas[at : at + m * p], there, slopes, loops[ADD])
        for k in range(p):
            slopes[k] = slopes[k] / weight
        if i:
            A = (there, p * size, size)
            B = (address(parameters) + coefficients * size, size, p * size)
            multiply(loops[MATMUL], A, B, address(deltas) + before * size, m, p, n, size)
            derive(activation, activations[before : before + m * n], deltas[before:])


@compiled
def squares(units: Array, parameters: Array, sums: Array, loops: Array) -> Any:
    """The sum of the squares of all coefficients, added layer by layer."""
    size, place = parameters.itemsize, address(parameters)
    found = parameters.dtype.type(0)
    for i in range(len(units) - 1):
        n = units[i] * units[i + 1]
        A, B = (place, 0, size), (place, size, 0)
        multiply(loops[MATMUL], A, B, address(sums), 1, n, 1, size)
        found += sums[0]
        place += n * size
    return found


@compiled
def subtract(out: Array, targets: Array, weights: Array, delta: Array) -> None:
    """The differences of outputs to their targets, by the weights of the rows."""
    p, y = out.ravel(), targets.ravel()
    for k in range(len(delta)):
        delta[k] = p[k] - y[k]
    if len(weights):
        scale_rows(delta, weights)


@compiled
def take(X: Array, order: Array, out: Array) -> None:
    """Copy rows, one after another."""
    columns = X.shape[1]
    for r in range(len(order)):
        row = order[r]
        for k in range(columns):
            out[r * columns + k] = X[row, k]


@compiled
def take_targets(Y: Array, order: Array, begin: int, out: Array) -> None:
    """Copy the targets of a batch."""
    for r in range(len(out)):
        row = order[begin + r] if len(order) else begin + r
        for k in range(Y.shape[1]):
            out[r, k] = Y[row, k]


@compiled
def add_intercepts(out: Array, intercepts: Array) -> None:
    """Add the intercepts to the values of each row."""
    width = len(intercepts)
    for r in range(len(out) // width):
        for k in range(width):
            out[r * width + k] += intercepts[k]


@compiled
def activate(
    activation: int, out: Array, place: int, width: int, sums: Array, loops: Array
) -> None:
    """Apply an activation to the values of a layer."""
    size, zero = out.itemsize, out.dtype.type(0)
    if activation == RELU:
        for k in range(len(out)):
            out[k] = zero if out[k] <= zero else out[k]
    elif activation == TANGENT:
        apply(loops[TANH], place, len(out), size)
    elif activation == LOGISTIC:
        apply(loops[EXPIT], place, len(out), size)
    elif activation == EXPONENTIAL:
        apply(loops[EXP], place, len(out), size)
    elif activation == SOFTMAX:
        for begin in range(0, len(out), width):
            largest = out[begin]
            for k in range(begin + 1, begin + width):
                if out[k] > largest or np.isnan(out[k]):
                    largest = out[k]
            for k in range(begin, begin + width):
                out[k] -= largest
        apply(loops[EXP], place, len(out), size)
        of_rows = sums[: len(out) // width]
        add_up(loops[ADD], place, width, of_rows)
        for r in range(len(of_rows)):
            for k in range(r * width, (r + 1) * width):
                out[k] /= of_rows[r]


@compiled
def derive(activation: int, values: Array, delta: Array) -> None:
    """Multiply by the derivative of an activation, which is computed from its values."""
    zero, one = values.dtype.type(0), values.dtype.type(1)
    if activation == RELU:
        for k in range(len(values)):
            delta[k] = zero if values[k] == zero else delta[k]
    elif activation == TANGENT:
        for k in range(len(values)):
            delta[k] *= one - values[k] * values[k]
    elif activation == LOGISTIC:
        for k in range(len(values)):
            delta[k] = delta[k] * values[k] * (one - values[k])


@compiled
def sum_columns(values: Array, place: int, out: Array, loop: Array) -> None:
    """The sum of each column of a matrix, in the order of `np.sum`."""
    width = len(out)
    if width == 1:
        add_up(loop, place, len(values), out)
        return
    for k in range(width):
        out[k] = values[k]
    for begin in range(width, len(values), width):
        for k in range(width):
            out[k] += values[begin + k]


@compiled
def scale_rows(values: Array, weights: Array) -> None:
    """Multiply each row of a matrix by its weight."""
    width = len(values) // len(weights)
    for r in range(len(weights)):
        for k in range(width):
            values[r * width + k] *= weights[r]


@compiled
def add_penalty(gradients: Array, parameters: Array, alpha: float, weight: float) -> None:
    """Add the penalty to sums of gradients, and divide by the weight of the batch."""
    for k in range(len(gradients)):
        gradients[k] = (gradients[k] + alpha * parameters[k]) / weight


@compiled
def mean_loss(
    loss: int,
    out: Array,
    targets: Array,
    weights: Array,
    weight: float,
    terms: Array,
    wide: Array,
    sums: Array,
    wide_sums: Array,
    loops: Array,
) -> Any:
    """The mean loss of a batch."""
    kind, size, (m, width) = out.dtype.type, out.itemsize, out.shape
    y, p, count = targets.ravel(), out.ravel(), m * width
    if loss in (SQUARED, POISSON):
        e = terms[:count]
        if loss == SQUARED:
            for k in range(count):
                difference = y[k] - p[k]
                e[k] = difference * difference
            return kind(0.5) * (mean(e, width, weights, weight, sums, loops[ADD]) / kind(width))
        for k in range(count):
            e[k] = y[k] / p[k]
        combine(loops[XLOGY], address(y), address(e), count, size)
        for k in range(count):
            e[k] = e[k] - y[k] + p[k]
        return mean(e, width, weights, weight, sums, loops[ADD])
    # Here y are truth values for NumPy, so that it computes in double precision. Only one of
    # y · log p and (1 − y) · log (1 − p) is not 0, and several classes have no second one.
    ones, logs, f, chosen = wide[:count], wide[count : 2 * count], wide[2 * count :], 0
    low, one = np.finfo(out.dtype).eps, kind(1)
    for k in range(count):
        if loss == BINARY_LOG or y[k] != 0 or np.isnan(p[k]):
            clipped = p[k] if np.isnan(p[k]) else min(max(p[k], low), one - low)
            ones[chosen], logs[chosen] = 1, clipped if y[k] != 0 else one - clipped
            chosen += 1
    combine(loops[WIDE_XLOGY], address(ones), address(logs), chosen, 8)
    chosen = 0
    for k in range(count):
        f[k] = 0
        if loss == BINARY_LOG or y[k] != 0 or np.isnan(p[k]):
            f[k] = logs[chosen]
            chosen += 1
    return -mean(f[:count], width, weights, weight, wide_sums, loops[WIDE_ADD])


@compiled
def mean(
    values: Array, outputs: int, weights: Array, weight: float, sums: Array, loop: Array
) -> Any:
    """The sum over the columns of their weighted means, in the order of `np.average`."""
    of_columns, total = sums[:outputs], sums[outputs : outputs + 1]
    if len(weights):
        scale_rows(values, weights)
    sum_columns(values, address(values), of_columns, loop)
    for k in range(len(of_columns)):
        of_columns[k] = of_columns[k] / weight
    add_up(loop, address(of_columns), outputs, total)
    return total[0]


@compiled
def step_by_moments(
    parameters: Array,
    gradients: Array,
    first: Array,
    second: Array,
    moments: tuple[float, float, float, float, float],
    rate: float,
) -> None:
    """A step of Adam. NumPy computes its last part in double precision, as the rate is."""
    beta, rest, beta2, rest2, epsilon = moments
    for k in range(len(parameters)):
        g = gradients[k]
        first[k] = beta * first[k] + rest * g
        second[k] = beta2 * second[k] + rest2 * (g * g)
        parameters[k] += -rate * first[k] / (np.sqrt(second[k]) + epsilon)


@compiled
def step_by_velocities(
    parameters: Array,
    gradients: Array,
    velocities: Array,
    momentum: float,
    rate: float,
    nesterov: bool,
) -> None:
    """A step of gradient descent with momentum."""
    for k in range(len(parameters)):
        velocities[k] = momentum * velocities[k] - rate * gradients[k]
    if nesterov:
        for k in range(len(parameters)):
            parameters[k] += momentum * velocities[k] - rate * gradients[k]
    else:
        for k in range(len(parameters)):
            parameters[k] += velocities[k]
