"""Estimators as trainers: training a + b is training a, then b, and TEST is seen by nobody."""

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import lightgbm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
from scipy.sparse import coo_array
from sklearn.base import clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    HuberRegressor,
    Lasso,
    LogisticRegression,
    Perceptron,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics import accuracy_score, fbeta_score, make_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits
from xgboost import XGBClassifier
from xgboost.callback import EarlyStopping

from lastarm import Configs, HorizonHalving, Integer, LogUniform, SuccessiveHalving, search
from lastarm.errors import (
    EarlyStoppingOff,
    InvalidArgument,
    OtherSearch,
    OtherVersion,
    TrainerChanged,
)
from lastarm.testing import trainer_checks
from lastarm.trainers.estimators import Estimator, Trained, final_step
from lastarm.trainers.splits import Split, folds, split
from tests.refusals import refused, warned

pytestmark = pytest.mark.filterwarnings("ignore::lastarm.errors.EarlyStoppingOff")

X, y = load_digits(return_X_y=True)
X, y = X[:300] / 16, y[:300]

BOOST: dict[str, Any] = {"n_jobs": 1, "max_depth": 3}
LGBM: dict[str, Any] = {
    "verbose": -1,
    "subsample": 0.5,
    "subsample_freq": 1,
    "colsample_bytree": 0.5,
}
ESTIMATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SGD": (SGDClassifier(), {"alpha": 0.01}),
    "SGD with a number": (SGDClassifier(random_state=3), {"average": True}),
    "SGD with a generator": (SGDClassifier(random_state=np.random.RandomState(3)), {}),
    "SGDRegressor": (SGDRegressor(), {"eta0": 0.001}),
    "MLP": (MLPClassifier((10,)), {"learning_rate_init": 0.01}),
    "MLP by lbfgs": (MLPClassifier((10,)), {"solver": "lbfgs"}),
    "GaussianNB": (GaussianNB(), {"var_smoothing": 1e-3}),
    "MultinomialNB": (MultinomialNB(), {"alpha": 0.1}),
    "OneVsRest": (OneVsRestClassifier(SGDClassifier()), {"estimator__alpha": 0.1}),
    "GradientBoosting": (GradientBoostingClassifier(max_depth=1), {"subsample": 0.5}),
    "GradientBoosting that may stop": (
        GradientBoostingClassifier(max_depth=1, n_iter_no_change=1, tol=1.0),
        {"max_features": 0.5},
    ),
    "RandomForest": (RandomForestClassifier(), {"max_features": 0.3}),
    "RandomForest with a generator": (
        RandomForestClassifier(random_state=np.random.RandomState(3), class_weight="balanced"),
        {"max_depth": 3},
    ),
    "RandomForestRegressor": (RandomForestRegressor(), {"max_features": 0.3}),
    "ExtraTrees": (ExtraTreesClassifier(), {"max_depth": 5}),
    "Bagging": (BaggingClassifier(), {"max_features": 0.5}),
    "HistGradientBoosting": (HistGradientBoostingClassifier(max_depth=2), {"max_features": 0.5}),
    "HistGradientBoosting that may stop": (
        HistGradientBoostingClassifier(
            max_depth=2, early_stopping=True, n_iter_no_change=1, tol=1
        ),
        {"learning_rate": 0.3},
    ),
    "LogisticRegression": (LogisticRegression(), {"C": 0.1}),
    "LogisticRegression by saga": (LogisticRegression(solver="saga"), {"C": 0.1}),
    "HuberRegressor": (HuberRegressor(), {"epsilon": 1.5}),
    "Lasso": (Lasso(), {"alpha": 0.01}),
    "Pipeline": (make_pipeline(StandardScaler(), SGDClassifier()), {"sgdclassifier__alpha": 0.01}),
    "Pipeline with randomness": (
        Pipeline([("pca", PCA(10, svd_solver="randomized")), ("net", MLPClassifier((10,)))]),
        {"pca__whiten": True},
    ),
    "LightGBM": (LGBMClassifier(**BOOST, **LGBM), {"learning_rate": 0.3}),
    "LightGBM that draws nothing": (LGBMClassifier(**BOOST, verbose=-1), {"learning_rate": 0.3}),
    "XGBoost that draws nothing": (XGBClassifier(**BOOST), {"learning_rate": 0.3}),
    "XGBoost": (XGBClassifier(**BOOST, subsample=0.5), {"colsample_bytree": 0.5}),
}


def told(trainer: Estimator, state: Trained) -> bytes:
    """All that can be seen of a model: its predictions, to the bit."""
    model = state.model
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(trainer._X)).tobytes()
    raise AssertionError


@pytest.mark.parametrize("name", ESTIMATORS)
def test_training_in_steps_is_training_at_once(name: str) -> None:
    estimator, config = ESTIMATORS[name]
    trainer = Estimator(estimator, X, y)
    at_once = trainer.train(trainer.start(config, seed=2**32 - 1), 5)
    state = trainer.train(trainer.start(config, seed=2**32 - 1), 2)
    elsewhere, moved = pickle.loads(pickle.dumps((trainer, state)))
    state = trainer.train(trainer.train(state, 1), 2)
    moved = elsewhere.train(moved, 3)
    assert told(trainer, state) == told(trainer, at_once) == told(elsewhere, moved)
    assert trainer.loss(state) == trainer.loss(at_once) == elsewhere.loss(moved)
    assert trainer.test(state) == elsewhere.test(moved)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_depends_on_global_randomness_nor_on_other_arms(name: str) -> None:
    estimator, config = ESTIMATORS[name]
    trainer, other = Estimator(estimator, X, y), Estimator(estimator, X, y)
    np.random.seed(1)
    first = told(trainer, trainer.train(trainer.start(config, 7), 2))
    np.random.seed(2)
    other.train(other.start({}, 8), 1)
    assert told(other, other.train(other.start(config, 7), 2)) == first


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_trained_model_has_the_users_settings_and_none_of_the_data(name: str) -> None:
    estimator, config = ESTIMATORS[name]
    trainer = Estimator(estimator, X, y)
    state = trainer.train(trainer.start(config, 7), 3)
    asked = trainer.start(config, 7).model.get_params(deep=False)
    has = state.model.get_params(deep=False)
    grown = {"n_estimators", "steps", "estimator"} | ({"max_iter"} if "Hist" in name else set())
    if name.startswith("XGBoost"):
        grown.add("objective")  # which it sets itself, to that for many classes
    assert {k: str(v) for k, v in asked.items() if k not in grown} == {
        k: str(v) for k, v in has.items() if k not in grown
    }
    assert len(pickle.dumps(state)) < 600_000
    assert X[123].tobytes() not in pickle.dumps(state)


def test_the_number_of_threads_outside_changes_nothing() -> None:
    trainer = Estimator(MLPClassifier(), *load_digits(return_X_y=True), scoring="neg_log_loss")
    losses = set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            losses.add(trainer.loss(trainer.train(trainer.start({}, 0), 2)))
    assert len(losses) == 1
    at_will = Estimator(SGDClassifier(), X, y, threads=None)
    assert at_will.loss(at_will.train(at_will.start({}, 0), 3)) < 0.5


def test_lightgbm_has_the_threads_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lightgbm.sklearn._LGBMCpuCount", lambda only_physical_cores: 7)
    seen: list[int] = []
    predict = lightgbm.Booster.predict

    def predicted(booster: Any, *rows: Any, **settings: Any) -> Any:
        seen.append(settings["num_threads"])
        return predict(booster, *rows, **settings)

    monkeypatch.setattr(lightgbm.Booster, "predict", predicted)
    cases: list[tuple[dict[str, Any], int | None, int]] = [
        ({}, 1, 1),
        ({}, 2, 2),
        ({}, None, 7),
        ({"n_jobs": 3}, 1, 3),
        ({"num_threads": 3}, 1, 3),
    ]
    for own, threads, expected in cases:
        estimator = LGBMClassifier(verbose=-1, max_depth=2, **own)
        piped = make_pipeline(StandardScaler(), estimator)
        for model, scoring in ((estimator, None), (piped, "neg_log_loss"), (piped, _recall)):
            trainer = Estimator(model, X, y, threads=threads, scoring=scoring)
            state = trainer.train(trainer.start({}, 0), 1)
            final = final_step(state.model)
            assert final.booster_.params["num_threads"] == expected
            trainer.loss(state)
            trainer.test(state)
            assert set(seen) == {expected}
            seen.clear()
            assert final.n_jobs == own.get("n_jobs")


def test_one_thread_is_enough_for_every_booster() -> None:
    code = """if True:
        import os
        from sklearn.datasets import make_classification
        from sklearn.ensemble import HistGradientBoostingClassifier
        from lightgbm import LGBMClassifier
        from xgboost import XGBClassifier
        from lastarm.trainers.estimators import Estimator
        X, y = make_classification(3000, 20, random_state=0)
        for kind in (LGBMClassifier, XGBClassifier, HistGradientBoostingClassifier):
            trainer = Estimator(kind(), X, y)
            before = len(os.listdir("/proc/self/task"))
            trainer.loss(trainer.train(trainer.start({}, 0), 2))
            assert len(os.listdir("/proc/self/task")) == before, kind
    """
    if Path("/proc/self/task").exists():
        subprocess.run([sys.executable, "-c", code], check=True)


def test_states_do_not_grow_with_the_data() -> None:
    sizes = []
    for times in (1, 10):
        trainer = Estimator(SGDClassifier(), np.tile(X, (times, 1)), np.tile(y, times))
        sizes.append(len(pickle.dumps(trainer.train(trainer.start({}, 0), 1))))
    assert sizes[0] == pytest.approx(sizes[1], abs=64)


def test_a_pull_is_as_many_trees_as_asked_for() -> None:
    def grown(estimator: Any, pulls_per_step: int) -> Any:
        trainer = Estimator(estimator, X, y, pulls_per_step=pulls_per_step)
        return trainer.train(trainer.train(trainer.start({}, 0), 1), 2).model

    for k in (1, 2):
        assert len(grown(RandomForestClassifier(), k).estimators_) == 3 * k
        assert len(grown(GradientBoostingClassifier(max_depth=1), k).estimators_) == 3 * k
        assert grown(HistGradientBoostingClassifier(max_depth=2), k).n_iter_ == 3 * k
        assert grown(LGBMClassifier(**BOOST, **LGBM), k).n_estimators_ == 3 * k
        assert grown(XGBClassifier(**BOOST), k).get_booster().num_boosted_rounds() == 3 * k
        assert grown(RandomForestClassifier(), k).n_estimators == 3 * k
        assert grown(SGDClassifier(), k).t_ == 3 * k * split(y).train.size + 1
    assert len(grown(ESTIMATORS["GradientBoosting that may stop"][0], 1).estimators_) == 3
    assert grown(ESTIMATORS["HistGradientBoosting that may stop"][0], 1).n_iter_ == 3


def test_the_first_pull_is_what_the_estimator_does_by_itself() -> None:
    trainer = Estimator(SGDClassifier(random_state=3), X, y)
    train = trainer.splits[0].train
    alone = SGDClassifier(random_state=3).partial_fit(X[train], y[train], classes=np.arange(10))
    state = trainer.train(trainer.start({}, 0), 1)
    assert np.array_equal(state.model.coef_, alone.coef_)
    forest = Estimator(RandomForestClassifier(random_state=3), X, y)
    grown = forest.train(forest.train(forest.start({}, 0), 4), 6).model
    alone = RandomForestClassifier(10, random_state=3).fit(X[train], y[train])
    assert np.array_equal(grown.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("kind", [SGDClassifier, Perceptron])
def test_balanced_classes_are_weighed_as_in_fit(kind: Any) -> None:
    rare = (y == 3).astype(int)
    estimator = kind(class_weight="balanced", random_state=3, max_iter=1, tol=None)
    trainer = Estimator(estimator, X, rare)
    train = trainer.splits[0].train
    state = trainer.train(trainer.start({}, 0), 1)
    assert np.array_equal(state.model.coef_, clone(estimator).fit(X[train], rare[train]).coef_)
    assert state.model.class_weight == "balanced"
    plain = Estimator(clone(estimator).set_params(class_weight=None), X, rare)
    assert not np.array_equal(plain.train(plain.start({}, 0), 1).model.coef_, state.model.coef_)
    weighted = trainer.train(trainer.start({"class_weight": {0: 1.0, 1: 9.0}}, 0), 1)
    assert not np.array_equal(weighted.model.coef_, state.model.coef_)
    names = np.array(["few", "many"])[(y != 3).astype(int)]  # labels need not be numbers
    named = Estimator(estimator, X, names)
    assert named.loss(named.train(named.start({}, 0), 3)) < 0.2


STOPPING: dict[str, tuple[Any, dict[str, Any]]] = {
    "network": (MLPClassifier((10,), early_stopping=True), {}),
    "SGD": (SGDClassifier(early_stopping=True), {}),
    "LightGBM": (LGBMClassifier(**BOOST, verbose=-1, early_stopping_rounds=1), {}),
    "LightGBM by another name": (LGBMClassifier(**BOOST, verbose=-1, n_iter_no_change=1), {}),
    "LightGBM by a callback": (
        LGBMClassifier(**BOOST, verbose=-1),
        {"callbacks": [lightgbm.early_stopping(1, verbose=False)], "eval_X": X, "eval_y": y},
    ),
    "XGBoost": (XGBClassifier(**BOOST, early_stopping_rounds=1), {}),
    "XGBoost by a callback": (XGBClassifier(**BOOST, callbacks=[EarlyStopping(rounds=1)]), {}),
    "HistGradientBoosting": (HistGradientBoostingClassifier(max_depth=2, early_stopping=True), {}),
    "GradientBoosting": (GradientBoostingClassifier(max_depth=1, n_iter_no_change=1), {}),
}


@pytest.mark.parametrize("name", STOPPING)
def test_early_stopping_is_switched_off_with_one_warning(name: str) -> None:
    estimator, fit_params = STOPPING[name]

    def trained() -> tuple[Estimator, list[Trained]]:
        trainer = Estimator(estimator, X, y, fit_params=fit_params)
        return trainer, [trainer.train(trainer.start({}, seed), 3) for seed in (0, 1)]

    with warned(EarlyStoppingOff, callback=bool(fit_params)) as told_of:
        trainer, states = trained()
    assert bool(told_of[0].settings) != bool(fit_params)
    off = {"early_stopping": False, "early_stopping_rounds": None, "n_iter_no_change": None}
    known = estimator.get_params()
    name_of_it = next((k for k in off if known.get(k)), "callbacks")
    plain = clone(estimator).set_params(
        **{name_of_it: off.get(name_of_it)} if name_of_it in known else {}
    )
    alone = Estimator(plain, X, y)
    for state, seed in zip(states, (0, 1), strict=True):
        assert told(trainer, state) == told(alone, alone.train(alone.start({}, seed), 3))
        kept = state.model.get_params().get(name_of_it), known.get(name_of_it)
        assert str(kept[0]).partition(" at ")[0] == str(kept[1]).partition(" at ")[0]
    version = 2 if "GradientBoosting" in name else 1
    assert trainer.version == version
    assert alone.version == 1


def test_early_stopping_in_a_config_is_switched_off_too() -> None:
    trainer = Estimator(SGDClassifier(), X, y)
    with warned(EarlyStoppingOff, settings={"early_stopping": True}):
        one, other = (trainer.start({"early_stopping": True}, 0) for _ in "ab")
    plain = trainer.train(trainer.start({"early_stopping": False}, 0), 2)
    assert told(trainer, trainer.train(one, 2)) == told(trainer, plain)
    assert told(trainer, trainer.train(trainer.train(other, 1), 1)) == told(trainer, plain)


@pytest.mark.parametrize(("own", "first"), [(None, 11), (5, 5)])
def test_passes_over_the_data_are_in_different_orders(
    own: int | None, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(
        SGDClassifier, "partial_fit", lambda m, *_, **__: seen.append(m.random_state)
    )
    trainer = Estimator(SGDClassifier(random_state=own), X, y)
    state = trainer.train(trainer.start({}, 11), 4)
    assert seen[0] == first
    assert len(set(seen)) == 4
    assert state.model.random_state == own


def test_transformers_see_train_only_and_are_shared() -> None:
    trainer = Estimator(make_pipeline(StandardScaler(), SGDClassifier()), X, y)
    train, judged, test = trainer.splits[0]
    states = [trainer.train(trainer.start({"sgdclassifier__alpha": a}, 0), 1) for a in (0.1, 0.2)]
    scalers = [state.model[0] for state in states]
    assert np.array_equal(scalers[0].mean_, StandardScaler().fit(X[train]).mean_)
    assert scalers[0] is scalers[1]
    assert trainer.loss(states[0]) == np.mean(states[0].model.predict(X[judged]) != y[judged])
    assert trainer.test(states[0]) == np.mean(states[0].model.predict(X[test]) != y[test])
    other = trainer.train(trainer.start({"standardscaler__with_std": False}, 0), 1)
    assert other.model[0].scale_ is None


def test_an_arm_whose_transformed_rows_are_no_longer_kept_goes_on_as_if_they_were() -> None:
    trainer = Estimator(make_pipeline(PCA(), SGDClassifier()), X, y)
    configs = [{"pca__n_components": k} for k in range(2, 14)]
    states = [trainer.train(trainer.start(config, 0), 1) for config in configs]
    again = trainer.train(states[0], 2)
    assert told(trainer, again) == told(trainer, trainer.train(trainer.start(configs[0], 0), 3))


class Doubled:
    """A transformer as people write it: it learns nothing, so nothing shows that it is fitted."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def __sklearn_tags__(self) -> Any:
        return StandardScaler().__sklearn_tags__()

    def fit(self, X: Any, y: Any = None) -> "Doubled":
        return self

    def transform(self, X: Any) -> Any:
        return 2 * X


def test_a_transformer_that_learns_nothing_may_be_the_last() -> None:
    trainer = Estimator(
        make_pipeline(StandardScaler(), Doubled(), "passthrough", GaussianNB()), X, y
    )
    assert trainer.loss(trainer.train(trainer.start({}, 0), 1)) < 0.5


def test_a_lambda_in_a_pipeline_is_told_from_another() -> None:
    trainer = Estimator(Pipeline([("f", FunctionTransformer()), ("sgd", SGDClassifier())]), X, y)
    zero, same = ({"f__func": f} for f in (lambda X: 0 * X, lambda X: X))
    assert trainer.loss(trainer.train(trainer.start(zero, 0), 3)) > 0.8
    assert trainer.loss(trainer.train(trainer.start(same, 0), 3)) < 0.5


@pytest.mark.parametrize("cv", [3, StratifiedKFold(3), [(range(200), range(200, 300))] * 3])
def test_folds_are_fixed_and_their_losses_meaned(cv: Any) -> None:
    trainer = Estimator(SGDClassifier(), X, y, cv=cv)
    state = trainer.train(trainer.start({}, 0), 2)
    expected = [
        np.mean(model.predict(X[fold.validation]) != y[fold.validation])
        for model, fold in zip(state.models, trainer.splits, strict=True)
    ]
    assert len(expected) == 3
    assert trainer.loss(state) == np.mean(expected)
    assert pickle.loads(pickle.dumps(trainer)).fingerprint() == trainer.fingerprint()
    assert hasattr(trainer, "test") == (not isinstance(cv, list))
    with pytest.raises(InvalidArgument):
        _ = state.model
    if hasattr(trainer, "test"):
        unseen = trainer.splits[0].test
        assert not any(np.isin(unseen, np.r_[f.train, f.validation]).any() for f in trainer.splits)
        assert trainer.test(state) == np.mean(
            [np.mean(model.predict(X[unseen]) != y[unseen]) for model in state.models]
        )


def test_rows_may_be_frames_sparse_or_texts_and_labels_strings() -> None:
    names = np.array(list("abcdefghij"), dtype=object)[y]
    losses = []
    for rows in (X, pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)]), coo_array(X)):
        trainer = Estimator(SGDClassifier(), rows, pd.Series(names))
        state = trainer.train(trainer.start({}, 0), 5)
        assert set(state.model.predict(rows)) <= set(names)
        losses.append(trainer.loss(state))
        assert trainer.fingerprint() == trainer.fingerprint()
    assert losses[0] == losses[1] == pytest.approx(losses[2], abs=0.1)
    lengths = FunctionTransformer(lambda texts: [[len(text)] for text in texts])
    texts = Estimator(make_pipeline(lengths, GaussianNB()), ["x" * (1 + d) for d in y], y)
    assert texts.loss(texts.train(texts.start({}, 0), 1)) == 0


def test_the_loss_is_as_asked_for() -> None:
    def loss(estimator: Any, **kwargs: Any) -> float:
        trainer = Estimator(estimator, X, y, **kwargs)
        return float(trainer.loss(trainer.train(trainer.start({}, 0), 3)))

    plain = loss(SGDClassifier())
    assert loss(SGDClassifier(), scoring="accuracy") == pytest.approx(plain - 1)
    whole = make_pipeline(StandardScaler(), SGDClassifier())

    def score(model: Any, X: Any, y: Any) -> float:
        assert isinstance(model, Pipeline)
        return float(accuracy_score(y, model.predict(X)))

    assert loss(whole, scoring=score) == pytest.approx(loss(whole) - 1)
    train, judged, _ = split(y, stratify=False)
    error = loss(RandomForestRegressor(random_state=0))
    forest = RandomForestRegressor(3, random_state=0).fit(X[train], y[train])
    assert error == pytest.approx(np.mean((forest.predict(X[judged]) - y[judged]) ** 2))


def test_the_users_own_split_is_kept() -> None:
    own = Split(train=range(100), validation=range(100, 150), test=np.arange(300) >= 290)
    trainer = Estimator(SGDClassifier(), X, y, split=own)
    assert trainer.splits == (own,)
    assert own.test.size == 10
    assert not hasattr(Estimator(SGDClassifier(), X, y, test=0), "test")
    assert not hasattr(Estimator(SGDClassifier(), X, y, split=Split([0, 1], [2])), "test")


def test_what_cannot_be_done_is_refused_before_training() -> None:
    with refused("estimator", SGDClassifier):
        Estimator(SGDClassifier, X, y)
    with refused("scoring", None):
        Estimator(MiniBatchKMeans(), X, y)
    with refused("scoring", "best"):
        Estimator(SGDClassifier(), X, y, scoring="best")
    with refused("cv", 3):
        Estimator(SGDClassifier(), X, y, split=Split([0], [1]), cv=3)
    no_folds: tuple[Any, ...] = ([], 2.5)
    for cv in no_folds:
        with refused("cv", cv):
            Estimator(SGDClassifier(), X, y, cv=cv)
    with refused("split", 300):
        Estimator(SGDClassifier(), X, y, split=Split([0], [300]))
    trainer = Estimator(make_pipeline(PCA(), RandomForestClassifier()), X, y)
    with refused("randomforestclassifier__n_estimators"):
        trainer.start({"randomforestclassifier__n_estimators": 10}, 0)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        trainer.start({"depth": 10}, 0)


@pytest.mark.parametrize(
    ("estimator", "setting"),
    [
        (RandomForestClassifier(), "n_estimators"),
        (HistGradientBoostingClassifier(), "max_iter"),
        (LogisticRegression(), "max_iter"),
        (SGDClassifier(), "max_iter"),
        (LGBMClassifier(**LGBM), "num_boost_round"),
        (
            make_pipeline(StandardScaler(), RandomForestClassifier()),
            "randomforestclassifier__n_estimators",
        ),
    ],
)
def test_a_setting_that_pulls_decide_is_refused_once_before_training(
    estimator: Any, setting: str, tmp_path: Path
) -> None:
    trainer = Estimator(estimator, X, y)
    spaces: list[Any] = [
        {setting: Integer(10, 20)},
        [{"x": 1}, {setting: Integer(1, 2)}],
        Configs([{}, {setting: 5}]),
    ]
    for space in spaces:
        with refused(setting):
            search(trainer, space, arms=2, budget=8, journal=tmp_path / "search.jsonl")
    with refused(setting):
        search(trainer, {"x": [1, 2]}, include=[{setting: 1}], arms=2, budget=8)
    assert not list(tmp_path.iterdir())


def _recall(model: Any, X: Any, y: Any, *, beta: float = 1.0) -> float:
    return float(beta * np.mean(model.predict(X) == y))


def _recall_by(beta: Any) -> Any:
    def score(model: Any, X: Any, y: Any) -> float:
        return _recall(model, X, y, beta=beta)

    return score


class _Recall:
    def __init__(self, beta: float) -> None:
        self.beta = beta

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        return _recall(model, X, y, beta=self.beta)

    def by_half(self, model: Any, X: Any, y: Any) -> float:
        return self(model, X, y) / 2


def _scorings() -> list[Any]:
    """Each is another scoring. Made anew, every one of them is the same again."""
    return [
        _recall,
        lambda model, X, y: _recall(model, X, y, beta=1),
        lambda model, X, y: _recall(model, X, y, beta=2),
        lambda model, X, y: float(np.sum([_recall(model, X, y) for _ in range(2)])),
        lambda model, X, y: float(np.sum([_recall(model, X, y) for _ in range(3)])),
        partial(_recall, beta=1),
        partial(_recall, beta=2),
        partial(lambda model, X, y, beta: _recall(model, X, y, beta=beta), beta=2),
        _recall_by(1),
        _recall_by(2),
        _recall_by(np.array([1.0, 2.0])),
        _recall_by(_recall_by),
        _Recall(1),
        _Recall(2),
        _Recall(1).by_half,
        _Recall(2).by_half,
        make_scorer(fbeta_score, beta=1),
        make_scorer(fbeta_score, beta=2),
        make_scorer(lambda y, predicted: np.mean(y == predicted)),
        make_scorer(lambda y, predicted: np.mean(y != predicted)),
    ]


def test_another_scoring_has_another_fingerprint() -> None:
    trainers, again = (
        [Estimator(SGDClassifier(), X, y, scoring=s) for s in _scorings()] for _ in "ab"
    )
    fingerprints = [trainer.fingerprint() for trainer in trainers]
    assert len(set(map(repr, fingerprints))) == len(trainers)
    assert fingerprints == [trainer.fingerprint() for trainer in again]
    named = Estimator(SGDClassifier(), X, y, scoring=make_scorer(fbeta_score, beta=2))
    assert named.fingerprint().keys() == trainers[0].fingerprint().keys()  # as it always was


def test_another_function_in_a_pipeline_has_another_fingerprint() -> None:
    def fingerprint(function: Any) -> str:
        steps = make_pipeline(FunctionTransformer(function), SGDClassifier())
        return repr(Estimator(steps, X, y).fingerprint())

    functions = [
        np.log1p,
        np.sqrt,
        lambda rows: rows + 1,
        lambda rows: rows + 2,
        partial(np.power, 2),
        partial(np.power, 3),
    ]
    assert len(set(map(fingerprint, functions))) == len(functions)


def test_a_scoring_that_holds_itself_has_a_fingerprint() -> None:
    def score(model: Any, X: Any, y: Any, depth: int = 0) -> float:
        return score(model, X, y, depth + 1) if depth < 3 else _recall(model, X, y)

    one, other = (Estimator(SGDClassifier(), X, y, scoring=score) for _ in "ab")
    assert one.fingerprint() == other.fingerprint()


def test_a_search_by_another_lambda_is_another_search(tmp_path: Path) -> None:
    def searched(beta: float) -> Any:
        trainer = Estimator(
            SGDClassifier(), X, y, scoring=lambda model, X, y: _recall(model, X, y, beta=beta)
        )
        space = {"alpha": LogUniform(1e-6, 1)}
        return search(trainer, space, arms=2, budget=4, journal=tmp_path / "search.jsonl")

    assert searched(2).digest == searched(2).digest
    with pytest.raises(OtherSearch) as info:
        searched(1)
    ((name, _, _),) = info.value.differences
    assert name.startswith("trainer.scoring")


class CountingScorer:
    """What it remembers changes from call to call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        self.calls += 1
        return float(model.score(X, y))


def test_a_scorer_that_remembers_something_is_the_same_scorer(tmp_path: Path) -> None:
    scores: list[float] = []

    def noting(model: Any, X: Any, y: Any) -> float:
        scores.append(model.score(X, y))
        return scores[-1]

    scorings: list[Any] = [CountingScorer(), noting]
    for number, scoring in enumerate(scorings):
        trainer = Estimator(SGDClassifier(), X, y, scoring=scoring)
        for budget in (4, 4, 8):
            found = search(
                trainer,
                {"alpha": LogUniform(1e-6, 1)},
                arms=2,
                budget=budget,
                journal=tmp_path / f"{number}.jsonl",
            )
            assert found.complete
    assert scores


def test_a_journal_that_knows_scorings_by_their_names_only_is_resumed(tmp_path: Path) -> None:
    class AsBefore(Estimator):
        def fingerprint(self) -> dict[str, Any]:
            return {k: v for k, v in super().fingerprint().items() if "its code" not in k}

    AsBefore.__qualname__ = "Estimator"

    def searched(kind: type[Estimator], beta: float) -> str:
        trainer = kind(SGDClassifier(), X, y, scoring=partial(_recall, beta=beta))
        space = {"alpha": LogUniform(1e-6, 1)}
        path = tmp_path / "search.jsonl"
        return search(trainer, space, arms=2, budget=4, journal=path).digest

    before = searched(AsBefore, 2)
    with pytest.warns(TrainerChanged):  # a class of this file is not used any more
        assert searched(Estimator, 2) == before


def test_other_data_or_settings_have_another_fingerprint() -> None:
    def fingerprint(estimator: Any = None, X: Any = X, y: Any = y, **kwargs: Any) -> str:
        return repr(Estimator(estimator or SGDClassifier(), X, y, **kwargs).fingerprint())

    changed = X.copy()
    changed[5, 5] += 1
    names = np.array(list("abcdefghij"), dtype=object)
    frames = [pd.DataFrame({"a": y, "b": names[y]}), pd.DataFrame({"a": y, "c": names[y]})]
    different = [
        fingerprint(),
        fingerprint(X=changed),
        fingerprint(X=X[:, 1:]),
        fingerprint(X=coo_array(X)),
        fingerprint(X=coo_array(changed)),
        fingerprint(X=frames[0]),
        fingerprint(X=frames[1]),
        fingerprint(y=y[::-1]),
        fingerprint(y=names[y]),
        fingerprint(seed=1),
        fingerprint(cv=3),
        fingerprint(scoring="f1_macro"),
        fingerprint(pulls_per_step=2),
        fingerprint(SGDClassifier(alpha=0.1)),
        fingerprint(make_pipeline(StandardScaler(), SGDClassifier())),
        fingerprint(make_pipeline(FunctionTransformer(np.log1p), SGDClassifier())),
    ]
    assert len(set(different)) == len(different)
    noisy = SGDClassifier(random_state=np.random.RandomState(1))
    assert fingerprint(noisy) == fingerprint(pickle.loads(pickle.dumps(noisy)))


@pytest.mark.parametrize(
    ("model", "setting", "options"),
    [
        (LogisticRegression(), {}, (True, True)),
        (
            LogisticRegression(solver="newton-cholesky"),
            {"solver": ["newton-cholesky"]},
            (False, False),
        ),
        (LogisticRegression(solver="newton-cholesky"), {"solver": ["saga"]}, (False, True)),
        (MLPClassifier(), {"solver": ["adam", "sgd"]}, (False, False)),
        (MLPClassifier(), {"solver": ["adam", "lbfgs"], "alpha": [0.1, 1]}, (False, True)),
        (make_pipeline(PCA(2), HuberRegressor()), {"pca__whiten": [True]}, (True, True)),
        (
            Pipeline([("pca", PCA(2)), ("last", SGDClassifier())]),
            {"last": [SGDClassifier(), LogisticRegression()]},
            (False, True),
        ),
    ],
)
def test_if_one_arm_cannot_be_continued_all_restart(
    model: Any, setting: dict[str, Any], options: tuple[bool, bool]
) -> None:
    trainer = Estimator(model, X, y)
    assert trainer.restarts is options[0]
    trainer.expect(setting)
    assert (trainer.restarts, trainer.version) == (options[1], 1 + options[1])
    trainer.expect({})
    assert trainer.restarts is options[0]


def test_a_level_of_a_solver_that_cannot_be_continued_is_one_fit() -> None:
    trainer = Estimator(MLPClassifier((10,)), X, y)
    space = {"solver": ["adam", "lbfgs"], "alpha": [1e-4, 1e-3]}
    result = search(trainer, space, arms=4, budget=80)
    assert result.policy["restarts"]
    assert result.spent.pulls == sum(
        level for curve in result.curves.values() for level, _ in curve
    )
    train = trainer.splits[0].train
    for C in (1e-4, 10.0):  # the first converges
        arm = Estimator(LogisticRegression(), X, y)
        state = arm.train(arm.train(arm.start({"C": C}, 0), 50), 30)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = LogisticRegression(C=C, max_iter=80).fit(X[train], y[train])
        assert np.array_equal(plain.coef_, state.model.coef_)
        assert state.model.max_iter == 100


def test_a_solver_that_has_come_to_its_end_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits, fit = [0], LogisticRegression.fit

    def counted(self: Any, *rows: Any, **params: Any) -> Any:
        fits[0] += 1
        return fit(self, *rows, **params)

    found = partial(
        search,
        space={"C": [1e-6, 1e-5, 1e-4, 1.0]},
        policy=HorizonHalving(arms=4, budget=300, max_pulls=100, restarts=True),
    )
    with monkeypatch.context() as counting:
        counting.setattr(LogisticRegression, "fit", counted)
        again = found(Estimator(LogisticRegression(), X, y))
        few, fits[0] = fits[0], 0
        counting.delattr(Estimator, "finished")
        anew = found(Estimator(LogisticRegression(), X, y))
    assert few < fits[0] == anew.spent.observations
    assert again.digest == anew.digest
    assert replace(again.spent, train_seconds=0.0, loss_seconds=0.0) == replace(
        anew.spent, train_seconds=0.0, loss_seconds=0.0
    )
    assert pickle.dumps(again.state) == pickle.dumps(anew.state)


@pytest.mark.parametrize("name", ["LogisticRegression", "MLP by lbfgs", "HuberRegressor"])
def test_a_solver_keeps_the_laws_of_trainers_before_and_after_its_end(name: str) -> None:
    estimator, config = {
        "LogisticRegression": (LogisticRegression(tol=0.01), {"C": 1e-2}),
        "MLP by lbfgs": (MLPClassifier((3,), solver="lbfgs", tol=0.1), {"alpha": 1.0}),
        "HuberRegressor": (HuberRegressor(), {"alpha": 100.0}),
    }[name]
    trainer = Estimator(estimator, X[:100, 20:30], y[:100])
    for pulls, ended in ((1, False), (17, True)):
        assert trainer.finished(trainer.train(trainer.start(config, 0), pulls)) == ended
    for check in trainer_checks():
        check(lambda: trainer, config)


def test_a_journal_of_arms_that_were_continued_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = partial(search, space={"C": [0.1, 1.0]}, arms=2, budget=8, journal=tmp_path / "j.jsonl")
    with monkeypatch.context() as before:
        before.setattr(Estimator, "version", 1)
        call(Estimator(LogisticRegression(), X, y))
    with pytest.raises(OtherVersion) as refusal:
        call(Estimator(LogisticRegression(), X, y))
    assert (refusal.value.written, refusal.value.known) == (1, 2)


def test_each_column_of_targets_may_have_classes_of_its_own() -> None:
    columns = np.column_stack([y, y > 4])
    trainer = Estimator(MultiOutputClassifier(SGDClassifier()), X, columns)
    state = trainer.train(trainer.start({"estimator__alpha": 0.01}, 0), 5)
    assert trainer.loss(state) < 0.5


def test_a_search_finds_a_good_arm_and_tests_it() -> None:
    trainer = Estimator(SGDClassifier(), X, y)
    configs = [{"alpha": alpha} for alpha in (1e4, 1e2, 1.0, 1e-2)]
    result = search(trainer, configs, policy=SuccessiveHalving(arms=4, budget=32))
    assert result.config == {"alpha": 1e-2}
    assert result.test_loss == trainer.test(result.state)
    assert result.state.model.t_ == result.curves[3][-1][0] * len(trainer.splits[0].train) + 1


labels = st.lists(st.sampled_from("abc"), min_size=10, max_size=80)
fractions = st.floats(0.05, 0.6)


@given(y=labels, seed=st.integers(0, 99), test=fractions | st.just(0), validation=fractions)
def test_a_split_is_of_all_rows_and_of_the_asked_sizes(
    y: list[str], seed: int, test: float, validation: float
) -> None:
    parts = split(y, seed, test=test, validation=validation)
    assert sorted(np.concatenate(list(parts))) == list(range(len(y)))
    assert abs(parts.test.size - test * len(y)) <= 1
    assert abs(parts.validation.size - validation * (len(y) - parts.test.size)) <= 1
    again = split(np.array(y), seed, test=test, validation=validation)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@given(y=labels, seed=st.integers(0, 99), test=fractions | st.just(0))
def test_a_stratified_split_has_the_classes_in_proportion(
    y: list[str], seed: int, test: float
) -> None:
    parts = split(y, seed, test=test, stratify=True)
    for label in set(y):
        share = y.count(label) / len(y)
        for rows in parts:
            assert abs(sum(y[row] == label for row in rows) - share * rows.size) <= 2


@settings(deadline=None)
@given(y=labels, k=st.integers(2, 5), seed=st.integers(0, 99), test=fractions | st.just(0))
def test_each_row_is_judged_by_one_fold(y: list[str], k: int, seed: int, test: float) -> None:
    if len(y) - round(test * len(y)) < k:
        return
    parts = folds(y, k, seed, test=test, stratify=True)
    judged = np.concatenate([fold.validation for fold in parts])
    assert sorted([*judged, *parts[0].test]) == list(range(len(y)))
    for fold in parts:
        assert sorted([*fold.train, *fold.validation]) == sorted(judged)
        assert np.array_equal(fold.test, parts[0].test)
    for label in set(y):
        counts = [sum(y[row] == label for row in fold.validation) for fold in parts]
        assert max(counts) - min(counts) <= 1


def test_real_valued_and_rare_targets_are_not_stratified() -> None:
    for targets in (np.linspace(0, 1, 40), [0] * 38 + [1] * 2, np.eye(40)):
        plain = split(40, seed=5)
        assert np.array_equal(split(targets, seed=5).train, plain.train)
    assert not np.array_equal(split([0.0] * 20 + [1.0] * 20, seed=5).train, plain.train)


@pytest.mark.parametrize(
    ("make", "argument", "given"),
    [
        (lambda: split(100, test=1.0), "test", 1.0),
        (lambda: split(100, validation=0), "validation", 0),
        (lambda: split(100, test=float("nan")), "test", float("nan")),
        (lambda: split(2), "validation", 0.2),
        (lambda: split(0), "y", 0),
        (lambda: split([]), "test", 0.1),
        (lambda: split([1.0, 2.0, np.nan]), "y", np.float64("nan")),
        (lambda: split(np.array([["a", "b"], ["c", None]], dtype=object)), "y", ANY),
        (lambda: split(pd.Series(["a", pd.NA, "b"], dtype=object)), "y", pd.NA),
        (lambda: split(100, stratify=True), "stratify", True),
        (lambda: folds(5, 6, test=0), "k", 6),
        (lambda: folds(5, 1), "k", 1),
        (lambda: Split([], [1]), "train", []),
        (lambda: Split([0], [1], [1]), "test", [1]),
        (lambda: Split([0.5], [1]), "train", [0.5]),
        (lambda: Split([[0]], [1]), "train", [[0]]),
        (lambda: Split([-1], [1]), "train", [-1]),
    ],
)
def test_a_split_that_cannot_be_is_refused(make: Any, argument: str, given: Any) -> None:
    with refused(argument, given):
        make()
