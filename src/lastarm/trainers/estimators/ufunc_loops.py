"""NumPy's own loops, called from compiled code.

A function of NumPy such as `np.exp` has a table of loops in C, one for each type of numbers. The
table is part of NumPy's public interface for C (`PyUFuncObject`). A kernel that calls these loops
computes what NumPy computes, to the last bit: matrix products by NumPy's own BLAS, and functions
such as tanh by the instructions that NumPy chooses for this processor. The functions of
scipy.special have the same tables.

Compiled code cannot hold addresses, because it is kept on the disk for other processes. So a
kernel is given them in an array, with a row (function, data) for each loop. It has no objects for
the parts of its arrays either: it names them by address and strides, in bytes. Whoever calls the
kernel keeps the arrays alive.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from lastarm.compiled import compiled

Array = NDArray[Any]
Matrix = tuple[int, int, int]  # an address, and the strides of rows and columns


class _Table(ctypes.Structure):
    """What follows the head of every Python object in `PyUFuncObject` (numpy/ufuncobject.h)."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        *((name, ctypes.c_int) for name in ("ntypes", "reserved")),
        ("name", ctypes.c_char_p),
    )


def loop_of(function: np.ufunc, signature: str) -> tuple[int, int]:
    """The address of a loop, and that of the data which it wants to be given.

    - `function`: a function of NumPy or of scipy.special.
    - `signature`: the types of its numbers, such as "dd->d".

    >>> function, _ = loop_of(np.exp, "d->d")
    >>> function > 0
    True

    NotImplementedError: there is no such loop, or the table is not as NumPy's header describes it.
    """
    table = _Table.from_address(id(function) + object.__basicsize__)
    seen = (table.nin, table.nout, table.nargs, table.ntypes)
    if seen == (function.nin, function.nout, function.nargs, function.ntypes):
        named = table.name == function.__name__.encode()
        if named and table.functions and signature in function.types:
            at = function.types.index(signature)
            data = table.data[at] if table.data else None
            if table.functions[at]:
                return table.functions[at], data or 0
    raise NotImplementedError(f"{function.__name__} has no loop {signature} that could be called")


def _call(
    typing_context: Any, function: Any, data: Any, places: Any, sizes: Any, strides: Any
) -> tuple[Any, Any]:
    """Call the loop at the address `function`; what it is given is as NumPy's documents say.

    numba has no function for this, so it is written as instructions of LLVM.
    """

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        anything = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [anything] * 4)
        arrays = [
            builder.bitcast(context.make_array(array)(context, builder, value).data, anything)
            for array, value in zip((places, sizes, strides), given[2:], strict=True)
        ]
        loop = builder.inttoptr(given[0], kind.as_pointer())
        builder.call(loop, [*arrays, builder.inttoptr(given[1], anything)])
        return context.get_dummy_value()

    return types.void(function, data, places, sizes, strides), write


call: Any = intrinsic(_call)


@compiled
def address(array: Array) -> Any:
    """Where an array begins in the memory; signed, so that sums with other numbers are whole."""
    return np.int64(array.ctypes.data)


@compiled
def multiply(loop: Array, A: Matrix, B: Matrix, C: int, m: int, n: int, p: int, size: int) -> None:
    """C = A·B by the loop of `np.matmul`: m × n times n × p, of numbers with `size` bytes.

    C is the address of a matrix whose rows follow each other.
    """
    places = np.array([A[0], B[0], C])
    sizes = np.array([1, m, n, p])
    strides = np.array([0, 0, 0, A[1], A[2], B[1], B[2], p * size, size])
    if m == 1:  # NumPy gives a dimension of one element the stride 0
        strides[3] = strides[7] = 0
    if n == 1:
        strides[4] = strides[5] = 0
    if p == 1:
        strides[6] = strides[8] = 0
    call(loop[0], loop[1], places, sizes, strides)


@compiled
def apply(loop: Array, place: int, count: int, size: int) -> None:
    """Replace each of `count` numbers by its function, such as that of `np.exp`."""
    call(loop[0], loop[1], np.array([place, place]), np.array([count]), np.array([size, size]))


@compiled
def combine(loop: Array, one: int, other: int, count: int, size: int) -> None:
    """Replace `count` numbers at `other` by the function of those at `one` and of them."""
    places, strides = np.array([one, other, other]), np.array([size, size, size])
    call(loop[0], loop[1], places, np.array([count]), strides)


@compiled
def add_up(loop: Array, place: int, count: int, sums: Array) -> None:
    """Set `sums` to those of rows of `count` numbers, by the loop of `np.add`, as `np.sum` does.

    The rows follow each other, and there are as many as sums.
    """
    size, result = sums.itemsize, address(sums)
    places, sizes, strides = np.array([0, 0, 0]), np.array([count]), np.array([0, size, 0])
    for row in range(len(sums)):
        sums[row] = 0
        places[0] = places[2] = result + row * size
        places[1] = place + row * count * size
        call(loop[0], loop[1], places, sizes, strides)
