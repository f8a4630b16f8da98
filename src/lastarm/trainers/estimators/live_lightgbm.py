"""Live boosters of LightGBM: see `live.py`.

What the wrapper's own `fit` sets, it sets itself: a copy is fitted to a few rows, and a callback
sees the parameters that it trains with. So nothing of LightGBM is written here a second time, but
for the labels and weights of the rows. Such a fit takes as long as a small tree, so arms that only
grow other trees share one.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from lightgbm import Booster, Dataset, LGBMClassifier, LGBMModel, train
from sklearn.base import clone, is_classifier
from sklearn.utils import compute_sample_weight

from lastarm.trainers.estimators.family import Lesson, cut
from lastarm.trainers.estimators.live import LIVE, Binned, Judged, answering, few_rows

LOUDNESS = ("verbose", "verbosity")
# Settings that `fit` only hands on, and that decide nothing but how trees grow.
OF_TREES = (
    *("learning_rate", "num_leaves", "max_depth", "min_child_samples", "min_child_weight"),
    *("min_split_gain", "reg_alpha", "reg_lambda", "subsample", "subsample_freq"),
    *("colsample_bytree", "random_state"),
)
NUMBERS = (bool, int, float, np.float64, np.int64, type(None))
SHARES = ("subsample", "bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction")

MARGINS: WeakKeyDictionary[Any, tuple[int, Any]] = WeakKeyDictionary()
"""For boosters whose margins were asked for: of how many iterations, and the margins for VAL."""


class SetUp(NamedTuple):
    """What `fit` trains with, the booster that it made of a few rows, and what it has set."""

    params: dict[str, Any]
    booster: Any
    attributes: dict[str, Any]


def booster(model: Any) -> Any:
    """The booster of a fitted model."""
    return model.booster_


def begin(model: Any, lesson: Lesson, *, draws: bool) -> None:
    """Give a model a live booster without trees, with all that its own `fit` would set.

    It draws by its own seed in any case.
    """
    made = _set_up(model, lesson)
    binned = _binned(model, lesson, made.params)
    live = Booster(made.params, binned.train)
    live.best_iteration = 0  # as after `fit`
    vars(model).update(made.attributes)
    _put(model, live, in_place_of=made.booster)
    LIVE[live] = binned


def resume(model: Any, lesson: Lesson, trees: int) -> None:
    """Make the booster of a model that was loaded live, and add `trees` trees."""
    made, saved = _set_up(model, lesson), model.booster_
    # LightGBM keeps the scores of the trees that there are with the rows, so these are its own.
    shared = _binned(model, lesson, made.params).train
    own = _rows(model, lesson, made.params).set_reference(shared)
    live = train(made.params, own, trees, init_model=saved, keep_training_booster=True)
    _put(model, live, in_place_of=saved)
    LIVE[live] = Binned(own, began_with=saved)  # its memory is read again for the rows of VAL


def grow(model: Any, trees: int) -> None:
    """Add `trees` trees."""
    live = model.booster_
    for _ in range(trees):
        live.update()


def judged(model: Any, X: Any) -> Any:
    """The model with predictions for X from the scores that its live booster keeps."""
    live = model.booster_
    binned = LIVE[live]
    if binned.judged is None or binned.judged.X is not X:
        rows = Dataset(X, np.zeros(X.shape[0]), params=binned.train.params)
        binned.judged = Judged(X, rows.set_reference(binned.train))
    if not any(rows is binned.judged.rows for rows in live.valid_sets):
        live.add_valid(binned.judged.rows, "VAL")
    by_classes = type(model).predict is LGBMClassifier.predict
    first = _LikeliestClasses if by_classes else object
    return answering(model, _Answering, binned.judged, first=first)


class _LikeliestClasses:
    """Predicts classes as LightGBM does, without the checks of its encoder of labels."""

    def predict(self: Any, X: Any, *more: Any, **others: Any) -> Any:
        """Those with the largest probabilities, if nothing else is asked for."""
        if X is not self.judged.X or any((*more, *others.values())):
            return super().predict(X, *more, **others)  # type: ignore[misc]
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


class _Answering(LGBMModel):
    """A model whose predictions for the rows of VAL are those that its booster has kept."""

    judged: Judged
    genuine: Any

    def predict(self, X: Any, raw_score: bool = False, *more: Any, **others: Any) -> Any:
        """Predictions, from the kept scores if nothing else is asked for."""
        if any((*more, *others.values())):
            # Not of the booster itself: LightGBM cannot tell contributions while it grows.
            return deepcopy(self.genuine).predict(X, raw_score, *more, **others)
        if X is not self.judged.X:
            return super().predict(X, raw_score)
        return self._margins() if raw_score else self._predictions()

    def _predictions(self) -> Any:
        """The scores that LightGBM hands out for a metric of one's own."""
        kept = []

        def take(scores: Any, rows: Any) -> tuple[str, float, bool]:
            if rows is self.judged.rows:
                kept.append(np.array(scores, order="C"))  # as those of `predict` are
            return "kept", 0.0, True

        self.booster_.eval_valid(take)
        return kept[0]

    def _margins(self) -> Any:
        """The sums of leaves, in the order of trees. LightGBM does not hand them out."""
        X, live = self.judged.X, self.booster_
        classes = live.num_model_per_iteration()
        done, sums = MARGINS.get(live, (0, np.zeros((X.shape[0], classes))))
        sums, upto = sums.copy(), live.current_iteration()
        if done < upto:
            leaves = np.asarray(super().predict(X, pred_leaf=True, start_iteration=done), int)
            for i, of_tree in enumerate(np.reshape(leaves, (X.shape[0], -1)).T):
                tree = done * classes + i
                values = [live.get_leaf_output(tree, n) for n in range(of_tree.max() + 1)]
                sums[:, tree % classes] += np.array(values)[of_tree]
            MARGINS[live] = upto, sums
        return sums.copy() if classes > 1 else sums[:, 0].copy()


def size(model: Any) -> int:
    """About how many bytes a live booster holds, without the rows that it shares.

    Of these, histograms are the most: one of each leaf, of 16 bytes for each bin.
    """
    live = model.booster_
    binned = LIVE[live]
    rows, columns = binned.train.num_data(), binned.train.num_feature()
    binned.bins = binned.bins or sum(map(binned.train.feature_num_bin, range(columns)))
    of_val = binned.judged.rows.num_data() if binned.judged else 0
    scores = live.num_model_per_iteration() * (rows + of_val)
    indices = rows * 20 + (rows * columns if "force_row_wise" in live.params else 0)
    return int(
        16 * scores + indices + model.num_leaves * (16 * binned.bins + 100 * live.num_trees())
    )


def described(model: Any, shape: tuple[int, int] | None) -> dict[str, Any]:
    """How rows of this shape are binned and added up, for the fingerprint."""
    given = model.get_params()
    forced = [way for way in ("row", "col") if given.get(f"force_{way}_wise")]
    way = forced[0] if forced else histograms(shape) if shape else "by shape"
    return {"bins": given.get("max_bin", 255), "histograms": way}


def end_training(model: Any) -> None:
    """Let go of the rows and of what only training needs, as `lightgbm.train` does."""
    live = model.booster_
    del LIVE[live]
    live.model_from_string(live.model_to_string()).free_dataset()


def _set_up(model: Any, lesson: Lesson) -> SetUp:
    """What `fit` sets, learnt from one `fit` for all arms whose trees alone differ."""
    given = model.get_params()
    numbers = {name for name in OF_TREES if name in given and type(given[name]) in NUMBERS}
    own = {name: given.pop(name) for name in numbers}
    given.pop("n_estimators")
    try:
        key = type(model), frozenset((name, type(value), value) for name, value in given.items())
        of_all: dict[Any, SetUp] = lesson.kept.setdefault("LightGBM set up", {})
        known = of_all.get(key)
    except TypeError:  # it has settings that cannot be looked up, such as a dict
        return _set_up_alone(model, lesson)
    if known is None:
        known = _set_up_alone(model, lesson)
        if any(known.params.get(name, ...) != value for name, value in own.items()):
            return known  # what is handed on is no longer what was given
        of_all[key] = known
    params = deepcopy({**known.params, **own})
    # All but the booster, which is replaced.
    copied = deepcopy(known.attributes, {id(known.booster): known.booster})
    return SetUp(params, known.booster, copied)


def _set_up_alone(model: Any, lesson: Lesson) -> SetUp:
    """Fit a copy to a few rows, in silence."""
    params: dict[str, Any] = {}

    def note(env: Any) -> None:
        params.update(env.params)

    given = model.get_params()
    loud = {name: given[name] for name in LOUDNESS if name in given}
    copy = clone(model).set_params(n_estimators=1, **dict.fromkeys(loud or ["verbose"], -1))
    drawn = min(given.get(name) or 1.0 for name in SHARES)
    few, before = few_rows(model, lesson, drawn), dict(vars(copy))
    others = {name: value for name, value in lesson.params.items() if name != "sample_weight"}
    copy.fit(cut(lesson.X, few), cut(lesson.y, few), callbacks=[note], **others)
    for name in ("num_iterations", *LOUDNESS):
        params.pop(name, None)
    params |= {**loud, "metric": "None", "feature_pre_filter": False}
    if not {"force_row_wise", "force_col_wise"} & given.keys():
        params[f"force_{histograms(lesson.X.shape)}_wise"] = True
    attributes = {
        name: value for name, value in vars(copy).items() if before.get(name, ...) is not value
    }
    return SetUp(params, copy.booster_, attributes)


def histograms(shape: tuple[int, int]) -> str:
    """Whether histograms are made by "row" or by "col"umn. LightGBM itself times both.

    With one thread they are the same to the bit. By rows is faster, up to 1.7 times, but takes
    more memory where there are many columns.
    """
    rows, columns = shape
    return "row" if rows >= 10 * columns else "col"


def _binned(model: Any, lesson: Lesson, params: dict[str, Any]) -> Binned:
    """The rows for all arms with the same settings for bins and the same weights of classes."""
    rows = _rows(model, lesson, params)
    key = f"LightGBM {sorted(rows.get_params().items())} {model.class_weight!r}"
    if key not in lesson.kept:
        lesson.kept[key] = Binned(rows.construct())
    binned: Binned = lesson.kept[key]
    return binned


def _rows(model: Any, lesson: Lesson, params: dict[str, Any]) -> Any:
    """The rows with the labels and weights that `fit` gives them. They are not binned yet."""
    label, weights = lesson.y, lesson.params.get("sample_weight")
    if is_classifier(model):
        if "LightGBM labels" not in lesson.kept:
            lesson.kept["LightGBM labels"] = np.unique(label, return_inverse=True)[1]
        label = lesson.kept["LightGBM labels"]
    if model.class_weight is not None:
        of_classes = compute_sample_weight(model.class_weight, lesson.y)
        weights = of_classes if weights is None else np.multiply(weights, of_classes)
    # Not the arm's seed, by which LightGBM would draw the rows that bins are made from.
    decides = Dataset(None, params=params).get_params()
    how = {name: params[name] for name in ("num_threads", *LOUDNESS) if name in params}
    names = ("feature_name", "categorical_feature")
    named = {name: lesson.params[name] for name in names if name in lesson.params}
    return Dataset(lesson.X, label, weight=weights, params={**decides, **how}, **named)


def _put(model: Any, new: Any, in_place_of: Any) -> None:
    """Put another booster into a model, wherever it has the first."""
    vars(model).update({name: new for name, value in vars(model).items() if value is in_place_of})
