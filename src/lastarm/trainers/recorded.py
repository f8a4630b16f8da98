"""Recorded learning curves: searches that are replayed from a table, at no cost."""

from __future__ import annotations

import csv
import hashlib
import time
import zipfile
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.errors import InvalidArgument
from lastarm.trainers.protocol import Config


class Position(NamedTuple):
    """How far along its recorded curve an arm is."""

    row: int
    pulls: int


class RecordedCurves:
    """Arms whose losses are in a table, with a row for each arm and a column for each pull.

    - `losses`: the table, losses[arm, step].
    - `test`: a test loss for each row, which no policy sees. It may be left out.
    - `seconds_per_pull`: how long a pull takes, to watch a search that would be over at once.
    - `restarts`: whether to play a trainer that trains every level from zero: see `Trainer`.

    The config of an arm is `{"row": r}`. After t pulls its loss is column t of that row, counted
    from 1. Past the last column, it is the last.

    >>> curves = RecordedCurves([[0.9, 0.5, 0.4], [0.8, 0.7, 0.6]])
    >>> state = curves.train(curves.start({"row": 0}, seed=0), pulls=2)
    >>> curves.loss(state), curves.loss(curves.train(state, pulls=10))
    (0.5, 0.4)
    """

    def __init__(
        self,
        losses: Any,
        *,
        test: Any = None,
        seconds_per_pull: float = 0.0,
        restarts: bool = False,
    ) -> None:
        self.losses = _table(losses)
        self._final_test = None if test is None else _real("test", test)
        if self._final_test is not None:
            if self._final_test.shape != self.losses.shape[:1]:
                rule = f"it has shape {self._final_test.shape}, for {len(self.losses)} rows"
                raise InvalidArgument.of("test", test, rule, "Use one number for each row")
            self.test = self._test  # a table without test losses has no such method
        self.restarts = restarts
        self.seconds_per_pull = _pace(seconds_per_pull)

    @classmethod
    def load(cls, path: str | Path, *, seconds_per_pull: float = 0.0) -> RecordedCurves:
        """The table in an `.npz` file (`losses`, and `test` if it is there) or a `.csv` file."""
        path = Path(path)
        try:
            arrays = _read_csv(path) if path.suffix.lower() == ".csv" else _read_npz(path)
            curves = cls(**arrays)
        except Exception as error:  # a broken file makes its reader raise anything
            reason = getattr(error, "strerror", None) or " ".join(str(error).split()).rstrip(".")
            rule = f"it cannot be read as a table of losses: {reason}"
            way_out = (
                "Use an .npz file with `losses[arm, step]`, or a .csv file of numbers with one "
            )
            way_out += "row for each arm"
            raise InvalidArgument.of("path", str(path), rule, way_out) from error
        curves.seconds_per_pull = _pace(seconds_per_pull)
        return curves

    def start(self, config: Config, seed: int) -> Position:
        """The beginning of row `config["row"]`."""
        return Position(config["row"], 0)

    def train(self, state: Position, pulls: int) -> Position:
        """The place that is `pulls` columns further."""
        if self.seconds_per_pull:
            time.sleep(self.seconds_per_pull * pulls)
        return Position(state.row, state.pulls + pulls)

    def loss(self, state: Position) -> float:
        """What is written there."""
        return float(self.losses[state.row, min(state.pulls, self.losses.shape[1]) - 1])

    def _test(self, state: Position) -> float:
        """The final test loss of the row."""
        assert self._final_test is not None
        return float(self._final_test[state.row])

    def fingerprint(self) -> dict[str, Any]:
        """The sha256 of the table: its shape, its losses as float64, and its test losses."""
        table = hashlib.sha256(f"{self.losses.shape}".encode() + self.losses.tobytes())
        if self._final_test is not None:
            table.update(self._final_test.tobytes())
        return {"table": table.hexdigest()}


def _pace(seconds_per_pull: float) -> float:
    if not 0 <= seconds_per_pull < inf:
        rule, way_out = "it is how long a pull takes", "Use a finite number of 0 or more"
        raise InvalidArgument.of("seconds_per_pull", seconds_per_pull, rule, way_out)
    return seconds_per_pull


def _table(losses: Any) -> NDArray[np.float64]:
    try:
        table = np.asarray(losses)
    except ValueError:
        rule, way_out = "its rows differ in length", "Use rows of one length"
        raise InvalidArgument.of("losses", losses, rule, way_out) from None
    if table.ndim != 2 or 0 in table.shape:
        rule = f"its shape is {table.shape}, and a table has arms and steps"
        way_out = "Use two dimensions, with at least one arm and one step"
        raise InvalidArgument.of("losses", losses, rule, way_out)
    return _real("losses", table)


def _real(name: str, values: Any) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        rule = f"it has values of type {array.dtype}, not real numbers"
        raise InvalidArgument.of(name, values, rule, "Use real numbers")
    return np.ascontiguousarray(array, dtype=np.float64)


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise InvalidArgument("it is empty or not an .npz file")
    with np.load(path, allow_pickle=False) as arrays:
        if "losses" not in arrays:
            there = ", ".join(arrays) or "(none)"
            raise InvalidArgument(f"it has no array `losses`, only: {there}")
        return {name: arrays[name] for name in ("losses", "test") if name in arrays}


def _read_csv(path: Path) -> dict[str, Any]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [(number, row) for number, row in enumerate(csv.reader(file), start=1) if row]
    if lines and not any(map(_is_number, lines[0][1])):
        del lines[0]  # a header
    rows = []
    for number, row in lines:
        try:
            rows.append([float(cell) for cell in row])
        except ValueError as error:
            raise InvalidArgument(f"line {number}: {error}") from None
    if not rows:
        raise InvalidArgument("it holds no numbers")
    return {"losses": rows}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
