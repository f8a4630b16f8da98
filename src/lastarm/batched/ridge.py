"""Ridge regression by stochastic gradient descent, many penalties at a time: the paper's §5.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from lastarm.batched.arrays import setting
from lastarm.batched.linear import LinearModels, Rule
from lastarm.trainers import Config


class RidgeRegression(LinearModels):
    """Linear regressions w·x with squared loss and no intercept, each with its own l2 penalty λ.

    The config is `{"lambda": λ}`. A pull is one sample (x, y): with T pulls before it, and w = 0
    before the first, it is a step of η = .01/√(2 + T) against the gradient of

        (w·x − y)² + λ‖w‖²,  that is  w ← (1 − 2ηλ) w − 2η (w·x − y) x.

    The samples are passes over TRAIN in random orders, the same for all arms. The loss is the mean
    squared error on VAL, the test loss that on TEST.

    :param X_train: the rows to learn from.
    :param y_train: their targets.
    :param X_val: the rows that give the loss.
    :param y_val: their targets.
    :param X_test: the rows that give the test loss; left out, there is none.
    :param y_test: their targets.
    :param step: the factor of η, .01 in the paper.
    :param seed: decides the order of the samples.
    :param dtype: float64 or float32.
    :param threads: the number of threads that share the arms. It changes no number.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0]
    >>> ridge = RidgeRegression(X[:200], y[:200], X[200:], y[200:])
    >>> arms = ridge.start([{"lambda": 1e-6}, {"lambda": 1.0}], seeds=[0, 1])
    >>> ridge.train(arms, [0, 1], pulls=20_000)
    >>> low, high = ridge.losses(arms, [0, 1])
    >>> bool(low < 0.01 < high)
    True
    >>> ridge.take(arms, 0).weights.round(1)
    array([[ 1., -1.]])
    """

    def __init__(
        self,
        X_train: ArrayLike,
        y_train: ArrayLike,
        X_val: ArrayLike,
        y_val: ArrayLike,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        *,
        step: float = 0.01,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
        threads: int = 1,
    ) -> None:
        super().__init__(
            *(X_train, y_train, X_val, y_val, X_test, y_test),
            learning_rate="paper",
            eta0=2 * step,  # half the gradient, twice the step
            fit_intercept=False,
            samples_per_pull=1,
            seed=seed,
            dtype=dtype,
            threads=threads,
        )

    def _rule_of(self, config: Config) -> Rule:
        return self._rule._replace(alpha=setting(config, "lambda"))
