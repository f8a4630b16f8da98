"""Configs that were drawn, kept by parameter: a million dicts would take more than the search."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, overload

Column = array | list[Any]  # type: ignore[type-arg]  # arrays take no argument in Python 3.11
KINDS = {float: "d", int: "q"}  # of values that an array holds; all others are in a list


class Drawn(Sequence[dict[str, Any]]):
    """The configs of arms, by number. A config is made when it is asked for.

    >>> configs = Drawn([{"x": 0.5, "kind": "a"}, {"x": 0.25, "kind": "b"}, {"layers": 2}])
    >>> configs[1], configs[2], len(configs)
    ({'x': 0.25, 'kind': 'b'}, {'layers': 2}, 3)

    The values of a parameter are in a column: those of floats and of whole numbers take 8 bytes.
    Configs with the same names, in the same order, have their columns together.

    Where more arms can follow, they are drawn from `rest` when they are asked for, or before that
    if it is not `sure` that there are as many.

    >>> configs = Drawn([{"x": 0}], rest=({"x": x} for x in range(1, 100)), sure=80)
    >>> configs.grow(50)
    >>> len(configs), configs[20], configs.are_drawn
    (50, {'x': 20}, 21)
    """

    def __init__(
        self,
        configs: Iterable[Mapping[str, Any]] = (),
        rest: Iterable[Mapping[str, Any]] = (),
        sure: float = 0,
    ) -> None:
        self._rest, self._sure, self._there_are = iter(rest), sure, 0
        self._tables: list[dict[str, Column]] = []
        self._table_of: dict[tuple[str, ...], int] = {}
        self._table, self._row = array("q"), array("q")  # by arm
        self._rows = array("q")  # by table: how many it has
        self.extend(configs)

    @property
    def are_drawn(self) -> int:
        """How many are drawn so far."""
        return len(self._row)

    def grow(self, arms: int) -> None:
        """Have so many configs, or as many as there are."""
        self._there_are = max(self._there_are, arms if arms <= self._sure else int(self._sure))
        if arms > self._sure:
            self._draw(arms)

    def _draw(self, arms: int) -> None:
        """Draw until there are so many, or no more."""
        self.extend(islice(self._rest, max(0, arms - len(self._row))))

    def extend(self, configs: Iterable[Mapping[str, Any]]) -> None:
        """Add configs at the end."""
        for config in configs:
            names = tuple(config)
            number = self._table_of.setdefault(names, len(self._tables))
            if number == len(self._tables):
                self._tables.append({name: _column(value) for name, value in config.items()})
                self._rows.append(0)
            table = self._tables[number]
            for name, value in config.items():
                column = table[name]
                if isinstance(column, list):
                    column.append(value)
                else:
                    table[name] = _with(column, value)
            self._table.append(number)
            self._row.append(self._rows[number])
            self._rows[number] += 1

    @overload
    def __getitem__(self, arm: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, arm: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, arm: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(arm, slice):
            return [self[each] for each in range(*arm.indices(len(self)))]
        if len(self._row) <= arm < len(self):
            self._draw(arm + 1)
        row = self._row[arm]
        return {name: column[row] for name, column in self._tables[self._table[arm]].items()}

    def __len__(self) -> int:
        return max(len(self._row), self._there_are)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Drawn | list | tuple) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __repr__(self) -> str:
        return repr(list(self))


class Replaceable(Sequence[dict[str, Any]]):
    """The configs of arms, which others may take the place of.

    >>> configs = Replaceable(Drawn([{"x": 1}, {"x": 2}]))
    >>> configs[1] = {"x": 5}
    >>> configs[0] is configs[0], list(configs)
    (True, [{'x': 1}, {'x': 5}])

    The config of an arm is the same object whenever it is asked for.
    """

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        self._asked_for: dict[int, dict[str, Any]] = {}

    def grow(self, arms: int) -> None:
        """Have so many configs, or as many as there are."""
        self._drawn.grow(arms)

    @overload
    def __getitem__(self, arm: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, arm: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, arm: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(arm, slice):
            return [self[each] for each in range(*arm.indices(len(self)))]
        if arm not in self._asked_for:
            self._asked_for[arm] = self._drawn[arm]
        return self._asked_for[arm]

    def __setitem__(self, arm: int, config: dict[str, Any]) -> None:
        self._asked_for[arm] = config

    def __len__(self) -> int:
        return len(self._drawn)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # like a list


def _column(value: Any) -> Column:
    kind = KINDS.get(type(value))
    return array(kind) if kind else []


def _with(column: array, value: Any) -> Column:  # type: ignore[type-arg]
    """An array with one more value; a list instead, where an array cannot hold it."""
    if KINDS.get(type(value)) == column.typecode:
        with suppress(OverflowError):
            column.append(value)
            return column
    return [*column, value]
