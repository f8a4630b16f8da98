"""Kernels: functions over arrays, compiled by numba when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from numpy.typing import NDArray

try:
    import numba
except ImportError as error:
    raise ImportError(
        "numba is needed to train many arms in one kernel. Install it with "
        "pip install 'lastarm[batched]'."
    ) from error

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """The function as a kernel, kept on the disk so that the next process need not compile it.

    Its sums are added in the order in which they are written, so that an arm's numbers are the
    same to the last bit whichever arms are beside it.

    >>> @compiled
    ... def total(values):
    ...     sum = 0.0
    ...     for value in values:
    ...         sum += value
    ...     return sum
    >>> import numpy as np
    >>> total(np.array([0.5, 0.25]))
    0.75
    """
    return _kept(function, fastmath=False)


def contracted(function: Kernel) -> Kernel:
    """As `compiled`, with a product and the sum it goes into rounded once, where that is faster.

    What comes out for one element does not depend on the others.
    """
    return _kept(function, fastmath={"contract", "nsz"})


def reassociated(function: Kernel) -> Kernel:
    """As `contracted`, with sums added several terms at a time.

    Their order depends on how many terms there are only: sums whose length depends on which arms
    are in a batch are not for this.
    """
    return _kept(function, fastmath={"contract", "reassoc", "nsz"})


def _kept(function: Kernel, fastmath: bool | set[str]) -> Kernel:
    make = partial(numba.njit, nogil=True, error_model="numpy", fastmath=fastmath)
    try:
        return cast(Kernel, make(cache=True)(function))
    except RuntimeError:  # neither beside the source nor in the user's folder can it be kept
        return cast(Kernel, make()(function))


def _dot(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Σ a_i b_i, several terms at a time: their order depends on how many there are only."""
    total = a.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


dot = _kept(_dot, fastmath={"reassoc", "nsz"})
