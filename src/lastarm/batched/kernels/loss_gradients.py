"""What a step changes: −η times the derivative of the loss, for each of many models.

`span` is the sample t, and low and high, from and to which models have the same loss. Their
prediction for the sample is p, and its target is y.
"""

from __future__ import annotations

from math import log

from lastarm.batched.arrays import Array, Index
from lastarm.compiled import contracted

PER_BIT = -1 / log(2)
LARGEST = 1e12  # gradients are clipped here, as in scikit-learn

HINGE, PERCEPTRON, SQUARED_HINGE, MODIFIED_HUBER, LOG, SQUARED = range(6)

Span = tuple[Index, Index, Index]


@contracted
def squared(span: Span, predictions: Array, targets: Array, eta: Array, changes: Array) -> None:
    """(p − y)²/2."""
    t, low, high = span
    most = eta.dtype.type(LARGEST)
    for i in range(low, high):
        slope = max(-most, min(most, predictions[t, i] - targets[i]))
        changes[t, i] = -eta[i] * slope


@contracted
def hinge(
    span: Span, predictions: Array, targets: Array, eta: Array, changes: Array, margin: float
) -> None:
    """max(0, margin − p·y)."""
    t, low, high = span
    zero, least = eta.dtype.type(0), eta.dtype.type(margin)
    for i in range(low, high):
        y = targets[i]
        changes[t, i] = eta[i] * y if predictions[t, i] * y <= least else zero


@contracted
def squared_hinge(
    span: Span, predictions: Array, targets: Array, eta: Array, changes: Array, straight: bool
) -> None:
    """max(0, 1 − p·y)²; if `straight`, a line where its slope is 4 (modified Huber)."""
    t, low, high = span
    zero, one, two = eta.dtype.type(0), eta.dtype.type(1), eta.dtype.type(2)
    most = two if straight else eta.dtype.type(LARGEST / 2)
    for i in range(low, high):
        y = targets[i]
        missing = max(zero, min(most, one - predictions[t, i] * y))
        changes[t, i] = eta[i] * two * y * missing


@contracted
def margins(span: Span, predictions: Array, targets: Array, work: Array) -> None:
    """|p·y|, for `logistic`."""
    t, low, high = span
    for i in range(low, high):
        work[i] = abs(predictions[t, i] * targets[i])


@contracted
def logistic(
    span: Span, predictions: Array, targets: Array, eta: Array, changes: Array, small: Array
) -> None:
    """log(1 + e^(−p·y)); `small` is e^(−|p·y|)."""
    t, low, high = span
    zero, one = eta.dtype.type(0), eta.dtype.type(1)
    for i in range(low, high):
        y = targets[i]
        part = small[i] if predictions[t, i] * y > zero else one
        changes[t, i] = eta[i] * y * part / (one + small[i])
