"""The table in docs/estimators.md: every estimator of scikit-learn that has steps, really tried.

If something has changed for a reason, write the table anew and read the difference:

    python -m tests.test_estimator_table
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.utils import all_estimators
from threadpoolctl import threadpool_limits

from lastarm.trainers.estimators import Estimator
from lastarm.trainers.splits import Split

PAGE = Path(__file__).parents[1] / "docs" / "estimators.md"
BEGIN, END = "<!-- the table of tests/test_estimator_table.py -->\n\n", "\n<!-- its end -->"

SEED, FIRST, LEVEL = 7, 2, 4
SOLVERS = ("adam", "lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga", "sgd")
random = np.random.default_rng(0)
X = random.integers(0, 6, (90, 8)).astype(float)
classes = (X[:, 0] + X[:, 1] + random.integers(0, 3, 90)).astype(int) // 5
numbers = np.exp(X @ random.normal(0, 0.4, 8) + random.normal(0, 1, 90))
texts = [" ".join(f"word{number:.0f}" for number in row) for row in X]


def cases() -> Iterator[tuple[str, Any]]:
    """Every estimator with `warm_start` or `partial_fit`, once for each of its solvers."""
    for name, kind in all_estimators():
        parameters = inspect.signature(kind).parameters
        if "warm_start" not in parameters and not hasattr(kind, "partial_fit"):
            continue
        small = {"batch_size": 20, "n_features": 16}  # fewer in a batch than there are rows
        given: dict[str, Any] = {one: small[one] for one in small if one in parameters}
        if "estimator" in parameters and hasattr(kind, "partial_fit"):
            given["estimator"] = (SGDClassifier if "Classifier" in name else SGDRegressor)(
                tol=None
            )
        elif hasattr(kind, "partial_fit") and "early_stopping" in parameters:
            given["tol"] = None if "batch_size" not in parameters else 1e-30
        elif name in ("SGDOneClassSVM", "PassiveAggressiveRegressor"):
            given["tol"] = None
        elif {"tol", "max_iter", "warm_start"} <= {*parameters}:
            given["tol"] = 1e-30  # so that all iterations are made
        if "solver" not in parameters:
            yield name, kind(**given)
        else:
            for solver in SOLVERS:
                with suppress(ValueError), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = kind(**given, solver=solver)
                    model.set_params(max_iter=1).fit(*rows_of(model))
                    yield f"{name}, {solver}", clone(model)
        if "selection" in parameters:
            yield f"{name}, random selection", kind(**given, selection="random")


def rows_of(model: Any) -> tuple[Any, Any]:
    """Rows and targets that such a model can learn from."""
    kind = type(model).__name__
    if kind == "HashingVectorizer":
        return texts, None
    if kind.startswith(("MultiOutput", "MultiTask")):
        one = classes if is_classifier(model) else numbers
        return X, np.column_stack([one, one[::-1]])
    if getattr(model, "solver", None) == "liblinear":
        return X, classes > 0  # it knows two classes
    classified = is_classifier(model) or kind == "NeighborhoodComponentsAnalysis"
    return X, classes if classified else numbers


def told(model: Any, rows: Any) -> Any:
    """What a fitted model says of the rows."""
    for method in ("predict_proba", "decision_function", "predict", "transform"):
        if hasattr(model, method):
            said = getattr(model, method)(rows)
            return np.asarray(said.toarray() if hasattr(said, "toarray") else said, dtype=float)
    raise AssertionError(model)


def equal(one: Any, other: Any, rows: Any) -> bool:
    a, b = told(one, rows), told(other, rows)
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-7, atol=1e-9 * np.abs(b).max())


def line(name: str, model: Any) -> str:
    """The row of the table about one estimator."""
    rows, targets = rows_of(model)
    # All rows are TRAIN, but for the last: what is compared is the training.
    last = len(classes) - 1
    split = Split(range(last), [last])
    trainer = Estimator(model, rows, targets, split=split, scoring=lambda *_: 0.0, threads=1)
    seen = rows[:last], None if targets is None else targets[:last]

    def trained(by: Estimator, *pulls: int) -> Any:
        state = by.start({}, SEED)
        for number in pulls:
            state = by.train(state, number)
        return state.model

    def in_one_go(estimator: Any, steps: int) -> Any:
        settings: dict[str, Any] = {}
        for one in estimator.get_params():
            match one.rpartition("__")[2]:
                case "random_state":
                    settings[one] = SEED
                case "max_iter" | "n_iter" | "n_estimators" if trainer.resource is None:
                    settings[one] = steps
        return clone(estimator).set_params(**settings).fit(*seen)

    at_once = trained(trainer, LEVEL)
    assert told(trained(trainer, FIRST, LEVEL - FIRST), rows).tobytes() == (
        told(at_once, rows).tobytes()
    )
    if trainer.resource == "rows":
        return f"| {name} | `fit` | 1 % of the rows | no |"
    plain = in_one_go(model, LEVEL)
    same = equal(at_once, plain, rows)
    if trainer.restarts:
        continued = clone(plain).set_params(max_iter=1, warm_start=True)
        for _ in range(LEVEL):
            continued.fit(*seen)
        assert same
        assert not equal(continued, plain, rows)
        return f"| {name} | `fit`, from zero | an iteration | no |"
    counted = [one for one in model.get_params() if one.rpartition("__")[2] in COUNTED]
    if not hasattr(model, "partial_fit"):
        pull = "an iteration" if "max_iter" in counted and "Hist" not in name else "a tree"
        return f"| {name} | `warm_start` | {pull} | {'yes' if same else DRAWS} |"
    verdict = "yes"
    if not same:
        verdict = BATCHES
        shuffled = [one for one in model.get_params() if one.rpartition("__")[2] == "shuffle"]
        if shuffled:
            model = clone(model).set_params(**dict.fromkeys(shuffled, False))
            other = Estimator(model, rows, targets, split=split, scoring=lambda *_: 0.0, threads=1)
            if equal(trained(other, LEVEL), in_one_go(model, LEVEL), rows):
                verdict = ORDER
        if not counted and equal(trained(trainer, 1), plain, rows):
            verdict = FIRST_IS_FIT
    return f"| {name} | `partial_fit` | a pass | {verdict} |"


COUNTED = ("max_iter", "n_iter", "n_estimators")
DRAWS = "no: other draws"
BATCHES = "no: other batches"
ORDER = "yes, but for the order of rows"
FIRST_IS_FIT = "no: `fit` is one pass"


def table() -> str:
    """All of it."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        lines = [line(*case) for case in cases()]
    head = "| estimator | trained by | a pull is | continuing equals one go |"
    return "\n".join([head, "| --- | --- | --- | --- |", *lines]) + "\n"


def test_the_page_says_what_the_trials_say() -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    assert rest.partition(END)[0] == table(), "python -m tests.test_estimator_table"


def write() -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    importlib.import_module("tests.test_estimator_table").write()
