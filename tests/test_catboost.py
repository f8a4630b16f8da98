"""CatBoost: live models have the trees of one `fit`, and loaded ones are grown again."""

import pickle
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lastarm import LogUniform, SuccessiveHalving, search
from lastarm.sklearn import HalvingSearch
from lastarm.trainers.estimators import Estimator, Trained, final_step
from tests.refusals import refused

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not find_spec("catboost"), reason="catboost: make frameworks"),
]
if find_spec("catboost"):
    from catboost import CatBoostClassifier, CatBoostRegressor

TWO = make_classification(400, 8, n_informative=5, flip_y=0.2, random_state=0)
MANY = tuple(part[:300] for part in load_digits(return_X_y=True))
NUMBERS = make_regression(300, 8, noise=5.0, random_state=0)
FRAME = pd.DataFrame(TWO[0]).assign(kind=np.where(TWO[0][:, 0] > 0, "a", "b"))
CASES: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "plain": ({}, TWO, {}),
    "nothing drawn": ({"bootstrap_type": "No", "random_strength": 0}, TWO, {}),
    "features": ({"rsm": 0.5, "depth": 3}, TWO, {}),
    "rows": ({"bootstrap_type": "Bernoulli", "subsample": 0.5, "border_count": 16}, TWO, {}),
    "ordered": ({"boosting_type": "Ordered"}, TWO, {}),
    "leaves": ({"grow_policy": "Lossguide"}, TWO, {}),
    "weights": ({}, TWO, {"sample_weight": np.random.default_rng(0).random(400)}),
    "balanced": ({"auto_class_weights": "Balanced"}, (TWO[0], TWO[1].astype(str)), {}),
    "missing": ({}, (np.where(TWO[0] > 1, np.nan, TWO[0]), TWO[1]), {}),
    "categories": ({}, (FRAME.rename(columns=str), TWO[1]), {"cat_features": ["kind"]}),
    "many classes": ({"depth": 3}, MANY, {}),
    "numbers": ({}, NUMBERS, {}),
    "from zero": ({"langevin": True}, TWO, {}),
}


def predicted(model: Any, X: Any) -> bytes:
    return np.asarray(model.predict(X, prediction_type="RawFormulaVal")).tobytes()


def copied(state: Trained) -> Trained:
    loaded: Trained = pickle.loads(pickle.dumps(state))
    return loaded


@pytest.mark.parametrize("name", CASES)
def test_an_arm_has_the_trees_of_one_fit(name: str, capfd: Any) -> None:
    settings, (X, y), fit_params = CASES[name]
    kind = CatBoostRegressor if name == "numbers" else CatBoostClassifier
    trainer = Estimator(kind(**settings), X, y, fit_params=fit_params, pulls_per_step=2)
    config = {"learning_rate": 0.1}
    (fold,) = trainer.folds(trainer.start({}, 0))
    alone = kind(**settings, **config, iterations=12, random_seed=7, thread_count=1, verbose=0)
    alone.set_params(allow_writing_files=False)
    alone.fit(fold.train.X, fold.train.y, **fold.params)
    state, other = trainer.start(config, 7), trainer.start(config, 8)
    for pulls in (1, 2, 3):
        state, other = trainer.train(state, pulls), trainer.train(other, pulls)
        assert trainer.loss(state) == trainer.loss(copied(state))
        if pulls == 2:
            saved = copied(state)
    assert predicted(state.model, X) == predicted(alone, X)
    assert not trainer.continues(saved)
    assert predicted(trainer.train(saved, 3).model, X) == predicted(alone, X)
    assert state.model.tree_count_ == 12
    usual = kind().get_params()
    assert state.model.get_params() == {**usual, **settings, **config, "iterations": 12}
    assert trainer.size(state) > trainer.size(copied(state)) > 1000
    assert capfd.readouterr().out == ""
    assert not Path("catboost_info").exists()


def test_pipelines_folds_and_searches() -> None:
    pipeline = make_pipeline(StandardScaler(), CatBoostClassifier(depth=3))
    trainer = Estimator(pipeline, *TWO, cv=2, scoring="neg_log_loss")
    space = {"catboostclassifier__learning_rate": LogUniform(0.03, 0.5)}

    def found(**others: Any) -> Any:
        return search(trainer, space, policy=SuccessiveHalving(arms=4, budget=16), **others)

    serial = found()
    assert found(runner="processes", workers=2).digest == serial.digest
    assert trainer.loss(serial.state) == trainer.loss(copied(serial.state)) == serial.loss
    assert all(len(fold.kept) == 1 for fold in trainer.folds(serial.state))
    halving = HalvingSearch(pipeline, space, n_arms=4, budget=16, random_state=0).fit(*TWO)
    assert isinstance(final_step(halving.best_estimator_), CatBoostClassifier)


def test_settings_are_in_the_fingerprint_and_pulls_decide_iterations() -> None:
    one, other = (Estimator(CatBoostClassifier(depth=d), *TWO).fingerprint() for d in (3, 4))
    assert one != other
    trainer = Estimator(CatBoostClassifier(), *TWO)
    with refused("n_estimators"):
        trainer.expect(dict.fromkeys(["depth", "n_estimators"], ()))
    with refused("eval_set"):
        Estimator(CatBoostClassifier(), *TWO, fit_params={"eval_set": TWO})
