"""SGDClassifier and SGDRegressor as a batched trainer: all settings of a search in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from lastarm.batched.adapters import value_or_error
from lastarm.batched.arrays import Array
from lastarm.batched.linear import ModelTable, Rule
from lastarm.errors import InvalidArgument
from lastarm.sklearn.batched_sgd_support import why_not_these
from lastarm.sklearn.cv_results import FoldByFold
from lastarm.trainers import Config
from lastarm.trainers.estimators import Estimator, Fold, Trained, final_step
from lastarm.trainers.estimators.family import Lesson, Randomness
from lastarm.trainers.estimators.scoring import ONLY


class Rows(NamedTuple):
    """What the kernel reads: numbers, and targets; for a classifier −1 or 1 for each class."""

    X: Array
    Y: Array

    @classmethod
    def of(cls, lesson: Lesson) -> Rows:
        """The rows of a lesson, in single precision if they are given in it, else in double."""
        given = np.asarray(lesson.X)
        X = np.ascontiguousarray(given, np.float32 if given.dtype == np.float32 else np.float64)
        if lesson.classes is None:
            return cls(X, np.asarray(lesson.y, X.dtype)[:, None])
        against = lesson.classes[1:] if len(lesson.classes) == 2 else lesson.classes
        one, other = np.array([1, -1], X.dtype)
        return cls(X, np.where(np.asarray(lesson.y)[:, None] == against, one, other))


class ArmSettings(NamedTuple):
    """What an arm is besides its weights."""

    config: Config
    seed: int
    pulls: int


@dataclass
class SGDBatch:
    """Arms, and for every fold the models of all arms, those of one arm side by side."""

    arms: list[ArmSettings]
    folds: list[ModelTable]


class BatchedSGD:
    """The arms of an `Estimator` in one batch, if `why_not` finds no reason against it.

    A pass goes over TRAIN in an order that is the same for all arms. It is drawn from the
    `random_state` that the arms share, or else from the trainer's seed. An arm on its own is a
    fitted estimator of scikit-learn.

    :param trainer: the trainer that would train the arms one at a time.
    :param threads: the number of threads that share the arms. It changes no number.
    :param train_scores: whether the scores on TRAIN are told, too.
    """

    recorded_as = "LinearTogether"  # its name in journals of version 0.1

    def __init__(
        self, trainer: Estimator, threads: int = 1, *, train_scores: bool = False
    ) -> None:
        self._trainer = trainer
        self._look = FoldByFold(trainer, train_scores=train_scores)
        self._threads = threads
        self.shown_as = trainer.shown_as
        estimator = trainer.estimator
        self._step = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
        self._usual = final_step(estimator).get_params()
        self._classifies = is_classifier(final_step(estimator))
        self._kept: list[Fold] = []
        self._rows: list[tuple[Rows, Rows]] = []  # TRAIN and VAL of each fold

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> SGDBatch:
        """Models with weights of 0. Settings that scikit-learn refuses are refused now."""
        arms = [ArmSettings(*one, 0) for one in zip(configs, seeds, strict=True)]
        for arm in arms:
            if arm is arms[0] or not _plain(self._settings(arm.config)):
                self._begun(arm)  # scikit-learn checks the settings
        rules = [self._rule(arm) for arm in arms]
        return SGDBatch(arms, [_zeros(rules, train) for train, _ in self._read(arms[0])])

    def train(self, batch: SGDBatch, arms: Sequence[int], pulls: int) -> None:
        """Train all arms on the rows of one fold after another."""
        (done,) = {batch.arms[arm].pulls for arm in arms}
        first, steps = batch.arms[arms[0]], self._trainer.pulls_per_step
        for fold, (rows, _) in zip(batch.folds, self._read(first), strict=True):
            places = _places(arms, rows.Y.shape[1])
            models = fold.chosen(places)
            begin, end = (len(rows.X) * steps * level for level in (done, done + pulls))
            models.descend(rows.X, rows.Y, self._order(first), begin, end, self._threads)
            fold.put(places, models)
        for arm in arms:
            batch.arms[arm] = batch.arms[arm]._replace(pulls=done + pulls)

    def losses(self, batch: SGDBatch, arms: Sequence[int]) -> list[Any]:
        """What `FoldByFold` tells of each arm; for an arm that has no loss, the error."""
        count = len(batch.arms)
        by_fold = [models.finite.reshape(count, -1).all(axis=1) for models in batch.folds]
        finite = np.all(by_fold, axis=0)[list(arms)]
        judged = [val for _, val in self._read(batch.arms[arms[0]])]
        # For equal targets scikit-learn has another rule than the formula of R².
        varied = self._classifies or all(np.var(val.Y.astype(np.float64)) > 0 for val in judged)
        if self._trainer.scoring in (None, "score") and varied and not self._look.train_scores:
            folds = zip(batch.folds, judged, strict=True)
            losses = np.array([self._judged(*fold, arms) for fold in folds]).T.tolist()
            told = [self._look.told([{ONLY: -loss} for loss in one]) for one in losses]
        else:
            told = [
                value_or_error(self._look.loss, self.take(batch, arm)) if fit else {}
                for arm, fit in zip(arms, finite, strict=True)
            ]
        return [one if fit else _overflow() for one, fit in zip(told, finite, strict=True)]

    def take(self, batch: SGDBatch, arm: int) -> Trained:
        """A copy of the arm, with fitted models of scikit-learn."""
        config, seed, pulls = batch.arms[arm]
        state = self._begun(batch.arms[arm])
        for i, (rows, _) in enumerate(self._read(batch.arms[arm])):
            weights = batch.folds[i].chosen(_places([arm], rows.Y.shape[1]))
            seen = self._trainer.pulls_per_step * pulls * len(rows.X)
            _put(final_step(state.models[i]), weights, seen)
        return Trained(config, seed, pulls, state.models)

    def gather(self, ones: Sequence[Trained]) -> SGDBatch:
        """The weights of all arms, one after another."""
        arms = [ArmSettings(one.config, one.seed, one.pulls) for one in ones]
        folds = []
        for i in range(len(ones[0].models)):
            models = [final_step(one.models[i]) for one in ones]
            weights = np.concatenate([np.atleast_2d(model.coef_) for model in models])
            targets = len(weights) // len(ones)
            folds.append(
                ModelTable(
                    weights,
                    np.concatenate([model.intercept_ for model in models]).astype(weights.dtype),
                    [rule for arm in arms for rule in [self._rule(arm)] * targets],
                    np.tile(np.arange(targets), len(ones)),
                )
            )
        return SGDBatch(arms, folds)

    def on_all_rows(self, config: Config, seed: int, pulls: int) -> Any:
        """A model with these settings that has learnt from all rows, including VAL."""
        model, lesson = self._trainer.begun_on_all_rows(config, seed)
        if why_not_these(lesson.X, lesson.y, classified=self._classifies):
            return self._trainer.on_all_rows(config, seed, pulls)
        arm, rows = ArmSettings(config, seed, 0), Rows.of(lesson)
        _begin(final_step(model), lesson, seed)
        weights = _zeros([self._rule(arm)], rows)
        seen = lesson.steps * pulls * len(rows.X)
        weights.descend(rows.X, rows.Y, self._order(arm), 0, seen, self._threads)
        if not weights.finite.all():
            raise _overflow()
        _put(final_step(model), weights, seen)
        return model

    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the trainer, and the name of the kernel."""
        return {"kernel": "linear", **self._look.fingerprint()}

    def _settings(self, config: Config) -> dict[str, Any]:
        return {name.removeprefix(self._step): value for name, value in config.items()}

    def _rule(self, arm: ArmSettings) -> Rule:
        """The kernel's rule for these settings."""
        settings = {**self._usual, **self._settings(arm.config)}
        numbers = {name: float(settings[name]) for name in ("alpha", "eta0", "power_t")}
        rule = Rule(
            settings["loss"],
            learning_rate=settings["learning_rate"],
            fit_intercept=bool(settings["fit_intercept"]),
            **numbers,
        )
        try:
            rule.checked()
        except InvalidArgument:
            self._begun(arm)  # scikit-learn's own message comes first
            raise
        return rule if settings["penalty"] else rule._replace(alpha=0.0)

    def _order(self, arm: ArmSettings) -> int:
        """The seed of the order of the rows."""
        own = {**self._usual, **self._settings(arm.config)}["random_state"]
        return self._trainer.seed if own is None else int(own)

    def _folds(self, arm: ArmSettings) -> list[Fold]:
        """The folds, which are the same for all arms."""
        if not self._kept:
            self._kept = self._trainer.folds(self._trainer.start(arm.config, arm.seed))
        return self._kept

    def _begun(self, arm: ArmSettings) -> Trained:
        """An arm as scikit-learn starts it. Its models have seen one row and can take weights."""
        state = self._trainer.start(arm.config, arm.seed)
        for model, fold in zip(state.models, self._folds(arm), strict=True):
            if fold.transformers is not None:
                model.steps[:-1] = deepcopy(fold.transformers.steps)
            _begin(final_step(model), self._trainer.lesson(fold), arm.seed)
        return state

    def _read(self, arm: ArmSettings) -> list[tuple[Rows, Rows]]:
        """TRAIN and VAL of each fold."""
        if not self._rows:
            self._rows = [
                (Rows.of(lesson), Rows.of(lesson._replace(X=val.X, y=val.y)))
                for fold in self._folds(arm)
                for lesson, val in [(self._trainer.lesson(fold), fold.validation)]
            ]
        return self._rows

    def _judged(self, fold: ModelTable, val: Rows, arms: Sequence[int]) -> Array:
        targets = val.Y.shape[1]
        models = fold.chosen(_places(arms, targets))
        wanted = self._trainer.scoring
        if self._classifies:
            labels = val.Y[:, 0] > 0 if targets == 1 else val.Y.argmax(axis=1)
            wrong = models.mistakes(val.X, labels.astype(np.int64), targets) / len(labels)
            return wrong if wanted is None else wrong - 1
        errors = models.mean_squared_errors(val.X, val.Y)
        return errors if wanted is None else errors / np.var(val.Y.astype(np.float64)) - 1


def _zeros(rules: Sequence[Rule], rows: Rows) -> ModelTable:
    return ModelTable.zeros(rules, rows.X.shape[1], rows.X.dtype, rows.Y.shape[1])


def _places(arms: Sequence[int], targets: int) -> NDArray[np.int64]:
    return (np.asarray(arms)[:, None] * targets + np.arange(targets)).ravel()


def _plain(settings: Config) -> bool:
    """Whether `Rule.checked` refuses all that scikit-learn would refuse of such settings."""
    kinds: dict[str, tuple[type, ...]] = {"fit_intercept": (bool,)}
    kinds |= dict.fromkeys(("loss", "learning_rate"), (str,))
    kinds |= dict.fromkeys(("alpha", "eta0", "power_t"), (float, int, np.float64))
    plain = all(type(value) in kinds.get(name, ()) for name, value in settings.items())
    return plain and settings.get("eta0", 1) > 0  # scikit-learn refuses steps of 0


def _overflow() -> ValueError:
    return ValueError(
        "the weights are no longer finite: the steps are too long for these rows. Scale the rows, "
        "or try shorter steps."
    )


def _begin(model: Any, lesson: Lesson, seed: int) -> None:
    """Fit the model to one row: it checks its settings, and can take weights afterwards."""
    row = lesson.X.iloc[:1] if hasattr(lesson.X, "iloc") else lesson.X[:1]
    classes = {} if lesson.classes is None else {"classes": lesson.classes}
    random = Randomness(model, seed)
    random.of(0)
    model.partial_fit(row, lesson.y[:1], **classes)
    random.put_back()


def _put(model: Any, trained: ModelTable, seen: int) -> None:
    """Give trained weights to a model that has seen a row."""
    model.coef_ = trained.weights.reshape(model.coef_.shape).copy()
    model.intercept_ = trained.intercepts.astype(model.intercept_.dtype)
    model.t_ = 1.0 + seen
