"""An estimator of scikit-learn, LightGBM or XGBoost as a trainer, on rows that it splits."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from threadpoolctl import ThreadpoolController

from lastarm.arguments import whole_number
from lastarm.errors import InvalidArgument
from lastarm.plain import code_fingerprint
from lastarm.trainers.estimators import boosting, scikit_learn
from lastarm.trainers.estimators.family import Family, Lesson, Randomness
from lastarm.trainers.losses import as_loss
from lastarm.trainers.protocol import Config
from lastarm.trainers.splits import Split, folds
from lastarm.trainers.splits import split as draw

FAMILIES = (  # the first that accepts an estimator trains it
    boosting.LIGHTGBM,
    boosting.XGBOOST,
    scikit_learn.PARTIAL_FIT,
    scikit_learn.ENSEMBLES,
    scikit_learn.HISTOGRAM_BOOSTING,
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
                f"there are {len(self.models)} models, one for each fold. Use `models`, or train "
                "one model on all rows."
            )
        return self.models[0]


class Fold(NamedTuple):
    """TRAIN and VAL as the last step of a pipeline sees them, and the fitted steps before it."""

    transformers: Any  # None where there are none
    X_train: Any
    y_train: Any
    X_validation: Any
    y_validation: Any


class Estimator:
    """Arms that are configs of one estimator or Pipeline, trained on TRAIN and judged by VAL.

    - `estimator`: an estimator that can be trained in steps, or a Pipeline that ends in one. With
      `partial_fit` a step is a pass over TRAIN; with LightGBM, XGBoost, or `warm_start` and
      `n_estimators` it is a tree; with `warm_start` and `max_iter` it is an iteration.
    - `X`, `y`: the rows and their targets. `y` is None if the estimator needs none.
    - `split`: which rows are TRAIN, VAL and TEST. Left out, they are drawn.
    - `test`, `validation`: the shares of the rows that are TEST and VAL. 0 means no TEST.
    - `cv`: a number of folds, one of scikit-learn's splitters, or pairs of (TRAIN, VAL). Each fold
      has a model of its own, a pull trains all of them, and the loss is their mean loss.
    - `scoring`: the name of a scorer, a function of (estimator, X, y), or "score" for the
      estimator's own. The loss is then −score. Left out, it is 1 − accuracy for classifiers and
      the mean squared error for regressors.
    - `pulls_per_step`: how many steps a pull has.
    - `seed`: decides which rows are in which part.
    - `threads`: the threads of BLAS and OpenMP; None lets them choose.

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
    """

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
        scoring: str | Callable[[Any, Any, Any], float] | None = None,
        pulls_per_step: int = 1,
        seed: int = 0,
        threads: int | None = 1,
    ) -> None:
        final = final_step(estimator)
        if isinstance(final, type) or not hasattr(final, "get_params"):
            rule = "it is not an instance of an estimator"
            way_out = "Pass an instance, such as SGDClassifier()"
            raise InvalidArgument.of("estimator", final, rule, way_out)
        _family(final)
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
        self._score = _scorer(scoring)
        if y is None and get_tags(final).target_tags.required:
            rule = f"{type(final).__name__} requires y to be passed, but the target y is None"
            raise InvalidArgument.of("y", None, rule, "Pass the targets")
        self._X, self._y = indexable(X, None if y is None else np.asarray(y))
        if self._y is not None and self._y.ndim == 2 and self._y.shape[1] == 1:
            self._y = self._y.ravel()
        self.splits = self._splits(split, test, validation, cv, is_classifier(final))
        self.classes = None  # all classes, also those that a small TRAIN lacks
        if is_classifier(final):
            labels = np.unique(self._y)
            self.classes = labels if self._y.ndim == 1 else np.arange(self._y.shape[1])
        self._forget()
        if self.splits[0].test.size:
            self.test = self._test  # without TEST there is no such method

    def start(self, config: Config, seed: int) -> Trained:
        """Models with this config, not fitted yet."""
        settings = {name: clone(value, safe=False) for name, value in config.items()}
        models = [clone(self.estimator).set_params(**settings) for _ in self.splits]
        final = final_step(models[0])
        prefix = f"{models[0].steps[-1][0]}__" if isinstance(models[0], Pipeline) else ""
        counted = f"{prefix}{_family(final).counted}"
        if counted in config:
            kind = type(final).__name__
            rule = f"it says how far a {kind} is trained, and that is what pulls decide"
            raise InvalidArgument.of(counted, config[counted], rule, "Leave it out of the config")
        return Trained(config, seed, 0, models)

    def train(self, state: Trained, pulls: int) -> Trained:
        """The same models, trained `pulls` pulls further."""
        upto = state.pulls + pulls
        with self._threads():
            for model, fold in zip(state.models, self.folds(state), strict=True):
                if state.pulls == 0 and fold.transformers is not None:
                    model.steps[:-1] = fold.transformers.steps
                lesson = Lesson(fold.X_train, fold.y_train, self.classes, self.pulls_per_step)
                _further(final_step(model), lesson, state.pulls, upto, state.seed)
        state.pulls = upto
        return state

    def loss(self, state: Trained) -> float:
        """The mean loss of all models on VAL."""
        return float(np.mean(self.losses(state)))

    def losses(self, state: Trained) -> list[float]:
        """The loss of each model on VAL."""
        if callable(self.scoring):  # it may want to see the whole pipeline, and the rows as given
            return self._losses(state, "validation")
        with self._threads():
            judged = zip(state.models, self.folds(state), strict=True)
            return [self._loss(final_step(model), *fold[3:]) for model, fold in judged]

    def _test(self, state: Trained) -> float:
        """The mean loss of all models on TEST."""
        return float(np.mean(self._losses(state, "test")))

    def on_all_rows(self, config: Config, seed: int, pulls: int) -> Any:
        """A model with this config that has learnt from all rows, also those of VAL and TEST."""
        with self._threads():
            model, lesson = self.begun_on_all_rows(config, seed)
            _further(final_step(model), lesson, 0, pulls, seed)
        return model

    def begun_on_all_rows(self, config: Config, seed: int) -> tuple[Any, Lesson]:
        """A model of which only the transformers are fitted, and all rows to learn from."""
        model, rows = self.start(config, seed).models[0], self._X
        if isinstance(model, Pipeline) and len(model) > 1:
            transformers = model[:-1]
            Randomness(transformers, self.seed).of(0)
            with self._threads():
                rows = transformers.fit_transform(rows, self._y)
            model.steps[:-1] = transformers.steps
        return model, Lesson(rows, self._y, self.classes, self.pulls_per_step)

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
            **code_fingerprint("scoring", self.scoring),
            **code_fingerprint("settings", functions),
        }

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in {"_parts", "_kept", "_pools"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        """Forget what can be computed again; it is not pickled either."""
        self._parts: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._kept: OrderedDict[Any, list[Fold]] = OrderedDict()
        self._pools: Any = None

    def _threads(self) -> AbstractContextManager[Any]:
        if self.threads is None:
            return nullcontext()
        self._pools = self._pools or ThreadpoolController()
        limited: AbstractContextManager[Any] = self._pools.limit(limits=self.threads)
        return limited

    def _splits(
        self, own: Split | None, test: float, validation: float, cv: Any, labelled: bool
    ) -> tuple[Split, ...]:
        """One split, or one for each fold; TEST is the same in all."""
        X = self._X
        n = int(X.shape[0] if hasattr(X, "shape") else len(X))  # a sparse one has no len
        y = n if self._y is None else self._y
        stratify = labelled and np.ndim(y) == 1
        if own is not None:
            if cv is not None:
                rule = "`split` also says which rows are TRAIN"
                raise InvalidArgument.of("cv", cv, rule, "Use only one of them")
            return (own.within(n),)
        if isinstance(cv, int | np.integer):
            return folds(y, int(cv), self.seed, test=test, stratify=stratify)
        if cv is not None and not hasattr(cv, "split"):
            pairs = list(cv) if isinstance(cv, Iterable) else []
            if not pairs:
                way_out = "Use a number, a splitter, or pairs of (TRAIN, VAL)"
                raise InvalidArgument.of("cv", cv, "it has no folds", way_out)
            return tuple(Split(train, judged).within(n) for train, judged in pairs)
        drawn = draw(y, self.seed, test=test, validation=validation, stratify=stratify)
        if cv is None:
            return (drawn,)
        rest = np.setdiff1d(np.arange(n), drawn.test)
        pairs = cv.split(_cut(self._X, rest), _cut(self._y, rest))
        return tuple(Split(rest[train], rest[judged], drawn.test) for train, judged in pairs)

    def _rows(self, i: int, part: str) -> tuple[Any, Any]:
        """X and y of a part of fold i, cut out once."""
        if (i, part) not in self._parts:
            rows = getattr(self.splits[i], part)
            self._parts[i, part] = _cut(self._X, rows), _cut(self._y, rows)
        return self._parts[i, part]

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
        (X_train, y_train), (X, y) = self._rows(i, "train"), self._rows(i, "validation")
        if not isinstance(model, Pipeline) or len(model) == 1:
            return Fold(None, X_train, y_train, X, y)
        with self._threads():
            transformers = clone(model[:-1])
            Randomness(transformers, self.seed).of(0)
            X_train = transformers.fit_transform(X_train, y_train)
            with suppress(Exception):  # with a lambda in it, it is never pickled
                # A view in it becomes contiguous by this, and BLAS then adds in another order.
                transformers = pickle.loads(pickle.dumps(transformers))
            return Fold(transformers, X_train, y_train, transformers.transform(X), y)

    def _losses(self, state: Trained, part: str) -> list[float]:
        with self._threads():
            models = enumerate(state.models)
            return [self._loss(model, *self._rows(i, part)) for i, model in models]

    def _loss(self, model: Any, X: Any, y: Any) -> float:
        if self._score is not None:
            return -as_loss(self._score(model, *((X,) if y is None else (X, y))))
        predicted = np.reshape(model.predict(X), y.shape)
        if is_classifier(model):
            wrong = predicted != y
            return float(np.mean(wrong if y.ndim == 1 else wrong.any(axis=1)))
        with np.errstate(over="ignore", invalid="ignore"):  # an arm may diverge
            return float(np.mean((predicted - y) ** 2))


def _cut(X: Any, rows: Any) -> Any:
    if X is None:
        return None
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]


def final_step(model: Any) -> Any:
    """The last step of a pipeline, or the estimator itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _family(final: Any) -> Family:
    """The family of an estimator; an error if it cannot be trained in steps."""
    for family in FAMILIES:
        if family.accepts(final):
            return family
    raise InvalidArgument(
        f"{final!r} cannot be trained in steps. Use an estimator with `partial_fit`, one with "
        "`warm_start` and `n_estimators` or `max_iter` (and a solver that respects it), or one of "
        "LightGBM or XGBoost; or write a trainer with start, train and loss.",
        argument="estimator",
        given=final,
    )


def _further(model: Any, lesson: Lesson, done: int, upto: int, seed: int) -> None:
    """Train a model that had `done` pulls up to `upto`, and put the user's settings back."""
    random = Randomness(model, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # expected after a few iterations
        _family(model).further(model, lesson, done, upto, random)
    random.put_back()
    for name, value in vars(model).items():
        # Pickled, a view becomes contiguous, and BLAS then adds in another order: do it at once.
        if isinstance(value, np.ndarray) and not value.flags.forc:
            setattr(model, name, value.copy(order="C"))


def _scorer(scoring: Any) -> Any:
    if scoring is None or callable(scoring):
        return scoring
    if scoring == "score":
        return _own_score
    try:
        return get_scorer(scoring)
    except (ValueError, TypeError):
        way_out = 'Use one of sklearn.metrics.get_scorer_names(), "score", or a function of '
        way_out += "(estimator, X, y) that is higher for better models"
        raise InvalidArgument.of("scoring", scoring, "it is not a scorer", way_out) from None


def _own_score(model: Any, *rows: Any) -> Any:
    return model.score(*rows)


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


def _sha256(*tables: Any) -> str:
    digest = hashlib.sha256()
    for table in tables:
        if hasattr(table, "tocsr"):
            rows = table.tocsr()
            parts = [np.array(rows.shape), rows.indptr, rows.indices, rows.data]
        elif hasattr(table, "iloc"):
            names = np.array([repr(name) for name in table.columns])
            parts = [names, *(table.iloc[:, i].to_numpy() for i in range(table.shape[1]))]
        else:
            parts = [np.asarray(table)]
        for part in parts:
            content = repr(part.tolist()).encode() if part.dtype.hasobject else part.tobytes()
            digest.update(f"{part.dtype.str} {part.shape} ".encode() + content)
    return digest.hexdigest()
