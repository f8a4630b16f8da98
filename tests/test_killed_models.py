"""Models that draw, searched as users do: the same answer on workers and after a kill -9."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from xgboost import XGBClassifier

from lastarm import LogUniform, Uniform
from lastarm.sklearn import HalvingSearch

X, y = make_classification(240, 8, n_informative=5, n_classes=3, random_state=0)
WITH_GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
PARTS = np.arange(180), np.arange(180, 240)
DIES_AT = "LASTARM_TEST_DIES_AT"
RATE = {"learning_rate": LogUniform(0.05, 0.5)}
SHARES = {"subsample": Uniform(0.4, 0.9), "colsample_bytree": Uniform(0.4, 0.9)}
# What is searched, and whether a model that was saved can be trained further.
MODELS: dict[str, tuple[Any, dict[str, Any], Any, bool]] = {
    "LightGBM": (
        LGBMClassifier(verbose=-1, num_leaves=5, subsample_freq=1, class_weight="balanced"),
        {**RATE, **SHARES},
        WITH_GAPS,
        False,
    ),
    "XGBoost": (XGBClassifier(max_depth=2), {**RATE, **SHARES}, WITH_GAPS, False),
    "HistGradientBoosting": (
        HistGradientBoostingClassifier(max_leaf_nodes=5, class_weight="balanced"),
        {**RATE, "max_features": Uniform(0.3, 0.9)},
        WITH_GAPS,
        True,
    ),
    "MLP": (MLPClassifier((6,)), {"learning_rate_init": LogUniform(1e-3, 1e-1)}, X, True),
    "forest": (RandomForestClassifier(), {"max_features": Uniform(0.2, 0.9)}, WITH_GAPS, True),
}
looks = [0]


def scored(model: Any, rows: Any, targets: Any) -> float:
    """The mean logarithm of what the right classes were given; it may be the last look."""
    looks[0] += 1
    if looks[0] == int(os.environ.get(DIES_AT, "0")):
        os.kill(os.getpid(), signal.SIGKILL)
    chances = model.predict_proba(rows)[np.arange(len(targets)), targets]
    return float(np.log(chances + 1e-9).mean())


def searched(name: str, **given: Any) -> HalvingSearch:
    """A search of six arms, with weights."""
    estimator, space, rows, _ = MODELS[name]
    halving = HalvingSearch(
        estimator,
        space,
        n_arms=6,
        budget=60,
        cv=[PARTS],
        scoring=scored,
        refit="keep",
        recommend="latest",
        random_state=0,
        **given,
    )
    return halving.fit(rows, y, sample_weight=0.5 + np.arange(240) % 3)


@pytest.mark.filterwarnings("ignore:The scoring .* does not support sample_weight:UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_models_that_draw_answer_the_same_on_workers_and_after_a_kill(
    name: str, tmp_path: Path
) -> None:
    journal = tmp_path / "killed.jsonl"
    alone = searched(name)
    assert searched(name, n_jobs=2).result_.digest == alone.result_.digest
    code = "import sys; from tests.test_killed_models import searched\n"
    code += "searched(sys.argv[1], journal=sys.argv[2])"
    killed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, name, str(journal)],
        env={**os.environ, DIES_AT: "8"},  # of six looks, then three and one
        cwd=Path(__file__).parent.parent,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    resumed = searched(name, journal=journal)
    assert resumed.result_.digest == alone.result_.digest
    assert resumed.spent_.pulls == alone.spent_.pulls
    _, _, rows, continues = MODELS[name]
    assert (resumed.spent_.repeated > 0) or continues
    for found in (alone, resumed):
        best = found.best_estimator_
        assert type(best) is type(MODELS[name][0])
        copy = pickle.loads(pickle.dumps(best))
        for model in (best, copy):
            assert scored(model, rows[PARTS[1]], y[PARTS[1]]) == found.best_score_
    assert np.array_equal(alone.predict(rows), resumed.predict(rows))
