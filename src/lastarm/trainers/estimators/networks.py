"""scikit-learn's networks, `MLPClassifier` and `MLPRegressor`, trained by a compiled kernel.

A step is a pass over TRAIN, as `partial_fit` makes it, to the last bit: the same numbers, and all
that the estimator remembers. scikit-learn itself begins a network. The passes are made by
`network_kernel`, without what `partial_fit` does between batches. So it makes no difference where
an arm is trained with the kernel and where without: `partial_fit` makes the passes where numba is
not installed, and where the kernel cannot do the same.
"""

from __future__ import annotations

import importlib
import weakref
from functools import cache
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from lastarm.trainers.estimators import compat_networks as compat
from lastarm.trainers.estimators.family import Lesson, Randomness
from lastarm.trainers.estimators.scikit_learn import PARTIAL_FIT

SOLVERS = ("adam", "sgd")  # which go on from where they are, other than lbfgs
TRIED = 211  # rows: enough for sums in another order to differ, and not a whole number of batches


class KernelRows(NamedTuple):
    """TRAIN after scikit-learn's checks, for the kernel."""

    X: Any
    Y: Any  # a column for each output
    weights: Any  # None if all rows count alike
    contiguous: bool  # whether the rows were one after another in the memory
    checked: compat.Checked


class Kind(NamedTuple):
    """What decides which operations a pass has, and in which precision."""

    estimator: type
    loss: str
    output: str
    several: bool  # outputs
    weighted: bool
    activation: str
    solver: str
    dtype: str


def _passes(model: Any, lesson: Lesson, done: int, upto: int, random: Randomness) -> None:
    """A step is a pass over TRAIN, in an order of its own."""
    rows = rows_for_kernel(model, lesson, done)
    if rows is None:
        PARTIAL_FIT.further(model, lesson, done, upto, random)
    else:
        _compiled_passes(model, lesson, rows, done, upto, random)


def rows_for_kernel(model: Any, lesson: Lesson, done: int) -> KernelRows | None:
    """TRAIN, prepared once for all arms; None where the kernel cannot train the model exactly.

    - `model`: a network that had `done` pulls.
    - `lesson`: what it learns from.
    """
    if model.verbose or model.warm_start or kernel() is None:  # which print, or check classes
        return None
    if "network" not in lesson.kept:
        lesson.kept["network"] = _prepared(type(model), lesson)
    rows: KernelRows | None = lesson.kept["network"]
    if rows is None or not (model.shuffle or rows.contiguous):
        return None
    exact = _in_one_precision(model, rows, done) and is_exact(_kind(model, rows))
    return rows if exact else None


def _prepared(estimator: type, lesson: Lesson) -> KernelRows | None:
    try:
        checked = compat.checked(estimator, lesson)
    except Exception:  # `partial_fit` will raise it again
        return None
    X, y = checked.X, checked.y
    weights = lesson.params.get("sample_weight")
    if not isinstance(X, np.ndarray) or np.result_type(X.dtype, y.dtype) != X.dtype:
        return None  # sparse, or computed in two precisions
    if weights is not None:
        weights = np.ascontiguousarray(weights)
        if weights.dtype.kind != "f":
            weights = weights.astype(np.float64)
        if not X.dtype == weights.dtype == np.float64:
            return None
    return KernelRows(
        np.ascontiguousarray(X),
        np.ascontiguousarray(y.reshape(len(y), -1), X.dtype),
        weights,
        X.flags.c_contiguous,
        checked,
    )


def _in_one_precision(model: Any, rows: KernelRows, done: int) -> bool:
    """Whether all that is computed has the precision of X."""
    plain = (float, int, np.float64) if rows.X.dtype == np.float64 else (float, int)
    names = ("alpha", "learning_rate_init", "power_t", "momentum", "beta_1", "beta_2", "epsilon")
    if any(type(getattr(model, name)) not in plain for name in names):
        return False
    parts = [part for of in (_parameters(model), *_moments(model)) for part in of] if done else []
    return all(part.dtype == rows.X.dtype for part in parts)


def _kind(model: Any, rows: KernelRows) -> Kind:
    return Kind(
        type(model),
        model.loss,
        "exp" if model.loss == "poisson" else rows.checked.output,
        rows.Y.shape[1] > 1,
        rows.weights is not None,
        model.activation,
        model.solver,
        rows.X.dtype.str,
    )


@cache
def kernel() -> Any:
    """The compiled code; None without numba, or with versions that it was not written for."""
    if not compat.KNOWN:
        return None
    try:
        code = importlib.import_module("lastarm.trainers.estimators.network_kernel")
        code.loops_of(np.dtype(np.float64))
    except (ImportError, NotImplementedError):
        return None
    return code


@cache
def is_exact(kind: Kind) -> bool:
    """Whether the kernel trains a small network as scikit-learn does here, to the last bit.

    This depends on NumPy and SciPy too, so it is tried: once for each kind in a process, in a few
    milliseconds.
    """
    draw = np.random.default_rng(0)
    X = draw.normal(size=(TRIED, 7)).astype(kind.dtype)
    classes = 3 if kind.output == "softmax" else 2
    y: Any = draw.integers(0, classes, (TRIED, 2 if kind.several else 1))
    if kind.estimator is MLPRegressor:
        y = (y + X[:, :1] ** 2).astype(kind.dtype)
    if kind.output == "softmax" or not kind.several:
        y = y[:, 0]
    params = {"sample_weight": draw.uniform(size=TRIED)} if kind.weighted else {}
    lesson = Lesson(X, y, np.arange(classes), 1, params, {})
    theirs, ours = (
        kind.estimator(
            hidden_layer_sizes=(9, 5),
            activation=kind.activation,
            solver=kind.solver,
            batch_size=64,
            **({"loss": kind.loss} if kind.output == "exp" else {}),
        )
        for _ in range(2)
    )
    PARTIAL_FIT.further(theirs, lesson, 0, 2, Randomness(theirs, 0))
    rows = _prepared(kind.estimator, lesson)
    try:
        assert rows is not None
        _compiled_passes(ours, lesson, rows, 0, 2, Randomness(ours, 0))
    except Exception:  # a version that is not like those that the kernel was written for
        return False
    return theirs.loss_curve_ == ours.loss_curve_ and all(
        np.array_equal(one, other)
        for one, other in zip(_parameters(theirs), _parameters(ours), strict=True)
    )


def _compiled_passes(
    model: Any, lesson: Lesson, rows: KernelRows, done: int, upto: int, random: Randomness
) -> None:
    """What `partial_fit` does in all these passes, and what it remembers of them."""
    code, X, n = kernel(), rows.X, len(rows.X)
    if done == 0:
        random.of(0)
        compat.begin(model, rows.checked)
    optimizer, own = compat.optimizer_of(model), [_parameters(model), *_moments(model)]
    units = np.array([X.shape[1], *(part.size for part in model.intercepts_)])
    batch = min(200 if model.batch_size == "auto" else int(model.batch_size), n)
    nothing = np.empty(0, X.dtype)
    network = code.NetworkArrays(units, *([*map(_joined, own), nothing][:3]))
    rule = _rule(code, model, X.dtype)
    weights = nothing if rows.weights is None else rows.weights
    learnt_from = code.RowArrays(X, rows.Y, weights, np.empty(0, np.int64), batch)
    work, loops = code.room(units, batch, X.dtype), code.loops_of(X.dtype)
    generator = None
    try:
        for step in range(done * lesson.steps, upto * lesson.steps):
            random.of(step)
            if generator is None:
                generator = compat.generator_of(model, begun=step == 0)
            else:
                generator.seed(model.random_state)
            if model.shuffle:
                order = np.arange(n, dtype=np.int64)
                generator.shuffle(order)
                learnt_from = learnt_from._replace(order=order)
            rule = rule._replace(rates=_rates(optimizer, -(-n // batch)))
            total, ended = code.learn(network, rule, learnt_from, work, loops)
            if ended == code.NO_WEIGHT:
                raise ZeroDivisionError("Weights sum to zero, can't be normalized")
            total = np.float64(total) if rule.wide_total else X.dtype.type(total)
            compat.end_of_pass(model, total / n, n)
            if ended == code.NOT_FINITE:
                raise ValueError(
                    "Solver produced non-finite parameter weights. The input data may contain "
                    "large values and need to be preprocessed."
                )
    finally:
        for parts, joined in zip(own, network[1:], strict=False):
            begin = 0
            for part in parts:
                part[...] = joined[begin : begin + part.size].reshape(part.shape)
                begin += part.size


def _judged(model: Any, X: Any) -> Any:
    """The model as scorers see it: to check VAL at every look takes longer than to predict it."""
    if not (compat.KNOWN and _are_plain(X) and X.shape[1] == model.n_features_in_):
        return model
    return compat.for_checked(model, X)


def _are_plain(X: Any) -> bool:
    """Whether the checks of scikit-learn take these rows as they are."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in (np.float32, np.float64):
        return False
    key = id(X)
    if key not in FINITE or FINITE[key][0]() is not X:
        there = weakref.ref(X, lambda _: FINITE.pop(key, None))
        FINITE[key] = there, bool(np.isfinite(X).all())
    return FINITE[key][1]


FINITE: dict[int, tuple[weakref.ref[Any], bool]] = {}
"""Of tables of VAL, by their ids: whether all their numbers are finite."""


def _parameters(model: Any) -> list[Any]:
    """The arrays of parameters, in the order of the kernel."""
    return [*model.coefs_, *model.intercepts_]


def _moments(model: Any) -> list[list[Any]]:
    """What the optimizer has for each of them: two moments with Adam, and else a velocity."""
    optimizer = compat.optimizer_of(model)
    if hasattr(optimizer, "velocities"):
        return [optimizer.velocities]
    return [optimizer.ms, optimizer.vs]


def _joined(parts: list[Any]) -> Any:
    return np.concatenate([part.ravel() for part in parts])


def _rule(code: Any, model: Any, dtype: Any) -> Any:
    """How the model learns, in the numbers of the kernel."""
    optimizer, loss = compat.optimizer_of(model), model.loss
    # With a size of its own, batches are counted by numbers of NumPy, which are wide.
    wide_total = dtype == np.float64 or loss == "log_loss" or model.batch_size != "auto"
    if loss == "log_loss" and model.out_activation_ == "logistic":
        loss = "binary_log_loss"
    adam = not hasattr(optimizer, "velocities")
    return code.RuleNumbers(
        activation=code.ACTIVATIONS[model.activation],
        output=code.ACTIVATIONS[model.out_activation_],
        loss=code.LOSSES[loss],
        wide_total=wide_total,
        alpha=float(model.alpha),
        rates=None,
        adam=adam,
        first=float(optimizer.beta_1 if adam else optimizer.momentum),
        first_rest=float(1 - optimizer.beta_1 if adam else 0),
        second=float(optimizer.beta_2 if adam else 0),
        second_rest=float(1 - optimizer.beta_2 if adam else 0),
        epsilon=float(optimizer.epsilon if adam else 0),
        nesterov=bool(not adam and optimizer.nesterov),
    )


def _rates(optimizer: Any, batches: int) -> Any:
    """The learning rates of the next batches."""
    if hasattr(optimizer, "velocities"):
        return np.full(batches, optimizer.learning_rate, np.float64)
    start, first, second = optimizer.learning_rate_init, optimizer.beta_1, optimizer.beta_2
    rates = [
        float(start) * sqrt(1 - second**t) / (1 - first**t)
        for t in range(optimizer.t + 1, optimizer.t + 1 + batches)
    ]
    optimizer.t += batches
    optimizer.learning_rate = np.float64(rates[-1])
    return np.array(rates)


NETWORKS = PARTIAL_FIT._replace(
    accepts=lambda one: type(one) in (MLPClassifier, MLPRegressor) and one.solver in SOLVERS,
    further=_passes,
    judged=_judged,
)
