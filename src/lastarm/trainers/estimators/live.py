"""Boosters that live on between pulls, on rows that are binned once for all arms.

A booster of LightGBM or XGBoost that is being trained keeps what it needs for the next tree: the
scores of all rows, the numbers that it draws next, and the binned rows, which all arms of a
process share. Pickled, it becomes a plain model. `LIVE` tells one from the other: what was loaded
is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import clone, is_classifier

from lastarm.trainers.estimators.family import Lesson


class Judged(NamedTuple):
    """The rows of VAL, as they were given and as the library holds them."""

    X: Any
    rows: Any


@dataclass(eq=False)
class Binned:
    """The rows that boosters learn from, as their library holds them, and those of VAL."""

    train: Any
    judged: Judged | None = None
    began_with: Any = None  # a saved booster whose scores are in the rows, if there is one
    bins: int = 0  # of all columns, once they are counted


LIVE: WeakKeyDictionary[Any, Binned] = WeakKeyDictionary()
"""The boosters that are being trained in this process, and their rows."""

DRAWS: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
"""Whether such a booster draws. To ask its model for its settings takes longer than a look."""


class Engine(Protocol):
    """What is particular to the boosters of a library. Each has a file of its own."""

    def booster(self, model: Any) -> Any:
        """The booster of a fitted model."""

    def begin(self, model: Any, lesson: Lesson, *, draws: bool) -> None:
        """Give a model a live booster without trees, with all that its own `fit` would set."""

    def resume(self, model: Any, lesson: Lesson, trees: int) -> None:
        """Make the booster of a model that was loaded live, and add `trees` trees."""

    def grow(self, model: Any, trees: int) -> None:
        """Add `trees` trees."""

    def judged(self, model: Any, X: Any) -> Any:
        """The model with predictions for X from the scores that its live booster keeps."""

    def size(self, model: Any) -> int:
        """About how many bytes a live booster holds, without the rows that it shares."""

    def described(self, model: Any, shape: tuple[int, int] | None) -> dict[str, Any]:
        """How rows of this shape are binned and added up, for the fingerprint."""

    def end_training(self, model: Any) -> None:
        """Let go of the rows and of what only training needs."""


def few_rows(model: Any, lesson: Lesson, drawn: float = 1.0) -> Any:
    """The numbers of a few rows, by which a `fit` is set up as by all: every class is there.

    If only a share of the rows is `drawn`, they are there so often that some are.
    """
    often = 1 if drawn >= 1 else ceil(20 / max(drawn, 1e-3))
    if is_classifier(model):
        return np.repeat(np.unique(lesson.y, return_index=True)[1], often)
    return np.repeat(np.unique([np.argmin(lesson.y), np.argmax(lesson.y)]), often)


def answering(model: Any, of: type, judged: Judged, *, first: type = object) -> Any:
    """A model of the same kind that has kept its predictions for the rows of VAL.

    A copy of it, in whichever way a scorer makes one, is a copy of the model itself.

    - `model`: the model.
    - `of`: stands between the kind of the model and the class in its library that all kinds are
      made from, and predicts in its place. What a classifier makes of that stays its own affair.
    - `judged`: the rows of VAL.
    - `first`: stands before the kind of the model.
    """
    own: Any = type(model)
    kind = _answering_kind(own, of, first)
    return _made(kind, {**vars(model), "judged": judged, "genuine": model})


@cache
def _answering_kind(kind: type, of: type, first: type) -> Any:
    itself = {
        "__reduce__": lambda self: (_same, (self.genuine,)),
        "__sklearn_clone__": lambda self: clone(self.genuine),
        # LightGBM copies a model, and changes the class of the copy, to read its settings.
        "__copy__": lambda self: _made(type(self), dict(vars(self))),
    }
    before = () if first is object else (first,)
    return type(kind.__name__, (*before, kind, of), itself)


def _made(kind: Any, attributes: dict[str, Any]) -> Any:
    made = kind.__new__(kind)
    vars(made).update(attributes)
    return made


def _same(model: Any) -> Any:
    return model
