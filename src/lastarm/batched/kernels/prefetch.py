"""Fetching memory ahead of its use: in a random order the processor cannot guess what comes next.

numba has no function for this, so it is written as one of LLVM's instructions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from lastarm.batched.arrays import Array
from lastarm.batched.kernels.compiled import compiled

LINE = 64  # bytes that come from the memory at a time
LONG = 4096  # bytes; in longer rows the processor sees by itself where it goes on


@compiled
def prefetch_row(X: Array, row: int) -> None:
    """Begin to load a row of a table, without waiting for it.

    >>> import numpy as np
    >>> prefetch_row(np.zeros((3, 5)), 1)
    """
    size = X.strides[0]
    for k in range(0, min(size, LONG), LINE):
        fetch_line(X, row * size + k)
    fetch_line(X, row * size + size - 1)  # it may begin within a line, and end in one more


def _fetch_line(typing_context: Any, array: Any, offset: Any) -> tuple[Any, Any]:
    """An instruction to load the line of memory that is `offset` bytes after the array's first."""

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
