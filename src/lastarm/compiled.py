"""The decorators of kernels: functions that numba compiles when they are first called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

try:
    import numba
except ImportError as error:
    raise ImportError(
        "numba is needed to train many arms in one kernel. Install it with "
        "pip install 'lastarm[batched]'."
    ) from error

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """The function as a kernel. It is kept on the disk, so the next process does not compile it.

    Sums are added in the order in which they are written, so that an arm's numbers are the same to
    the last bit whichever arms are beside it.

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
    """Like `compiled`, but a·b + c may be rounded once, which is faster.

    The result for one element does not depend on the other elements.
    """
    return _kept(function, fastmath={"contract", "nsz"})


def reassociated(function: Kernel) -> Kernel:
    """Like `contracted`, but the terms of a sum may be added in another order, which is faster.

    The order depends only on the number of terms. Do not use it where this number depends on
    which arms are in a batch.
    """
    return _kept(function, fastmath={"contract", "reassoc", "nsz"})


def _kept(function: Kernel, fastmath: bool | set[str]) -> Kernel:
    make = partial(numba.njit, nogil=True, error_model="numpy", fastmath=fastmath)
    try:
        return cast(Kernel, make(cache=True)(function))
    except RuntimeError:  # there is no folder that numba can write to
        return cast(Kernel, make()(function))


def takes_named_tuples(kernel: Kernel) -> Kernel:
    """The kernel, to be called from Python with named tuples; inside, they are plain tuples.

    numba needs a tenth of the time for the type of a plain tuple. And what it keeps on the disk
    names no class then; if it did, a version that has renamed the class could not read it.

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> class Numbers(NamedTuple):
    ...     values: np.ndarray
    ...     factor: float
    >>> @takes_named_tuples
    ... @compiled
    ... def scale(numbers: Numbers):
    ...     values, factor = numbers
    ...     values *= factor
    >>> values = np.array([1.0, 2.0])
    >>> scale(Numbers(values, 0.5))
    >>> values
    array([0.5, 1. ])
    """

    @wraps(kernel)
    def call(*given: Any) -> Any:
        return kernel(*(tuple(one) if isinstance(one, tuple) else one for one in given))

    return cast(Kernel, call)
