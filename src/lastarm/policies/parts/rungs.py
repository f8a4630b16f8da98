"""The rungs of halving up to a horizon: how many arms enter each, and how far it brings them."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

Cost = Fraction | float
"""A cost in pulls: exact, or a float if it comes from measured seconds."""


def entering(arms: int, eta: Fraction) -> tuple[int, ...]:
    """How many arms enter each rung: n, ⌊n/eta⌋, …, always at least one less, down to 2.

    >>> entering(64, Fraction(2)), entering(10, Fraction(5, 4)), entering(1, Fraction(2))
    ((64, 32, 16, 8, 4, 2), (10, 8, 6, 4, 3, 2), (1,))
    """
    sizes = [arms]
    while (kept := min(sizes[-1] - 1, int(sizes[-1] / eta))) > 1:
        sizes.append(kept)
    return tuple(sizes)


@lru_cache(maxsize=4096)
def levels(
    sizes: tuple[int, ...],
    budget: Cost,
    max_pulls: int,
    *,
    at: int = 0,
    look_cost: Cost = 0,
    restarts: bool = False,
) -> tuple[int, ...]:
    """How far each rung brings its arms, which have had `at` pulls: R_k = min(M, ⌈s / n_k⌉).

    The share s of each rung is the greatest that the budget allows.

    >>> levels((64, 32, 16, 8, 4, 2), 652, max_pulls=51)
    (4, 7, 13, 26, 51, 51)
    >>> cost((64, 32, 16, 8, 4, 2), _, max_pulls=51)
    652
    >>> levels((64, 32, 16, 8, 4, 2), 652, max_pulls=51, restarts=True)
    (2, 3, 6, 12, 24, 48)
    """

    def fits(share: int) -> bool:
        reached = shared(sizes, share, max_pulls, at)
        price = cost(sizes, reached, max_pulls, at=at, look_cost=look_cost, restarts=restarts)
        return price <= budget

    # More pulls can cost less, because no arm is looked at, or trained from zero, after a rung
    # that reaches the horizon. So find the first rung that can reach it; from there on, a greater
    # share does cost more.
    low, high = 0, max_pulls * sizes[0]
    for size in sizes:
        reaching = (max_pulls - 1) * size + 1
        if fits(reaching):
            low = reaching
            break
        high = reaching - 1
    while low < high:
        share = (low + high + 1) // 2
        low, high = (share, high) if fits(share) else (low, share - 1)
    return shared(sizes, low, max_pulls, at)


def shared(sizes: tuple[int, ...], share: int, max_pulls: int, at: int = 0) -> tuple[int, ...]:
    """The levels at which each rung has had the same share, ⌈s / n_k⌉, up to the horizon."""
    return tuple(max(at, min(max_pulls, -(-share // size))) for size in sizes)


def cost(
    sizes: tuple[int, ...],
    levels: tuple[int, ...],
    max_pulls: int,
    *,
    at: int = 0,
    look_cost: Cost = 0,
    restarts: bool = False,
) -> Cost:
    """The pulls of rungs, and the looks at their arms up to the first rung at the horizon.

    If the trainer `restarts`, a rung costs its whole level for each of its arms, up to the first
    rung at the horizon. (Two rungs of one level are both counted, so that a greater share never
    costs less; only the first is played, and what the other would cost raises the next levels.)

    >>> cost((4, 2), (8, 16), max_pulls=20), cost((4, 2), (8, 16), max_pulls=20, restarts=True)
    (48, 64)
    """
    below = sum(level < max_pulls for level in levels)
    if restarts:
        rungs = zip(sizes[: below + 1], levels, strict=False)
        pulls = sum(size * level for size, level in rungs if level > at)
    else:
        rises = (after - before for before, after in pairwise((at, *levels)))
        pulls = sum(size * rise for size, rise in zip(sizes, rises, strict=True))
    return pulls + look_cost * sum(sizes[: below + 1])
