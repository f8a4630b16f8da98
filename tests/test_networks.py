"""scikit-learn's networks by a kernel: bit for bit what `partial_fit` does, and a genuine model."""

import pickle
import subprocess
import sys
import warnings
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline

from lastarm import LogUniform, SuccessiveHalving, search
from lastarm.testing import trainer_checks
from lastarm.trainers.estimators import Estimator, Trained, networks
from lastarm.trainers.estimators.family import Lesson, Randomness
from lastarm.trainers.estimators.scikit_learn import PARTIAL_FIT

Array = NDArray[Any]
rng = np.random.default_rng(0)
X = rng.normal(size=(41, 5))
TARGETS: dict[str, tuple[type, Array, Mapping[str, Any]]] = {
    "three classes": (MLPClassifier, rng.integers(0, 3, 41), {}),
    "two classes": (MLPClassifier, np.where(X[:, 0] > 0, "yes", "no"), {}),
    "several labels": (MLPClassifier, rng.integers(0, 2, (41, 3)), {}),
    "a number": (MLPRegressor, X[:, 0] ** 2, {}),
    "several numbers": (MLPRegressor, np.asfortranarray(X[:, :2] ** 3), {}),
    "a count": (MLPRegressor, rng.poisson(2, 41), {"loss": "poisson"}),
}
RULES: list[dict[str, Any]] = [
    {"solver": "adam"},
    {"solver": "adam", "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-3, "alpha": 1.0},
    {"solver": "sgd", "learning_rate": "constant", "momentum": 0.0},
    {"solver": "sgd", "learning_rate": "invscaling", "nesterovs_momentum": False},
    {"solver": "sgd", "learning_rate": "adaptive", "tol": 1.0, "n_iter_no_change": 1},
]


def lesson(y: Array, rows: Any = X, **params: Any) -> Lesson:
    classes = np.unique(y) if y.ndim == 1 else np.arange(y.shape[1])
    return Lesson(rows, y, classes, 1, params, {})


def by_partial_fit(model: Any, given: Lesson, done: int, upto: int) -> Any:
    random = Randomness(model, 7)
    PARTIAL_FIT.further(model, given, done, upto, random)
    random.put_back()
    return model


def by_kernel(model: Any, given: Lesson, done: int, upto: int) -> Any:
    """Training as `Estimator` does it, and an error where it would not be by the kernel."""
    assert networks.rows_for_kernel(model, given, done) is not None
    return further(model, given, done, upto)


def further(model: Any, given: Lesson, done: int, upto: int) -> Any:
    random = Randomness(model, 7)
    networks.NETWORKS.further(model, given, done, upto, random)
    random.put_back()
    return model


def remembered(value: Any) -> Any:
    """All that an object has, so that it can be compared: to the last bit, and with its types."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist()
    if isinstance(value, np.random.RandomState):
        return remembered(value.get_state(legacy=False))
    if isinstance(value, dict):
        return {name: remembered(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [remembered(one) for one in value]
    if hasattr(value, "__dict__"):
        return type(value), remembered(vars(value))
    return type(value), value


def alike(one: Any, other: Any) -> bool:
    return bool(remembered(vars(one)) == remembered(vars(other)))


def cases() -> list[Any]:
    """Every rule with every target, and in turn every activation, layers, batches and orders."""
    drawn = np.random.default_rng(1)
    found = []
    for target, rule in product(TARGETS, range(len(RULES))):
        settings = {
            "activation": ("identity", "logistic", "tanh", "relu")[len(found) % 4],
            "hidden_layer_sizes": ((), (1,), (6,), (5, 3), (130,))[drawn.integers(5)],
            "batch_size": ("auto", 1, 8, 10, 41)[drawn.integers(5)],  # 8 leaves a row over
            "shuffle": bool(drawn.integers(2)),
            **RULES[rule],
        }
        found.append(pytest.param(target, settings, id=f"{target}, rule {rule}"))
    return found


@pytest.mark.parametrize(("target", "settings"), cases())
def test_a_network_is_that_of_partial_fit_to_the_last_bit(
    target: str, settings: dict[str, Any]
) -> None:
    kind, y, own = TARGETS[target]
    for dtype, weighted in ((np.float64, False), (np.float64, True), (np.float32, False)):
        rows, goal = X.astype(dtype), y.astype(dtype) if y.dtype.kind == "f" else y
        params = {"sample_weight": np.arange(41) % 3 + 0.5} if weighted else {}
        theirs, ours = (kind(**own, **settings) for _ in range(2))
        given = lesson(goal, rows, **params)
        if dtype == np.float32 and goal.dtype.kind == "i" and kind is MLPRegressor:
            further(ours, given, 0, 4)  # NumPy computes this in two precisions
        else:
            by_kernel(ours, given, 0, 4)
        assert alike(ours, by_partial_fit(theirs, given, 0, 4))
