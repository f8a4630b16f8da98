"""The kernels of support vector machines: distances, κ, sums of κ, and the steps of Pegasos.

Samples are taken in blocks of 8. The sums over all other points are one matrix product for the
block; the points of the block itself, whose α may change within it, are added one by one. Blocks
are those of the pass, wherever the pulls of a call begin and end, so an arm's sums are added in
the same order whichever arms are beside it and however its pulls are divided.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from lastarm.batched.arrays import Array
from lastarm.batched.kernels.powers_of_two import powers
from lastarm.compiled import compiled, contracted, reassociated, takes_named_tuples

SAMPLES = 8  # in a block: as many sums as fit into the processor's registers
POINTS = 256  # in a chunk: their κ with a block fits into the first cache
PER_BIT = -1 / log(2)


class KernelMachines(NamedTuple):
    """Arms by their γ; those from bounds[g] to bounds[g + 1] have gammas[g].

    `factors` holds their α_j y_j, chunk by chunk of points, each with a row per arm.
    """

    factors: Array
    gammas: Array
    bounds: Array


class Points(NamedTuple):
    """TRAIN in the order of the first pass: its columns chunk by chunk of points, and labels."""

    columns: Array
    y: Array


class Blocks(NamedTuple):
    """Whole blocks of a pass, by the positions of their samples in `Points`.

    The samples from `begin` to `end` are the ones to step on, and `done` is the number of pulls
    before the first block.
    """

    positions: Array
    begin: int
    end: int
    done: int


@contracted
def distances(x: Array, also: Array, columns: Array, squared: Array, others: Array) -> None:
    """‖x − z‖² of two samples x for all points z, which are given by columns.

    Three columns are taken at a time, and each number that is loaded serves both samples.
    """
    for j in range(len(squared)):
        squared[j] = others[j] = 0
    threes = len(x) - len(x) % 3
    for k in range(0, threes, 3):
        x0, x1, x2 = x[k], x[k + 1], x[k + 2]
        o0, o1, o2 = also[k], also[k + 1], also[k + 2]
        column0, column1, column2 = columns[k], columns[k + 1], columns[k + 2]
        for j in range(len(squared)):
            z0, z1, z2 = column0[j], column1[j], column2[j]
            d0, d1, d2 = x0 - z0, x1 - z1, x2 - z2
            squared[j] = squared[j] + d0 * d0 + d1 * d1 + d2 * d2
            e0, e1, e2 = o0 - z0, o1 - z1, o2 - z2
            others[j] = others[j] + e0 * e0 + e1 * e1 + e2 * e2
    for k in range(threes, len(x)):
        xk, ok, column = x[k], also[k], columns[k]
        for j in range(len(squared)):
            d, e = xk - column[j], ok - column[j]
            squared[j] += d * d
            others[j] += e * e


@compiled
def similarities(gamma: float, squared: Array, similar: Array) -> None:
    """κ = exp(−γ‖x − z‖²)."""
    factor = squared.dtype.type(gamma * PER_BIT)
    for sample in range(len(squared)):
        powers(
            factor, squared[sample], np.uint64(0), np.uint64(len(similar[sample])), similar[sample]
        )


@reassociated
def add_products(factors: Array, similar: Array, sums: Array) -> None:
    """Add Σ_j α_j y_j κ(x_j, x) to the sums of one arm for the 8 samples x of a block.

    The sums stay in registers, and each factor that is loaded serves all of them.
    """
    k0, k1, k2, k3 = similar[0], similar[1], similar[2], similar[3]
    k4, k5, k6, k7 = similar[4], similar[5], similar[6], similar[7]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = factors.dtype.type(0)
    for j in range(len(factors)):
        factor = factors[j]
        s0 += factor * k0[j]
        s1 += factor * k1[j]
        s2 += factor * k2[j]
        s3 += factor * k3[j]
        s4 += factor * k4[j]
        s5 += factor * k5[j]
        s6 += factor * k6[j]
        s7 += factor * k7[j]
    sums[0] += s0
    sums[1] += s1
    sums[2] += s2
    sums[3] += s3
    sums[4] += s4
    sums[5] += s5
    sums[6] += s6
    sums[7] += s7


@compiled
def loaded(counts: Array, arms: Array, seen: int, y: Array) -> Array:
    """The factors α_j y_j of these arms, chunk by chunk of points, each with a row per arm.

    The last chunk is filled up with 0.
    """
    factors = np.zeros(((seen + POINTS - 1) // POINTS, len(arms), POINTS), y.dtype)
    for chunk in range(len(factors)):
        begin, end = chunk * POINTS, min((chunk + 1) * POINTS, seen)
        for row in range(len(arms)):
            own, into = counts[arms[row], begin:end], factors[chunk, row]
            for j in range(end - begin):
                into[j] = own[j] * y[begin + j]
    return factors


@compiled
def unload(factors: Array, counts: Array, arms: Array, seen: int, y: Array) -> None:
    """Write α back into `counts`."""
    for chunk in range(len(factors)):
        begin, end = chunk * POINTS, min((chunk + 1) * POINTS, seen)
        for row in range(len(arms)):
            own, into = factors[chunk, row], counts[arms[row], begin:end]
            for j in range(end - begin):
                into[j] = np.int32(own[j] * y[begin + j])


@compiled
def add_similar(
    machines: KernelMachines,
    columns: Array,
    points: int,
    rows: Array,
    low: int,
    high: int,
    work: Array,
    sums: Array,
) -> None:
    """Add Σ_j α_j y_j κ(x_j, x) over the first `points` points to the sums of each arm.

    Only the sums for the rows from `low` to `high` of the 8 are valid.
    """
    factors, gammas, bounds = machines
    squared, similar = work[0], work[1]
    begin, end = low - low % 2, high + high % 2  # two at a time
    for chunk in range((points + POINTS - 1) // POINTS):
        for row in range(begin, end, 2):
            distances(rows[row], rows[row + 1], columns[chunk], squared[row], squared[row + 1])
        for group in range(len(gammas)):
            similarities(gammas[group], squared[begin:end], similar[begin:end])
            for arm in range(bounds[group], bounds[group + 1]):
                add_products(factors[chunk, arm], similar, sums[arm])


@takes_named_tuples
@compiled
def pegasos(machines: KernelMachines, penalties: Array, train: Points, blocks: Blocks) -> None:
    """A step per sample for all arms."""
    factors, gammas, bounds = machines
    columns, y = train
    positions, begin, end, done = blocks
    arms, features = len(penalties), columns.shape[1]
    work = np.zeros((2, SAMPLES, POINTS), y.dtype)
    sums, aside = np.empty((arms, SAMPLES), y.dtype), np.zeros((arms, SAMPLES), y.dtype)
    rows, mates = np.zeros((SAMPLES, features), y.dtype), np.zeros((features, SAMPLES), y.dtype)
    squared, similar = np.zeros((SAMPLES, SAMPLES), y.dtype), np.zeros((SAMPLES, SAMPLES), y.dtype)
    for first in range(0, len(positions), SAMPLES):
        block = positions[first : first + SAMPLES]
        low, high = max(begin - first, 0), min(end - first, len(block))
        for sample in range(len(block)):
            chunk, j = divmod(block[sample], POINTS)
            for k in range(features):
                rows[sample, k] = mates[k, sample] = columns[chunk, k, j]
            for arm in range(arms):
                aside[arm, sample] = factors[chunk, arm, j]
                factors[chunk, arm, j] = 0
        sums.fill(0)
        points = min(done + first, len(y))
        add_similar(machines, columns, points, rows, low, high, work, sums)
        for sample in range(0, SAMPLES, 2):
            distances(rows[sample], rows[sample + 1], mates, squared[sample], squared[sample + 1])
        for group in range(len(gammas)):
            similarities(gammas[group], squared, similar)
            for arm in range(bounds[group], bounds[group + 1]):
                for sample in range(low, high):
                    total = sums[arm, sample]
                    for mate in range(len(block)):
                        total += aside[arm, mate] * similar[sample, mate]
                    label, t = y[block[sample]], done + first + sample + 1
                    if label * total / (penalties[arm] * t) < 1:
                        aside[arm, sample] += label
        for sample in range(len(block)):
            chunk, j = divmod(block[sample], POINTS)
            for arm in range(arms):
                factors[chunk, arm, j] = aside[arm, sample]


@takes_named_tuples
@compiled
def add_errors(
    machines: KernelMachines, scales: Array, columns: Array, X: Array, y: Array, totals: Array
) -> None:
    """Add the errors on these rows to the total of each arm; a scale of 0 means the 0/1 loss."""
    factors, _, _ = machines
    work, points = np.zeros((2, SAMPLES, POINTS), y.dtype), len(factors) * POINTS
    sums = np.empty((len(scales), SAMPLES), y.dtype)
    rows = np.zeros((SAMPLES, X.shape[1]), y.dtype)
    for first in range(0, len(y), SAMPLES):
        labels = y[first : first + SAMPLES]
        for row in range(len(labels)):
            for k in range(X.shape[1]):
                rows[row, k] = X[first + row, k]
        sums.fill(0)
        add_similar(machines, columns, points, rows, 0, len(labels), work, sums)
        for arm in range(len(scales)):
            for row in range(len(labels)):
                margin = np.float64(labels[row] * sums[arm, row])
                if scales[arm] > 0:
                    totals[arm] += 1 / (1 + exp(scales[arm] * margin))
                elif not margin > 0:
                    totals[arm] += 1
