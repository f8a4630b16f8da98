"""Powers of 2, many at a time: for κ of a kernel machine and for the log loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from lastarm.batched.arrays import Array, Index
from lastarm.compiled import contracted

# 2^f for |f| ≤ ½, to 1e-17 of itself: by interpolation of (2^f − 1)/f at Chebyshev's points.
C1, C2, C3, C4 = 0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888
C5, C6, C7 = 0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05
C8, C9, C10 = 1.321544258792169e-06, 1.0178062445845774e-07, 7.072585949269223e-09
C11 = 4.4549605981865186e-10
# The same to 5e-9, which is enough for single precision.
S1, S2, S3, S4, S5, S6 = np.array(
    [0.69314719, 0.24022651, 0.055503571, 0.0096180826, 0.0013390863, 0.00015453163], np.float32
)
# Added to a small number, these leave it rounded in the last bits of the sum.
ROUND, ROUND_SINGLE = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
DOWN, DOWN_SINGLE = 2.0**-64, np.float32(2.0**-64)
LEAST, LEAST_SINGLE = -1087.0, np.float32(-191)
ONE = np.float32(1)


@contracted
def powers(factor: float, exponents: Array, low: Index, high: Index, out: Array) -> None:
    """2^(factor · exponent) for the exponents `low` to `high`; it is at most 1."""
    if exponents.itemsize == 8:
        for i in range(low, high):
            out[i] = power(factor * exponents[i])
    else:
        for i in range(low, high):
            out[i] = power_single(np.float32(factor * exponents[i]))


@contracted
def power(exponent: Any) -> Any:
    """2^exponent, in double precision.

    The whole part of the exponent is put where a number has its own; 64 more, taken off again
    by a multiplication, so that what is too small for a normal number comes out right.
    """
    x: Any = max(LEAST, exponent)
    whole = np.float64(x + ROUND)
    f = x - (whole - ROUND)
    g = f * f
    even = ((((C10 * g + C8) * g + C6) * g + C4) * g + C2) * g + 1.0
    odd = ((((C11 * g + C9) * g + C7) * g + C5) * g + C3) * g + C1
    scale = np.int64((whole.view(np.int64) + 1087) << 52)
    return (odd * f + even) * scale.view(np.float64) * DOWN


@contracted
def power_single(exponent: Any) -> Any:
    """2^exponent, in single precision."""
    x: Any = max(LEAST_SINGLE, exponent)
    whole = np.float32(x + ROUND_SINGLE)
    f = x - (whole - ROUND_SINGLE)
    g = f * f
    even = ((S6 * g + S4) * g + S2) * g + ONE
    odd = (S5 * g + S3) * g + S1
    scale = np.int32((whole.view(np.int32) + np.int32(191)) << np.int32(23))
    return (odd * f + even) * scale.view(np.float32) * DOWN_SINGLE
