"""64 arms of SGDClassifier and the rows they learn from, the same for everyone in `sooner`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from digits_arms import ARMS, FAMILIES
from lastarm.space import draw
from lastarm.trainers.protocol import arm_seed
from lastarm.trainers.splits import split

SPACE, EPOCHS = FAMILIES[0].space, FAMILIES[0].max_pulls
ROWS, TEST_ROWS, FEATURES = 50_000, 20_000, 90
# All features matter and none is scaled: arms that are good after an epoch need not be later.
GENERATOR = {"n_informative": 60, "n_redundant": 30, "class_sep": 1.0, "flip_y": 0.01}


class Attempt(NamedTuple):
    """One setting of a contender: the test loss of the model that it handed over, and its cost."""

    setting: str
    loss: float
    epochs: int
    seconds: float


@dataclass(frozen=True)
class Task:
    """The arms of one seed, and the rows: TRAIN first, then VAL; TEST apart."""

    seed: int
    arms: list[dict[str, Any]]
    learnt: int  # rows of TRAIN
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]

    def tiny(self, arms: int) -> Task:
        """Some of the arms on few of the rows, to warm a contender up."""
        rows = [*range(200), *range(self.learnt, self.learnt + 100)]
        return replace(self, arms=self.arms[:arms], learnt=200, X=self.X[rows], y=self.y[rows])

    def begun(self, arm: int, **settings: Any) -> Any:
        """The arm untrained, with random numbers of its own in every epoch."""
        random = np.random.RandomState(arm_seed(self.seed, arm) % 2**32)
        return SGDClassifier(random_state=random, **self.arms[arm], **settings)

    def epoch(self, model: Any) -> float:
        """Go through TRAIN once more, and see what VAL says."""
        model.partial_fit(self.X[: self.learnt], self.y[: self.learnt], classes=[0, 1])
        return float(np.mean(model.predict(self.X[self.learnt :]) != self.y[self.learnt :]))

    def fully(self, arm: int) -> Any:
        """The arm, fully trained at once: the quickest that scikit-learn can do it."""
        model = self.begun(arm, max_iter=EPOCHS, tol=None)
        return model.fit(self.X[: self.learnt], self.y[: self.learnt])

    def test(self, model: Any) -> float:
        """The part of TEST that it gets wrong."""
        return float(np.mean(model.predict(self.X_test) != self.y_test))


@lru_cache(maxsize=1)
def task(file: str | None, seed: int) -> Task:
    """The arms and the split of a seed, on the rows of a file or else on made ones."""
    if file is None:
        X, y = make_classification(ROWS + TEST_ROWS, FEATURES, random_state=0, **GENERATOR)
        X, X_test, y, y_test = X[:ROWS], X[ROWS:], y[:ROWS], y[ROWS:]
    else:
        with np.load(file) as rows:
            X, y, X_test, y_test = (rows[name] for name in ("X", "y", "X_test", "y_test"))
    train, validation, _ = split(y, seed, test=0)
    order = np.concatenate([train, validation])
    labels = [(part > 0).astype(np.int64) for part in (y[order], y_test)]
    numbers = [np.asarray(part, np.float64) for part in (X[order], X_test)]
    arms = draw(SPACE, ARMS, seed)
    return Task(seed, arms, len(train), numbers[0], labels[0], numbers[1], labels[1])


def final_losses(file: str | None, seed: int, arm: int) -> tuple[float, float]:
    """Of an arm that was fully trained, on VAL and on TEST."""
    given = task(file, seed)
    model = given.fully(arm)
    wrong = model.predict(given.X[given.learnt :]) != given.y[given.learnt :]
    return float(np.mean(wrong)), given.test(model)
