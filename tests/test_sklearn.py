"""The search as an estimator: scikit-learn's own checks, and nothing trained twice."""

import copy
import os
import pickle
import runpy
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.sparse import csr_array
from scipy.stats import loguniform
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import IncrementalPCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import DataConversionWarning, FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDOneClassSVM, SGDRegressor
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
from xgboost import XGBClassifier

from lastarm import ASHA, LogUniform, SuccessiveHalving, search
from lastarm.errors import (
    AllArmsFailed,
    BudgetTooSmall,
    EarlyStoppingOff,
    JournalLocked,
    OtherSearch,
    TrainerChanged,
    UnknownArgument,
)
from lastarm.journal.lock import held
from lastarm.policies import POLICIES
from lastarm.policies.timed_halving import MOST_DRAWN
from lastarm.sklearn import AllFitsFailed, HalvingSearch, halving_search
from lastarm.sklearn.batched_sgd import BatchedSGD
from lastarm.sklearn.halving_search import FewConfigs, SearchStopped, SomeFitsFailed
from lastarm.trainers.estimators import Estimator
from tests.refusals import refused, warned

X, y = load_digits(return_X_y=True)
X, y = X[:300] / 16, y[:300]
X_test, y_test = load_digits(return_X_y=True)
X_test, y_test = X_test[300:] / 16, y_test[300:]

ALPHA = {"alpha": LogUniform(1e-5, 1e2)}


def halving(estimator: Any = None, space: Any = ALPHA, **kwargs: Any) -> Any:
    """A small search, whose attributes are as scikit-learn's: known at run time only."""
    chosen: dict[str, Any] = {"n_arms": 8, "budget": 48, "random_state": 0} | kwargs
    return HalvingSearch(SGDClassifier() if estimator is None else estimator, space, **chosen)


class Counting:
    """A classifier that gives always the same answer, and counts passes over the data."""

    passes: ClassVar[Counter[int]] = Counter()
    rows: ClassVar[Counter[int]] = Counter()

    def __init__(self, answer: int = 0, fails: str = "") -> None:
        self.answer = answer
        self.fails = fails

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"answer": self.answer, "fails": self.fails}

    def set_params(self, **params: Any) -> "Counting":
        vars(self).update(params)
        return self

    def __sklearn_tags__(self) -> Any:
        return SGDClassifier().__sklearn_tags__()

    def fit(self, X: Any, y: Any) -> "Counting":
        raise AssertionError("this would train again what is trained already")

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "Counting":
        Counting.passes[self.answer] += 1
        Counting.rows[self.answer] += len(y)
        match self.fails:
            case "raises":
                raise ArithmeticError(f"no {self.answer}")
            case "exits":
                sys.exit(3)
            case "dies":
                os._exit(3)
        self.seen_ = len(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.answer)

    def score(self, X: Any, y: Any) -> float:
        return float("nan") if self.fails == "diverges" else float(np.mean(y == self.answer))


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    Counting.passes.clear()
    Counting.rows.clear()


DIGITS = {"answer": list(range(8))}


# scikit-learn's own opinion ---------------------------------------------------------------------

CHECKED = [
    HalvingSearch(SGDClassifier(random_state=0), ALPHA, n_arms=2, budget=8),
    HalvingSearch(SGDRegressor(random_state=0), {"eta0": [0.01, 0.02]}, n_arms=2, budget=16),
    HalvingSearch(MLPClassifier((8,), learning_rate_init=0.1), {}, n_arms=1, budget=50),
    HalvingSearch(GradientBoostingClassifier(max_depth=1), {}, n_arms=1, budget=20),
    HalvingSearch(LogisticRegression(), {}, n_arms=1, budget=20),
    HalvingSearch(make_pipeline(StandardScaler(), SGDClassifier()), {}, n_arms=1),
]
CHECKS = [
    pytest.param(
        estimator, check, id=f"{type(estimator.estimator).__name__}-{check.func.__name__}"
    )
    for checked in CHECKED
    for estimator, check in estimator_checks_generator(checked)
]


@pytest.mark.filterwarnings("ignore")  # the checks provoke them
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_finds_no_fault(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kwargs", [{"error_score": "raise", "cv": 2}, {"refit": "keep"}])
def test_scikit_learn_finds_no_fault_with_other_choices_either(kwargs: dict[str, Any]) -> None:
    space = {"var_smoothing": [1e-9, 1e-3]}
    checked = HalvingSearch(GaussianNB(), space, n_arms=2, budget=4, **kwargs)
    checks = check_estimator(checked, on_skip=None)
    assert {check["status"] for check in checks} <= {"passed", "skipped"}


def test_it_is_what_its_estimator_is() -> None:
    assert is_classifier(halving())
    assert is_regressor(halving(SGDRegressor()))
    assert halving().__sklearn_tags__().input_tags.sparse
    assert not halving(GaussianNB()).__sklearn_tags__().input_tags.sparse
    fitted = halving().fit(X, y)
    assert list(fitted.classes_) == list(range(10))
    assert fitted.n_features_in_ == 64
    assert not hasattr(fitted, "feature_names_in_")
    names = [f"pixel{i}" for i in range(64)]
    named = halving().fit(pd.DataFrame(X, columns=names), pd.Series(y))
    assert list(named.feature_names_in_) == names
    assert named.best_score_ == fitted.best_score_
    assert not hasattr(halving(), "classes_")


def test_a_clone_has_the_same_settings_and_finds_the_same() -> None:
    original = halving(space={"alpha": loguniform(1e-5, 1e2), "penalty": ["l1", "l2"]})
    original.set_params(estimator__max_iter=7, eta=3)
    twin = clone(original)
    assert twin.get_params()["estimator__max_iter"] == 7
    assert twin.eta == 3
    assert not hasattr(twin, "result_")
    assert original.fit(X, y).result_.digest == twin.fit(X, y).result_.digest
    assert copy.deepcopy(twin).predict(X).tolist() == twin.predict(X).tolist()
    assert pickle.loads(pickle.dumps(twin)).predict(X).tolist() == twin.predict(X).tolist()


# Pipelines --------------------------------------------------------------------------------------


def test_around_a_pipeline_transformers_are_part_of_the_model() -> None:
    inner = Pipeline([("scale", StandardScaler()), ("sgd", SGDClassifier())])
    space = {"sgd__alpha": LogUniform(1e-5, 1e2), "scale": [StandardScaler(), "passthrough"]}
    for refit in (True, "keep"):
        outer = halving(inner, space, refit=refit).fit(X, y)
        assert isinstance(outer.best_estimator_, Pipeline)
        assert set(outer.best_params_) == {"sgd__alpha", "scale"}
        assert outer.score(X_test, y_test) > 0.75
    scaled = halving(inner, {"sgd__alpha": [1e-4]}, n_arms=1).fit(X, y)
    assert np.array_equal(scaled.best_estimator_[0].mean_, StandardScaler().fit(X).mean_)
    assert scaled.n_features_in_ == 64
    assert not hasattr(inner[0], "mean_")


def test_inside_a_pipeline_and_inside_another_search_it_is_a_step_like_any_other() -> None:
    pipeline = make_pipeline(StandardScaler(), halving()).fit(X, y)
    assert pipeline.score(X_test, y_test) > 0.75
    assert pipeline.set_params(halvingsearch__estimator__penalty="l1").fit(X, y)[-1].best_score_
    assert cross_val_score(halving(budget=32), X, y, cv=2).min() > 0.5
    outer = GridSearchCV(halving(budget=32), {"eta": [2, 4]}, cv=2).fit(X, y)
    assert outer.best_estimator_.n_iterations_ in {2, 3}


# What is spent ----------------------------------------------------------------------------------


@pytest.mark.parametrize("refit", [True, "keep", False])
def test_passes_performed_are_pulls_spent_and_the_winners_if_it_is_refitted(refit: Any) -> None:
    fitted = halving(Counting(), DIGITS, refit=refit).fit(X, y)
    winner = fitted.cv_results_["n_resources"][fitted.best_index_]
    assert fitted.spent_.pulls == 48 == fitted.cv_results_["n_resources"].sum()
    assert fitted.spent_.repeated == 0
    assert sum(Counting.passes.values()) == 48 + (winner if refit is True else 0)
    extra = 300 * winner if refit is True else 0
    assert sum(Counting.rows.values()) == 240 * 48 + extra
    if refit:
        assert fitted.best_estimator_.seen_ == (300 if refit is True else 240)


def test_with_folds_each_pull_is_one_of_every_model() -> None:
    fitted = halving(Counting(), DIGITS, cv=3).fit(X, y)
    winner = fitted.cv_results_["n_resources"][fitted.best_index_]
    assert sum(Counting.passes.values()) == 3 * fitted.spent_.pulls + winner


def test_a_refitted_model_is_one_trained_on_all_rows_for_as_long() -> None:
    fitted = halving(RandomForestClassifier(random_state=3), {"max_depth": [2, 4, 8]}, n_arms=3)
    fitted.fit(X, y)
    trees = int(fitted.cv_results_["n_resources"][fitted.best_index_])
    alone = RandomForestClassifier(trees, random_state=3, **fitted.best_params_).fit(X, y)
    assert np.array_equal(alone.predict_proba(X_test), fitted.predict_proba(X_test))
    assert fitted.refit_time_ > 0


def test_the_kept_model_is_the_one_that_was_judged() -> None:
    fitted = halving(refit="keep").fit(X, y)
    trainer = Estimator(SGDClassifier(), X, y, test=0, seed=0)
    judged = trainer.splits[0].validation
    assert fitted.best_estimator_.score(X[judged], y[judged]) == fitted.best_score_
    assert fitted.best_estimator_ is fitted.result_.state.model
    with refused("refit", "keep"):
        halving(refit="keep", cv=3).fit(X, y)


def test_without_a_refit_there_is_nothing_to_predict_with() -> None:
    fitted = halving(refit=False).fit(X, y)
    assert fitted.best_params_
    for name in ("predict", "classes_", "n_features_in_", "best_estimator_", "refit_time_"):
        assert not hasattr(fitted, name)
    with pytest.raises(AttributeError, match="refit"):
        fitted.score(X, y)


def test_left_out_the_budget_gives_every_arm_four_pulls_at_first() -> None:
    fitted = halving(Counting(), {"answer": list(range(9))}, n_arms=9, budget=None, eta=3).fit(
        X, y
    )
    assert (fitted.n_candidates_, fitted.n_resources_) == ([9, 3], [4, 16])
    assert fitted.spent_.pulls == 4 * 9 * 2
    default = HalvingSearch(Counting(), {"answer": list(range(100))})
    default.fit(X, y)
    assert (default.n_candidates_[0], default.n_resources_[0]) == (32, 4)


def test_where_the_longest_training_is_known_nobody_gets_more() -> None:
    space = {"answer": list(range(32))}
    fitted = halving(Counting(), space, n_arms=32, budget=None, max_pulls=20).fit(X, y)
    assert fitted.result_.policy["name"] == "horizon-halving"
    assert fitted.spent_.pulls == 32 * 20 // 5, "a fifth of training all of them fully"
    assert fitted.n_resources_[-1] <= 20
    literal = halving(Counting(), space, n_arms=32, budget=160, policy="successive-halving")
    assert literal.fit(X, y).n_resources_[-1] > 20
    thirds = halving(Counting(), space, n_arms=32, budget=320, max_pulls=20, eta="3/2").fit(X, y)
    assert thirds.n_candidates_[:3] == [32, 21, 14]


# What is found ----------------------------------------------------------------------------------


@pytest.mark.parametrize("average", [True, False], ids=["one at a time", "together"])
def test_it_is_the_search_that_search_makes(average: bool) -> None:
    estimator = SGDClassifier(average=average)
    fitted = halving(estimator).fit(X, y)
    trainer: Any = Estimator(estimator, X, y, test=0, scoring="score", seed=0)
    trainer = trainer if average else BatchedSGD(trainer)
    result = search(trainer, ALPHA, policy=SuccessiveHalving(8, 48), seed=0)
    assert fitted.result_.digest == result.digest
    assert fitted.best_params_ == result.config
    assert fitted.best_score_ == -result.loss if result.loss is not None else False


def test_a_table_has_a_row_for_each_arm_and_agrees_with_the_best() -> None:
    space = [
        {"penalty": ["l1", "l2"], "alpha": LogUniform(1e-5, 1e2)},
        {"penalty": ["elasticnet"], "l1_ratio": [0.25, 0.5, 0.75], "alpha": [1e-4, 1e-3]},
    ]
    fitted = halving(space=space, n_arms=16, budget=256).fit(X, y)
    table = pd.DataFrame(fitted.cv_results_)
    assert len(table) == 16
    assert {"mean_fit_time", "mean_score_time", "params", "split0_test_score"} <= set(table)
    assert (table["mean_test_score"] == table["split0_test_score"]).all()
    assert (table["std_test_score"] == 0).all()
    assert isinstance(fitted.cv_results_["param_l1_ratio"], np.ma.MaskedArray)
    assert fitted.cv_results_["param_alpha"].dtype == float
    assert (table["param_l1_ratio"].isna() == (table["param_penalty"] != "elasticnet")).all()
    best = table.loc[fitted.best_index_]
    assert best["params"] == fitted.best_params_
    assert best["rank_test_score"] == 1
    assert best["mean_test_score"] == fitted.best_score_
    for _, other in table.drop(index=fitted.best_index_).iterrows():
        assert other["rank_test_score"] > 1
        assert other["n_resources"] <= best["n_resources"]
    ranked = table.sort_values("rank_test_score")
    assert ranked["n_resources"].is_monotonic_decreasing
    for _, rung in ranked.groupby("n_resources"):
        assert rung["mean_test_score"].is_monotonic_decreasing
    assert fitted.n_iterations_ == 4
    assert (fitted.n_candidates_, fitted.n_resources_) == ([16, 8, 4, 2], [4, 12, 28, 60])
    assert [fitted.n_resources_[rung] for rung in table["iter"]] == list(table["n_resources"])
    assert fitted.n_splits_ == 1
    assert fitted.multimetric_ is False


def test_folds_are_in_the_table_one_by_one() -> None:
    for cv in (3, StratifiedKFold(3), [(range(200), range(200, 300))] * 3):
        fitted = halving(cv=cv).fit(X, y)
        assert fitted.n_splits_ == 3
        scores = np.array([fitted.cv_results_[f"split{k}_test_score"] for k in range(3)])
        assert np.array_equal(scores.mean(axis=0), fitted.cv_results_["mean_test_score"])
        assert np.array_equal(scores.std(axis=0), fitted.cv_results_["std_test_score"])
        assert fitted.score(X_test, y_test) > 0.75


def test_the_score_is_as_asked_for() -> None:
    def macro(model: Any, X: Any, y: Any) -> float:
        return float(f1_score(y, model.predict(X), average="macro"))

    by_name, by_function = halving(scoring="f1_macro").fit(X, y), halving(scoring=macro).fit(X, y)
    assert by_name.best_score_ == by_function.best_score_
    assert by_name.score(X_test, y_test) == by_function.score(X_test, y_test)
    assert by_name.score(X_test, y_test) == macro(by_name.best_estimator_, X_test, y_test)
    assert by_name.best_score_ != halving().fit(X, y).best_score_
    losses = halving(SGDRegressor(), scoring="neg_mean_squared_error").fit(X, y)
    assert losses.best_score_ < 0
    forest = RandomForestRegressor(random_state=0)
    r2 = halving(forest, {"max_depth": [1, 9]}, n_arms=2, refit="keep").fit(X, y)
    judged = Estimator(SGDRegressor(), X, y, test=0).splits[0].validation
    assert r2.best_score_ == r2.score(X[judged], y[judged])
    assert r2.best_params_ == {"max_depth": 9}


def test_workers_change_nothing_about_the_answer() -> None:
    alone = halving(refit="keep").fit(X, y)
    for n_jobs in (2, -1000):
        together = halving(refit="keep", n_jobs=n_jobs).fit(X, y)
        assert alone.result_.digest == together.result_.digest
        assert alone.best_params_ == together.best_params_
        assert np.array_equal(alone.best_estimator_.coef_, together.best_estimator_.coef_)
        for name in ("mean_test_score", "split0_test_score", "rank_test_score", "n_resources"):
            assert np.array_equal(alone.cv_results_[name], together.cv_results_[name])


def test_randomness_is_as_in_scikit_learn() -> None:
    def digest(random_state: Any) -> str:
        fitted = halving(random_state=random_state).fit(X, y)
        return str(fitted.result_.digest)

    assert digest(5) == digest(np.int64(5)) != digest(6)
    state = np.random.RandomState(5)
    assert digest(copy.deepcopy(state)) == digest(state) != digest(state)
    np.random.seed(5)
    by_none = digest(None)
    np.random.seed(5)
    assert by_none == digest(None) != digest(None)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_will_do_by_its_name(name: str) -> None:
    fitted = halving(Counting(), DIGITS, policy=name, budget=200, refit="keep").fit(X, y)
    assert sum(Counting.passes.values()) == fitted.spent_.pulls <= 200
    ranks, levels = fitted.cv_results_["rank_test_score"], fitted.cv_results_["n_resources"]
    assert [index for index, rank in enumerate(ranks) if rank == 1] == [fitted.best_index_]
    assert levels.sum() == fitted.spent_.pulls
    rungs = fitted.cv_results_["iter"]
    assert [([0, *fitted.n_resources_])[rung + 1] for rung in rungs] == list(levels)


def test_a_policy_of_ones_own_has_its_own_numbers() -> None:
    own = SuccessiveHalving(arms=4, budget=80, eta=4)
    numbers = {"n_arms": None, "budget": None}
    fitted = halving(Counting(), DIGITS, policy=own, **numbers).fit(X, y)
    assert (fitted.n_candidates_, fitted.n_resources_) == ([4], [20])
    own_asha = ASHA(arms=20, budget=80, max_pulls=9)
    with warned(FewConfigs, there=8, asked=20):
        halving(Counting(), DIGITS, policy=own_asha, **numbers).fit(X, y)


def test_where_there_are_fewer_settings_than_arms_all_are_tried() -> None:
    shared = [{"answer": [0, 1, 2]}, {"answer": [2, 3]}]
    for space, there in ((DIGITS, 8), ({"answer": [7]}, 1), (shared, 4)):
        with warned(FewConfigs, there=there):
            fitted = halving(Counting(), space, n_arms=100, budget=None).fit(X, y)
        assert len(fitted.cv_results_["params"]) == there


# Boosters overfit ------------------------------------------------------------------------------


class Overfitting(Counting):
    """A classifier whose score is best after `answer` passes."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> "Overfitting":
        super().partial_fit(X, y, classes)
        self.had_ = getattr(self, "had_", 0) + 1
        return self

    def score(self, X: Any, y: Any) -> float:
        return float(-abs(self.had_ - self.answer) - self.answer / 100)


def test_the_best_state_of_all_is_recommended_where_that_is_asked_for() -> None:
    space = {"answer": [3, 12, 40]}
    latest = halving(Overfitting(), space, n_arms=3, budget=60).fit(X, y)
    best = halving(Overfitting(), space, n_arms=3, budget=60, recommend="best").fit(X, y)
    assert latest.n_resources_ == best.n_resources_ == [10, 40]
    for fitted, pulls in ((latest, 40), (best, 10)):
        table = fitted.cv_results_
        seen = {params["answer"]: i for i, params in enumerate(table["params"])}
        assert fitted.best_index_ == seen[12]
        assert [table["n_resources"][seen[answer]] for answer in (3, 12, 40)] == [10, pulls, 10]
        assert [table["rank_test_score"][seen[answer]] for answer in (12, 3, 40)] == [1, 2, 3]
    assert best.best_score_ == -2.12 > latest.best_score_ == -28.12
    assert best.best_estimator_.had_ == 10 == best.result_.level
    assert latest.best_estimator_.had_ == 40
    kept = halving(Overfitting(), space, n_arms=3, budget=60, recommend="best", refit="keep")
    assert kept.fit(X, y).best_estimator_.had_ == 10
    assert kept.best_estimator_.seen_ == 240


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_early_stopping_in_a_config_is_told_of_once(n_jobs: Any, capfd: Any) -> None:
    space = {"early_stopping_rounds": [1, 2], "max_depth": [1, 2]}
    booster = LGBMClassifier(verbose=-1, n_jobs=1)
    with warned(EarlyStoppingOff, callback=False):
        halving(booster, space, n_arms=4, budget=8, n_jobs=n_jobs).fit(X[:60], y[:60] > 4)
    assert "EarlyStoppingOff" not in capfd.readouterr().err  # of a worker


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LGBMClassifier(verbose=-1, n_jobs=1), "best"),
        (XGBClassifier(n_jobs=1), "best"),
        (GradientBoostingClassifier(), "best"),
        (make_pipeline(StandardScaler(), HistGradientBoostingClassifier()), "best"),
        (RandomForestClassifier(), "latest"),
        (GaussianNB(), "latest"),
    ],
    ids=str,
)
def test_left_out_boosters_are_recommended_at_their_best(estimator: Any, expected: str) -> None:
    def recommended(**kwargs: Any) -> str:
        one = HalvingSearch(estimator, {}, n_arms=1, budget=1, random_state=0, **kwargs)
        fitted: Any = one.fit(X[:60], y[:60] > 4)
        return str(fitted.result_.policy.get("recommend", "latest"))

    assert recommended() == expected
    assert recommended(recommend="latest") == "latest"


# A journal -------------------------------------------------------------------------------------


def test_with_a_journal_the_same_fit_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: dict[str, Any] = {"random_state": None, "return_train_score": True}
    chosen["journal"] = tmp_path / "search.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(Counting, "score", scored_until(17, signal.SIGINT, Counting.score))
        stopped = halving(Counting(), DIGITS, **chosen)
        with warned(SearchStopped, budget=48):
            stopped.fit(X, y)
    spent = stopped.spent_.pulls
    Counting.passes.clear()
    with pytest.warns(TrainerChanged):  # it has its own way to score again
        resumed = halving(Counting(), DIGITS, **chosen).fit(X, y)
    assert resumed.spent_.pulls == 48 > spent > 0
    winner = resumed.cv_results_["n_resources"][resumed.best_index_]
    assert sum(Counting.passes.values()) == 48 - spent + winner
    again = clone(resumed).fit(X, y)
    alone = halving(Counting(), DIGITS, random_state=0, return_train_score=True).fit(X, y)
    for other in (again, alone):
        assert other.result_.digest == resumed.result_.digest
        assert other.best_params_ == resumed.best_params_
        for name in ("mean_test_score", "split0_train_score", "rank_test_score", "n_resources"):
            assert np.array_equal(other.cv_results_[name], resumed.cv_results_[name])


def test_left_out_the_seed_is_that_of_the_journal(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    np.random.seed(3)
    new = halving(random_state=None, journal=str(one)).fit(X, y)
    assert new.result_.digest == halving(random_state=0).fit(X, y).result_.digest
    seventh = halving(random_state=7, journal=other).fit(X, y)
    assert halving(random_state=None, journal=other).fit(X, y).best_params_ == seventh.best_params_
    with pytest.raises(OtherSearch) as info:
        halving(random_state=8, journal=other).fit(X, y)
    assert ("seed", 7, 8) in info.value.differences


def test_a_journal_of_another_clone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    halving(journal=path).fit(X, y)
    for rows, kwargs, name in (
        (slice(200), {}, "trainer.X"),
        (slice(None), {"scoring": "f1_macro"}, "trainer.scoring"),
        (slice(None), {"return_train_score": True}, "trainer.train_scores"),
        (slice(None), {"recommend": "best"}, "recommend"),
    ):
        with pytest.raises(OtherSearch) as info:
            halving(journal=path, **kwargs).fit(X[rows], y[rows])
        assert name in [difference[0] for difference in info.value.differences]
        assert "Clones" in info.value.__notes__[0]
    with held(path), pytest.raises(JournalLocked) as locked:
        halving(journal=path).fit(X, y)
    assert "Clones" in locked.value.__notes__[0]
    fresh = tmp_path / "another.jsonl"
    with pytest.warns(FitFailedWarning, match="OtherSearch"):
        scores = cross_val_score(halving(journal=fresh), X, y, cv=2)
    assert list(np.isnan(scores)) == [False, True]


def test_fresh_begins_another_journal_and_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    first = halving(random_state=7, journal=path).fit(X, y)
    fresh = halving(random_state=None, journal=path, fresh=True).fit(X[:200], y[:200])
    assert fresh.result_.old_journal == f"{path}.old-1"
    alone = halving(random_state=0).fit(X[:200], y[:200])
    assert fresh.result_.digest == alone.result_.digest  # it has the seed of a new journal
    resumed = halving(random_state=None, journal=f"{path}.old-1").fit(X, y)
    assert resumed.result_.nothing_trained
    assert resumed.result_.digest == first.result_.digest
    with refused("fresh", 1):
        halving(journal=path, fresh=1).fit(X, y)


def test_a_search_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert halving(seconds=10_000).fit(X, y).result_.complete
    with refused("seconds", 1e-9):
        halving(seconds=1e-9).fit(X, y)
    for policy in (None, "timed-halving"):
        timed = halving(Counting(), DIGITS, budget=None, max_pulls=9, policy=policy, seconds=1000)
        assert timed.fit(X, y).result_.policy["name"] == "timed-halving"
        assert timed.n_resources_[-1] == 9
    clock = [0]

    def slow(model: Any, X: Any, y: Any) -> float:
        clock[0] += 1
        return float(model.score(X, y))

    monkeypatch.setattr("lastarm.signals.monotonic", lambda: clock[0])
    stopped = halving(Counting(), DIGITS, seconds=3.5, scoring=slow)
    with pytest.warns(SearchStopped) as told:
        stopped.fit(X, y)
    (one,) = told
    assert isinstance(one.message, SearchStopped)
    assert (one.message.budget, one.filename) == (48, __file__)  # it names the user's line
    assert stopped.spent_.observations == 4
    assert stopped.best_estimator_.answer == stopped.best_params_["answer"]


def test_without_a_number_of_arms_the_time_decides_how_many_there_are(tmp_path: Path) -> None:
    def timed(model: Any, space: Any, **kwargs: Any) -> Any:
        return halving(model, space, n_arms=None, budget=None, max_pulls=2, seconds=1000, **kwargs)

    with warnings.catch_warnings():
        warnings.simplefilter("error", FewConfigs)  # their number was not asked for
        few = timed(Counting(), DIGITS).fit(X, y)
    assert len(few.cv_results_["params"]) == 8
    many = timed(Counting(), {"answer": range(100)}).fit(X, y)
    assert len(many.cv_results_["params"]) == 100 > halving_search.ARMS
    together = timed(SGDClassifier(), ALPHA, n_jobs=2).fit(X[:50], y[:50])
    assert together.result_.policy["arms"] == MOST_DRAWN
    assert together.result_.policy.get("at_once", 1) == 1  # two threads of one worker
    asked = halving(Counting(), DIGITS, budget=None, max_pulls=2, seconds=1000, n_jobs=2)
    assert asked.fit(X, y).result_.policy["at_once"] == 2


def test_arms_that_the_time_did_not_reach_have_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0]

    def slow(model: Any, X: Any, y: Any) -> float:
        clock[0] += 1
        return float(model.score(X, y))

    monkeypatch.setattr("lastarm.signals.monotonic", lambda: clock[0])
    stopped = halving(
        Counting(),
        {"answer": range(100)},
        n_arms=None,
        budget=None,
        seconds=3.5,
        scoring=slow,
        journal=tmp_path / "search.jsonl",
    )
    with warned(SearchStopped, pulls=4, budget=None):
        stopped.fit(X, y)
    assert len(stopped.cv_results_["params"]) == 4
    assert stopped.best_params_ == stopped.cv_results_["params"][stopped.best_index_]


# The methods of the model -----------------------------------------------------------------------


def test_all_that_the_model_can_do_is_passed_on() -> None:
    classifier = halving(SGDClassifier(loss="log_loss")).fit(X, y)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        own = getattr(classifier.best_estimator_, name)
        assert np.array_equal(getattr(classifier, name)(X_test), own(X_test))
    assert classifier.score(X_test, y_test) == classifier.best_estimator_.score(X_test, y_test)
    assert not hasattr(classifier, "transform")
    assert not hasattr(halving(), "predict_proba")

    def spread(model: Any, X: Any) -> float:
        return float(np.var(model.transform(X)))

    pca = halving(IncrementalPCA(), {"n_components": [2, 5, 9]}, n_arms=3, scoring=spread).fit(X)
    assert pca.best_params_ == {"n_components": 2}
    assert np.array_equal(pca.transform(X), pca.best_estimator_.transform(X))
    assert pca.inverse_transform(pca.transform(X)).shape == X.shape
    assert pca.score(X) == spread(pca.best_estimator_, X)

    clusters = halving(MiniBatchKMeans(n_init=1), {"n_clusters": [2, 20]}, n_arms=2).fit(X)
    assert clusters.best_params_ == {"n_clusters": 20}
    assert clusters.score(X) == clusters.best_estimator_.score(X)

    def inliers(model: Any, X: Any) -> float:
        return float(np.mean(model.predict(X) == 1))

    outliers = halving(SGDOneClassSVM(), {"nu": [0.1, 0.5]}, n_arms=2, scoring=inliers, cv=2).fit(
        X
    )
    assert outliers.score_samples(X).shape == (300,)


def test_before_fit_there_is_nothing() -> None:
    for name in ("predict", "decision_function", "score"):
        with pytest.raises(NotFittedError):
            getattr(halving(), name)(X)


# What goes wrong --------------------------------------------------------------------------------

FAILING = [
    {"answer": [0, 1, 2]},
    {"answer": [3], "fails": ["raises"]},
    {"answer": [4], "fails": ["exits"]},
    {"answer": [5], "fails": ["diverges"]},
]


@pytest.mark.parametrize("error_score", [np.nan, 7.0])
def test_an_arm_that_fails_is_out_and_the_others_go_on(error_score: float) -> None:
    search = halving(Counting(), FAILING, n_arms=6, budget=60, error_score=error_score)
    with warned(SomeFitsFailed, configs=6) as told:
        search.fit(X, y)
    assert sorted(told[0].causes.values()) == ["ArithmeticError: no 3", "SystemExit: 3"]
    assert search.best_params_["answer"] in {0, 1, 2}
    rows = {params["answer"]: i for i, params in enumerate(search.cv_results_["params"])}
    failed = [rows[3], rows[4], rows[5]]
    expected = [error_score, error_score, np.nan]
    assert np.array_equal(search.cv_results_["mean_test_score"][failed], expected, equal_nan=True)
    assert (search.cv_results_["rank_test_score"][failed] == 4).all()


def test_an_error_is_raised_as_it_was_if_that_is_asked_for() -> None:
    for n_jobs in (None, 2):
        search = halving(Counting(), FAILING[:2], n_arms=4, error_score="raise", n_jobs=n_jobs)
        with pytest.raises(ArithmeticError, match="no 3"):
            search.fit(X, y)
    exits = halving(Counting(), FAILING[2:3], n_arms=1, error_score="raise")
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        exits.fit(X, y)


def test_an_arm_that_takes_its_worker_down_is_not_tried_here() -> None:
    space = [{"answer": [0, 1]}, {"answer": [2], "fails": ["dies"]}]
    search = halving(Counting(), space, n_arms=3, budget=12, n_jobs=2, error_score="raise")
    with pytest.raises(RuntimeError, match="'dies'"):
        search.fit(X, y)


def test_all_failing_is_an_error_with_the_causes() -> None:
    search = halving(Counting(), FAILING[1:], n_arms=3)
    with pytest.raises(ValueError) as raised:  # noqa: PT011, its class is what scikit-learn checks
        search.fit(X, y)
    assert isinstance(raised.value, AllFitsFailed)
    assert "ArithmeticError: no 3" in raised.value.causes.values()
    assert isinstance(raised.value.__cause__, AllArmsFailed)
    holes = X.copy()
    holes[7, 7] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        halving().fit(holes, y)


def scored_until(calls: int, number: int, scorer: Any = None) -> Callable[[Any, Any, Any], float]:
    """A scorer that sends the signal in the call of that number."""
    left = [calls]

    def score(model: Any, X: Any, y: Any) -> float:
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(number)
        return float(scorer(model, X, y) if scorer else model.score(X, y))

    return score


def test_a_stopped_search_goes_on_with_the_best_so_far() -> None:
    stopped = halving(Counting(), DIGITS, scoring=scored_until(10, signal.SIGINT))
    with warned(SearchStopped, budget=48):
        stopped.fit(X, y)
    assert not stopped.result_.complete
    assert stopped.cv_results_["params"][stopped.best_index_] == stopped.best_params_
    assert stopped.predict(X[:1])[0] == stopped.best_params_["answer"]
    early = halving(Counting(), DIGITS, scoring=scored_until(3, signal.SIGINT))
    with warned(SearchStopped, budget=48):
        early.fit(X, y)
    assert sorted(early.cv_results_["n_resources"])[:5] == [0] * 5
    assert sorted(early.cv_results_["iter"])[:5] == [-1] * 5


def test_a_search_stopped_before_it_saw_anything_is_interrupted() -> None:
    failing = {"answer": list(range(8)), "fails": ["diverges"]}
    with pytest.raises(KeyboardInterrupt):
        halving(Counting(), failing, scoring=scored_until(1, signal.SIGINT)).fit(X, y)


def test_to_be_terminated_is_not_for_the_search_alone() -> None:
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with warned(SearchStopped, budget=48):
            halving(Counting(), DIGITS, scoring=scored_until(9, signal.SIGTERM)).fit(X, y)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


@pytest.mark.parametrize(
    "kwargs",
    [
        {"refit": "best"},
        {"error_score": "zero"},
        {"refit": True, "scoring": ["accuracy", "f1_macro"]},
        {"refit": "f1", "scoring": ["accuracy", "f1_macro"]},
        {"refit": "accuracy"},
        {"refit": lambda results: 0},
        {"scoring": ["best", "f1_macro"], "refit": "best"},
        {"scoring": [], "refit": False},
        {"scoring": {"a": 3}, "refit": "a"},
        {"scoring": 3},
        {"recommend": "last"},
        {"cv": 1},
        {"seconds": 0},
        {"journal": 3},
        {"scoring": "best"},
        {"max_pulls": 0},
        {"n_arms": 0},
        {"budget": 7.5},
        {"eta": 1},
        {"n_jobs": 0},
        {"validation": 2},
        {"random_state": -1},
    ],
)
def test_an_argument_that_is_not_valid_is_refused_before_training(kwargs: Any) -> None:
    with refused(*next(iter(kwargs.items()))):
        halving(**{"random_state": None} | kwargs).fit(X, y)


@pytest.mark.parametrize(
    ("other", "ours"),
    [("n_iter", "n_arms"), ("factor", "eta"), ("seed", "random_state"), ("workers", "n_jobs")],
)
def test_an_argument_of_another_search_is_refused_with_ours(other: str, ours: str) -> None:
    with refused(other, 3, UnknownArgument) as refusal:
        halving(**{other: 3})
    assert refusal.value.instead == ours


def test_what_pulls_decide_is_refused_once_and_not_by_each_arm() -> None:
    with refused("n_estimators"):
        halving(GradientBoostingClassifier(), {"n_estimators": [10, 20]}).fit(X, y)


def test_a_setting_may_be_another_model() -> None:
    swapped = make_pipeline(StandardScaler(), SGDClassifier())
    models = [RandomForestClassifier(8, max_depth=depth, random_state=0) for depth in (2, 9)]
    space = {"sgdclassifier": models}
    tuned = halving(swapped, space, n_arms=2, budget=16, policy="uniform", cv=3).fit(X, y)
    for arm, setting in enumerate(tuned.cv_results_["params"]):
        alone = cross_val_score(clone(swapped).set_params(**setting), X, y, cv=3)
        found = [tuned.cv_results_[f"split{fold}_test_score"][arm] for fold in range(3)]
        assert found == list(alone)  # each fold has a model of its own


def test_refit_may_name_the_only_metric() -> None:
    named = halving(scoring="f1_macro", refit="f1_macro").fit(X, y)
    assert named.best_score_ == halving(scoring="f1_macro").fit(X, y).best_score_
    assert named.predict(X_test).shape == y_test.shape


def test_what_cannot_be_drawn_is_refused_before_training() -> None:
    with refused("alpha", []):
        halving(space={"alpha": []}).fit(X, y)


def test_too_small_a_budget_too_few_rows_or_no_y_are_refused() -> None:
    with refused("budget", 23, BudgetTooSmall) as refusal:
        halving(budget=23).fit(X, y)
    assert refusal.value.least == 24
    with refused("validation", 0.2):
        halving().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="n_samples=1"):
        halving(cv=2).fit(X[:1], y[:1])
    with refused("y", None):
        halving().fit(X)


def test_few_rows_will_do_where_they_can() -> None:
    for rows in (X[:2], csr_array(X[:2]), X[:2].tolist()):
        assert halving().fit(rows, y[:2]).predict(rows).shape == (2,)
    rare = np.array(["common"] * 20 + ["rare"])
    fitted = halving(LogisticRegression(), {"C": [0.1, 1.0]}, n_arms=2, refit="keep")
    for seed in range(10):  # TRAIN has both, or it could not be fitted
        fitted.set_params(random_state=seed).fit(X[:21], rare)
        assert list(fitted.classes_) == ["common", "rare"]


def test_a_column_of_answers_is_taken_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning):
        column = halving().fit(X, y[:, None])
    assert column.result_.digest == halving().fit(X, y).result_.digest


@pytest.mark.parametrize("cv", [None, 2])
def test_a_row_may_have_several_labels(cv: Any) -> None:
    labels = np.stack([y % 2 == 0, y > 4, y < 0], axis=1).astype(int)  # the last one is never seen
    for solver in ("adam", "lbfgs"):
        network = MLPClassifier((8,), solver=solver, learning_rate_init=0.01)
        found = halving(network, {"alpha": [1e-4, 1e-2]}, n_arms=2, cv=cv).fit(X, labels)
        assert found.predict(X_test).shape == (len(X_test), 3)
        judged = np.stack([y_test % 2 == 0, y_test > 4, y_test < 0], axis=1)
        assert found.score(X_test, judged) == found.best_estimator_.score(X_test, judged) > 0.5
    with pytest.raises(ValueError, match="1d array"):
        halving().fit(X, labels)  # it has one label for each row


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "scikit_learn.py"))
    said = capsys.readouterr().out
    assert "spent: 640 passes" in said
