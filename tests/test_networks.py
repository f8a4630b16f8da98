"""scikit-learn's networks by a kernel: what `partial_fit` does, bit for bit."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlogy
from sklearn.decomposition import PCA
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
    found: list[Any] = []
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


# Since SciPy 1.18, a truth value times a logarithm in single precision is in single precision.
TRUTH_IS_WIDE = xlogy(np.array([True]), np.array([0.5], np.float32)).dtype == np.float64


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
        # NumPy or SciPy may compute these in two precisions: then there is no kernel.
        if dtype == np.float32 and (
            (kind is MLPRegressor and goal.dtype.kind == "i")
            or (kind is MLPClassifier and not TRUTH_IS_WIDE)
        ):
            further(ours, given, 0, 4)
        else:
            by_kernel(ours, given, 0, 4)
        assert alike(ours, by_partial_fit(theirs, given, 0, 4))


def test_a_large_batch_and_layer_are_the_same_too() -> None:
    rows, y = rng.normal(size=(9001, 3)), rng.normal(size=9001)  # more than NumPy has in a buffer
    ours, theirs = (
        MLPRegressor(hidden_layer_sizes=(1,), batch_size=9001, alpha=0.1) for _ in range(2)
    )
    assert alike(
        by_kernel(ours, lesson(y, rows), 0, 2), by_partial_fit(theirs, lesson(y, rows), 0, 2)
    )


def test_either_continues_the_other() -> None:
    _, y, _ = TARGETS["three classes"]
    for solver in ("adam", "sgd"):
        network = MLPClassifier((6,), solver=solver, learning_rate_init=0.05, batch_size=8)
        at_once = by_kernel(pickle.loads(pickle.dumps(network)), lesson(y), 0, 6)
        model = by_kernel(network, lesson(y), 0, 2)
        model = by_partial_fit(pickle.loads(pickle.dumps(model)), lesson(y), 2, 4)
        model = by_kernel(pickle.loads(pickle.dumps(model)), lesson(y), 4, 6)
        assert alike(model, at_once)
        theirs = by_partial_fit(MLPClassifier(**network.get_params()), lesson(y), 0, 6)
        assert len(pickle.dumps(at_once)) == len(pickle.dumps(theirs))


def test_what_the_kernel_cannot_do_is_done_by_partial_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, y, _ = TARGETS["three classes"]

    class Own(MLPClassifier):
        pass

    assert not networks.NETWORKS.accepts(Own())
    assert not networks.NETWORKS.accepts(MLPClassifier(solver="lbfgs"))
    assert not networks.NETWORKS.accepts(MLPRegressor(solver="lbfgs"))
    plain = MLPClassifier((3,))
    columns = np.asfortranarray(X)
    for model, given in (
        (plain, lesson(y, csr_array(X))),
        (MLPClassifier((3,), verbose=True), lesson(y)),
        (MLPClassifier((3,), warm_start=True), lesson(y)),
        (MLPClassifier((3,), shuffle=False), lesson(y, columns)),
        (MLPClassifier((3,), alpha=np.float32(0.1)), lesson(y)),
        (plain, lesson(y, sample_weight=np.ones(41, np.float32))),
    ):
        assert networks.rows_for_kernel(model, given, 0) is None
        ours = further(pickle.loads(pickle.dumps(model)), given, 0, 2)
        assert alike(ours, by_partial_fit(pickle.loads(pickle.dumps(model)), given, 0, 2))
    assert "Iteration 1, loss" in capsys.readouterr().out
    shuffled = MLPClassifier((3,)), lesson(y, columns)
    assert alike(
        by_kernel(*shuffled, 0, 2), by_partial_fit(MLPClassifier((3,)), shuffled[1], 0, 2)
    )


@pytest.mark.parametrize(
    ("settings", "params"),
    [
        ({"alpha": -1.0}, {}),
        ({"hidden_layer_sizes": (0,)}, {}),
        ({"validation_fraction": "all", "beta_1": 2}, {}),
        ({"learning_rate_init": 1e300, "solver": "sgd"}, {}),
        ({"shuffle": False, "batch_size": 20}, {"sample_weight": np.arange(41) < 20}),
        ({}, {"sample_weight": np.ones(3)}),
    ],
)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
def test_an_error_is_that_of_partial_fit(settings: Any, params: Any) -> None:
    _, y, _ = TARGETS["a number"]
    said = []
    for train in (further, by_partial_fit):
        with pytest.raises((ValueError, ZeroDivisionError)) as error:
            train(MLPRegressor(**settings), lesson(y, X * 1e8, **params), 0, 3)
        said.append((error.type, str(error.value)))
    assert said[0] == said[1]


DIGITS = {"learning_rate_init": LogUniform(1e-3, 1e-1), "alpha": LogUniform(1e-5, 1)}


def trainers() -> dict[str, Estimator]:
    y = rng.integers(0, 3, 120)
    rows = rng.normal(size=(120, 6)) + y[:, None]
    network = MLPClassifier((8,))
    return {
        "plain": Estimator(network, rows, y),
        "folds": Estimator(network, rows, y, cv=3, scoring="neg_log_loss"),
        "weights": Estimator(network, rows, y, sample_weight=rng.uniform(size=120)),
        "several passes": Estimator(network, rows, y, pulls_per_step=3),
        "a pipeline": Estimator(Pipeline([("pca", PCA(3)), ("net", network)]), rows, y),
    }


@pytest.mark.parametrize("name", trainers())
def test_arms_keep_the_laws_of_trainers(name: str) -> None:
    trainer = trainers()[name]
    prefix = "net__" if name == "a pipeline" else ""
    for check in trainer_checks():
        check(lambda: trainer, {f"{prefix}learning_rate_init": 0.01})


def test_the_answer_is_that_without_numba_and_that_of_worker_processes() -> None:
    trainer, policy = trainers()["plain"], SuccessiveHalving(arms=4, budget=32)
    serial = search(trainer, DIGITS, policy=policy, seed=3)
    workers = search(trainer, DIGITS, policy=policy, seed=3, runner="processes", workers=2)
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import pickle\n"
        "from lastarm import search\n"
        "from lastarm.trainers.estimators import networks\n"
        "trainer, space, policy = pickle.load(sys.stdin.buffer)\n"
        "assert networks.kernel() is None\n"
        "print(search(trainer, space, policy=policy, seed=3).digest)\n"
    )
    without = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((trainer, DIGITS, policy)),
        capture_output=True,
        check=True,
    )
    assert workers.digest == serial.digest == without.stdout.decode().strip()


def test_the_model_of_an_arm_predicts_what_the_arm_predicted() -> None:
    trainer = trainers()["plain"]
    state: Trained = trainer.train(trainer.start({"alpha": 0.1}, seed=5), 7)
    model = MLPClassifier((8,), alpha=0.1)
    fold = trainer.folds(state)[0]
    random = Randomness(model, 5)
    PARTIAL_FIT.further(model, trainer.lesson(fold), 0, 7, random)
    assert np.array_equal(
        model.predict_proba(fold.validation.X), state.model.predict_proba(fold.validation.X)
    )


def own(model: Any, X: Any, y: Any) -> float:
    """A scorer that looks at all that a network can say, also of other rows and as a copy."""
    others = [X[:3], X + 0, X.astype(np.float32)]
    said = [model.predict(rows) for rows in (X, *others)]
    if hasattr(model, "predict_proba"):
        said += [np.log(model.predict_proba(rows)) for rows in (X, *others)]
        said += [pickle.loads(pickle.dumps(model)).predict_proba(X), copy.deepcopy(model).classes_]
    return float(sum(np.sum(part == part[0]) + part.astype(str).size for part in said))


@pytest.mark.parametrize("target", TARGETS)
def test_a_look_at_rows_that_were_checked_is_a_look_at_the_model(target: str) -> None:
    kind, y, settings = TARGETS[target]
    rows = X.copy()
    trainer = Estimator(kind(hidden_layer_sizes=(6,), **settings), rows, y)
    state = trainer.start({}, 3)
    for _ in range(2):
        state = trainer.train(state, 2)
        judged = trainer.folds(state)[0].validation.X
        model: Any = state.model
        seen = networks.NETWORKS.judged(model, judged)
        assert seen is not model
        assert issubclass(type(seen), kind)
        for of in (judged, judged[:3], judged + 0):
            assert np.array_equal(seen.predict(of), model.predict(of))
            if kind is MLPClassifier:
                assert np.array_equal(seen.predict_proba(of), model.predict_proba(of))
        assert own(seen, judged, None) == own(model, judged, None)
        assert type(copy.deepcopy(seen)) is type(pickle.loads(pickle.dumps(seen))) is kind
        with pytest.raises(ValueError, match="features"):
            seen.predict(judged[:, 1:])
        assert alike(pickle.loads(pickle.dumps(seen)), model)


@pytest.mark.parametrize("kind", ["numbers that are not finite", "a table", "whole numbers"])
def test_other_rows_of_val_are_checked_at_every_look(kind: str) -> None:
    trainer = trainers()["plain"]
    state = trainer.train(trainer.start({}, 0), 1)
    rows: Any = trainer.folds(state)[0].validation.X
    rows = {
        "a table": pd.DataFrame(rows),
        "whole numbers": np.ones(rows.shape, int),
        "numbers that are not finite": np.where(rows > 0, rows, np.nan),
    }[kind]
    assert networks.NETWORKS.judged(state.model, rows) is state.model
