"""What batched trainers are given: tables of numbers, and settings in configs."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.errors import InvalidArgument
from lastarm.trainers import Config

Array = NDArray[Any]
Index = Any  # a whole number without a sign: what NumPy takes for one is no int


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidArgument(f"dtype={dtype!r} will not do: give float64, or float32.")
    return kind


def rows_and_targets(
    name: str, X: ArrayLike, y: ArrayLike, dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    """A table of rows and a target for each, as they are named, in the wanted type.

    >>> rows_and_targets("train", [[1, 2]], [0, 1], np.dtype(float))
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: X_train has shape (1, 2) and y_train (2,): give rows and
    columns, at least one of each, and one target for each row.
    """
    rows, targets = (np.ascontiguousarray(given, dtype=dtype) for given in (X, y))
    if rows.ndim != 2 or 0 in rows.shape or targets.shape != rows.shape[:1]:
        raise InvalidArgument(
            f"X_{name} has shape {rows.shape} and y_{name} {targets.shape}: give rows and "
            "columns, at least one of each, and one target for each row."
        )
    if not (np.isfinite(rows).all() and np.isfinite(targets).all()):
        raise InvalidArgument(
            f"X_{name} or y_{name} holds nan or inf: fill in or leave out such rows."
        )
    return rows, targets


def tables(
    train: tuple[ArrayLike, ArrayLike],
    val: tuple[ArrayLike, ArrayLike],
    test: tuple[ArrayLike | None, ArrayLike | None],
    dtype: np.dtype[Any],
) -> dict[str, tuple[Array, Array]]:
    """TRAIN, VAL and, where it is given, TEST, with the same columns."""
    parts = {
        "train": rows_and_targets("train", *train, dtype),
        "val": rows_and_targets("val", *val, dtype),
    }
    X_test, y_test = test
    if (X_test is None) != (y_test is None):
        raise InvalidArgument("X_test and y_test go together: give both, or leave both out.")
    if X_test is not None and y_test is not None:
        parts["test"] = rows_and_targets("test", X_test, y_test, dtype)
    columns = {name: X.shape[1] for name, (X, _) in parts.items()}
    if len(set(columns.values())) > 1:
        listed = ", ".join(f"X_{name} {count}" for name, count in columns.items())
        raise InvalidArgument(f"the tables have different columns: {listed}. Give the same ones.")
    return parts


def signs(parts: dict[str, tuple[Array, Array]]) -> None:
    """Refuse targets that are not −1 or 1."""
    for name, (_, y) in parts.items():
        if not np.isin(y, (-1, 1)).all():
            shown = ", ".join(f"{label:g}" for label in np.unique(y)[:5])
            raise InvalidArgument(
                f"y_{name} holds {shown}: give -1 for one class and 1 for the other."
            )


def setting(config: Config, name: str, least: float = 0.0) -> float:
    """A finite number in a config, of at least `least`.

    >>> setting({"lambda": 0.01}, "lambda")
    0.01
    >>> setting({"alpha": 0.01}, "lambda")
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: the config {'alpha': 0.01} has no 'lambda': give a number of
    at least 0.
    """
    value = config.get(name)
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else -inf
    if not least <= number < inf:
        wrong = f"{name!r} = {value!r}" if name in config else f"no {name!r}"
        raise InvalidArgument(
            f"the config {dict(config)!r} has {wrong}: give a number of at least {least:g}."
        )
    return number


def common_level(pulls: NDArray[np.int64], arms: Sequence[int]) -> int:
    """How many pulls these arms have had, which is to be the same for all."""
    levels = np.unique(pulls[list(arms)])
    if levels.size != 1:
        raise InvalidArgument(
            f"arms that have had {', '.join(map(str, levels))} pulls cannot be trained together: "
            "give arms of one level."
        )
    return int(levels[0])
