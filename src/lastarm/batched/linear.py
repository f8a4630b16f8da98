"""Linear regressions and classifiers by stochastic gradient descent, many settings at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.arguments import whole_number
from lastarm.batched.arrays import Array, common_level, float_type, signs, tables
from lastarm.batched.kernels.block_products import BLOCK
from lastarm.batched.linear_arms import Lines, Rule
from lastarm.errors import InvalidArgument
from lastarm.plain import fingerprint
from lastarm.trainers import Config


@dataclass
class LinearArms:
    """Arms: the models, the pulls so far of each, and the models at their last whole block.

    Training goes on from there, so that an arm is the same to the last bit however its pulls came.
    """

    models: Lines
    whole: Lines
    pulls: NDArray[np.int64]

    @property
    def weights(self) -> Array:
        """A row an arm."""
        return self.models.weights


class LinearModels:
    """Linear models w·x + b, each with its own loss, penalty and steps.

    The config may hold `loss`, `alpha`, `learning_rate`, `eta0` and `power_t`, which mean what
    they do in scikit-learn's SGDRegressor and SGDClassifier (see
    `lastarm.batched.linear_arms.Rule`); what it does not hold is as given here. There is a step
    a sample; a pull is `samples_per_pull` of them, by default a pass over TRAIN. Passes are in
    random orders, the same for all arms, by `seed`.

    With the loss "squared_error" these are regressions, and the loss of an arm is the mean squared
    error on VAL. With "hinge", "perceptron", "squared_hinge", "modified_huber" or "log_loss" they
    are classifiers with targets of −1 and 1, and it is the fraction of VAL on the wrong side; a
    config of theirs may have "squared_error", too. The test loss is that on TEST. `threads` share
    the arms among them, and change no number.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.sign(X @ [1.0, -1.0])
    >>> classifiers = LinearModels(X[:200], y[:200], X[200:], y[200:], loss="hinge", eta0=0.1)
    >>> arms = classifiers.start([{"alpha": 1e-4}, {"alpha": 1e-3, "loss": "log_loss"}], [0, 1])
    >>> classifiers.train(arms, [0, 1], pulls=20)
    >>> classifiers.losses(arms, [0, 1]).round(1)
    array([0., 0.])
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
        loss: str = "squared_error",
        alpha: float = 1e-4,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        fit_intercept: bool = True,
        samples_per_pull: int | None = None,
        seed: int = 0,
        dtype: DTypeLike = np.float64,
        threads: int = 1,
    ) -> None:
        self._dtype = float_type(dtype)
        self._rule = Rule(loss, alpha, learning_rate, eta0, power_t, fit_intercept).checked()
        parts = tables((X_train, y_train), (X_val, y_val), (X_test, y_test), self._dtype)
        if self._classifies:
            signs(parts)
        self._parts = {name: (X, y[:, None]) for name, (X, y) in parts.items()}
        self._rows = len(parts["train"][0])
        self._per_pull = whole_number(
            "samples_per_pull",
            self._rows if samples_per_pull is None else samples_per_pull,
            1,
            "how many samples a pull is",
        )
        self._seed = whole_number("seed", seed, 0, "what the order of the samples comes from")
        self._threads = whole_number("threads", threads, 1, "how many share the work")
        if "test" in parts:
            self.tests = self._tests  # without TEST there is no such method

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> LinearArms:
        """Weights of 0; the arms' seeds are not needed."""
        features = self._parts["train"][0].shape[1]
        rules = [self._rule_of(config) for config in configs]
        flat = Lines.flat(rules, features, self._dtype)
        same = flat.chosen(range(len(rules)))
        return LinearArms(flat, same, np.zeros(len(rules), np.int64))

    def train(self, batch: LinearArms, arms: Sequence[int], pulls: int) -> None:
        """From the last whole block on: those that follow, and what is left."""
        level, chosen = common_level(batch.pulls, arms), np.asarray(arms)
        begin, end = level * self._per_pull, (level + pulls) * self._per_pull
        models = batch.whole.chosen(chosen)
        whole = self._whole(end)
        self._descend(models, self._whole(begin), whole)
        batch.whole.put(chosen, models)
        self._descend(models, whole, end)
        batch.models.put(chosen, models)
        batch.pulls[chosen] += pulls

    def losses(self, batch: LinearArms, arms: Sequence[int]) -> NDArray[np.float64]:
        """The mean squared errors on VAL, or the fractions on the wrong side."""
        return self._errors(batch, arms, "val")

    def _tests(self, batch: LinearArms, arms: Sequence[int]) -> NDArray[np.float64]:
        return self._errors(batch, arms, "test")

    def _errors(self, batch: LinearArms, arms: Sequence[int], part: str) -> NDArray[np.float64]:
        models, (X, Y) = batch.models.chosen(arms), self._parts[part]
        if not self._classifies:
            return models.mean_squared_errors(X, Y)
        wrong = models.mistakes(X, (Y[:, 0] > 0).astype(np.int64), targets=1) / len(X)
        return np.where(models.finite, wrong, np.nan)  # it is neither for one class nor the other

    def take(self, batch: LinearArms, arm: int) -> LinearArms:
        """A copy of its models."""
        return LinearArms(
            batch.models.chosen([arm]), batch.whole.chosen([arm]), batch.pulls[[arm]]
        )

    def gather(self, ones: Sequence[LinearArms]) -> LinearArms:
        """Their models, one after another."""
        if len(ones) == 1:
            return ones[0]
        return LinearArms(
            Lines.joined([one.models for one in ones]),
            Lines.joined([one.whole for one in ones]),
            np.concatenate([one.pulls for one in ones]),
        )

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the data and the settings."""
        return {
            "data": fingerprint([array for part in self._parts.values() for array in part]),
            **self._rule._asdict(),
            "samples_per_pull": self._per_pull,
            "seed": self._seed,
        }

    @property
    def _classifies(self) -> bool:
        return self._rule.loss != "squared_error"

    def _rule_of(self, config: Config) -> Rule:
        if unknown := config.keys() - {"loss", "alpha", "learning_rate", "eta0", "power_t"}:
            raise InvalidArgument(
                f"the config {dict(config)!r} has {', '.join(sorted(unknown))}: give loss, alpha, "
                "learning_rate, eta0 and power_t, or some of them."
            )
        rule = self._rule._replace(**config).checked()
        if not self._classifies and rule.loss != self._rule.loss:
            raise InvalidArgument(
                f"the config {dict(config)!r} has the loss of a classifier, and these are "
                'regressions: say what they are by `loss`, such as loss="hinge".'
            )
        return rule

    def _whole(self, sample: int) -> int:
        """Where the block begins that is not over at that sample; a pass begins with a new one."""
        return sample - sample % self._rows % BLOCK

    def _descend(self, models: Lines, begin: int, end: int) -> None:
        X, Y = self._parts["train"]
        models.descend(X, Y, self._seed, begin, end, self._threads)
