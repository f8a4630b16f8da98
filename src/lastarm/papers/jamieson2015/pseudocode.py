"""The published pseudo-code, naive and whole: the oracle that the policies are tested against.

Symbol for symbol, blocking and slow; the library never uses it. `loss(i, k)` is ℓ_{i,k}, the loss
of arm i after its k-th pull. Where a figure is silent, the rules of lastarm are written out: ties
go to the lower arm number, at least one arm is kept, and an arm whose loss is not finite is out;
when all arms left are out, the answer is the lowest latest loss of those that were dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import NamedTuple

Losses = Callable[[int, int], float]


class Played(NamedTuple):
    """What an algorithm returned, the pulls it made and the losses it saw."""

    arm: int | None
    pulls: int
    observations: int


def uniform_allocation(loss: Losses, n: int, B: int) -> Played:
    """Jamieson & Talwalkar §3.2: T_i = B/n for all i, then argmin_i ℓ_{i,B/n}."""
    T = floor(Fraction(B, n))
    seen = {i: loss(i, T) for i in range(n)}
    return Played(_lowest(seen), n * T, n)


def successive_halving(loss: Losses, n: int, B: int, eta: int = 2) -> Played:
    """Jamieson & Talwalkar, figure "Successive Halving Algorithm", with eta in place of 2."""
    log_n = 0
    while eta**log_n < n:
        log_n += 1
    log_n = max(log_n, 1)  # a single arm gets the budget

    S = set(range(n))
    R = pulls = observations = 0
    seen: dict[int, float] = {}
    for _k in range(log_n):
        r = floor(Fraction(B, len(S) * log_n))
        R = R + r
        for i in S:
            seen[i] = loss(i, R)
            pulls += r
            observations += 1
        sigma = sorted((i for i in S if isfinite(seen[i])), key=lambda i: (seen[i], i))
        S = set(sigma[: max(1, floor(Fraction(len(S), eta)))])
        if not S:
            return Played(_lowest(seen), pulls, observations)
    (i,) = S
    return Played(i, pulls, observations)


def successive_rejects(loss: Losses, n: int, B: int) -> Played:
    """Audibert & Bubeck (2010), figure 3, with losses in place of rewards; their K is n."""
    if n == 1:
        return uniform_allocation(loss, n, B)
    log_bar = Fraction(1, 2)
    for i in range(2, n + 1):
        log_bar += Fraction(1, i)

    A = set(range(n))
    n_before = pulls = observations = 0
    seen: dict[int, float] = {}
    for k in range(1, n):
        n_k = ceil(1 / log_bar * Fraction(B - n, n + 1 - k))
        for i in A:
            if n_k > n_before:
                seen[i] = loss(i, n_k)
                pulls += n_k - n_before
                observations += 1
        n_before = n_k
        sigma = sorted((i for i in A if isfinite(seen[i])), key=lambda i: (seen[i], i))
        A = set(sigma[: n - k])
        if not A:
            return Played(_lowest(seen), pulls, observations)
    (i,) = A
    return Played(i, pulls, observations)


def _lowest(seen: dict[int, float]) -> int | None:
    finite = [i for i in seen if isfinite(seen[i])]
    return min(finite, key=lambda i: (seen[i], i), default=None)
