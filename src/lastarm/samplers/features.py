"""Configs as rows of numbers, for models to learn from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.space.values import identity, plain


def features(configs: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """A row for each config: the rank of each of its numbers, and a 1 for each option it has.

    Ranks, because then a scale is evenly filled, logarithmic or not, and no number is too large. A
    parameter that is not always a number is taken for a choice. What a config lacks is 0; ranks
    begin with 1.

    >>> features([{"lr": 0.1, "act": "relu"}, {"lr": 1e-9, "act": "tanh"}, {"lr": 1e300}])
    array([[2., 1., 0.],
           [1., 0., 1.],
           [3., 0., 0.]])
    """
    columns: list[NDArray[np.float64]] = []
    for name in dict.fromkeys(name for config in configs for name in config):
        has = [row for row, config in enumerate(configs) if name in config]
        values = [plain(configs[row][name]) for row in has]
        if all(
            type(value) is int or (type(value) is float and isfinite(value)) for value in values
        ):
            # Python's integers may be too large for an array to rank.
            place = {value: rank for rank, value in enumerate(sorted(set(values)), start=1)}
            columns.append(np.zeros(len(configs)))
            columns[-1][has] = [place[value] for value in values]
            continue
        options: dict[Hashable, NDArray[np.float64]] = {}
        for row, value in zip(has, values, strict=True):
            options.setdefault(identity(value), np.zeros(len(configs)))[row] = 1
        columns += options.values()
    return np.stack(columns, axis=1) if columns else np.zeros((len(configs), 0))
