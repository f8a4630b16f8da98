"""Products of many weights with a block of samples, where linear models spend their time."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from lastarm.batched.arrays import Array
from lastarm.compiled import compiled, contracted, reassociated

BLOCK = 8  # samples in a block: as many sums as fit into the processor's registers
REGISTER = 32  # bytes in a register
LINE = 64  # bytes that come from the memory at a time
LONG = 4096  # bytes; in longer rows the processor sees by itself where it goes on


@compiled
def in_whole_registers(weights: Array) -> tuple[Array, Array]:
    """A copy of the weights, and rows for a block of samples; both are filled up with 0."""
    features, size = weights.shape[1], REGISTER // weights.itemsize
    columns = -(-features // size) * size
    w = np.zeros((len(weights), columns), weights.dtype)
    w[:, :features] = weights
    return w, np.zeros((BLOCK, columns), weights.dtype)


@contracted
def take(X: Array, rows: Array, begin: int, count: int, x: Array) -> None:
    """Copy the samples of a block into x."""
    for t in range(count):
        row = rows[begin + t]
        for k in range(X.shape[1]):
            x[t, k] = X[row, k]
    for t in range(count, BLOCK):  # the last block may be short
        x[t] = 0


@reassociated
def predict(weights: Array, x: Array, predictions: Array) -> None:
    """Multiply all weights with the eight samples of a block."""
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


@reassociated
def multiply(x: Array, products: Array) -> None:
    """Multiply each sample with those after it in the block."""
    for t in range(BLOCK - 1):
        for later in range(BLOCK - 2, t - 1, -2):
            p = q = x.dtype.type(0)
            for k in range(x.shape[1]):
                p += x[t, k] * x[later, k]
                q += x[t, k] * x[later + 1, k]
            products[t, later], products[t, later + 1] = p, q


@reassociated
def change(weights: Array, x: Array, changes: Array, kept: Array) -> None:
    """Change the weights after a block: a part is kept, and multiples of the samples are added."""
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
def prefetch_row(X: Array, row: int) -> None:
    """Begin to load a row of a table, without waiting for it.

    In a random order the processor cannot guess which row comes next.

    >>> import numpy as np
    >>> prefetch_row(np.zeros((3, 5)), 1)
    """
    size = X.strides[0]
    for k in range(0, min(size, LONG), LINE):
        fetch_line(X, row * size + k)
    fetch_line(X, row * size + size - 1)  # it may begin within a line, and end in one more


def _fetch_line(typing_context: Any, array: Any, offset: Any) -> tuple[Any, Any]:
    """Load the line of memory that is `offset` bytes after the array's first byte.

    numba has no function for this, so it is written as one of LLVM's instructions.
    """

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        numbers = context.make_array(array)(context, builder, given[0]).data
        bytes_ = builder.bitcast(numbers, ir.IntType(8).as_pointer())
        place, flag = builder.gep(bytes_, [given[1]]), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        # To be read, to be kept in all caches, and data instead of instructions.
        builder.call(fetch, [place, *(ir.Constant(flag, number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), write


fetch_line: Any = intrinsic(_fetch_line)
