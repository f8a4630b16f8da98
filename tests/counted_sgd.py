"""An estimator that counts its passes; the workers of other trainers need no scikit-learn."""

import os
from pathlib import Path
from typing import Any

from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lastarm.data import digits
from lastarm.trainers.estimators import Estimator


class CountedSGD(SGDClassifier):
    """Counts its passes over the data."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        with Path(os.environ["TALLY"]).open("ab", buffering=0) as file:
            file.write(b"x")
        return super().partial_fit(X, y, classes, sample_weight)


def trainer() -> Estimator:
    images, labels = digits()
    return Estimator(
        make_pipeline(StandardScaler(), CountedSGD()), images[:200].astype(float), labels[:200]
    )
