"""Checks of what batched trainers are given: tables of numbers, and the numbers in configs."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lastarm.arguments import as_float
from lastarm.errors import InvalidArgument
from lastarm.trainers import Config

Array = NDArray[Any]
Index = Any  # an unsigned whole number; for NumPy it is not an int


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """The NumPy type of that name, if it is float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        rule = "the kernels compute in float64 or float32"
        raise InvalidArgument.of("dtype", dtype, rule, "Use one of these")
    return kind


def tables(
    train: tuple[ArrayLike, ArrayLike],
    val: tuple[ArrayLike, ArrayLike],
    test: tuple[ArrayLike | None, ArrayLike | None],
    dtype: np.dtype[Any],
) -> dict[str, tuple[Array, Array]]:
    """The rows and targets of TRAIN, of VAL and, if it is given, of TEST, in the wanted type.

    >>> tables(([[1, 2]], [0, 1]), ([[1, 2]], [0]), (None, None), np.dtype(float))
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: X_train has shape (1, 2) and y_train has shape (2,): X is a
    table with one row per target. Pass at least one row and one column, and as many targets as
    rows.
    """
    given = {"train": train, "val": val}
    X_test, y_test = test
    if X_test is not None and y_test is not None:
        given["test"] = X_test, y_test
    elif X_test is not None or y_test is not None:
        missing, rule = "X_test" if X_test is None else "y_test", "they belong together"
        raise InvalidArgument.of(missing, None, rule, "Pass X_test and y_test, or neither")
    parts = {name: _rows_and_targets(name, X, y, dtype) for name, (X, y) in given.items()}
    columns = parts["train"][0].shape[1]
    for name, (X, _) in parts.items():
        if X.shape[1] != columns:
            raise InvalidArgument(
                f"X_{name} has {X.shape[1]} columns and X_train has {columns}: all tables have "
                "the same columns. Pass the same ones.",
                argument=f"X_{name}",
                given=given[name][0],
            )
    return parts


def _rows_and_targets(
    name: str, X: ArrayLike, y: ArrayLike, dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    rows, targets = (np.ascontiguousarray(table, dtype=dtype) for table in (X, y))
    if rows.ndim != 2 or 0 in rows.shape or targets.shape != rows.shape[:1]:
        raise InvalidArgument(
            f"X_{name} has shape {rows.shape} and y_{name} has shape {targets.shape}: X is a "
            "table with one row per target. Pass at least one row and one column, and as many "
            "targets as rows.",
            argument=f"X_{name}",
            given=X,
        )
    for letter, table, one in (("X", rows, X), ("y", targets, y)):
        if not np.isfinite(table).all():
            raise InvalidArgument(
                f"{letter}_{name} contains nan or inf: the kernels need finite numbers. Fill in "
                "such values, or leave out their rows.",
                argument=f"{letter}_{name}",
                given=one,
            )
    return rows, targets


def require_signs(parts: dict[str, tuple[Array, Array]]) -> None:
    """Refuse targets that are not −1 or 1."""
    for name, (_, y) in parts.items():
        if not np.isin(y, (-1, 1)).all():
            shown = ", ".join(f"{label:g}" for label in np.unique(y)[:5])
            raise InvalidArgument(
                f"y_{name} contains {shown}: targets of classifiers are -1 and 1. Use -1 for one "
                "class and 1 for the other.",
                argument=f"y_{name}",
                given=y,
            )


def setting(config: Config, name: str, least: float = 0.0) -> float:
    """A finite number in a config, of at least `least`.

    >>> setting({"lambda": 0.01}, "lambda")
    0.01
    >>> setting({"alpha": 0.01}, "lambda")
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: the config {'alpha': 0.01} has no 'lambda': it is a finite
    number of at least 0. Add it to the config.
    """
    value = config.get(name)
    if not least <= as_float(value) < inf:
        wrong = f"{name!r} = {value!r}" if name in config else f"no {name!r}"
        way_out = "Change it in the space" if name in config else "Add it to the config"
        raise InvalidArgument(
            f"the config {dict(config)!r} has {wrong}: it is a finite number of at least "
            f"{least:g}. {way_out}.",
            argument=name,
            given=value,
        )
    return as_float(value)


def common_level(pulls: NDArray[np.int64], arms: Sequence[int]) -> int:
    """The number of pulls that each of these arms has had, if it is the same for all."""
    levels = np.unique(pulls[list(arms)])
    if levels.size != 1:
        rule = f"they have had {', '.join(map(str, levels))} pulls, and not equally many"
        raise InvalidArgument.of("arms", arms, rule, "Pass arms of one level")
    return int(levels[0])
