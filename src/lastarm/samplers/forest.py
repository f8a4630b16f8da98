"""A forest of random trees that learns which configs have low losses."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lastarm.arguments import whole_number
from lastarm.errors import InvalidArgument
from lastarm.plain import as_python, identity
from lastarm.samplers.protocol import Sampler, Seen

GOES = (
    "Forest will be removed in lastarm 0.3. GaussianProcess finds better configs, and needs no "
    "scikit-learn. Use sampler=GaussianProcess(). A search that has begun with Forest can be "
    "continued until then."
)


@dataclass(frozen=True, kw_only=True)
class Forest(Sampler):
    """Proposes the configs for which scikit-learn's extremely randomised trees predict low losses.

    It will be removed: in the arena, `GaussianProcess` finds better configs with every budget.

    - `batch`: how many arms are chosen at a time.
    - `random_share`: the share of all arms that keep the config they would have without a sampler.
    - `trees`: the number of trees.

    The trees learn from every loss so far. Their inputs are the config and the level; their output
    is the rank of the loss among all losses, so that huge losses and failures are just the last
    ranks. Then they predict the rank of each candidate at the highest level that any arm has
    reached. The candidates with the lowest mean over all trees are proposed.

    >>> seen = [Seen({"x": x / 10}, 1, abs(x / 10 - 0.3)) for x in range(10)]
    >>> candidates = [{"x": x} for x in (0.95, 0.33, 0.01, 0.65)]
    >>> Forest().propose(seen, candidates, 1, seed=0)
    [1]

    Only the ranking of losses matters. It needs scikit-learn: pip install 'lastarm[sklearn]'.

    Source: Geurts, Ernst & Wehenkel, "Extremely randomized trees" (Machine Learning 2006). Keeping
    a third of the configs random is from Falkner, Klein & Hutter, "BOHB: Robust and Efficient
    Hyperparameter Optimization at Scale" (ICML 2018).
    """

    packages: ClassVar[tuple[str, ...]] = ("scikit-learn",)
    trees: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        trees = whole_number("trees", self.trees, 1, "how many trees the forest has")
        object.__setattr__(self, "trees", trees)
        if find_spec("sklearn") is None:
            raise InvalidArgument(
                "a Forest needs scikit-learn, which is not installed. Use pip install "
                "'lastarm[sklearn]', or leave the sampler out."
            )
        warnings.warn(GOES, FutureWarning, stacklevel=3)  # where Forest() is written

    def propose(
        self, seen: Sequence[Seen], candidates: Sequence[Mapping[str, Any]], count: int, seed: int
    ) -> list[int]:
        """The candidates with the lowest predicted losses, the lowest first."""
        ensemble = importlib.import_module("sklearn.ensemble")
        rows = features([*(one.config for one in seen), *candidates])
        levels = np.log([one.level for one in seen])
        known = np.column_stack([rows[: len(seen)], levels])
        _, places = np.unique([one.loss for one in seen], return_inverse=True)
        forest = ensemble.ExtraTreesRegressor(self.trees, random_state=seed).fit(known, places)
        asked = np.column_stack([rows[len(seen) :], np.full(len(candidates), levels.max())])
        best: list[int] = np.argsort(forest.predict(asked), kind="stable")[:count].tolist()
        return best


def features(configs: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """A row for each config: the rank of each of its numbers, and a 1 for each option it has.

    With ranks, every scale is filled evenly, logarithmic or not, and no number is too large. A
    parameter that is not always a number counts as a choice. What a config lacks is 0; ranks begin
    with 1.

    >>> features([{"lr": 0.1, "act": "relu"}, {"lr": 1e-9, "act": "tanh"}, {"lr": 1e300}])
    array([[2., 1., 0.],
           [1., 0., 1.],
           [3., 0., 0.]])
    """
    columns: list[NDArray[np.float64]] = []
    for name in dict.fromkeys(name for config in configs for name in config):
        has = [row for row, config in enumerate(configs) if name in config]
        values = [as_python(configs[row][name]) for row in has]
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
