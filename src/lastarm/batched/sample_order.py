"""The order of the samples: the same for all arms, so that these can be trained together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=8)
def order(seed: int, count: int, number: int) -> NDArray[np.int64]:
    """The order in which pass `number` goes through `count` samples."""
    rows = np.random.default_rng([seed, number]).permutation(count).astype(np.int64, copy=False)
    rows.flags.writeable = False
    return rows


def passes(
    seed: int, count: int, begin: int, end: int, most: int = 2**16
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Samples `begin` to `end` of the stream of passes, in pieces: the pass, and its samples.

    Every pass goes through all samples, in an order that is a function of the seed and of the
    number of the pass.

    >>> [(number, rows.tolist()) for number, rows in passes(seed=0, count=4, begin=2, end=9)]
    [(0, [1, 3]), (1, [3, 0, 2, 1]), (2, [2])]

    A piece has at most `most` samples, so that a signal is noticed between two calls of a kernel.
    """
    while begin < end:
        number, offset = divmod(begin, count)
        piece = order(seed, count, number)[offset : offset + min(end - begin, most)]
        yield number, piece
        begin += len(piece)
