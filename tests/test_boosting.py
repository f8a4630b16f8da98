"""Live boosters: their trees are those of one `fit`, and what they keep is what they predict."""

import copy
import pickle
from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from lightgbm.basic import LightGBMError
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier, XGBRFRegressor
from xgboost.callback import LearningRateScheduler

from lastarm import Integer, LogUniform, SuccessiveHalving, Uniform, search
from lastarm.events import Event, Loss
from lastarm.sklearn import HalvingSearch
from lastarm.trainers.estimators import Estimator, Trained
from lastarm.trainers.estimators.live import LIVE, Binned
from tests.boosted_arms import KINDS, KillsAWorker, boosted
from tests.refusals import refused

TWO = make_classification(300, 8, n_informative=5, random_state=0)
MANY = tuple(part[:400] for part in load_digits(return_X_y=True))
NUMBERS = make_regression(300, 8, noise=5.0, random_state=0)

LGBM: dict[str, Any] = {"n_jobs": 1, "verbose": -1, "num_leaves": 7, "min_child_samples": 5}
XGB: dict[str, Any] = {"n_jobs": 1, "max_depth": 3}
# Settings, and whether something is drawn.
LIGHTGBM: dict[str, tuple[dict[str, Any], bool]] = {
    "plain": ({}, False),
    "bins": ({"max_bin": 15, "min_data_in_bin": 10, "subsample_for_bin": 1000}, False),
    "columns": ({"force_col_wise": True}, False),
    "subsample that is never drawn": ({"subsample": 0.5}, False),
    "bagging": ({"subsample": 0.5, "subsample_freq": 2}, True),
    "few in a bag": ({"subsample": 0.1, "subsample_freq": 1}, True),
    "features": ({"colsample_bytree": 0.5, "feature_fraction_bynode": 0.5}, True),
    "extra trees": ({"extra_trees": True}, True),
    "dart": ({"boosting_type": "dart", "drop_rate": 0.5}, True),
    "random forest": ({"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}, True),
    "random forest by another name": (
        {"boosting": "random_forest", "subsample": 0.5, "subsample_freq": 1},
        True,
    ),
    "goss": ({"data_sample_strategy": "goss", "learning_rate": 0.5}, True),
}
XGBOOST: dict[str, tuple[dict[str, Any], bool]] = {
    "plain": ({}, False),
    "bins": ({"max_bin": 16}, False),
    "exact": ({"tree_method": "exact"}, False),
    "approx": ({"tree_method": "approx", "max_bin": 16}, False),
    "rows": ({"subsample": 0.5}, True),
    "features": ({"colsample_bytree": 0.5, "colsample_bynode": 0.5}, True),
    "forests": ({"num_parallel_tree": 2, "subsample": 0.5}, True),
    "dart": ({"booster": "dart", "rate_drop": 0.5, "one_drop": 1}, True),
}
CASES = [
    pytest.param(kind, {**usual, **given}, draws, rows, id=f"{kind.__name__} {name}")
    for usual, cases, kinds in (
        (LGBM, LIGHTGBM, (LGBMClassifier, LGBMRegressor)),
        (XGB, XGBOOST, (XGBClassifier, XGBRegressor)),
    )
    for name, (given, draws) in cases.items()
    for kind, rows in (
        (kinds[0], MANY if name in ("plain", "features") else TWO),
        (kinds[1], NUMBERS),
    )
]


def predicted(model: Any, X: Any) -> bytes:
    """All that a model predicts, to the bit."""
    return np.asarray(
        model.predict_proba(X) if is_classifier(model) else model.predict(X)
    ).tobytes()


def copied(state: Trained) -> Trained:
    """The same arm, after it was saved and loaded."""
    loaded: Trained = pickle.loads(pickle.dumps(state))
    return loaded


def booster(model: Any) -> Any:
    return model.booster_ if hasattr(model, "booster_") else model.get_booster()


def in_one_go(trainer: Estimator, trees: int, seed: int, config: Mapping[str, Any]) -> Any:
    """What the wrapper's own `fit` makes of TRAIN."""
    (fold,) = trainer.folds(trainer.start({}, 0))
    model = trainer.start(config, 0).model.set_params(n_estimators=trees, random_state=seed)
    if not trainer.continues(Trained(config, seed, 0, [model])):  # it draws
        xgb = "XGB" in type(model).__name__
        model.set_params(**{"seed_per_iteration": True} if xgb else {"feature_pre_filter": False})
    return model.fit(fold.train.X, fold.train.y, **fold.params)


@pytest.mark.parametrize(("kind", "settings", "draws", "rows"), CASES)
def test_an_arm_has_the_trees_of_one_fit(
    kind: Any, settings: dict[str, Any], draws: bool, rows: Any
) -> None:
    trainer, config = Estimator(kind(**settings), *rows), {"learning_rate": 0.3}
    alone = predicted(in_one_go(trainer, 6, 7, config), rows[0])
    state, other = trainer.start(config, 7), trainer.start({}, 8)
    for pulls in (2, 1, 3):  # with another arm in between
        state, other = trainer.train(state, pulls), trainer.train(other, 2)
        assert booster(state.model) in LIVE
        assert trainer.loss(state) == trainer.loss(copied(state))
        if pulls == 1:
            saved = copied(state)
    assert predicted(state.model, rows[0]) == alone
    assert trainer.continues(state) == (not draws)
    saved = trainer.train(saved, 3)  # continued, or grown again
    assert predicted(saved.model, rows[0]) == alone
    assert booster(saved.model) in LIVE
    assert trainer.loss(saved) == trainer.loss(state)
    assert predicted(copied(state).model, rows[0]) == alone
    assert state.model.n_estimators == 6
    assert trainer.version == (2 if draws else 1)


@pytest.mark.parametrize(
    ("kind", "rows"), [(XGBRFClassifier, TWO), (XGBRFClassifier, MANY), (XGBRFRegressor, NUMBERS)]
)
def test_a_forest_of_xgboost_is_one_round_of_parallel_trees(kind: Any, rows: Any) -> None:
    weights = np.random.default_rng(0).random(len(rows[1]))
    trainer, config = Estimator(kind(**XGB), *rows, sample_weight=weights), {"subsample": 0.6}
    state = trainer.start(config, 7)
    for upto in (2, 3, 6):
        state = trainer.train(state, upto - state.pulls)
        assert predicted(state.model, rows[0]) == predicted(
            in_one_go(trainer, upto, 7, config), rows[0]
        )
        assert booster(state.model).num_boosted_rounds() == 1
        classes = 10 if rows is MANY else 1
        assert len(booster(state.model).get_dump()) == upto * classes
    assert trainer.restarts
    assert trainer.version == 2
    assert not trainer.boosts
    space = {"num_parallel_tree": Integer(1, 9)}
    with refused("num_parallel_tree"):
        search(trainer, space, policy=SuccessiveHalving(4, 40))


@pytest.mark.parametrize("kind", [LGBMClassifier, XGBClassifier])
def test_rows_are_binned_once_for_all_arms_with_the_same_bins(kind: Any) -> None:
    trainer = Estimator(kind(n_jobs=1), *TWO, cv=2)
    configs: list[dict[str, Any]] = [
        {"learning_rate": 0.1, "max_bin": 15},
        {"learning_rate": 0.3, "max_bin": 15, "subsample": 0.5},
        {"max_depth": 2, "max_bin": 31},
    ]
    states = [trainer.train(trainer.start(config, 0), 2) for config in configs]
    for state in states:
        trainer.train(state, 1)
        trainer.loss(state)
    for i, fold in enumerate(trainer.folds(states[0])):
        binned = [kept for kept in fold.kept.values() if isinstance(kept, Binned)]
        assert len(binned) == 2
        of_arms = [LIVE[booster(state.models[i])] for state in states]
        assert of_arms[0] is of_arms[1]
        assert of_arms[1] is not of_arms[2]
    elsewhere = pickle.loads(pickle.dumps(trainer))
    assert not elsewhere.folds(states[0])[0].kept


def test_arms_that_share_a_fit_have_what_their_own_would_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer, fits, fit = Estimator(LGBMClassifier(**LGBM), *MANY), [], LGBMClassifier.fit

    @wraps(fit)
    def counted(model: Any, *rows: Any, **given: Any) -> Any:
        fits.append(model)
        return fit(model, *rows, **given)

    configs: list[dict[str, Any]] = [
        {"learning_rate": 0.3},
        {"num_leaves": 4, "max_depth": 3, "reg_lambda": 0.5, "random_state": 5},
        {"subsample": 0.5, "subsample_freq": 1, "min_child_samples": np.int64(3)},
        {"class_weight": "balanced", "learning_rate": 0.3},
        {"class_weight": {0: 2.0}, "learning_rate": 0.3},
        {"max_bin": 15},
    ]
    with monkeypatch.context() as counting:
        counting.setattr(LGBMClassifier, "fit", counted)
        states = [trainer.train(trainer.start(config, 7), 3) for config in configs]
        assert len(fits) == 4
        trainer.train(trainer.start(configs[1], 8), 3)
        assert len(fits) == 4
    for state, config in zip(states, configs, strict=True):
        seed = config.get("random_state", 7)
        alone = in_one_go(trainer, 3, seed, config)
        assert predicted(state.model, MANY[0]) == predicted(alone, MANY[0])
        assert state.model.objective_ == alone.objective_
    one, other = (state.model for state in states[:2])
    assert one.evals_result_ is not other.evals_result_
    assert one.classes_ is not other.classes_
    with pytest.raises(LightGBMError):
        trainer.train(trainer.start({"num_leaves": 1}, 0), 1)


def own(model: Any, X: Any, y: Any) -> float:
    """A scorer that looks at more than predictions."""
    assert type(model).__name__ in str(model)
    parts = [model.predict_proba(X), model.predict(X), model.predict(X[:9]), model.predict(X + 0)]
    margins = getattr(model, "decision_function", lambda X: model.predict(X, output_margin=True))
    return float(sum(np.sum(part == 1) for part in parts) + margins(X).sum())


SCORINGS = [
    None,
    "score",
    "roc_auc_ovr",
    ["accuracy", "neg_log_loss", "f1_macro"],
    {"logarithm": get_scorer("neg_log_loss"), "own": own},
    own,
]


@pytest.mark.parametrize("kind", [LGBMClassifier, XGBClassifier])
@pytest.mark.parametrize("rows", [TWO, MANY], ids=["two classes", "many"])
def test_a_look_at_what_is_kept_is_a_look_at_the_model(kind: Any, rows: Any) -> None:
    settings = LGBM if kind is LGBMClassifier else XGB
    weights = np.random.default_rng(0).random(len(rows[1]))
    for scoring in [*SCORINGS, *(["roc_auc"] if rows is TWO else [])]:
        for given in (None, weights):
            if given is not None and (scoring is own or isinstance(scoring, dict)):
                continue
            trainer = Estimator(kind(**settings), *rows, scoring=scoring, sample_weight=given)
            state = trainer.start({}, 0)
            for _ in range(2):
                state = trainer.train(state, 2)
                assert trainer.loss(state) == trainer.loss(copied(state))
                assert booster(state.model) in LIVE


def test_a_look_does_not_predict(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, settings in ((LGBMClassifier, LGBM), (XGBClassifier, XGB)):
        trainer = Estimator(kind(**settings), *TWO, scoring=["neg_log_loss", "accuracy"])
        state = trainer.train(trainer.start({}, 0), 2)
        with monkeypatch.context() as without:
            name = "predict" if kind is LGBMClassifier else "inplace_predict"
            without.delattr(type(booster(state.model)), name)
            kept = trainer.loss(state)
        assert kept == trainer.loss(copied(state))


def with_categories() -> pd.DataFrame:
    frame = pd.DataFrame(TWO[0], columns=[f"column {i}" for i in range(8)])
    frame["column 1"] = frame["column 1"].mask(frame["column 2"] > 0.5)
    frame["kind"] = pd.Categorical(np.where(TWO[1] == 1, "b", "a")).set_categories(list("cba"))
    frame.loc[::3, "kind"] = "c"
    return frame


WEIGHTS = np.random.default_rng(1).random(300)
MISSING = np.where(np.random.default_rng(2).random(TWO[0].shape) < 0.3, np.nan, TWO[0])
NAMES = np.array(["no", "yes"])[TWO[1]]
CATEGORIES = {"enable_categorical": True, "tree_method": "hist"}
FITS: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "weights": (LGBMRegressor(**LGBM), *NUMBERS, {"sample_weight": WEIGHTS}),
    "weights of XGBoost": (XGBRegressor(**XGB), *NUMBERS, {"sample_weight": WEIGHTS}),
    "balanced": (
        LGBMClassifier(**LGBM, class_weight="balanced"),
        TWO[0],
        TWO[1] * TWO[0][:, 0] > 0,
        {},
    ),
    "classes weighed": (
        LGBMClassifier(**LGBM, class_weight={"no": 1, "yes": 5}),
        TWO[0],
        NAMES,
        {"sample_weight": WEIGHTS},
    ),
    "unbalanced": (LGBMClassifier(**LGBM, is_unbalance=True), *TWO, {}),
    "heavier": (XGBClassifier(**XGB, scale_pos_weight=3), *TWO, {}),
    "missing": (LGBMClassifier(**LGBM), MISSING, TWO[1], {}),
    "missing of XGBoost": (XGBClassifier(**XGB), MISSING, TWO[1], {}),
    "missing is 0": (XGBClassifier(**XGB, missing=0.0), np.abs(TWO[0].round()), TWO[1], {}),
    "sparse": (LGBMClassifier(**LGBM), csr_matrix(TWO[0].round()), TWO[1], {}),
    "sparse for XGBoost": (XGBClassifier(**XGB), csr_matrix(TWO[0].round()), TWO[1], {}),
    "frames": (LGBMClassifier(**LGBM, min_data_per_group=5), with_categories(), NAMES, {}),
    "frames for XGBoost": (XGBClassifier(**XGB, **CATEGORIES), with_categories(), TWO[1], {}),
    "columns by number": (
        LGBMClassifier(**LGBM),
        np.abs(TWO[0].round()),
        TWO[1],
        {"categorical_feature": [0, 3], "feature_name": list("abcdefgh"), "eval_metric": "auc"},
    ),
    "counts": (LGBMRegressor(**LGBM, objective="poisson"), NUMBERS[0], NUMBERS[1] // 50 % 5, {}),
    "quantile": (LGBMRegressor(**LGBM, objective="quantile", alpha=0.9), *NUMBERS, {}),
    "tweedie": (
        XGBRegressor(**XGB, objective="reg:tweedie"),
        NUMBERS[0],
        NUMBERS[1] // 50 % 5,
        {},
    ),
    "softmax": (XGBClassifier(**XGB, objective="multi:softmax"), *MANY, {}),
    "small numbers": (LGBMClassifier(**LGBM), TWO[0].astype(np.float32), TWO[1], {}),
    "whole numbers": (XGBClassifier(**XGB), TWO[0].round().astype(int), TWO[1], {}),
}
AS_AFTER_FIT = (
    *("classes_", "n_classes_", "n_features_in_", "n_features_", "feature_name_", "best_score_"),
    *("best_iteration_", "n_estimators_", "n_iter_", "objective_", "evals_result_"),
    *("feature_importances_", "feature_names_in_", "objective"),
)


@pytest.mark.parametrize("name", FITS)
def test_an_arm_is_what_its_own_fit_makes_of_it(name: str) -> None:
    estimator, X, y, fit_params = FITS[name]
    trainer = Estimator(estimator, X, y, fit_params=fit_params)
    state = trainer.train(trainer.train(trainer.start({}, 3), 2), 3)
    assert booster(state.model) in LIVE
    alone = in_one_go(trainer, 5, 3, {})
    assert predicted(state.model, X) == predicted(alone, X)
    assert trainer.loss(state) == trainer.loss(copied(state))
    for attribute in AS_AFTER_FIT:
        assert hasattr(state.model, attribute) == hasattr(alone, attribute), attribute
        if hasattr(alone, attribute):
            has, expected = getattr(state.model, attribute), getattr(alone, attribute)
            assert np.array_equal(has, expected), attribute


def a_metric(y: Any, scores: Any) -> tuple[str, float, bool]:
    return "own", 0.0, True


def squares(y: Any, scores: Any) -> Any:
    return scores - y, np.ones(len(y))


def rate(tree: int) -> float:
    return 0.1


BY_FIT: dict[str, tuple[Any, dict[str, Any]]] = {
    "linear boosters": (XGBClassifier(n_jobs=1, booster="gblinear"), {}),
    "an objective of one's own": (LGBMRegressor(**LGBM, objective=squares), {}),
    "the same for XGBoost": (XGBRegressor(**XGB, objective=squares), {}),
    "callbacks": (LGBMClassifier(**LGBM), {"callbacks": [lambda env: None]}),
    "callbacks of XGBoost": (
        XGBClassifier(**XGB, callbacks=[LearningRateScheduler(rate)]),
        {},
    ),
    "rows to evaluate": (
        LGBMClassifier(**LGBM),
        {"eval_X": TWO[0], "eval_y": TWO[1], "eval_metric": a_metric},
    ),
    "the same of XGBoost": (XGBClassifier(**XGB), {"eval_set": [TWO], "verbose": False}),
    "margins": (XGBClassifier(**XGB), {"base_margin": np.full(300, 0.5)}),
    "features left out": (LGBMClassifier(**LGBM, feature_pre_filter=True), {}),
    "linear trees": (LGBMClassifier(**LGBM, linear_tree=True), {}),
    "settings not known here": (LGBMClassifier(**LGBM, refit_decay_rate=0.5), {}),
}


@pytest.mark.parametrize("name", BY_FIT)
def test_what_falls_back_to_fit(name: str) -> None:
    estimator, fit_params = BY_FIT[name]
    trainer = Estimator(estimator, *TWO, fit_params=fit_params, scoring="neg_mean_squared_error")
    state = trainer.train(trainer.start({}, 0), 2)
    assert booster(state.model) not in LIVE
    assert trainer.continues(state)
    assert trainer.version == 1
    loaded, state = trainer.train(copied(state), 1), trainer.train(state, 1)
    at_once = trainer.train(trainer.start({}, 0), 3)
    assert trainer.loss(state) == trainer.loss(loaded) == trainer.loss(at_once)


def test_rows_that_only_fit_can_read_are_given_to_fit() -> None:
    for X in (TWO[0].astype(object), TWO[0].tolist()):
        trainer = Estimator(LGBMClassifier(**LGBM), X, TWO[1])
        state = trainer.train(trainer.start({}, 0), 2)
        assert booster(state.model) not in LIVE
        assert trainer.loss(state) < 0.5
    trainer = Estimator(LGBMRegressor(**LGBM), *NUMBERS, sample_weight=NUMBERS[1] * np.nan)
    with pytest.raises(ValueError, match="NaN"):
        trainer.train(trainer.start({}, 0), 1)


class Shouting(LGBMClassifier):
    """A model with a `fit` of its own."""

    def fit(self, *rows: Any, **params: Any) -> Any:
        self.said = True
        return super().fit(*rows, **params)

    def predict(self, *rows: Any, **params: Any) -> Any:
        return super().predict(*rows, **params)


def test_a_fit_of_ones_own_is_called() -> None:
    trainer = Estimator(Shouting(**LGBM), *TWO)
    state = trainer.train(trainer.start({}, 0), 2)
    assert state.model.said
    assert booster(state.model) not in LIVE


def test_a_live_arm_says_how_much_it_holds() -> None:
    small, large = (
        Estimator(LGBMClassifier(**LGBM), *make_classification(rows, 8, random_state=0))
        for rows in (200, 2000)
    )
    sizes = [trainer.size(trainer.train(trainer.start({}, 0), 2)) for trainer in (small, large)]
    assert 10_000 < sizes[0] < sizes[1] < 1_000_000
    forest = Estimator(XGBClassifier(**XGB), *TWO)
    state = forest.train(forest.start({}, 0), 2)
    assert forest.size(state) > forest.size(copied(state)) > 1000


def test_the_version_says_where_losses_are_others_than_before() -> None:
    def version(estimator: Any, *names: str, rows: Any = TWO) -> int:
        trainer = Estimator(estimator, *rows)
        trainer.expect(dict.fromkeys(names, ()))
        return trainer.version

    assert version(LGBMClassifier(), "learning_rate", "max_bin", "subsample") == 1
    assert version(LGBMClassifier(), "colsample_bytree") == 2
    assert version(LGBMClassifier(), "subsample", "subsample_freq") == 2
    assert version(LGBMClassifier(subsample_freq=1), "learning_rate") == 1
    assert version(LGBMClassifier(subsample_freq=1), "subsample") == 2
    assert version(LGBMClassifier(subsample_for_bin=200)) == 2
    assert version(LGBMClassifier(), "linear_tree", "colsample_bytree") == 1
    assert version(XGBClassifier(), "eta", "max_depth", "max_bin") == 1
    assert version(XGBClassifier(), "subsample") == 2
    pipeline = make_pipeline(StandardScaler(), LGBMClassifier())
    assert version(pipeline, "standardscaler__with_mean", "lgbmclassifier__num_leaves") == 1
    assert version(pipeline, "lgbmclassifier__extra_trees") == 2


def test_pipelines_and_folds_share_what_they_can() -> None:
    pipeline = make_pipeline(StandardScaler(), LGBMClassifier(**LGBM))
    trainer = Estimator(pipeline, *TWO, cv=2, scoring="neg_log_loss")
    config = {"lgbmclassifier__colsample_bytree": 0.5}
    states = [trainer.start(config, seed) for seed in (0, 1)]
    for _ in range(2):
        states = [trainer.train(state, 2) for state in states]
    one, other = ([booster(model[-1]) for model in state.models] for state in states)
    assert [live.train_set for live in one] == [live.train_set for live in other]
    assert one[0].train_set is not one[1].train_set
    at_once = trainer.train(trainer.start(config, 0), 4)
    assert trainer.loss(states[0]) == trainer.loss(at_once) == trainer.loss(copied(at_once))
    model = trainer.on_all_rows(config, 0, 4)
    assert booster(model[-1]) not in LIVE
    assert model[-1].n_estimators_ == 4
    assert len(pickle.dumps(model)) < 100_000


def times(X: Any, by: float = 1.0) -> Any:
    return X * by


def test_an_arm_whose_rows_are_no_longer_kept_lives_on() -> None:
    estimator = LGBMClassifier(**LGBM, extra_trees=True)
    trainer = Estimator(make_pipeline(FunctionTransformer(times), estimator), *TWO)
    configs = [{"functiontransformer__kw_args": {"by": 1.0 + i}} for i in range(10)]
    states = [trainer.train(trainer.start(config, 0), 2) for config in configs]
    live = booster(states[0].model[-1])
    state = trainer.train(states[0], 1)
    assert booster(state.model[-1]) is live
    at_once = trainer.train(trainer.start(configs[0], 0), 3)
    assert trainer.loss(state) == trainer.loss(at_once) == trainer.loss(copied(state))


def test_searches_agree_and_their_winner_predicts_what_it_predicted() -> None:
    space = {"learning_rate": LogUniform(0.1, 1), "colsample_bytree": Uniform(0.3, 1)}

    def found(**others: Any) -> Any:
        trainer = Estimator(LGBMClassifier(**LGBM), *TWO, scoring="neg_log_loss")
        policy = SuccessiveHalving(arms=4, budget=24)
        return trainer, search(trainer, space, policy=policy, **others)

    trainer, serial = found()
    _, apart = found(runner="processes", workers=2)
    assert serial.digest == apart.digest
    for result in (serial, apart):
        assert trainer.loss(result.state) == trainer.loss(copied(result.state)) == result.loss
    refitted = HalvingSearch(
        LGBMClassifier(**LGBM), space, n_arms=4, budget=16, random_state=0
    ).fit(*TWO)
    assert type(refitted.best_estimator_) is LGBMClassifier
    assert booster(refitted.best_estimator_) not in LIVE


def _pickled(model: Any, X: Any, y: Any) -> float:
    return float(pickle.loads(pickle.dumps(model)).score(X, y))


def _copied(model: Any, X: Any, y: Any) -> float:
    return float(copy.deepcopy(model).score(X, y))


def _cloned(model: Any, X: Any, y: Any) -> float:
    return float(clone(model).fit(X, y).score(X, y))


def _permuted(model: Any, X: Any, y: Any) -> float:
    return float(
        permutation_importance(model, X, y, n_repeats=1, random_state=0).importances_mean.sum()
    )


def _explained(model: Any, X: Any, y: Any) -> float:
    if isinstance(model, LGBMClassifier):
        return float(np.abs(model.predict(X, pred_contrib=True)).mean())
    return float(model.score(X, y))


@pytest.mark.parametrize("kind", [LGBMClassifier, XGBClassifier])
@pytest.mark.parametrize("scoring", [_pickled, _copied, _cloned, _permuted, _explained])
def test_a_scorer_can_copy_a_live_model_and_ask_it_anything(kind: Any, scoring: Any) -> None:
    trainer = Estimator(kind(**(LGBM if kind is LGBMClassifier else XGB)), *TWO, scoring=scoring)
    state = trainer.start({"random_state": 0}, 0)
    for _ in range(2):
        state = trainer.train(state, 3)
        assert trainer.loss(state) == trainer.loss(copied(state))
        assert booster(state.model) in LIVE
    assert type(state.model) is kind


def test_constraints_by_the_names_of_columns_are_kept_while_trees_are_added() -> None:
    table = pd.DataFrame(TWO[0], columns=list("abcdefgh"))
    trainer = Estimator(XGBClassifier(**XGB, monotone_constraints={"a": 1}), table, TWO[1])
    state = trainer.train(trainer.train(trainer.start({}, 0), 2), 2)
    assert booster(state.model) in LIVE
    assert state.model.n_estimators == 4


class Named(LGBMClassifier):
    def __init__(self, name: str, **others: Any) -> None:
        self.name = name
        super().__init__(**others)

    def get_params(self, deep: bool = True) -> Any:
        return {**super().get_params(deep), "name": self.name}


def test_a_class_that_requires_an_argument_is_trained_by_fit() -> None:
    trainer = Estimator(Named("mine", **LGBM), *TWO)
    state = trainer.train(trainer.start({}, 0), 2)
    assert booster(state.model) not in LIVE
    assert state.model.name == "mine"


@pytest.mark.parametrize("draws", [False, True], ids=["draws nothing", "draws"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_and_a_resume_do_not_change_the_answer(
    tmp_path: Path, kind: str, draws: bool
) -> None:
    alone, kills = boosted(kind, draws=draws)(), KillsAWorker()
    if draws:
        found = boosted(kind, draws=True)(workers=2, on_event=kills)
        assert (found.digest, kills.killed) == (alone.digest, True)

    def interrupt(event: Event) -> None:
        if isinstance(event, Loss) and event.pull.upto == 9:  # of 3, 9 and 21
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        boosted(kind, draws=draws)(journal=tmp_path / "j.jsonl", on_event=interrupt)
    resumed = boosted(kind, draws=draws)(journal=tmp_path / "j.jsonl")
    assert resumed.digest == alone.digest
    assert resumed.spent.repeated or not draws  # from zero, as its copies do not continue
