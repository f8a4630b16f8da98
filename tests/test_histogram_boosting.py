"""HistGradientBoosting: rows are put into bins once, and every tree is that of scikit-learn."""

import gc
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lastarm import Choice, SuccessiveHalving, search
from lastarm.trainers.estimators import Estimator, compat, histogram_boosting
from lastarm.trainers.estimators.compat import BinnedRows, can_share_bins

pytestmark = pytest.mark.filterwarnings("ignore::lastarm.errors.EarlyStoppingOff")

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
X[rng.random(X.shape) < 0.1] = np.nan
y = (np.nansum(X[:, :2], axis=1) > 0).astype(int)
amounts = np.exp(np.nan_to_num(X[:, 0]) + rng.normal(size=300) / 4)
weights = rng.random(300)
letters = np.array(["p", "q", "r", None], dtype=object)
table = pd.DataFrame(X, columns=[f"column {i}" for i in range(5)]).assign(
    letter=pd.Categorical(letters[rng.integers(4, size=300)])
)
codes = np.column_stack([X, rng.integers(6, size=300)])

Classifier, Regressor = HistGradientBoostingClassifier, HistGradientBoostingRegressor
CASES: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "two classes": (Classifier(), X, y, {}),
    "names as classes": (Classifier(), X, np.array(["no", "yes"])[y], {}),
    "many classes": (Classifier(), *(part[:300] for part in load_digits(return_X_y=True)), {}),
    "weights": (Classifier(), X, y, {"sample_weight": weights}),
    "weights of classes": (Classifier(class_weight="balanced"), X, y, {}),
    "a table with categories": (Classifier(), table, y, {}),
    "columns that are categories": (Classifier(categorical_features=[5]), codes, y, {}),
    "columns of other numbers": (Classifier(), X.astype(np.float32), y, {}),
    "drawn features": (Classifier(max_features=0.5), X, y, {}),
    "few bins": (Classifier(max_bins=7), X, y, {"sample_weight": weights}),
    "monotonic": (Classifier(monotonic_cst=[1, -1, 0, 0, 0]), X, y, {}),
    "interactions": (Classifier(interaction_cst="pairwise"), X, y, {}),
    "a pipeline": (make_pipeline(StandardScaler(), Classifier()), X, y, {}),
    "folds": (Classifier(), X, y, {"cv": 2}),
    "early stopping": (Classifier(early_stopping=True), X, y, {}),
    **{
        loss: (Regressor(loss, quantile=0.3 if loss == "quantile" else None), X, amounts, {})
        for loss in ("squared_error", "absolute_error", "gamma", "poisson", "quantile")
    },
    "an absolute error with weights": (
        Regressor("absolute_error"),
        table,
        amounts,
        {"sample_weight": weights},
    ),
}


def curves(case: str) -> list[Any]:
    """Losses and predictions of two arms that take turns, to the bit."""
    estimator, rows, targets, given = CASES[case]
    trainer = Estimator(estimator, rows, targets, **given)
    states = [trainer.start({}, seed) for seed in (1, 2)]
    seen: list[Any] = []
    for pulls in (2, 1, 3):
        for state in states:
            trainer.train(state, pulls)
            seen.append(trainer.loss(state))
    return [*seen, *(m.predict(rows).tobytes() for state in states for m in state.models)]


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What makes all later fits those of scikit-learn alone."""
    return lambda: monkeypatch.setattr(compat, "SHARES_BINS", False)


@pytest.fixture
def binned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of bins that rows were put into, every time it was done."""
    seen: list[int] = []
    transform = _BinMapper.transform

    def transformed(mapper: Any, X: Any) -> Any:
        seen.append(mapper.n_bins - 1)
        return transform(mapper, X)

    monkeypatch.setattr(_BinMapper, "transform", transformed)
    return seen


@pytest.mark.parametrize("case", CASES)
def test_shared_bins_give_the_curves_that_scikit_learn_gives(
    case: str, binned: list[int], plainly: Any
) -> None:
    shared = curves(case)
    once = len(binned)
    plainly()
    assert curves(case) == shared
    assert once * 6 == len(binned) - once, "one for each fold in place of one for each pull"


def test_trees_that_are_grown_in_turns_are_those_of_one_fit() -> None:
    estimator, rows, targets, _ = CASES["a table with categories"]
    trainer = Estimator(estimator, rows, targets)
    state = trainer.start({"max_features": 0.5}, seed=5)
    for pulls in (1, 2, 4):
        other = trainer.train(trainer.start({}, seed=6), pulls)  # which has the same bins
        state = trainer.train(state, pulls)
        state = pickle.loads(pickle.dumps(state)) if pulls == 2 else state
    train = trainer.splits[0].train
    model = Classifier(max_features=0.5, max_iter=7, early_stopping=False, random_state=5)
    model.fit(rows.iloc[train], targets[train])
    assert np.array_equal(model.predict_proba(rows), state.model.predict_proba(rows))
    assert vars(model).keys() == vars(state.model).keys() == vars(other.model).keys()
    again = pickle.loads(pickle.dumps(state.model))
    assert np.array_equal(model.predict_proba(rows), again.predict_proba(rows))


def test_a_search_puts_rows_into_bins_once_for_each_fold_and_number_of_bins(
    binned: list[int],
) -> None:
    trainer = Estimator(Classifier(max_leaf_nodes=3), X, y, cv=2)
    space = {"learning_rate": [0.1, 0.3], "max_bins": Choice(10, 255)}
    search(trainer, space, policy=SuccessiveHalving(arms=4, budget=8), seed=1)
    assert sorted(binned) == [10, 10, 255, 255]


def test_arms_with_weights_of_their_own_have_the_bins_of_these(plainly: Any) -> None:
    def losses() -> list[float]:
        trainer = Estimator(Classifier(max_bins=5), X, y, scoring="neg_log_loss")
        arms = [{"class_weight": weight} for weight in (None, "balanced", {0: 1, 1: 20})]
        return [trainer.loss(trainer.train(trainer.start(arm, 0), 3)) for arm in arms]

    shared = losses()
    plainly()
    assert losses() == shared


def test_above_200_000_rows_bins_depend_on_the_seed(binned: list[int], plainly: Any) -> None:
    many = rng.normal(size=(250_001, 1))
    trainer = Estimator(Regressor(max_leaf_nodes=2), many, many[:, 0] > 0, test=0)

    def trained(seed: int) -> Any:
        model = trainer.train(trainer.start({}, seed), 1).model
        return trainer.losses(trainer.train(trainer.start({}, seed), 2)), model.predict(many[:9])

    shared = [trained(seed) for seed in (1, 2)]
    assert len(binned) == 2
    plainly()
    for (losses, predicted), seed in zip(shared, (1, 2), strict=True):
        plain = trained(seed)
        assert losses == plain[0]
        assert np.array_equal(predicted, plain[1])


def test_only_so_many_tables_of_bins_are_kept(binned: list[int]) -> None:
    trainer = Estimator(Classifier(), X, y)
    for bins in (*range(10, 20), 19, 10):
        trainer.train(trainer.start({"max_bins": bins}, 0), 1)
    assert binned == [*range(10, 20), 10]


def test_predictions_of_a_model_that_is_gone_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Estimator(Classifier(), X, y)
    states = [trainer.start({}, seed) for seed in range(3)]
    states = [trainer.train(trainer.train(state, 1), 1) for state in states]
    predicted = trainer.folds(states[0])[0].kept["bins"]._predicted
    assert len(predicted) == 3
    del states[0]
    gc.collect()
    assert len(predicted) == 2
    monkeypatch.setattr(compat, "PREDICTED_BYTES", 8 * len(trainer.splits[0].train))
    trainer.train(states[0], 1)
    assert list(predicted) == [states[0].model]


class OwnBins(HistGradientBoostingClassifier):
    """Bins that are none of scikit-learn's."""

    def _bin_data(self, *given: Any, **named: Any) -> Any:
        """Count itself."""
        self.times = getattr(self, "times", 0) + 1
        return super()._bin_data(*given, **named)


class HistGradientBoostingOfMyOwn(OwnBins):
    """Known by its name."""


def test_a_model_with_bins_of_its_own_is_fitted_plainly() -> None:
    trainer = Estimator(HistGradientBoostingOfMyOwn(), X, y)
    state = trainer.train(trainer.train(trainer.start({}, 0), 1), 1)
    assert state.model.times == 2
    assert not trainer.folds(state)[0].kept


def test_bins_are_shared_only_where_the_hook_was_tried(plainly: Any) -> None:
    assert can_share_bins(Classifier(early_stopping=False))
    assert can_share_bins(Regressor(early_stopping=False))
    assert not can_share_bins(Classifier())  # it may set rows apart
    assert not can_share_bins(OwnBins(early_stopping=False))
    plainly()
    assert not can_share_bins(Classifier(early_stopping=False))
    trainer = Estimator(Classifier(), X, y)
    assert not trainer.folds(trainer.train(trainer.start({}, 0), 1))[0].kept


def test_a_fit_that_fails_leaves_the_model_as_scikit_learn_does() -> None:
    model = Classifier(early_stopping=False, max_bins=3, categorical_features=[5])
    with pytest.raises(ValueError, match="cardinality"), BinnedRows(codes).fitting(model):
        model.fit(codes, y)
    assert not {"_bin_data", "_preprocess_X", "_raw_predict"} & vars(model).keys()
    assert histogram_boosting.HISTOGRAM_BOOSTING.accepts(model)


def test_rows_to_stop_by_are_refused_as_before() -> None:
    def fitted() -> None:
        trainer = Estimator(Classifier(), X, y, fit_params={"X_val": X[:9], "y_val": y[:9]})
        trainer.train(trainer.start({}, 0), 1)

    with pytest.raises(ValueError, match=r"early_stopping is False|does not take it"):
        fitted()
