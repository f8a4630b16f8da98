"""SGDClassifier and SGDRegressor, all settings of a search in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from lastarm.batched.arrays import Array
from lastarm.batched.linear_arms import Lines, Rule
from lastarm.sklearn.searching import fold_by_fold
from lastarm.trainers import Config
from lastarm.trainers.estimators import Estimator, Fold, Trained, final_step
from lastarm.trainers.growing import Lesson, Randomness


class Rows(NamedTuple):
    """What the kernel reads of a lesson: numbers, and −1 or 1 for every class, or the targets."""

    X: Array
    Y: Array

    @classmethod
    def of(cls, lesson: Lesson) -> Rows:
        """The kernel computes in single precision where the rows are given in it."""
        given = np.asarray(lesson.X)
        X = np.ascontiguousarray(given, np.float32 if given.dtype == np.float32 else np.float64)
        if lesson.classes is None:
            return cls(X, np.asarray(lesson.y, X.dtype)[:, None])
        against = lesson.classes[1:] if len(lesson.classes) == 2 else lesson.classes
        return cls(X, np.where(np.asarray(lesson.y)[:, None] == against, 1, -1).astype(X.dtype))


@dataclass
class Group:
    """Arms: what each is, and for every fold the models of all, those of an arm in a row."""

    states: list[Trained]
    folds: list[Lines]


class LinearTogether:
    """The arms of an `Estimator` as a batch, for settings that `why_not` has nothing against.

    A pass goes over TRAIN in an order that is the same for all arms, drawn from the trainer's
    seed, or from the `random_state` of theirs. An arm on its own is a genuine estimator, fitted.
    """

    def __init__(self, trainer: Estimator, threads: int = 1) -> None:
        self._trainer = trainer
        self._threads = threads
        self._classifies = is_classifier(final_step(trainer.estimator))
        self._rows: dict[int, tuple[Fold, Rows, Rows]] = {}  # by the place of the fold

    def start(self, configs: Sequence[Config], seeds: Sequence[int]) -> Group:
        """Weights of 0."""
        states = [self._trainer.start(*one) for one in zip(configs, seeds, strict=True)]
        folds = []
        for i, fold in enumerate(self._trainer.folds(states[0])):
            train, _ = self._read(i, fold)
            rules = []
            for state in states:
                model = state.models[i]
                if fold.transformers is not None:
                    model.steps[:-1] = fold.transformers.steps
                _begin(final_step(model), self._lesson(fold), state.seed)
                rules.append(_rule(final_step(model)))
            folds.append(Lines.flat(rules, train.X.shape[1], train.X.dtype, train.Y.shape[1]))
        return Group(states, folds)

    def train(self, batch: Group, arms: Sequence[int], pulls: int) -> None:
        """All arms go through the rows of each fold together."""
        (done,) = {batch.states[arm].pulls for arm in arms}
        steps = self._trainer.pulls_per_step
        for i, fold in enumerate(self._trainer.folds(batch.states[arms[0]])):
            rows, _ = self._read(i, fold)
            places = _places(arms, rows.Y.shape[1])
            models = batch.folds[i].chosen(places)
            passes = (steps * done, steps * (done + pulls))
            begin, end = (len(rows.X) * number for number in passes)
            seed = self._seed(batch.states[arms[0]])
            models.descend(rows.X, rows.Y, seed, begin, end, self._threads)
            batch.folds[i].put(places, models)
        for arm in arms:
            batch.states[arm].pulls += pulls

    def losses(self, batch: Group, arms: Sequence[int]) -> list[Any]:
        """What VAL says of each, fold by fold; or why an arm has none."""
        count = len(batch.states)
        by_fold = [lines.finite.reshape(count, -1).all(axis=1) for lines in batch.folds]
        finite = np.all(by_fold, axis=0)[list(arms)]
        folds = list(enumerate(self._trainer.folds(batch.states[arms[0]])))
        if self._trainer.scoring in (None, "score") and all(self._varied(*fold) for fold in folds):
            judged = np.array([self._judged(*fold, batch, arms) for fold in folds])
            losses: Sequence[Sequence[float]] = judged.T.tolist()
        else:
            losses = [
                self._trainer.losses(self.take(batch, arm)) if fit else []
                for arm, fit in zip(arms, finite, strict=True)
            ]
        overflow = ValueError(
            "the weights went beyond all numbers. Scale the rows, or try shorter steps."
        )
        return [
            fold_by_fold(one) if fit else overflow for one, fit in zip(losses, finite, strict=True)
        ]

    def take(self, batch: Group, arm: int) -> Trained:
        """A copy, with genuine models."""
        state = batch.states[arm]
        models = []
        for i, fold in enumerate(self._trainer.folds(state)):
            rows, _ = self._read(i, fold)
            lines = batch.folds[i].chosen(_places([arm], rows.Y.shape[1]))
            steps = self._trainer.pulls_per_step * state.pulls
            models.append(_fitted(state.models[i], lines, seen=steps * len(rows.X)))
        return Trained(state.config, state.seed, state.pulls, models)

    def gather(self, ones: Sequence[Trained]) -> Group:
        """Their weights, one after another."""
        folds = []
        for i in range(len(ones[0].models)):
            models = [final_step(one.models[i]) for one in ones]
            weights = np.concatenate([np.atleast_2d(model.coef_) for model in models])
            targets = len(weights) // len(ones)
            folds.append(
                Lines(
                    weights,
                    np.concatenate([model.intercept_ for model in models]).astype(weights.dtype),
                    [rule for model in models for rule in [_rule(model)] * targets],
                    np.tile(np.arange(targets), len(ones)),
                )
            )
        return Group(list(ones), folds)

    def on_all_rows(self, config: Config, seed: int, pulls: int) -> Any:
        """A model with these settings that has learnt from all rows there are, also VAL."""
        whole, lesson = self._trainer.begun_on_all_rows(config, seed)
        model, rows = final_step(whole), Rows.of(lesson)
        _begin(model, lesson, seed)
        lines = Lines.flat([_rule(model)], rows.X.shape[1], rows.X.dtype, rows.Y.shape[1])
        seen = lesson.steps * pulls * len(rows.X)
        own = self._seed(Trained(config, seed, 0, [whole]))
        lines.descend(rows.X, rows.Y, own, 0, seen, self._threads)
        return _fitted(whole, lines, seen)

    def fingerprint(self) -> dict[str, Any]:
        """That of the trainer, whose arms they are."""
        return {"kernel": "linear", **self._trainer.fingerprint()}

    def _lesson(self, fold: Fold) -> Lesson:
        trainer = self._trainer
        return Lesson(fold.X_train, fold.y_train, trainer.classes, trainer.pulls_per_step)

    def _read(self, i: int, fold: Fold) -> tuple[Rows, Rows]:
        """TRAIN and VAL of fold i, read once."""
        if i not in self._rows or self._rows[i][0] is not fold:
            lesson = self._lesson(fold)
            judged = lesson._replace(X=fold.X_validation, y=fold.y_validation)
            self._rows[i] = fold, Rows.of(lesson), Rows.of(judged)
        _, train, val = self._rows[i]
        return train, val

    def _seed(self, state: Trained) -> int:
        own = final_step(state.models[0]).random_state
        return self._trainer.seed if own is None else int(own)

    def _varied(self, i: int, fold: Fold) -> bool:
        """Whether R² is what its formula says: it has other rules for targets that are all one."""
        _, val = self._read(i, fold)
        return self._classifies or bool(np.ptp(val.Y) > 0)

    def _judged(self, i: int, fold: Fold, batch: Group, arms: Sequence[int]) -> Array:
        _, val = self._read(i, fold)
        targets = val.Y.shape[1]
        lines = batch.folds[i].chosen(_places(arms, targets))
        wanted = self._trainer.scoring
        if self._classifies:
            labels = val.Y[:, 0] > 0 if targets == 1 else val.Y.argmax(axis=1)
            wrong = lines.mistakes(val.X, labels.astype(np.int64), targets) / len(labels)
            return wrong if wanted is None else wrong - 1
        errors = lines.mean_squared_errors(val.X, val.Y)
        return errors if wanted is None else errors / np.var(val.Y.astype(np.float64)) - 1


def _places(arms: Sequence[int], targets: int) -> NDArray[np.int64]:
    return (np.asarray(arms)[:, None] * targets + np.arange(targets)).ravel()


def _rule(model: Any) -> Rule:
    return Rule(
        model.loss,
        float(model.alpha) if model.penalty else 0.0,
        model.learning_rate,
        float(model.eta0),
        float(model.power_t),
        bool(model.fit_intercept),
    )


def _begin(model: Any, lesson: Lesson, seed: int) -> None:
    """Let the model look at its settings and at a row: what it refuses, it refuses now."""
    row = lesson.X.iloc[:1] if hasattr(lesson.X, "iloc") else lesson.X[:1]
    classes = {} if lesson.classes is None else {"classes": lesson.classes}
    random = Randomness(model, seed)
    random.of(0)
    model.partial_fit(row, lesson.y[:1], **classes)
    random.put_back()


def _fitted(whole: Any, lines: Lines, seen: int) -> Any:
    """A copy of a model that was begun, with these weights."""
    fitted = deepcopy(whole)
    model = final_step(fitted)
    model.coef_ = lines.weights.reshape(model.coef_.shape).copy()
    model.intercept_ = lines.intercepts.copy()
    model.t_ = 1.0 + seen
    return fitted
