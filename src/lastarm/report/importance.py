"""How much of an arm's standing each hyperparameter explains: a simple estimate, and honest."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.arguments import as_float
from lastarm.plain import readable

Curve = Sequence[tuple[int, float]]  # (level, loss), as observed
Configs = Mapping[int, Mapping[str, Any]] | Sequence[Mapping[str, Any]]


def importance(configs: Configs, curves: Mapping[int, Curve]) -> dict[str, float]:
    """The share of the variance of the arms' places that each hyperparameter explains alone.

    Losses of arms that were dropped at different levels do not compare; places do: see `places`.
    The arms are put into groups by their value of one hyperparameter, a group for each option and
    some groups of equal size for numbers, in whatever scale. The groups' means explain a share η²
    of the variance of the places. By chance alone k groups of n arms explain (k - 1) / (n - 1) of
    it on average, so what is given is (η² - that) / (1 - that), and no less than 0.

    >>> configs = [{"x": x, "noise": x % 2, "epochs": 9} for x in range(32)]
    >>> curves = {arm: [(1, config["x"])] for arm, config in enumerate(configs)}
    >>> {name: round(share, 2) for name, share in importance(configs, curves).items()}
    {'x': 0.93, 'noise': 0.0}

    The most important come first. What never varies is left out. A hyperparameter that only some
    arms have is judged among these. Two that matter only together explain nothing alone; and few
    arms tell little: with 20, one in 20 hyperparameters that do nothing has a share above 0.2.
    """
    place = places(curves)
    known = configs if isinstance(configs, Mapping) else dict(enumerate(configs))
    values: dict[str, dict[int, Any]] = defaultdict(dict)
    for arm in place:
        for name, value in known.get(arm, {}).items():
            values[name][arm] = value
    shares = {}
    for name, of in values.items():
        groups = _groups(of.values())
        if len(set(groups)) > 1:
            shares[name] = _explained(np.array([place[arm] for arm in of]), groups)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def places(curves: Mapping[int, Curve]) -> dict[int, float]:
    """Where each arm ended among those that began at the same level, from 0 (best) to 1.

    An arm that came further is ahead; among those that came as far, one with a lower loss there.
    One that diverged is behind all others. Arms that tie share their place.

    >>> places({0: [(1, 0.5)], 1: [(1, 0.4), (3, 0.4)], 2: [(1, 0.3), (3, 0.1)], 3: [(1, 0.5)]})
    {2: 0.125, 1: 0.375, 0: 0.75, 3: 0.75}
    """
    began: dict[int, list[int]] = defaultdict(list)
    for arm, curve in curves.items():
        began[curve[0][0]].append(arm)

    def standing(arm: int) -> tuple[bool, int, float]:
        level, loss = curves[arm][-1]
        return (False, -level, loss) if isfinite(loss) else (True, 0, 0.0)

    found: dict[int, float] = {}
    for together in began.values():
        ahead = 0
        for _, tied in groupby(sorted(together, key=standing), key=standing):
            arms = list(tied)
            found |= dict.fromkeys(arms, (ahead + len(arms) / 2) / len(together))
            ahead += len(arms)
    return found


def _groups(values: Collection[Any]) -> list[int | str]:
    """The group of each value: of numbers near it, or of all that are the same."""
    numbers = [as_float(value) for value in values]
    known = sorted(number for number in numbers if isfinite(number))
    most = min(8, max(2, round((len(known) / 2) ** 0.5)))
    begins = sorted(set(known))  # equal numbers are never parted
    if len(begins) > most:
        begins = sorted({known[len(known) * group // most] for group in range(most)})
    return [
        bisect_right(begins, number) if isfinite(number) else repr(readable(value))
        for number, value in zip(numbers, values, strict=True)
    ]


def _explained(places: NDArray[np.float64], groups: list[int | str]) -> float:
    total = float(((places - places.mean()) ** 2).sum())
    of: dict[int | str, list[float]] = defaultdict(list)
    for group, place in zip(groups, places.tolist(), strict=True):
        of[group].append(place)
    freedom = len(groups) - len(of)
    if total == 0 or freedom == 0:  # all arms tie, or no two have anything in common
        return 0.0
    within = sum(float(((np.array(its) - np.mean(its)) ** 2).sum()) for its in of.values())
    return max(0.0, 1 - within / total * (len(groups) - 1) / freedom)
