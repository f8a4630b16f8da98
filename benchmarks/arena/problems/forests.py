"""Trees over recorded tables: a table that answers between its rows, and never beyond them.

Extremely randomised trees learn from a config to its whole curve. What they predict is a mean of
curves that were recorded, so that no config can be better than the best row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from arena.problems.problem import Config, Curves
from lastarm import Uniform

TREES = 50


class Branches(NamedTuple):
    """All trees as arrays, one after the other; the leaves are their own children."""

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    children: NDArray[np.int64]  # [node, left or right]
    curve: NDArray[np.float32]  # [node, epoch]
    depth: int


class Forest(Curves):
    """A table of recorded curves with the hyperparameters of its rows.

    Each hyperparameter is a side of the unit cube, which the recorded values fill evenly: so it
    needs no range and no scale. A loss that is not finite, or further above the median of its
    epoch than the best is below it, is as bad as that: a mean with a diverged curve tells nothing.
    """

    def __init__(self, file: Path) -> None:
        super().__init__(f"trees {file.stem}", f"{file.stem.partition('_')[0]} trees")
        self._file = file
        with np.load(file, allow_pickle=False) as arrays:
            names: list[str] = arrays["hp_names"].tolist()
            self.max_pulls = int(arrays["losses"].shape[1])
        self.space = {name: Uniform(0, 1) for name in names}

    @cached_property
    def _branches(self) -> Branches:
        with np.load(self._file, allow_pickle=False) as arrays:
            losses, values = arrays["losses"].astype(np.float64), arrays["config"]
        finite = np.where(np.isfinite(losses), losses, np.nan)
        worst = 2 * np.nanmedian(finite, axis=0) - np.nanmin(finite, axis=0)
        losses = np.fmin(finite, worst)
        places = [np.unique(column, return_inverse=True)[1] for column in values.T]
        points = np.stack([place / max(1, int(place.max())) for place in places], axis=1)
        forest = ExtraTreesRegressor(TREES, random_state=0, n_jobs=1).fit(points, losses)
        trees = [one.tree_ for one in forest.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        children = []
        for root, tree in zip(roots, trees, strict=True):
            both = np.stack([tree.children_left, tree.children_right], axis=1)
            own = np.arange(tree.node_count)[:, None]
            children.append(root + np.where(both < 0, own, both))
        return Branches(
            roots,
            np.maximum(np.concatenate([tree.feature for tree in trees]), 0),
            np.concatenate([tree.threshold for tree in trees]),
            np.concatenate(children),
            np.concatenate([tree.value[:, :, 0].astype(np.float32) for tree in trees]),
            max(tree.max_depth for tree in trees),
        )

    def curves(self, configs: Sequence[Config]) -> NDArray[np.float64]:
        """The mean of the trees' curves."""
        branches = self._branches
        points = np.array([[config[name] for name in self.space] for config in configs])
        points = points.astype(np.float32)  # as scikit-learn compares them
        node = np.tile(branches.roots, (len(points), 1))
        row = np.arange(len(points))[:, None]
        for _ in range(branches.depth):
            right = points[row, branches.feature[node]] > branches.threshold[node]
            node = branches.children[node, right.astype(np.int64)]
        return np.stack([branches.curve[leaves].mean(axis=0, dtype=np.float64) for leaves in node])


def forests(folder: Path) -> list[Forest]:
    """A problem for each table that says what the hyperparameters of its rows were."""
    found = []
    for file in sorted(folder.glob("*.npz")):
        with np.load(file, allow_pickle=False) as arrays:
            if {"losses", "config", "hp_names"} <= set(arrays):
                found.append(Forest(file))
    return found
