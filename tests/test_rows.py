"""Estimators that have no steps: each level is a fit of its own, to more of the rows."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LinearRegression, SGDClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from lastarm import Configs, HorizonHalving, LogUniform, SuccessiveHalving, search
from lastarm.cli import main
from lastarm.errors import FittedByRows, OtherSearch, UnknownArgument
from lastarm.sklearn import HalvingSearch
from lastarm.testing import trainer_checks
from lastarm.trainers.estimators import Estimator
from lastarm.trainers.estimators.rows import Nested
from tests.refusals import refused, warned

X, y = load_digits(return_X_y=True)
X, y = X[:300] / 16, y[:300]
flowers, kinds = load_iris(return_X_y=True)


def by_rows(estimator: Any, *rows: Any, **kwargs: Any) -> Estimator:
    return Estimator(estimator, *(rows or (X, y)), resource="rows", **kwargs)


class Rows(ClassifierMixin, BaseEstimator):
    """Remembers what it was given."""

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def fit(self, X: Any, y: Any, sample_weight: Any = None, only: str = "") -> "Rows":
        self.X_, self.y_, self.weights_, self.only_ = X, y, sample_weight, only
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(np.shape(X)[0], self.classes_[0])


# The rows of a level ----------------------------------------------------------------------------

labels = st.lists(st.integers(0, 3), min_size=1, max_size=350)


@given(labels=labels, grouped=st.booleans(), stratified=st.booleans(), seed=st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_levels_are_nested_and_have_their_share_every_class_and_whole_groups(
    labels: list[int], grouped: bool, stratified: bool, seed: int
) -> None:
    n, of = len(labels), np.array(labels)
    groups = np.random.default_rng(seed).integers(0, 1 + n // 5, n) if grouped else None
    arguments: dict[str, Any] = {"labels": of if stratified else None, "groups": groups}
    nested = Nested(n, **arguments, seed=seed)
    before: set[int] = set()
    for level in range(1, 101):
        rows = nested.upto(level)
        assert before <= set(rows.tolist())
        assert rows.size == nested.count(level)
        assert sorted(rows) == rows.tolist()
        assert 100 * rows.size >= level * n
        if stratified:
            assert set(of[rows]) == set(labels)
        if groups is not None:
            assert not set(groups[rows]) & set(np.delete(groups, rows))
        elif stratified:
            share = -(-level * n // 100)
            assert rows.size == max(share, len(set(labels)))
            for one in set(labels):  # in proportion, but for the first of each class
                off = np.sum(of[rows] == one) - rows.size * np.mean(of == one)
                assert abs(off) <= len(set(labels))
        before = set(rows.tolist())
    assert before == set(range(n)) == set(nested.upto(1000).tolist())
    again = Nested(n, **arguments, seed=seed)
    assert nested.upto(7).tolist() == again.upto(7).tolist()


def test_another_seed_adds_rows_in_another_order() -> None:
    chosen = {tuple(Nested(200, labels=None, groups=None, seed=s).upto(5)) for s in range(5)}
    assert len(chosen) == 5


# The trainer ------------------------------------------------------------------------------------

ESTIMATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SVC": (SVC(), {"C": 3.0}),
    "k-NN": (KNeighborsClassifier(1), {"weights": "distance"}),
    "a Pipeline": (make_pipeline(StandardScaler(), PCA(3), SVC()), {"svc__gamma": 0.1}),
    "with randomness": (
        make_pipeline(PCA(3, svd_solver="randomized"), SVC(probability=True)),
        {"svc__C": 0.1},
    ),
    "one that has steps": (RandomForestClassifier(10), {"n_estimators": 5}),
}


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_keeps_the_laws_of_trainers(name: str) -> None:
    estimator, config = ESTIMATORS[name]
    for check in trainer_checks():
        check(lambda: by_rows(estimator), config)


def test_a_level_is_a_plain_fit_to_its_rows() -> None:
    model = make_pipeline(StandardScaler(), PCA(5), SVC())
    trainer = by_rows(model)
    assert trainer.restarts
    assert trainer.max_pulls == 100
    assert trainer.version == 1
    train = trainer.splits[0].train
    state = trainer.start({"svc__C": 2.0}, 0)
    for level in (10, 40, 100, 130):
        state = trainer.train(state, level - state.pulls)
        rows = train[Nested(len(train), labels=y[train], groups=None, seed=0).upto(level)]
        with threadpool_limits(1):
            plain = clone(model).set_params(svc__C=2.0).fit(X[rows], y[rows])
            assert np.array_equal(plain.decision_function(X), state.model.decision_function(X))
        assert state.model[0].n_samples_seen_ == rows.size  # the transformers see no more
    assert rows.tolist() == train.tolist()
    whole = trainer.on_all_rows({"svc__C": 2.0}, 0, pulls=10)
    assert whole[0].n_samples_seen_ == 300


def test_what_belongs_to_rows_is_cut_with_them() -> None:
    weights, groups = np.arange(300.0), np.arange(300) // 10
    params = {"only": "as it is"}
    for rows in (X, pd.DataFrame(X), csr_array(X), X.tolist()):
        arguments: dict[str, Any] = {"groups": groups, "sample_weight": weights}
        trainer = by_rows(Rows(), rows, y, cv=3, fit_params=params, **arguments)
        state = trainer.train(trainer.start({}, 0), 30)
        for model, split in zip(state.models, trainer.splits, strict=True):
            learnt = model.weights_.astype(int)
            dense = model.X_.toarray() if hasattr(model.X_, "toarray") else np.asarray(model.X_)
            assert np.array_equal(dense, X[learnt])
            assert np.array_equal(model.y_, y[learnt])
            assert set(learnt) < set(split.train)
            assert type(model.X_) is type(rows)
            assert not set(groups[learnt]) & set(groups[np.setdiff1d(split.train, learnt)])
            assert model.only_ == "as it is"
        assert trainer.scores(state, "train") != trainer.scores(state)
    pipeline = Pipeline([("scale", StandardScaler()), ("rows", Rows())])
    trainer = by_rows(pipeline, fit_params={"rows__sample_weight": weights})
    state = trainer.train(trainer.start({}, 0), 10)
    assert state.model[-1].weights_.size == len(state.model[-1].y_)
    folds = GroupKFold(3)
    fitted = HalvingSearch(Rows(), {"shift": [1.0, 2.0]}, n_arms=2, cv=folds, resource="rows")
    fitted.fit(X, y, groups=groups, sample_weight=weights)
    assert np.array_equal(fitted.best_estimator_.weights_, weights)


def test_scores_on_train_are_those_of_the_rows_that_were_learnt() -> None:
    trainer = by_rows(KNeighborsClassifier(1))
    state = trainer.train(trainer.start({}, 0), 5)
    assert trainer.loss(state) > 0
    assert trainer.scores(state, "train") == [{"score": -0.0}]


def test_rows_without_targets_or_with_several_will_do() -> None:
    density = by_rows(KernelDensity(), X, None, scoring="score")
    assert density.loss(density.train(density.start({"bandwidth": 0.5}, 0), 20)) > 0
    line = by_rows(LinearRegression(), X, np.column_stack([y, y[::-1]]))
    assert line.loss(line.train(line.start({}, 0), 100)) > 0


def test_what_an_estimator_counts_itself_may_be_a_setting_and_it_may_stop_early() -> None:
    model = SGDClassifier(early_stopping=True, max_iter=5, tol=None)
    trainer = by_rows(model, scoring="accuracy")
    trainer.expect({"max_iter": [3]})
    state = trainer.train(trainer.start({"max_iter": 3}, 0), 50)
    assert state.model.n_iter_ == 3
    assert state.model.early_stopping


def test_only_by_rows_is_it_in_the_fingerprint() -> None:
    steps, rows = Estimator(SGDClassifier(), X, y), by_rows(SGDClassifier())
    assert rows.fingerprint() == steps.fingerprint() | {"resource": "rows"}


def test_what_has_no_steps_is_fitted_by_rows_and_that_is_told_once() -> None:
    with warned(FittedByRows, estimator="SVC"):
        trainer = Estimator(make_pipeline(PCA(3), SVC()), X, y)
    assert (trainer.resource, trainer.restarts, trainer.max_pulls) == ("rows", True, 100)
    result = search(pickle.loads(pickle.dumps(trainer)), {"svc__C": [0.1, 10]}, arms=2, budget=60)
    assert result.spent.pulls <= 60
    assert result.config == {"svc__C": 10}
    mixed = Estimator(Pipeline([("last", SGDClassifier())]), X, y)
    assert mixed.max_pulls is None
    with warned(FittedByRows, estimator="SVC"):
        mixed.expect({"last": [SGDClassifier(), SVC()]})
    assert mixed.max_pulls == 100
    with refused("estimator"):  # the space does not say that there may be another model
        Estimator(Pipeline([("last", SGDClassifier())]), X, y).start({"last": SVC()}, 0)


def test_what_cannot_be_is_refused() -> None:
    for resource in ("n_samples", "max_iter", 3):
        with refused("resource", resource):
            Estimator(SVC(), X, y, resource=resource)  # type: ignore[arg-type]
        with refused("resource", resource):
            HalvingSearch(SVC(), {"C": [1]}, resource=resource).fit(X, y)  # type: ignore[arg-type]
    with refused("resource", "n_samples", UnknownArgument):
        search(by_rows(SVC()), {"C": [1]}, arms=1, budget=1, resource="n_samples")  # type: ignore[arg-type]
    with refused("pulls_per_step", 2):
        by_rows(SVC(), pulls_per_step=2)
    with refused("scoring", None):
        by_rows(KernelDensity())
    with refused("estimator"):
        by_rows(accuracy_score)
    space = {"C": LogUniform(0.1, 10)}
    with refused("max_pulls", 101):
        search(by_rows(SVC()), space, arms=2, budget=400, max_pulls=101)
    with refused("max_pulls", 200):
        search(by_rows(SVC()), space, policy=HorizonHalving(arms=2, budget=400, max_pulls=200))
    with refused("policy"):
        search(by_rows(SVC()), space, policy=SuccessiveHalving(arms=2, budget=400))
    with refused("max_pulls", 101):
        HalvingSearch(SVC(), space, resource="rows", max_pulls=101).fit(X, y)


def test_what_a_pull_is_stands_wherever_pulls_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said, journal = "A pull is 1 % of the rows.", tmp_path / "j.jsonl"
    for trainer, resource in ((by_rows(SVC()), "rows"), (Estimator(SGDClassifier(), X, y), "")):
        for kept in (journal, None):
            result = search(trainer, Configs([{}]), arms=1, budget=2, journal=kept, fresh=True)
            page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
            for shown in (str(result), page):
                assert (said in shown) == bool(resource)
            assert result.resource == resource
        with pytest.raises(SystemExit):
            main(["show", str(journal)])
        assert (said in capsys.readouterr().out) == bool(resource)


def test_a_class_without_rows_or_too_few_rows_are_the_failure_of_an_arm() -> None:
    arms = Configs([{"n_neighbors": 200}, {"n_neighbors": 1}])
    result = search(by_rows(KNeighborsClassifier()), arms, arms=2, budget=60)
    assert result.config == {"n_neighbors": 1}
    assert list(result.failures) == [0]


# The search -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "space"),
    [
        (SVC(), {"C": LogUniform(0.1, 100), "gamma": LogUniform(1e-3, 1)}),
        (KNeighborsClassifier(), {"n_neighbors": [1, 2, 3, 5], "p": [1, 2, 3]}),
        (GaussianProcessClassifier(), {"max_iter_predict": [5, 20, 100]}),
        (make_pipeline(PCA(), SVC()), {"pca__n_components": [1, 2, 3], "svc__C": [0.1, 1, 10]}),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.filterwarnings("ignore::lastarm.sklearn.halving_search.FewConfigs")
def test_left_out_the_budget_is_four_full_fits_and_the_model_knows_all_rows(
    estimator: Any, space: Any
) -> None:
    with warned(FittedByRows):
        fitted = HalvingSearch(estimator, space, random_state=0).fit(flowers, kinds)
    assert fitted.result_.budget == 400 >= fitted.spent_.pulls
    pulled = zip(fitted.n_candidates_, fitted.n_resources_, strict=True)
    assert fitted.spent_.pulls == sum(arms * level for arms, level in pulled)
    assert max(fitted.n_resources_) <= 100
    assert fitted.score(flowers, kinds) > 0.9
    with threadpool_limits(1):
        again = clone(estimator).set_params(**fitted.best_params_).fit(flowers, kinds)
    assert np.array_equal(again.predict(flowers), fitted.predict(flowers))


def test_workers_and_a_journal_change_nothing(tmp_path: Any) -> None:
    space = {"C": LogUniform(0.1, 100)}
    found = []
    for workers, journal in ((None, None), (2, tmp_path / "rows.jsonl")):
        search_ = HalvingSearch(
            SVC(),
            space,
            n_arms=6,
            resource="rows",
            random_state=0,
            n_jobs=workers,
            journal=journal,
        )
        found.append(search_.fit(flowers, kinds).result_.digest)
    assert found[0] == found[1]
    with pytest.raises(OtherSearch):
        HalvingSearch(
            SVC(tol=1e-4),
            space,
            n_arms=6,
            resource="rows",
            random_state=0,
            journal=tmp_path / "rows.jsonl",
        ).fit(flowers, kinds)


@pytest.mark.filterwarnings("ignore")  # the checks provoke them
def test_scikit_learn_finds_no_fault() -> None:
    checked = HalvingSearch(KNeighborsClassifier(1), {"n_neighbors": [1, 2]}, n_arms=2)
    checks = check_estimator(checked, on_skip=None)
    assert {check["status"] for check in checks} <= {"passed", "skipped"}
