"""HalvingSearch gives the scores of the installed GridSearchCV, for the same settings and rows."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMClassifier
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from lastarm import search
from lastarm.sklearn import HalvingSearch
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.splits import Split
from tests.refusals import refused

N, rng = 240, np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "age": rng.integers(18, 80, N).astype(float),
        "income": rng.lognormal(10, 1, N),
        "town": pd.Categorical(rng.choice(["Bern", "Genf", "Chur"], N)),
        "job": rng.choice(["cook", "clerk", "none"], N),
    }
)
PEOPLE.loc[::17, "age"] = np.nan
likely = PEOPLE["age"].fillna(40) + 12 * (PEOPLE["town"] == "Bern")
BUYS = (likely > rng.normal(50, 15, N)).astype(int).to_numpy()
WEIGHTS = np.where(PEOPLE["job"] == "cook", 20.0, 0.1) * rng.uniform(0.5, 1.5, N)
FAMILIES = rng.integers(0, 12, N)
NUMBERS = PEOPLE[["age", "income"]].fillna(40).to_numpy() / [50, 3e4]

SCORES = ["roc_auc", "average_precision"]
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "LightGBM": (
        LGBMClassifier(n_jobs=1, verbose=-1, random_state=3, min_child_samples=5),
        {"model__num_leaves": [2, 4, 16]},
    ),
    "random forest": (RandomForestClassifier(random_state=3), {"model__max_depth": [1, 3, 9]}),
    "GaussianNB": (GaussianNB(), {"model__var_smoothing": [1e-9, 1e-3, 1e-1]}),
}


def piped(model: Any, scaler: Any = None) -> Pipeline:
    """The mixed columns of a frame as numbers, and then the model."""
    numbers = make_pipeline(SimpleImputer(), scaler or StandardScaler())
    names = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = [("numbers", numbers, ["age", "income"]), ("names", names, ["town", "job"])]
    return Pipeline([("columns", ColumnTransformer(columns)), ("model", model)])


def halving(estimator: Any, space: Any, **kwargs: Any) -> Any:
    chosen: dict[str, Any] = {"n_arms": 3, "budget": 18, "random_state": 0}
    return HalvingSearch(estimator, space, **chosen | kwargs)


def require_same_scores(found: Any, *rows: Any, **params: Any) -> pd.DataFrame:
    """Every score is that of GridSearchCV, with as many trees for each arm as it had."""
    tables = []
    for config, pulls in zip(
        *(found.cv_results_[k] for k in ("params", "n_resources")), strict=True
    ):
        own = clone(found.estimator)
        trees = [k for k in own.get_params() if k.endswith(("n_estimators", "max_iter"))]
        grid = GridSearchCV(
            own.set_params(**dict.fromkeys(trees, int(pulls))),
            {name: [value] for name, value in config.items()},
            scoring=found.scoring,
            cv=found.cv,
            refit=found.refit,
            return_train_score=found.return_train_score,
        )
        tables.append(pd.DataFrame(grid.fit(*rows, **params).cv_results_))
    expected = pd.concat(tables, ignore_index=True)
    ours = pd.DataFrame(found.cv_results_)
    columns = [name for name in ours if "_test_" in name or "_train_" in name]
    assert set(columns) == {name for name in expected if "_test_" in name or "_train_" in name}
    for name in columns:
        if not name.startswith("rank"):
            np.testing.assert_allclose(ours[name], expected[name], 0, 1e-12, err_msg=name)
    return expected


@pytest.fixture
def _routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# The same scores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_grid_search_on_mixed_columns(name: str) -> None:
    model, space = MODELS[name]
    several = {"scoring": SCORES, "refit": "average_precision", "return_train_score": True}
    found = halving(piped(model), space, cv=GroupKFold(4), **several)
    weights = {"model__sample_weight": WEIGHTS}
    found.fit(PEOPLE, BUYS, groups=FAMILIES, **weights)
    expected = require_same_scores(found, PEOPLE, BUYS, groups=FAMILIES, **weights)
    assert {f"split3_{part}_{one}" for part in ("test", "train") for one in SCORES} <= {*expected}
    plain = require_same_scores(
        halving(piped(model), space, cv=GroupKFold(4), **several).fit(
            PEOPLE, BUYS, groups=FAMILIES
        ),
        PEOPLE,
        BUYS,
        groups=FAMILIES,
    )
    assert not np.allclose(plain["mean_test_roc_auc"], expected["mean_test_roc_auc"])
    assert found.multimetric_
    assert found.n_splits_ == 4
    assert found.best_score_ == found.cv_results_["mean_test_average_precision"][found.best_index_]
    assert found.cv_results_["rank_test_average_precision"][found.best_index_] == 1
    scorer = get_scorer("average_precision")
    assert found.score(PEOPLE, BUYS) == scorer(found.best_estimator_, PEOPLE, BUYS)


@pytest.mark.usefixtures("_routing")
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_grid_search_where_metadata_are_routed(name: str) -> None:
    model, space = MODELS[name]
    scaler = StandardScaler().set_fit_request(sample_weight=True)
    estimator = piped(clone(model).set_fit_request(sample_weight=True), scaler)
    scoring = {one: get_scorer(one).set_score_request(sample_weight=True) for one in SCORES}
    scoring["plain"] = get_scorer("roc_auc").set_score_request(sample_weight=False)
    found = halving(estimator, space, cv=GroupKFold(4), scoring=scoring, refit="roc_auc")
    given = {"sample_weight": WEIGHTS, "groups": FAMILIES}
    found.fit(PEOPLE, BUYS, **given)
    expected = require_same_scores(found, PEOPLE, BUYS, **given)
    assert not np.allclose(expected["mean_test_plain"], expected["mean_test_roc_auc"])
    weighted = found.score(PEOPLE, BUYS, sample_weight=WEIGHTS)
    proba = found.predict_proba(PEOPLE)[:, 1]
    assert weighted == roc_auc_score(BUYS, proba, sample_weight=WEIGHTS)
    assert weighted != found.score(PEOPLE, BUYS)
    outer = Pipeline([("same", "passthrough"), ("search", found)])
    outer.fit(PEOPLE, BUYS, **given)
    assert np.array_equal(outer["search"].predict_proba(PEOPLE)[:, 1], proba)


@pytest.mark.usefixtures("_routing")
def test_the_score_of_a_pipeline_gets_what_its_steps_request() -> None:
    model = GaussianNB().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    found = halving(piped(model, scaler), {}, n_arms=1, budget=1, cv=KFold(3))
    found.fit(PEOPLE, BUYS, sample_weight=WEIGHTS)
    require_same_scores(found, PEOPLE, BUYS, sample_weight=WEIGHTS)
    assert found.score(PEOPLE, BUYS, sample_weight=WEIGHTS) != found.score(PEOPLE, BUYS)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(random_state=3),
        GaussianNB(),
        LGBMClassifier(n_jobs=1, verbose=-1, random_state=3),
        XGBClassifier(n_jobs=1, random_state=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("scoring", [None, "roc_auc", ("accuracy", "neg_log_loss")])
def test_weights_go_where_grid_search_sends_them(estimator: Any, scoring: Any) -> None:
    refit = scoring[1] if isinstance(scoring, tuple) else True
    found = halving(estimator, {}, n_arms=1, budget=1, scoring=scoring, refit=refit, cv=KFold(3))
    found.fit(NUMBERS, BUYS, sample_weight=WEIGHTS)
    require_same_scores(found, NUMBERS, BUYS, sample_weight=WEIGHTS)
    alone = clone(estimator)
    if not isinstance(estimator, GaussianNB):
        alone.set_params(n_estimators=1)
    alone.fit(NUMBERS, BUYS, sample_weight=WEIGHTS)
    assert np.array_equal(alone.predict_proba(NUMBERS), found.predict_proba(NUMBERS))


def test_scorers_without_weights_are_warned_of_as_by_grid_search() -> None:
    def ranked(model: Any, X: Any, y: Any) -> float:
        return float(roc_auc_score(y, model.predict_proba(X)[:, 1]))

    def warned(search: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(NUMBERS, BUYS, sample_weight=WEIGHTS)
        return [str(one.message).partition(" when fitting")[0] for one in caught]

    found = halving(GaussianNB(), {}, n_arms=1, budget=1, scoring=ranked, cv=KFold(3))
    grid = GridSearchCV(GaussianNB(), {}, scoring=ranked, cv=KFold(3))
    assert warned(found) == warned(grid)
    assert found.best_score_ == pytest.approx(grid.best_score_, abs=1e-12)


# Splitters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv",
    [
        GroupKFold(3),
        LeaveOneGroupOut(),
        StratifiedGroupKFold(3),
        StratifiedKFold(3, shuffle=True, random_state=1),
        TimeSeriesSplit(3),
        [(range(100), range(100, 240)), (range(140, 240), range(140))],
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_every_splitter_of_scikit_learn_splits_as_in_grid_search(cv: Any) -> None:
    groups: dict[str, Any] = {"groups": FAMILIES} if "Group" in type(cv).__name__ else {}
    found = halving(GaussianNB(), {}, n_arms=1, budget=1, cv=cv).fit(NUMBERS, BUYS, **groups)
    require_same_scores(found, NUMBERS, BUYS, **groups)
    if isinstance(cv, list):
        return
    trainer = Estimator(GaussianNB(), NUMBERS, BUYS, cv=cv, **groups)
    tested = trainer.splits[0].test
    assert 12 <= tested.size <= 36
    for part in trainer.splits:
        assert not np.isin(tested, [*part.train, *part.validation]).any()
        if "Group" in type(cv).__name__:
            for one, other in ((part.train, part.validation), (part.train, part.test)):
                assert not set(FAMILIES[one]) & set(FAMILIES[other])
        if isinstance(cv, TimeSeriesSplit):
            assert part.train.max() < part.validation.min() <= part.validation.max() < tested.min()


@pytest.mark.parametrize("targets", [BUYS, NUMBERS[:, 0]], ids=["classes", "numbers"])
def test_a_number_of_folds_makes_the_folds_of_grid_search(targets: Any) -> None:
    model = RandomForestClassifier if targets is BUYS else RandomForestRegressor
    found = halving(model(random_state=0), {"max_depth": [1, 2, 3]}, cv=4).fit(NUMBERS, targets)
    require_same_scores(found, NUMBERS, targets)
    assert found.n_splits_ == 4


def test_groups_stay_whole_without_a_splitter_too() -> None:
    for cv in (None, 3):
        for trainer in (
            Estimator(GaussianNB(), NUMBERS, BUYS, cv=cv, groups=FAMILIES),
            Estimator(GaussianNB(), NUMBERS, BUYS, cv=cv, groups=FAMILIES, test=0),
        ):
            for parts in trainer.splits:
                families = [set(FAMILIES[rows]) for rows in parts]
                assert sum(map(len, families)) == len(set.union(*families)) == 12
        found = halving(GaussianNB(), {}, n_arms=1, budget=1, cv=cv)
        assert found.fit(NUMBERS, BUYS, groups=FAMILIES).best_score_ > 0.5
    with refused("groups"):
        Estimator(GaussianNB(), NUMBERS, BUYS, groups=FAMILIES[1:])
    with refused("groups"):
        Estimator(GaussianNB(), NUMBERS, BUYS, groups=FAMILIES, split=Split([0], [1]))
    with refused("groups"):
        Estimator(GaussianNB(), NUMBERS, BUYS, groups=np.zeros(N))
    with refused("groups"):
        Estimator(GaussianNB(), NUMBERS, BUYS, groups=FAMILIES % 3, cv=3)


# Rows of other kinds -----------------------------------------------------------------------------


def test_sparse_rows_are_scored_as_in_grid_search() -> None:
    rows = csr_matrix(NUMBERS * (NUMBERS > 0.8))
    for estimator in (
        RandomForestClassifier(random_state=3),
        LGBMClassifier(n_jobs=1, verbose=-1),
    ):
        found = halving(estimator, {"max_depth": [1, 2, 5]}, cv=GroupKFold(3))
        found.fit(rows, BUYS, groups=FAMILIES, sample_weight=WEIGHTS)
        require_same_scores(found, rows, BUYS, groups=FAMILIES, sample_weight=WEIGHTS)
    linear = halving(SGDClassifier(), {"alpha": [1e-4, 1e-2, 1.0]}).fit(rows, BUYS)
    assert linear.predict(rows).shape == (N,)


def test_frames_with_categories_reach_boosters_as_they_are() -> None:
    frame = PEOPLE.assign(job=PEOPLE["job"].astype("category"))
    series = {
        "sample_weight": pd.Series(WEIGHTS, index=frame.index[::-1]),
        "groups": pd.Series(FAMILIES),
    }
    for estimator in (
        LGBMClassifier(n_jobs=1, verbose=-1, min_child_samples=5),
        XGBClassifier(n_jobs=1, enable_categorical=True, max_depth=2, tree_method="hist"),
        HistGradientBoostingClassifier(min_samples_leaf=5),
    ):
        found = halving(estimator, {"learning_rate": [0.1, 0.3, 0.5]}, cv=GroupKFold(3))
        found.fit(frame, pd.Series(BUYS), **series)
        require_same_scores(found, frame, pd.Series(BUYS), **series)
        assert found.predict(frame).shape == (N,)
        assert list(found.feature_names_in_) == list(frame)


def test_what_scikit_learn_is_set_to_also_holds_in_worker_processes() -> None:
    with sklearn.config_context(enable_metadata_routing=True, transform_output="pandas"):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        scoring = get_scorer("roc_auc").set_score_request(sample_weight=True)
        space = {"model__C": [0.01, 0.1, 1.0]}
        digests = [
            halving(piped(model, scaler), space, scoring=scoring, n_jobs=n_jobs, budget=6)
            .fit(PEOPLE, BUYS, sample_weight=WEIGHTS)
            .result_.digest
            for n_jobs in (None, 2)
        ]
    assert digests[0] == digests[1]


# What is refused ---------------------------------------------------------------------------------


def test_weights_that_cannot_be_used_are_refused_before_training() -> None:
    pipeline = piped(GaussianNB())
    with refused("sample_weight") as refusal:
        halving(pipeline, {}, n_arms=1).fit(PEOPLE, BUYS, sample_weight=WEIGHTS)
    assert "model__sample_weight" in str(refusal.value)
    with refused("model__sample_weight"):
        halving(pipeline, {}, n_arms=1).fit(PEOPLE, BUYS, model__sample_weight=WEIGHTS[1:])
    with refused("tree__sample_weight"):
        halving(pipeline, {}, n_arms=1).fit(PEOPLE, BUYS, tree__sample_weight=WEIGHTS)
    with refused("sample_weight"):
        halving(GaussianNB(), {}, n_arms=1).fit(NUMBERS, BUYS, sample_weight=WEIGHTS[1:])
    with refused("coef_init", 3):
        halving(SGDClassifier(), {}, n_arms=1).fit(NUMBERS, BUYS, coef_init=3)
    with refused("init_model", "x"):
        halving(LGBMClassifier(), {}, n_arms=1).fit(NUMBERS, BUYS, init_model="x")
    with refused("fit_params"):
        Estimator(
            GaussianNB(),
            NUMBERS,
            BUYS,
            sample_weight=WEIGHTS,
            fit_params={"sample_weight": WEIGHTS},
        )
    with refused("sample_weight"):
        halving(GaussianNB(), {}, n_arms=1, budget=1).fit(NUMBERS, BUYS).score(
            NUMBERS, BUYS, sample_weight=WEIGHTS
        )


@pytest.mark.usefixtures("_routing")
def test_what_no_step_requests_is_refused_as_by_grid_search() -> None:
    with pytest.raises(ValueError, match=r"sample_weight.*set_fit_request") as ours:
        halving(GaussianNB(), {}, n_arms=1).fit(NUMBERS, BUYS, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="sample_weight") as theirs:
        GridSearchCV(GaussianNB(), {}).fit(NUMBERS, BUYS, sample_weight=WEIGHTS)
    assert type(ours.value) is type(theirs.value)
    assert "HalvingSearch.fit" in str(ours.value)


# Estimator in search -----------------------------------------------------------------------------


def test_a_journal_has_every_metric_of_each_look_and_knows_the_weights(tmp_path: Any) -> None:
    def trainer(**kwargs: Any) -> Estimator:
        given: dict[str, Any] = {"scoring": SCORES, "metric": "average_precision"}
        return Estimator(GaussianNB(), NUMBERS, BUYS, cv=3, **given | kwargs)

    one = trainer(sample_weight=WEIGHTS)
    state = one.train(one.start({}, 0), 1)
    told = one.loss(state)
    assert list(told) == [*SCORES, "loss"]
    assert told["loss"] == pytest.approx(-told["average_precision"])
    assert told["loss"] == np.mean(one.losses(state))
    events: list[Any] = []
    result = search(
        one,
        {"var_smoothing": [1e-9, 1e-3]},
        arms=2,
        budget=4,
        journal=tmp_path / "search.jsonl",
        on_event=events.append,
    )
    assert result.test_loss == one.test(result.state)
    metrics = [event.metrics for event in events if hasattr(event, "metrics")]
    assert len(metrics) == 2
    assert all(set(SCORES) == set(seen) for seen in metrics)
    fingerprints = [
        trainer(),
        trainer(metric="roc_auc"),
        trainer(sample_weight=WEIGHTS),
        trainer(sample_weight=WEIGHTS[::-1]),
        trainer(groups=FAMILIES),
        trainer(fit_params={"sample_weight": WEIGHTS}, scoring="roc_auc", metric=None),
    ]
    assert len({repr(one.fingerprint()) for one in fingerprints}) == len(fingerprints)
    with refused("metric", "f1"):
        trainer(metric="f1")
    with refused("metric", "f1"):
        trainer(scoring="roc_auc", metric="f1")


def test_weights_count_in_the_loss_where_no_scoring_is_given() -> None:
    trainer = Estimator(GaussianNB(), NUMBERS, BUYS, sample_weight=WEIGHTS)
    state = trainer.train(trainer.start({}, 0), 1)
    train, judged, _ = trainer.splits[0]
    alone = GaussianNB().fit(NUMBERS[train], BUYS[train], sample_weight=WEIGHTS[train])
    wrong = alone.predict(NUMBERS[judged]) != BUYS[judged]
    grid = GridSearchCV(GaussianNB(), {}, cv=[(train, judged)])
    grid.fit(NUMBERS, BUYS, sample_weight=WEIGHTS)
    assert trainer.loss(state) == pytest.approx(1 - grid.best_score_, abs=1e-12)
    assert trainer.loss(state) in {np.mean(wrong), np.average(wrong, weights=WEIGHTS[judged])}


def test_a_function_may_return_several_metrics() -> None:
    def both(model: Any, X: Any, y: Any) -> dict[str, float]:
        auc = float(roc_auc_score(y, model.predict(X)))
        return {"loss": float(model.score(X, y)), "b": auc, "score": auc / 2}  # whatever they mean

    found = halving(GaussianNB(), {"var_smoothing": [1e-9, 1e-1, 9.0]}, scoring=both, refit="b")
    found.fit(NUMBERS, BUYS)
    assert found.best_score_ == found.cv_results_["mean_test_b"][found.best_index_]
    assert found.best_score_ == -found.result_.loss
    assert np.array_equal(
        found.cv_results_["mean_test_score"] * 2, found.cv_results_["mean_test_b"]
    )
    assert found.multimetric_
    assert found.score(NUMBERS, BUYS) == both(found.best_estimator_, NUMBERS, BUYS)["b"]
    with pytest.raises(ValueError, match="metric"):
        halving(GaussianNB(), {}, n_arms=1, scoring=both).fit(NUMBERS, BUYS)
