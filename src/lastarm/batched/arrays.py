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
    lastarm.errors.InvalidArgument: X_train has shape (1, 2) and y_train has shape (2,). Pass at
    least one row and one column, and as many targets as rows.
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
            problem = f"has {X.shape[1]} columns and X_train has {columns}"
            raise bad_table(f"X_{name}", given[name][0], problem, "Pass the same columns")
    return parts


def _rows_and_targets(
    name: str, X: ArrayLike, y: ArrayLike, dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    rows, targets = (np.ascontiguousarray(table, dtype=dtype) for table in (X, y))
    if rows.ndim != 2 or 0 in rows.shape or targets.shape != rows.shape[:1]:
        problem = f"has shape {rows.shape} and y_{name} has shape {targets.shape}"
        way_out = "Pass at least one row and one column, and as many targets as rows"
        raise bad_table(f"X_{name}", X, problem, way_out)
    for letter, table, one in (("X", rows, X), ("y", targets, y)):
        if not np.isfinite(table).all():
            problem = "contains nan or inf: the kernels need finite numbers"
            way_out = "Fill in such values, or leave out their rows"
            raise bad_table(f"{letter}_{name}", one, problem, way_out)
    return rows, targets


def bad_table(name: str, given: object, problem: str, way_out: str) -> InvalidArgument:
    """The error for a table, which is too large to be shown."""
    return InvalidArgument(f"{name} {problem}. {way_out}.", argument=name, given=given)


def require_signs(parts: dict[str, tuple[Array, Array]]) -> None:
    """Refuse targets that are not −1 or 1."""
    for name, (_, y) in parts.items():
        if not np.isin(y, (-1, 1)).all():
            shown = ", ".join(f"{label:g}" for label in np.unique(y)[:5])
            problem = f"contains {shown}: targets of classifiers are -1 and 1"
            raise bad_table(f"y_{name}", y, problem, "Use -1 for one class and 1 for the other")


def setting(config: Config, name: str, least: float = 0.0) -> float:
    """A finite number in a config, of at least `least`.

    >>> setting({"lambda": 0.01}, "lambda")
    0.01
    >>> setting({"alpha": 0.01}, "lambda")
    Traceback (most recent call last):
    lastarm.errors.InvalidArgument: lambda=None is not valid: it is a finite number of at least 0,
    in the config {'alpha': 0.01}. Add it to the config.
    """
    value = config.get(name)
    if not least <= as_float(value) < inf:
        way_out = "Change it in the space" if name in config else "Add it to the config"
        rule = f"it is a finite number of at least {least:g}, in the config {dict(config)!r}"
        raise InvalidArgument.of(name, value, rule, way_out)
    return as_float(value)


def common_level(pulls: NDArray[np.int64], arms: Sequence[int]) -> int:
    """The number of pulls that each of these arms has had, if it is the same for all."""
    levels = np.unique(pulls[list(arms)])
    if levels.size != 1:
        rule = f"they have had {', '.join(map(str, levels))} pulls, and not equally many"
        raise InvalidArgument.of("arms", arms, rule, "Pass arms of one level")
    return int(levels[0])
