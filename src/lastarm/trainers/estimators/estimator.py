"""An estimator of scikit-learn or of a boosting library as a trainer, on rows that it splits."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from types import FunctionType
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import TimeSeriesSplit
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from threadpoolctl import ThreadpoolController

from lastarm.arguments import whole_number
from lastarm.arguments.other_tools import OnlyKnown
from lastarm.errors import EarlyStoppingOff, FittedByRows, InvalidArgument
from lastarm.plain import code_fingerprint
from lastarm.trainers.estimators import (
    boosting,
    catboost,
    histogram_boosting,
    networks,
    scikit_learn,
)
from lastarm.trainers.estimators.compat import Metadata, like_grid_search, of_rows, routed
from lastarm.trainers.estimators.family import Family, Lesson, Randomness, cut, set_meanwhile
from lastarm.trainers.estimators.metadata import for_steps, one_per_row, require_taken
from lastarm.trainers.estimators.rows import ALL, ROWS, Nested
from lastarm.trainers.estimators.scoring import ONLY, Scoring
from lastarm.trainers.protocol import Config
from lastarm.trainers.splits import Rows, Split, folds
from lastarm.trainers.splits import split as draw

FAMILIES = (  # the first that accepts an estimator trains it
    boosting.LIGHTGBM,
    boosting.XGBOOST_FORESTS,
    boosting.XGBOOST,
    catboost.CATBOOST,
    networks.NETWORKS,
    scikit_learn.PARTIAL_FIT,
    scikit_learn.ENSEMBLES,
    histogram_boosting.HISTOGRAM_BOOSTING,
    scikit_learn.ITERATIVE,
)
KEPT = 8  # outputs of transformers that are kept, one for each of their configs


@dataclass
class Trained:
    """An arm: its config and seed, how many pulls it had, and a fitted model for each fold."""

    config: Config
    seed: int
    pulls: int
    models: list[Any]

    @property
    def model(self) -> Any:
        """The fitted estimator, if there are no folds."""
        if len(self.models) > 1:
            raise InvalidArgument(
                f"there are {len(self.models)} models, one for each fold. Use `result.refit()`, "
                "which trains one model on all rows, or `models`."
            )
        return self.models[0]


class LabelledRows(NamedTuple):
    """Rows, their targets, and what the scorers get with them, such as their weights."""

    X: Any
    y: Any
    params: Mapping[str, Any]


class Fold(NamedTuple):
    """TRAIN and VAL as the last step of a pipeline sees them, and the fitted steps before it."""

    transformers: Any  # None where there are none
    train: LabelledRows
    validation: LabelledRows
    params: Mapping[str, Any]  # what the last step gets with TRAIN to learn from
    kept: dict[str, Any]  # what the family of the last step keeps of TRAIN


class Estimator(OnlyKnown):
    """Arms that are configs of one estimator or Pipeline, trained on TRAIN and judged by VAL.

    - `estimator`: any estimator with `fit`, or a Pipeline. If it, or the last step of the
      Pipeline, can be trained in steps, a pull is a step: with `partial_fit` a pass over TRAIN;
      with LightGBM, XGBoost, CatBoost, or `warm_start` and `n_estimators` a tree; with
      `warm_start` and `max_iter` an iteration. Else a pull is 1 % of the rows, as with
      `resource="rows"`.
    - `X`, `y`: the rows and their targets. `y` is None if the estimator needs none.
    - `split`: which rows are TRAIN, VAL and TEST. Left out, they are drawn.
    - `test`, `validation`: the shares of the rows that are TEST and VAL. 0 means no TEST.
    - `cv`: a number of folds, one of scikit-learn's splitters, or pairs of (TRAIN, VAL). Each fold
      has a model of its own, a pull trains all of them, and the loss is their mean loss. For a
      `TimeSeriesSplit`, TEST are the last rows.
    - `scoring`: the name of a scorer, a function of (estimator, X, y), or "score" for the
      estimator's own. The loss is then −score, and what is shown is the score, by its name. Left
      out, it is 1 − accuracy for classifiers and the mean squared error for regressors. For
      several metrics it is a list of names, a dict of names and scorers, or a function that
      returns a dict; all of them are in the journal.
    - `metric`: the name of the metric that arms are compared by, if there are several. Left out,
      it is the first.
    - `sample_weight`: a weight for each row. It goes where scikit-learn's `GridSearchCV` sends it:
      to `fit`, and to the scorers that take it, depending on the version and on metadata routing.
    - `groups`: a label for each row. Rows with one label are never in two parts. A splitter of
      scikit-learn gets them, and decides.
    - `fit_params`: other parameters of the estimator's `fit`. Those with an entry per row are cut
      with the rows. Without metadata routing, those of a Pipeline are named after their step, as
      in "model__sample_weight".
    - `resource`: what pulls are. "rows" fits a model anew at each level: to b % of the rows of
      TRAIN after b pulls, and to all of them after 100. Left out, they are steps where the
      estimator has any; where it has none they are rows, with a warning.
    - `pulls_per_step`: how many steps a pull has.
    - `seed`: decides which rows are in which part.
    - `threads`: the threads of BLAS, OpenMP and LightGBM; None lets them choose. An `n_jobs` that
      the estimator was given stays.

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> digits = Estimator(SGDClassifier(), *load_digits(return_X_y=True))
    >>> state = digits.train(digits.start({"alpha": 0.01}, seed=0), pulls=5)
    >>> digits.loss(state) < 0.1, digits.test(state) < 0.1, state.model
    (True, True, SGDClassifier(alpha=0.01))

    Transformers are fitted on TRAIN only, once for all arms that configure them alike. A
    `random_state` of None is drawn from the arm's seed, in transformers from `seed`. A number of
    the user's takes the seed's place; an estimator that shuffles in every pull still shuffles
    differently in each.

    One thread is the default, because arms are trained side by side, and because the last bits of
    a sum depend on the number of threads: the same search could end differently.

    Early stopping is switched off while an arm is trained, with a warning: pulls take its place.

    Some solvers, such as L-BFGS, cannot be continued. Arms that use them `restarts`: at level b
    they are trained from zero, in one go, and such a level costs b pulls (docs/estimators.md). By
    rows, this holds for all arms. The rows of a level contain those of the levels below, have the
    classes in proportion and at least one row of each class, and keep groups whole. A Pipeline is
    then fitted as a whole, and the early stopping of the estimator's own stays.
    """

    _tuned: Sequence[str] = ()  # settings of the last step that are searched over

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        split: Split | None = None,
        test: float = 0.1,
        validation: float = 0.2,
        cv: int | Iterable[tuple[Any, Any]] | Any = None,
        scoring: str | Callable[..., Any] | Iterable[str] | Mapping[str, Any] | None = None,
        metric: str | None = None,
        sample_weight: Any = None,
        groups: Any = None,
        fit_params: Mapping[str, Any] | None = None,
        resource: Literal["rows"] | None = None,
        pulls_per_step: int = 1,
        seed: int = 0,
        threads: int | None = 1,
    ) -> None:
        final = final_step(estimator)
        if isinstance(final, type) or not hasattr(final, "get_params"):
            rule = "it is not an instance of an estimator"
            way_out = "Pass an instance, such as SGDClassifier()"
            raise InvalidArgument.of("estimator", final, rule, way_out)
        if not hasattr(final, "fit") and (resource or not _stepwise(final)):
            raise InvalidArgument.of(
                "estimator", final, "it has no `fit`", "Write a trainer with start, train and loss"
            )
        if scoring is None and not (is_classifier(final) or is_regressor(final)):
            kind = type(final).__name__
            rule = f"{kind} is neither a classifier nor a regressor, so its loss is not defined"
            raise InvalidArgument.of("scoring", None, rule, "Use a scorer")
        self.estimator = estimator
        self.scoring = scoring
        self.pulls_per_step = whole_number(
            "pulls_per_step", pulls_per_step, 1, "how many passes, trees or iterations a pull has"
        )
        self.seed = whole_number("seed", seed, 0, "what decides which rows are TRAIN")
        if threads is not None:
            threads = whole_number("threads", threads, 1, "the threads of BLAS and OpenMP")
        self.threads = threads
        self.metrics = Scoring(scoring, metric, estimator)
        self.shown_as = self.metrics.shown_as
        if y is None and get_tags(final).target_tags.required:
            rule = f"{type(final).__name__} requires y to be passed, but the target y is None"
            raise InvalidArgument.of("y", None, rule, "Pass the targets")
        self._X, self._y = indexable(X, None if y is None else np.asarray(y))
        if self._y is not None and self._y.ndim == 2 and self._y.shape[1] == 1:
            self._y = self._y.ravel()
        n = int(self._X.shape[0] if hasattr(self._X, "shape") else len(self._X))
        groups = one_per_row("groups", groups, n)
        self._config = get_config()  # which other processes do not have
        splitter = cv if hasattr(cv, "split") else None
        self._sent = self._metadata(splitter, sample_weight, groups, fit_params, n)
        self._fit_params = for_steps(estimator, self._sent.fit)
        self._groups = groups
        self._resource, self._warned, self._said = _known_resource(resource), False, False
        self._expect([final])
        require_taken(final, self._family(final), self._fit_params[1])
        self._warn_of_stopping(final)
        self.splits = self._splits(split, test, validation, cv, is_classifier(final), groups, n)
        self._stratified = is_classifier(final) and np.ndim(self._y) == 1
        self.classes: Any = None  # all classes, also those that a small TRAIN lacks
        if is_classifier(final):
            labels = np.unique(self._y)
            self.classes = labels if self._y.ndim == 1 else np.arange(self._y.shape[1])
            if isinstance(final, MultiOutputClassifier):  # a classifier for each column
                self.classes = [np.unique(column) for column in self._y.T]
        self._forget()
        if self.splits[0].test.size:
            self.test = self._test  # without TEST there is no such method
        if self._family(final).size is not None:
            self.size = self._size  # otherwise it is that of a pickle

    @property
    def version(self) -> int:
        """2 if version 0.1 trained such arms in another way, else 1."""
        if self.resource == "rows":  # which version 0.1 did not have
            return 1
        final = final_step(self.estimator)
        rows = max(split.train.size for split in self.splits)
        before = self._family(final).trained_otherwise_before(
            final, self._fit_params[1], self._tuned, rows
        )
        return 2 if self.restarts or before or _trained_otherwise_before(final) else 1

    @property
    def max_pulls(self) -> int | None:
        """The most pulls that an arm can use; None if there is no limit."""
        return ALL if self.resource == "rows" else None

    def expect(self, settings: Mapping[str, Sequence[Any]]) -> None:
        """Prepare for a space, before anything is trained; refuse a setting that pulls decide.

        If some of its arms cannot be continued, all arms restart, because they share one price. If
        some have no steps, pulls are rows.

        - `settings`: the values of each parameter: all that are listed, one of a range.
        """
        kinds, prefix = [final_step(self.estimator)], ""
        if isinstance(self.estimator, Pipeline):
            last = self.estimator.steps[-1][0]
            kinds += [one for one in settings.get(last, ()) if hasattr(one, "fit")]
            prefix = f"{last}__"
        varied = []
        for name, values in settings.items():
            for kind, value in product(kinds, values if name.startswith(prefix) else ()):
                with suppress(Exception):  # an arm that cannot be started fails on its own
                    varied.append(clone(kind).set_params(**{name.removeprefix(prefix): value}))
        self._expect([*kinds, *varied])
        self._tuned = [name.removeprefix(prefix) for name in settings if name.startswith(prefix)]
        self._refuse_counted(self.estimator, settings)

    def _expect(self, models: Sequence[Any]) -> None:
        """Decide what pulls are if these are the last steps of the arms, and if arms restart."""
        alone = [model for model in models if not any(one.accepts(model) for one in FAMILIES)]
        self.resource = "rows" if alone else self._resource
        self.restarts = any(self._family(model).restarts(model) for model in models)
        if self.resource == "rows" and self.pulls_per_step != 1:
            rule = "a pull is 1 % of the rows"
            raise InvalidArgument.of("pulls_per_step", self.pulls_per_step, rule, "Leave it out")
        if alone and self._resource is None and not self._said:
            self._said = True
            warnings.warn(FittedByRows(type(alone[0]).__name__), stacklevel=3)

    def start(self, config: Config, seed: int) -> Trained:
        """Models with this config, not fitted yet."""
        models = []
        for _ in self.splits:  # a setting that is an estimator is another one in each
            settings = {name: clone(value, safe=False) for name, value in config.items()}
            models.append(clone(self.estimator).set_params(**settings))
        self._refuse_counted(models[0], config)  # it may have another last step than the others
        self._warn_of_stopping(final_step(models[0]))
        return Trained(config, seed, 0, models)

    def train(self, state: Trained, pulls: int) -> Trained:
        """The same models, trained `pulls` pulls further."""
        upto = state.pulls + pulls
        with self._as_set():
            if self.resource == "rows":
                state.models = [self._fitted(i, state, upto) for i in range(len(self.splits))]
                state.pulls = upto
                return state
            for model, fold in zip(state.models, self.folds(state), strict=True):
                if state.pulls == 0 and fold.transformers is not None:
                    model.steps[:-1] = fold.transformers.steps
                self._further(final_step(model), self.lesson(fold), state.pulls, upto, state.seed)
        state.pulls = upto
        return state

    def _fitted(self, i: int, state: Trained, upto: int) -> Any:
        """The model of fold i at a level, fitted anew to its rows."""
        model, nested = state.models[i], self._nested(i)
        if state.pulls and nested.count(state.pulls) == nested.count(upto):
            return model  # of a few rows, 1 % may be none
        rows, fresh = self._of_level(i, upto), clone(model)
        params = of_rows(self._X, self._sent.fit, rows)
        lesson = Lesson(cut(self._X, rows), cut(self._y, rows), self.classes, 1, params, {})
        self._further(fresh, lesson, 0, upto, state.seed)
        return fresh

    def loss(self, state: Trained) -> Any:
        """The mean loss of all models on VAL; of several metrics, also the mean of each."""
        scores = self.scores(state)
        means = {name: float(np.mean([one[name] for one in scores])) for name in scores[0]}
        loss = float(np.mean([-one[self.metrics.compared] for one in scores]))
        return loss if set(means) == {ONLY} else {**means, "loss": loss}

    def losses(self, state: Trained) -> list[float]:
        """The loss of each model on VAL."""
        return [-one[self.metrics.compared] for one in self.scores(state)]

    def scores(
        self, state: Trained, part: Literal["train", "validation", "test"] = "validation"
    ) -> list[dict[str, float]]:
        """All metrics of each model on a part of the rows, by their names: higher is better.

        - `state`: a trained arm.
        - `part`: the rows that it is judged by. TRAIN are those that it has learnt from.
        """
        by_rows = self.resource == "rows"
        whole = by_rows or part == "test" or self.metrics.sees_rows_as_given(self._sent.score)
        with self._as_set():
            found = []
            folds = [None] * len(self.splits) if whole else self.folds(state)
            for i, (model, fold) in enumerate(zip(state.models, folds, strict=True)):
                judged = self._rows(i, part) if fold is None else getattr(fold, part)
                if by_rows and part == "train":
                    judged = self._labelled(self._of_level(i, state.pulls))
                with self._threads_of(final_step(model)):
                    scored = model if whole else final_step(model)
                    if part == "validation" and scored is final_step(model):
                        scored = self._family(scored).judged(scored, judged.X)
                    found.append(self.metrics.scores(scored, *judged))
            return found

    def continues(self, state: Trained) -> bool:
        """Whether a saved copy can be trained further. If not, `train` begins again from zero."""
        finals = map(final_step, state.models)
        return all(self._family(one).continues(one, self._fit_params[1]) for one in finals)

    def finished(self, state: Trained) -> bool:
        """Whether more pulls would change nothing."""
        steps, finals = state.pulls * self.pulls_per_step, map(final_step, state.models)
        return all(self._family(one).finished(one, steps) for one in finals)

    def _size(self, state: Trained) -> int:
        """About how many bytes it holds, without the rows that all arms share."""
        finals = map(final_step, state.models)
        sizes = [(family.size, one) for one in finals for family in [self._family(one)]]
        return sum(size(one) if size else len(pickle.dumps(one)) for size, one in sizes)

    def _test(self, state: Trained) -> float:
        """The mean loss of all models on TEST."""
        return float(np.mean([-one[self.metrics.compared] for one in self.scores(state, "test")]))

    def lesson(self, fold: Fold) -> Lesson:
        """What the last step learns from in a fold."""
        X, y, _ = fold.train
        return Lesson(X, y, self.classes, self.pulls_per_step, fold.params, fold.kept)

    def on_all_rows(self, config: Config, seed: int, pulls: int) -> Any:
        """A model with this config that has learnt from all rows, also those of VAL and TEST."""
        with self._as_set():
            if self.resource == "rows":  # then it is a plain fit, whatever its level was
                model = self.start(config, seed).models[0]
                lesson = Lesson(self._X, self._y, self.classes, 1, self._sent.fit, {})
                self._further(model, lesson, 0, ALL, seed, quiet=False)
                return model
            model, lesson = self.begun_on_all_rows(config, seed)
            self._further(final_step(model), lesson, 0, pulls, seed)
            self._family(final_step(model)).end_training(final_step(model))
        return model

    def begun_on_all_rows(self, config: Config, seed: int) -> tuple[Any, Lesson]:
        """A model of which only the transformers are fitted, and all rows to learn from."""
        model, rows = self.start(config, seed).models[0], self._X
        of_transformers, of_last = self._fit_params
        if isinstance(model, Pipeline) and len(model) > 1:
            transformers = model[:-1]
            Randomness(transformers, self.seed).of(0)
            with self._as_set():
                rows = transformers.fit_transform(rows, self._y, **of_transformers)
            model.steps[:-1] = transformers.steps
        return model, Lesson(rows, self._y, self.classes, self.pulls_per_step, of_last, {})

    @property
    def boosts(self) -> bool:
        """Whether the estimator overfits with more pulls, as boosted trees do."""
        final = final_step(self.estimator)
        return self._family(final).boosts(final)

    @property
    def weighs(self) -> bool:
        """Whether there are weights, or other parameters of `fit` or of scorers."""
        return bool(self._sent.fit or self._sent.score)

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the rows, of the split and of the estimator's parameters."""
        settings = _written(self.estimator)
        functions = {
            name: value
            for name, value in self.estimator.get_params().items()
            if callable(value) and not isinstance(value, BaseEstimator)
        }
        return {
            "estimator": type(self.estimator).__name__,
            "settings": hashlib.sha256(settings.encode()).hexdigest(),
            "X": _sha256(self._X),
            "y": _sha256(self._y),
            "split": _sha256(*(rows for fold in self.splits for rows in fold)),
            "scoring": _written(self.scoring),
            "pulls_per_step": self.pulls_per_step,
            "seed": self.seed,
            "threads": self.threads,
            **({"resource": "rows"} if self.resource == "rows" else {}),
            **self._described(),
            **({"metric": self.metrics.metric} if self.metrics.metric else {}),
            **{
                f"{to}.{name}": _digest(value)
                for to, params in (("fit", self._sent.fit), ("score", self._sent.score))
                for name, value in params.items()
            },
            **code_fingerprint("scoring", self.scoring),
            **code_fingerprint("settings", functions),
        }

    def _described(self) -> dict[str, Any]:
        """What the family of the last step adds to the fingerprint."""
        final, shape = final_step(self.estimator), np.shape(self._X)
        if len(shape) != 2 or (isinstance(self.estimator, Pipeline) and len(self.estimator) > 1):
            return self._family(final).described(final, self._fit_params[1], None)
        of_train = (self.splits[0].train.size, shape[1])
        return self._family(final).described(final, self._fit_params[1], of_train)

    def __getstate__(self) -> dict[str, Any]:
        forgotten = {"_parts", "_kept", "_orders", "_pools"}
        return {k: v for k, v in self.__dict__.items() if k not in forgotten}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        """Forget what can be computed again; it is not pickled either."""
        self._parts: dict[tuple[int, str], LabelledRows] = {}
        self._kept: OrderedDict[Any, list[Fold]] = OrderedDict()
        self._orders: dict[int, Nested] = {}
        self._pools: Any = None

    @contextmanager
    def _as_set(self) -> Iterator[None]:
        """Within, the threads that were asked for, and scikit-learn as it was set here."""
        with ExitStack() as stack:
            stack.enter_context(config_context(**self._config))
            if self.threads is not None:
                self._pools = self._pools or ThreadpoolController()
                stack.enter_context(self._pools.limit(limits=self.threads))
            yield

    def _threads_of(self, model: Any) -> AbstractContextManager[None]:
        """Within, a model that takes no notice of OpenMP's limit has the threads asked for."""
        name = (_stepwise(model) or ROWS).threads
        left_out = name and self.threads is not None and getattr(model, name) is None
        return set_meanwhile(model, {name: self.threads} if name and left_out else {})

    def _family(self, final: Any) -> Family:
        """How an estimator is trained."""
        family = ROWS if self.resource == "rows" else _stepwise(final)
        if family is None:
            raise InvalidArgument(
                f"{final!r} cannot be trained in steps, as the other arms are. Use "
                'resource="rows" for all of them.',
                argument="estimator",
                given=final,
            )
        return family

    def _refuse_counted(self, estimator: Any, names: Iterable[str]) -> None:
        """Refuse a setting that says how far a model is trained."""
        final = final_step(estimator)
        prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
        counted = self._family(final).counted
        for name in names:
            if name.startswith(prefix) and name.removeprefix(prefix) in counted:
                kind = type(final).__name__
                raise InvalidArgument(
                    f"{name} cannot be a setting: it says how far a {kind} is trained, and that "
                    "is what pulls decide. Leave it out, and use max_pulls for the most that an "
                    "arm may get.",
                    argument=name,
                )

    def _further(
        self,
        model: Any,
        lesson: Lesson,
        done: int,
        upto: int,
        seed: int,
        *,
        quiet: bool = True,
    ) -> None:
        """Train a model that had `done` pulls up to `upto`, and put the user's settings back."""
        random, family = Randomness(model, seed), self._family(model)
        never_stops, params = family.not_stopping(model, lesson.params)
        with ExitStack() as meanwhile:
            meanwhile.enter_context(warnings.catch_warnings())
            if quiet:
                warnings.simplefilter("ignore", ConvergenceWarning)  # after a few iterations
            meanwhile.enter_context(self._threads_of(final_step(model)))
            meanwhile.enter_context(set_meanwhile(model, never_stops))
            lesson = lesson._replace(params=params, threads=self.threads)
            family.further(model, lesson, done, upto, random)
        random.put_back()
        for name, value in vars(model).items():
            # Pickled, a view becomes contiguous, and BLAS then adds in another order: do it now.
            if isinstance(value, np.ndarray) and not value.flags.forc:
                setattr(model, name, value.copy(order="C"))

    def _warn_of_stopping(self, final: Any) -> None:
        """Say once that early stopping is switched off."""
        settings, params = self._family(final).not_stopping(final, self._fit_params[1])
        given = {name: getattr(final, name) for name in settings}
        stops = {name: value for name, value in given.items() if value != "auto"}
        callback = params is not self._fit_params[1]
        if (stops or callback) and not self._warned:
            self._warned = True
            kind = type(final).__name__
            warnings.warn(EarlyStoppingOff(kind, stops, callback), stacklevel=3)

    def _metadata(
        self,
        splitter: Any,
        sample_weight: Any,
        groups: Any,
        fit_params: Mapping[str, Any] | None,
        n: int,
    ) -> Metadata:
        """Where weights and other parameters go."""
        params = dict(fit_params or {})
        if sample_weight is not None:
            if "sample_weight" in params:
                rule = "there is a `sample_weight` among them, and another one beside them"
                raise InvalidArgument.of("fit_params", fit_params, rule, "Give it once")
            params["sample_weight"] = sample_weight
        for name, value in params.items():
            if name.rpartition("__")[2] == "sample_weight":  # also that of a step
                params[name] = one_per_row(name, value, n)
        if splitter is not None and groups is not None:
            params["groups"] = groups
        if not params:
            return Metadata({}, {}, {})
        grid_search = like_grid_search(
            self.estimator,
            scoring=self.metrics.as_grid_search_takes_it(),
            metric=self.metrics.metric,
            cv=splitter,
        )
        return routed(grid_search, self._X, params)

    def _splits(
        self,
        own: Split | None,
        test: float,
        validation: float,
        cv: Any,
        labelled: bool,
        groups: Any,
        n: int,
    ) -> tuple[Split, ...]:
        """One split, or one for each fold; TEST is the same in all."""
        y = n if self._y is None else self._y
        stratify = labelled and np.ndim(y) == 1 and groups is None
        if own is not None:
            if cv is not None:
                rule = "`split` also says which rows are TRAIN"
                raise InvalidArgument.of("cv", cv, rule, "Use only one of them")
            if groups is not None:
                rule = "`split` says which rows are in which part"
                raise InvalidArgument.of("groups", groups, rule, "Use only one of them")
            return (own.within(n),)
        if isinstance(cv, int | np.integer):
            return folds(y, int(cv), self.seed, test=test, stratify=stratify, groups=groups)
        if cv is not None and not hasattr(cv, "split"):
            pairs = list(cv) if isinstance(cv, Iterable) else []
            if not pairs:
                way_out = "Use a number, a splitter, or pairs of (TRAIN, VAL)"
                raise InvalidArgument.of("cv", cv, "it has no folds", way_out)
            return tuple(Split(train, judged).within(n) for train, judged in pairs)
        drawn = draw(
            y, self.seed, test=test, validation=validation, stratify=stratify, groups=groups
        )
        if cv is None:
            return (drawn,)
        unseen = drawn.test
        if isinstance(cv, TimeSeriesSplit):  # the future, not a tenth of all times
            unseen = np.arange(n - unseen.size, n)
        rest = np.setdiff1d(np.arange(n), unseen)
        params = of_rows(self._X, self._sent.split, rest)
        pairs = cv.split(cut(self._X, rest), cut(self._y, rest), **params)
        return tuple(Split(rest[train], rest[judged], unseen) for train, judged in pairs)

    def _rows(self, i: int, part: str) -> LabelledRows:
        """A part of fold i, cut out once."""
        if (i, part) not in self._parts:
            self._parts[i, part] = self._labelled(getattr(self.splits[i], part))
        return self._parts[i, part]

    def _labelled(self, rows: Rows) -> LabelledRows:
        params = of_rows(self._X, self._sent.score, rows)
        return LabelledRows(cut(self._X, rows), cut(self._y, rows), params)

    def _of_level(self, i: int, level: int) -> Rows:
        """The rows of TRAIN in fold i that a level has."""
        return self.splits[i].train[self._nested(i).upto(level)]

    def _nested(self, i: int) -> Nested:
        """The levels of fold i."""
        if i not in self._orders:
            train = self.splits[i].train
            self._orders[i] = Nested(
                len(train),
                labels=cut(self._y, train) if self._stratified else None,
                groups=cut(self._groups, train),
                seed=self.seed,
            )
        return self._orders[i]

    def folds(self, state: Trained) -> list[Fold]:
        """The folds for arms whose transformers have the same config as this one's."""
        key: tuple[Any, ...] = ()
        if isinstance(self.estimator, Pipeline):
            last = self.estimator.steps[-1][0]
            settings = sorted(state.config.items())
            key = tuple((k, _bytes(v)) for k, v in settings if k.partition("__")[0] != last)
        if key not in self._kept:
            self._kept[key] = [self._fold(i, model) for i, model in enumerate(state.models)]
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]

    def _fold(self, i: int, model: Any) -> Fold:
        train, validation = self._rows(i, "train"), self._rows(i, "validation")
        of_transformers, of_last = (
            of_rows(self._X, params, self.splits[i].train) for params in self._fit_params
        )
        if not isinstance(model, Pipeline) or len(model) == 1:
            return Fold(None, train, validation, of_last, {})
        with self._as_set():
            transformers = clone(model[:-1])
            Randomness(transformers, self.seed).of(0)
            train = train._replace(
                X=transformers.fit_transform(train.X, train.y, **of_transformers)
            )
            with suppress(Exception):  # with a lambda in it, it is never pickled
                # A view in it becomes contiguous by this, and BLAS then adds in another order.
                transformers = pickle.loads(pickle.dumps(transformers))
            validation = validation._replace(X=_transformed(transformers, validation.X))
        return Fold(transformers, train, validation, of_last, {})


def _transformed(transformers: Pipeline, X: Any) -> Any:
    """The rows after each step. A Pipeline would refuse a last step that learns nothing."""
    for _, step in transformers.steps:
        if step not in (None, "passthrough"):
            X = step.transform(X)
    return X


def final_step(model: Any) -> Any:
    """The last step of a pipeline, or the estimator itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _stepwise(final: Any) -> Family | None:
    """The family of an estimator that can be trained in steps."""
    return next((family for family in FAMILIES if family.accepts(final)), None)


def _known_resource(given: Any) -> Literal["rows"] | None:
    if given is None:
        return None
    if isinstance(given, str) and given == "rows":
        return "rows"
    way_out = "Leave it out: passes, trees and iterations are counted where there are any"
    if isinstance(given, str) and given == "n_samples":
        way_out = 'Use resource="rows", of which a pull is 1 %'
    raise InvalidArgument.of("resource", given, 'it is "rows", or left out', way_out)


def _trained_otherwise_before(final: Any) -> bool:
    """Whether version 0.1 set rows apart from TRAIN for the early stopping of this estimator."""
    if not isinstance(final, scikit_learn.BOOSTED):
        return False
    stops = scikit_learn.ENSEMBLES.not_stopping(final, {}).settings
    return any(getattr(final, name) != "auto" for name in stops)


def _bytes(value: Any) -> Any:
    """What distinguishes one value in the config of a transformer from another."""
    try:
        return pickle.dumps(value)
    except Exception:  # a lambda: its address, which is unique as long as its output is kept
        return repr(value)


def _written(value: Any) -> str:
    """An estimator with all its parameters, written the same in every process."""
    match value:
        case type() | FunctionType():
            return f"{value.__module__}.{value.__qualname__}"
        case BaseEstimator():
            settings = sorted(value.get_params(deep=False).items())
            listed = ", ".join(f"{name}={_written(setting)}" for name, setting in settings)
            return f"{_written(type(value))}({listed})"
        case dict():
            return f"{{{', '.join(f'{k!r}: {_written(v)}' for k, v in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_written, value))}]"
        case np.ndarray():
            return _sha256(value)
    shown = repr(value)
    return _written(type(value)) if " at 0x" in shown else shown  # an address says nothing


def _digest(value: Any) -> str:
    """The sha256 of a parameter of `fit`."""
    if hasattr(value, "__array__") or hasattr(value, "tocsr"):
        return _sha256(value)
    return hashlib.sha256(_written(value).encode()).hexdigest()


def _sha256(*tables: Any) -> str:
    digest = hashlib.sha256()
    for table in tables:
        if hasattr(table, "tocsr"):
            rows = table.tocsr()
            parts = [np.array(rows.shape), rows.indptr, rows.indices, rows.data]
        elif hasattr(table, "columns"):
            names = np.array([repr(name) for name in table.columns])
            parts = [names, *(table.iloc[:, i].to_numpy() for i in range(table.shape[1]))]
        else:
            parts = [np.asarray(table)]
        for part in parts:
            content = repr(part.tolist()).encode() if part.dtype.hasobject else part.tobytes()
            digest.update(f"{part.dtype.str} {part.shape} ".encode() + content)
    return digest.hexdigest()
