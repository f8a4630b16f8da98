"""Linear models in one kernel: scikit-learn's numbers, and its estimators."""

import math
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lastarm import Choice, LogUniform, SuccessiveHalving, search
from lastarm.batched import Single
from lastarm.batched.linear import FEW, LOSSES, LinearModels
from lastarm.batched.sample_order import order
from lastarm.sklearn import HalvingSearch
from lastarm.sklearn.batched_sgd import BatchedSGD
from lastarm.sklearn.batched_sgd_support import why_not, why_not_these
from lastarm.sklearn.halving_search import SomeFitsFailed
from lastarm.space import draw
from lastarm.testing import trainer_checks
from lastarm.testing.trainers import CheckTrainer
from lastarm.trainers import Config
from lastarm.trainers.estimators import Estimator
from tests.refusals import refused, warned

CLOSE = 1e-9
random = np.random.default_rng(0)
X = random.normal(size=(123, 7))
y = np.where(X @ random.normal(size=7) + 0.5 * random.normal(size=123) > 0.3, 1.0, -1.0)
TARGETS = X @ random.normal(size=7) + 0.1 * random.normal(size=123)


def passed_over(model: Any, X: Any, y: Any, seed: int, passes: int, **first: Any) -> Any:
    """scikit-learn's own, over the same rows in the same orders."""
    for number in range(passes):
        rows = order(seed, len(X), number)
        model.partial_fit(X[rows], y[rows], **(first if number == 0 else {}))
    return model


# The kernel -------------------------------------------------------------------------------------

SETTINGS = [
    {"loss": loss, "alpha": alpha, "learning_rate": rate, "eta0": 0.05, "power_t": power}
    for loss, (rate, power), alpha in product(
        LOSSES,
        [("constant", 0.5), ("invscaling", 0.5), ("invscaling", 0.2), ("optimal", 0.5)],
        [1e-4, 0.1, 30.0],
    )
]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_loss_and_rate_is_scikit_learns_step_by_step(fit_intercept: bool) -> None:
    models = LinearModels(
        *(X[:100], y[:100], X[100:], y[100:]), loss="hinge", fit_intercept=fit_intercept, seed=3
    )
    arms = range(len(SETTINGS))
    batch = models.start(SETTINGS, arms)
    models.train(batch, arms, 3)
    losses = models.losses(batch, arms)
    for arm, settings in enumerate(SETTINGS):
        ours = SGDClassifier(**settings, fit_intercept=fit_intercept, shuffle=False)
        theirs = passed_over(ours, X[:100], y[:100], 3, 3, classes=[-1, 1])
        w = theirs.coef_[0]
        # Where steps are too long, what is rounded otherwise grows with everything else.
        close = CLOSE if abs(w).max() < 1e6 else 1e-6
        np.testing.assert_allclose(batch.weights[arm], w, rtol=close, atol=close * abs(w).max())
        assert batch.models.intercepts[arm] == pytest.approx(theirs.intercept_[0], rel=close)
        assert losses[arm] == pytest.approx(1 - theirs.score(X[100:], y[100:]))


def test_regressions_are_scikit_learns_too() -> None:
    settings = [{"learning_rate": rate} for rate in ("constant", "invscaling", "optimal")]
    models = LinearModels(X[:100], TARGETS[:100], X[100:], TARGETS[100:], seed=3)
    batch = models.start(settings, [0, 1, 2])
    models.train(batch, [0, 1, 2], 4)
    for arm, rate in enumerate(settings):
        theirs = passed_over(SGDRegressor(**rate, shuffle=False), X[:100], TARGETS[:100], 3, 4)
        np.testing.assert_allclose(batch.weights[arm], theirs.coef_, rtol=CLOSE)
        error = np.mean((theirs.predict(X[100:]) - TARGETS[100:]) ** 2)
        assert models.losses(batch, [arm])[0] == pytest.approx(error, rel=CLOSE)


@cache
def linear(per_pull: int, threads: int = 1, dtype: str = "float64") -> LinearModels:
    return LinearModels(
        *(X[:77], y[:77], X[77:100], y[77:100], X[100:], y[100:]),
        loss="hinge",
        samples_per_pull=per_pull,
        threads=threads,
        dtype=dtype,
    )


@pytest.mark.parametrize("per_pull", [1, 5, 77], ids=lambda samples: f"{samples} a pull")
@pytest.mark.parametrize("check", trainer_checks(), ids=lambda check: check.__name__)
def test_the_laws_of_trainers(check: CheckTrainer, per_pull: int) -> None:
    for settings in SETTINGS[::17]:
        check(lambda: Single(linear(per_pull)), settings)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_neighbours_and_threads_change_no_bit(threads: int, dtype: str) -> None:
    alone, together = linear(3, dtype=dtype), linear(3, threads, dtype)
    arms = list(range(len(SETTINGS)))
    assert len(arms) > FEW  # so that one thread takes another way than one arm does
    batch = together.start(SETTINGS, arms)
    together.train(batch, arms, 40)
    together.train(batch, arms[1::3], 30)
    for arm in arms:
        one = alone.start([SETTINGS[arm]], [0])
        alone.train(one, [0], 70 if arm % 3 == 1 else 40)
        assert together.take(batch, arm).weights.tobytes() == one.weights.tobytes()
        assert together.losses(batch, [arm])[0] == alone.losses(one, [0])[0]


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"loss": "huber"}, "loss"),
        ({"learning_rate": "adaptive"}, "learning_rate"),
        ({"alpha": -1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"alpha": 0, "learning_rate": "optimal"}, "alpha"),
        ({"lambda": 1}, "lambda"),
    ],
)
def test_what_no_model_can_follow_is_refused(settings: Config, argument: str) -> None:
    with refused(argument, settings[argument]):
        linear(1).start([settings], [0])


def test_targets_and_losses_fit_each_other() -> None:
    with refused("y_train", np.array([0.0, 2.0])):
        LinearModels(X[:2], [0.0, 2.0], X, y, loss="log_loss")
    with refused("loss", "hinge"):
        LinearModels(X, TARGETS, X, TARGETS).start([{"loss": "hinge"}], [0])


# scikit-learn's users ---------------------------------------------------------------------------

SPACE = {
    "loss": Choice("hinge", "log_loss", "modified_huber"),
    "alpha": LogUniform(1e-6, 0.1),
    "learning_rate": Choice("constant", "invscaling", "optimal"),
    "eta0": LogUniform(1e-3, 0.1),
}
DIGITS, LABELS = load_digits(return_X_y=True)
DIGITS = DIGITS / 16


def halving(estimator: Any = None, space: Any = None, **kwargs: Any) -> Any:
    chosen: dict[str, Any] = {"n_arms": 16, "random_state": 1} | kwargs
    estimator = SGDClassifier() if estimator is None else estimator
    return HalvingSearch(estimator, SPACE if space is None else space, **chosen)


def two_classes() -> tuple[Any, Any]:
    return DIGITS[LABELS < 2], LABELS[LABELS < 2].astype(str)


def many_classes() -> Any:
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("data", [two_classes, many_classes])
@pytest.mark.parametrize("refit", [True, "keep"])
def test_the_best_is_a_genuine_estimator_with_the_arms_predictions(
    data: Callable[[], tuple[Any, Any]], refit: Any
) -> None:
    X, y = data()
    fitted = halving(refit=refit).fit(X, y)
    best = fitted.best_estimator_
    assert type(best) is SGDClassifier
    assert best.get_params()["alpha"] == fitted.best_params_["alpha"]
    pulls, seed = fitted.n_resources_[-1], 1
    rows = Estimator(SGDClassifier(), X, y, test=0, seed=seed).splits[0].train
    rows = rows if refit == "keep" else np.arange(len(X))
    alone = SGDClassifier(**fitted.best_params_, shuffle=False)
    theirs = passed_over(alone, X[rows], y[rows], seed, pulls, classes=np.unique(y))
    np.testing.assert_allclose(best.coef_, theirs.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(best.predict(X), theirs.predict(X))
    assert best.t_ == theirs.t_
    assert set(vars(best)) == set(vars(theirs))
    best.partial_fit(X, y)  # it can go on


def test_a_regressor_is_a_genuine_one_and_judged_by_its_own_score() -> None:
    X, y = DIGITS[:, :20], DIGITS[:, 20:40].mean(axis=1)
    space = {"alpha": LogUniform(1e-6, 1), "eta0": LogUniform(1e-3, 0.1)}
    fitted = halving(SGDRegressor(), space, refit="keep").fit(X, y)
    split = Estimator(SGDRegressor(), X, y, test=0, seed=1).splits[0]
    rows = split.validation
    assert type(fitted.best_estimator_) is SGDRegressor
    assert fitted.best_score_ == pytest.approx(fitted.best_estimator_.score(X[rows], y[rows]))


@pytest.mark.parametrize(
    "kwargs", [{}, {"cv": StratifiedKFold(3)}, {"scoring": "f1_macro"}], ids=str
)
def test_one_arm_at_a_time_finds_the_same(kwargs: Any) -> None:
    X, y = many_classes()
    fitted = halving(**kwargs).fit(X, y)
    trainer = Estimator(SGDClassifier(), X, y, test=0, seed=1, **({"scoring": "score"} | kwargs))
    for runner in ("serial", "batched"):
        result = search(
            BatchedSGD(trainer),
            SPACE,
            policy=SuccessiveHalving(16, 4 * 16 * 4),
            seed=1,
            runner=runner,
        )
        assert result.digest == fitted.result_.digest


def test_threads_change_nothing() -> None:
    X, y = many_classes()
    one, two = (halving(n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    assert one.result_.digest == two.result_.digest
    assert one.best_estimator_.coef_.tobytes() == two.best_estimator_.coef_.tobytes()


def test_folds_and_scorers_say_of_the_kernels_models_what_they_say() -> None:
    X, y = many_classes()
    for scoring in (None, "balanced_accuracy"):
        fitted = halving(cv=3, scoring=scoring).fit(X, y)
        trainer = Estimator(SGDClassifier(), X, y, test=0, cv=StratifiedKFold(3), seed=1)
        together = BatchedSGD(trainer)
        batch = together.start([fitted.best_params_], [0])
        together.train(batch, [0], fitted.n_resources_[-1])
        scorer = get_scorer(scoring or "accuracy")
        models = together.take(batch, 0).models
        for i, (model, split) in enumerate(zip(models, trainer.splits, strict=True)):
            score = scorer(model, X[split.validation], y[split.validation])
            told = fitted.cv_results_[f"split{i}_test_score"][fitted.best_index_]
            assert told == pytest.approx(score)


def test_a_pipeline_with_names_ends_in_its_own_estimator() -> None:
    table = pd.DataFrame(DIGITS, columns=[f"pixel {k}" for k in range(64)])
    space = {"sgdclassifier__alpha": LogUniform(1e-5, 1e-2)}
    fitted = halving(make_pipeline(StandardScaler(), SGDClassifier()), space).fit(table, LABELS)
    assert why_not(Estimator(fitted.estimator, table, LABELS, test=0), [{}]) is None
    best = fitted.best_estimator_
    assert [type(step) for _, step in best.steps] == [StandardScaler, SGDClassifier]
    assert list(best.feature_names_in_) == list(table.columns)
    assert best.score(table, LABELS) > 0.9
    plain = halving(SGDClassifier(), {"alpha": LogUniform(1e-5, 1e-2)}).fit(table, LABELS)
    assert list(plain.best_estimator_.feature_names_in_) == list(table.columns)


def test_an_arm_that_overflows_is_out_and_the_others_are_not() -> None:
    space = {"eta0": [1e-3, 1e-2, 1e300], "learning_rate": ["constant"], "loss": ["squared_error"]}
    with warned(SomeFitsFailed, configs=3) as told:
        fitted = halving(SGDRegressor(), space, n_arms=3).fit(DIGITS, LABELS)
    assert len(told[0].causes) == 1
    assert fitted.best_params_["eta0"] < 1
    assert np.isnan(fitted.cv_results_["mean_test_score"]).sum() == 1


@pytest.mark.parametrize(
    ("estimator", "configs", "data", "why"),
    [
        (LogisticRegression(warm_start=True), [{}], DIGITS, "LogisticRegression has no kernel"),
        (SGDClassifier(penalty="l1"), [{}], DIGITS, "penalty 'l2' or None, not 'l1'"),
        (SGDClassifier(), [{"average": True}], DIGITS, "average False or 0, not True"),
        (SGDClassifier(), [{}, {"loss": "huber"}], DIGITS, "not 'huber'"),
        (SGDRegressor(loss="huber"), [{}], DIGITS, "loss 'squared_error', not 'huber'"),
        (SGDClassifier(class_weight="balanced"), [{}], DIGITS, "class_weight None"),
        (SGDClassifier(penalty=None), [{}], DIGITS, "'optimal' with a penalty only"),
        (SGDClassifier(), [{"random_state": k} for k in (1, 2)], DIGITS, "random states differ"),
        (SGDClassifier(), [{}], csr_array(DIGITS), "the rows are sparse"),
        (SGDClassifier(), [{"no_such": 3}], DIGITS, "they cannot be started: "),
        (
            make_pipeline(StandardScaler(), SGDClassifier()),
            [{"standardscaler__with_mean": False}],
            DIGITS,
            "standardscaler__with_mean is not a setting of the last step",
        ),
        (
            make_pipeline(OneHotEncoder(handle_unknown="ignore"), SGDClassifier()),
            [{}],
            DIGITS,
            "the rows are sparse",
        ),
    ],
)
def test_what_the_kernel_cannot_do_is_done_one_at_a_time_and_said(
    estimator: Any,
    configs: list[Config],
    data: Any,
    why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trainer = Estimator(estimator, data, LABELS, test=0)
    assert why in str(why_not(trainer, configs))
    space = [{name: [value] for name, value in config.items()} for config in configs]
    search = halving(estimator, space, n_arms=len(configs), budget=4, verbose=1, cv=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lastarm.sklearn.halving_search.searched", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            search.fit(data, LABELS)
    said = capsys.readouterr().out
    assert "HalvingSearch trains one setting at a time: " in said
    assert why in said


def test_the_losses_are_those_of_scikit_learns_own_but_for_the_order_of_the_rows() -> None:
    X, y = make_classification(4000, 20, n_informative=8, flip_y=0.1, random_state=0)
    trainer = Estimator(SGDClassifier(), X, y, test=0, scoring="score", seed=0)
    together = BatchedSGD(trainer)
    configs = draw(SPACE, 24, 0)
    batch = together.start(configs, range(24))
    together.train(batch, range(24), 20)
    ours = np.array([told["loss"] for told in together.losses(batch, range(24))])
    one_at_a_time = [
        [trainer.loss(trainer.train(trainer.start(config, seed), 20)) for config in configs]
        for seed in (0, 1)
    ]
    theirs, again = np.array(one_at_a_time)
    noise = np.abs(theirs - again).mean()
    assert np.abs(ours - theirs).mean() < 2 * noise + 1e-3


def test_a_search_one_at_a_time_needs_no_numba() -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from sklearn.linear_model import SGDClassifier\n"
        "from lastarm.sklearn import HalvingSearch\n"
        "X, y = [[0.0], [1.0]] * 20, [0, 1] * 20\n"
        "search = HalvingSearch(SGDClassifier(), {'alpha': [1, 2]}, n_arms=2, verbose=1)\n"
        "print(search.fit(X, y).score(X, y))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "numba is needed" in said.stdout


def test_a_setting_that_scikit_learn_refuses_is_out_wherever_it_stands() -> None:
    for bad in ({"fit_intercept": 2}, {"alpha": -1.0}, {"eta0": 0.0}, {"tol": "x"}):
        ((name, value),) = bad.items()
        usual = SGDClassifier().get_params()[name]
        for values in ([usual, value], [value, usual]):
            with pytest.warns(FitFailedWarning, match=f"The '{name}' parameter of SGDClassifier"):
                fitted = halving(space={name: values}, n_arms=2).fit(DIGITS, LABELS)
            assert fitted.best_params_[name] == usual


def test_rows_that_only_the_last_training_sees_are_looked_at_too() -> None:
    rows = DIGITS.copy()
    rows[-1] = np.nan
    folds = [(np.arange(500), np.arange(500, 900))]
    with pytest.raises(ValueError, match="Input X contains NaN"):
        halving(cv=folds).fit(rows, LABELS)
    table = pd.DataFrame({"number": DIGITS[:, 20], "name": ["x"] * 1790 + list("abcdefg")})
    columns = ColumnTransformer(
        [
            ("a", StandardScaler(), ["number"]),
            ("b", OneHotEncoder(handle_unknown="ignore"), ["name"]),
        ],
        sparse_threshold=0.6,
    )
    model = make_pipeline(columns, SGDClassifier())
    fitted = halving(model, {"sgdclassifier__alpha": [0.1, 0.01]}, n_arms=2, cv=folds)
    assert len(fitted.fit(table, LABELS).best_estimator_[-1].coef_[0]) == 9


@pytest.mark.parametrize(
    ("rows", "targets", "why"),
    [
        (DIGITS.astype(str), LABELS, "not a table of numbers"),
        (DIGITS * 1e160, LABELS, "too large"),
        ((DIGITS * 1e25).astype(np.float32), LABELS, "too large"),
        (DIGITS, np.where(LABELS > 8, np.inf, LABELS), "too large, or nan"),
        (DIGITS.astype(np.float32), LABELS * 1e50, "too large, or nan"),
    ],
)
def test_numbers_that_the_kernel_cannot_multiply_are_left_to_scikit_learn(
    rows: Any, targets: Any, why: str
) -> None:
    assert why in str(why_not_these(rows, targets[: len(rows)], classified=False))


def test_single_precision_ends_in_the_types_of_scikit_learns_own() -> None:
    rows = DIGITS.astype(np.float32)
    for model, y in ((SGDClassifier(), LABELS < 5), (SGDRegressor(), LABELS)):
        best = halving(model, {"alpha": [1e-4, 1e-3]}, n_arms=2).fit(rows, y).best_estimator_
        alone = clone(best).fit(rows, y)
        assert (best.coef_.dtype, best.intercept_.dtype) == (np.float32, alone.intercept_.dtype)
        assert best.predict(rows).dtype == alone.predict(rows).dtype


def test_a_scorer_that_fails_for_some_arms_puts_out_those() -> None:
    space = {"loss": ["hinge", "log_loss"], "alpha": [1e-4, 1e-3]}
    with warned(SomeFitsFailed, configs=4) as told:
        fitted = halving(space=space, n_arms=4, scoring="neg_log_loss").fit(DIGITS, LABELS)
    assert len(told[0].causes) == 2
    assert fitted.best_params_["loss"] == "log_loss"
