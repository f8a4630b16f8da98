"""Domains: the values that one parameter may take, and how likely each is."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, MappingView, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass, field, fields
from fractions import Fraction
from inspect import signature
from math import exp, floor, inf, isfinite, isnan, log
from statistics import NormalDist
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.arguments import as_float, whole_number
from lastarm.arguments.other_tools import OnlyKnown
from lastarm.errors import InvalidArgument
from lastarm.plain import as_python, described, identity, readable
from lastarm.space.beliefs import near, require_likely, with_belief


class Domain(OnlyKnown, ABC):
    """The values that one parameter may take."""

    __slots__ = ()

    @property
    def size(self) -> int | None:
        """How many values there are; None when they are not counted."""
        return None

    @abstractmethod
    def sample(self, random: np.random.Generator) -> Any:
        """One value, drawn with `random`."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The domain as JSON; domains that differ are described differently."""

    @abstractmethod
    def contains(self, value: Any) -> bool:
        """Whether `value` is one of its values."""

    def values(self) -> list[Any]:
        """All values in order, where they are counted."""
        raise NotImplementedError(f"the values of {self} are not counted")

    def weights(self) -> NDArray[np.float64]:
        """How likely each of `values()` is."""
        count = len(self.values())
        return np.full(count, 1 / count)

    def recalled(self, written: Any) -> list[Any]:
        """Its values that `readable` writes like this: one, none or several."""
        return [written] if type(written) in (int, float, list) else []

    def places(self, values: Sequence[Any]) -> NDArray[np.float64] | None:
        """Where `values` are between the ends, from 0 to 1, on its scale; None without an order.

        If values are counted, each has as much room as it is likely without a belief, and its
        place is the middle.
        """
        return None

    def at(self, place: float) -> Any:
        """The value whose room has this place, from 0 to 1."""
        raise NotImplementedError(f"the values of {self} have no places")


class Believed(Domain):
    """A domain of which the user may say where good values are likely."""

    __slots__ = ()

    def __repr__(self) -> str:
        given = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        given = {k: v for k, v in given.items() if k != "likely" or v is not None}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


class Finite(Domain):
    """A domain whose values can be counted."""

    __slots__ = ()

    @abstractmethod
    def values(self) -> list[Any]:
        """All values, in order."""

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values())

    def contains(self, value: Any) -> bool:
        """Whether it is one of them; a number also if it is written as another kind of number."""
        number, same = as_float(value), identity(as_python(value))
        return any(identity(v) == same or as_float(v) == number for v in self.values())

    def recalled(self, written: Any) -> list[Any]:
        """Its values that are written like this."""
        return [v for v in self.values() if identity(readable(v)) == identity(written)]


@dataclass(frozen=True, slots=True, repr=False)
class Continuous(Domain):
    """The numbers between two ends."""

    low: float
    high: float

    def __post_init__(self) -> None:
        kind, low, high = type(self).__name__, self.low, self.high
        for name, value in (("low", low), ("high", high)):
            end = as_float(value)
            if not isfinite(end):
                rule = f"it is an end of a {kind}"
                raise InvalidArgument.of(name, value, rule, "Use a finite number")
            object.__setattr__(self, name, end)
        if self.low >= self.high:
            rule = f"a {kind} has its low end, here {low!r}, below its high end"
            way_out = "Exchange the ends, or give a value that does not vary without a domain"
            raise InvalidArgument.of("high", high, rule, way_out)

    def contains(self, value: Any) -> bool:
        """Whether it is a number between the ends, or one of them."""
        return self.low <= as_float(value) <= self.high

    def recalled(self, written: Any) -> list[float]:
        """The number itself."""
        return [written] if type(written) is float and self.contains(written) else []

    def places(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Where numbers are between the ends."""
        size = max(abs(self.low), abs(self.high))  # high - low may be more than a float can hold
        low, width = self.low / size, self.high / size - self.low / size
        return np.clip((_floats(values) / size - low) / width, 0, 1)

    def at(self, place: float) -> float:
        """The number at a place."""
        return min(max(self.low * (1 - place) + self.high * place, self.low), self.high)


@dataclass(frozen=True, slots=True, repr=False)
class Uniform(Continuous, Believed):
    """A number between two ends, each equally likely.

    - `low`, `high`: the ends, two finite numbers.
    - `step`: the distance between two numbers. The numbers are then low, low + step, and so on, up
      to high or just below it. Left out, every number in between is possible.
    - `likely`: a number that you expect to do well. Half of all numbers are then drawn near it.

    >>> Uniform(0, 1).sample(np.random.default_rng(0))
    0.6369616873214543
    >>> Uniform(0.1, 0.5, step=0.1).values()
    [0.1, 0.2, 0.3, 0.4, 0.5]
    """

    step: float | None = None
    likely: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        Continuous.__post_init__(self)
        if self.step is not None:
            if not 0 < as_float(self.step) <= self.high - self.low:
                rule = "it is the distance between two numbers of the domain"
                way_out = "Use a number greater than 0 and at most high - low"
                raise InvalidArgument.of("step", self.step, rule, way_out)
            object.__setattr__(self, "step", as_float(self.step))
        _take_likely(self)

    @property
    def size(self) -> int | None:
        """How many steps there are, if there are steps."""
        if self.step is None:
            return None
        return floor((_exact(self.high) - _exact(self.low)) / _exact(self.step)) + 1

    def values(self) -> list[float]:
        """All steps, as exact as they are written: 0.1 + 0.2 is 0.3."""
        if self.step is None:
            return Continuous.values(self)
        return [self._value(number) for number in range(self.size or 0)]

    def _value(self, number: int) -> float:
        assert self.step is not None
        return float(_exact(self.low) + number * _exact(self.step))

    def contains(self, value: Any) -> bool:
        """Whether it is a number between the ends, and at a step."""
        inside = Continuous.contains(self, value)
        if not inside or self.step is None:
            return inside
        number = (_exact(as_float(value)) - _exact(self.low)) / _exact(self.step)
        return number.denominator == 1

    def sample(self, random: np.random.Generator) -> float:
        """One number."""
        if self.likely is not None:
            return self.at(near(_place(self, self.likely), random))
        if self.step is None:
            return _between(self.low, self.high, random)
        return self._value(int(random.integers(self.size or 0)))

    def weights(self) -> NDArray[np.float64]:
        """How likely each step is."""
        weights = Continuous.weights(self)
        return weights if self.likely is None else _believed(self, weights, self.likely)

    def places(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Where numbers are between the ends; of a step, the middle of its room."""
        if self.step is None:
            return Continuous.places(self, values)
        size, low, step = self.size or 0, self.low, self.step
        return np.asarray((np.round((_floats(values) - low) / step) + 0.5) / size)

    def at(self, place: float) -> float:
        """The number at a place."""
        if self.step is None:
            return Continuous.at(self, place)
        size = self.size or 0
        return self._value(min(int(place * size), size - 1))

    def describe(self) -> dict[str, Any]:
        """Its ends, and its step."""
        said: dict[str, Any] = {"uniform": [self.low, self.high]}
        said |= {} if self.step is None else {"step": self.step}
        return said if self.likely is None else {**said, "likely": self.likely}


@dataclass(frozen=True, slots=True, repr=False)
class LogUniform(Continuous, Believed):
    """A number between two ends, each order of magnitude equally likely.

    - `low`, `high`: the ends, two finite numbers above 0.
    - `likely`: a number that you expect to do well. Half of all numbers are then drawn near it.

    >>> random = np.random.default_rng(0)
    >>> [f"{LogUniform(1e-5, 1e-1).sample(random):.0e}" for _ in range(4)]
    ['4e-03', '1e-04', '1e-05', '1e-05']
    >>> believed = LogUniform(1e-5, 1e-1, likely=1e-3)
    >>> sum(3e-4 < believed.sample(random) < 3e-3 for _ in range(1000))
    466
    """

    likely: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        Continuous.__post_init__(self)
        if self.low <= 0:
            rule = "a LogUniform begins above 0"
            raise InvalidArgument.of("low", self.low, rule, "Use a positive low, or Uniform")
        _take_likely(self)

    def sample(self, random: np.random.Generator) -> float:
        """One number."""
        if self.likely is not None:
            return self.at(near(_place(self, self.likely), random))
        number = exp(_between(log(self.low), log(self.high), random))
        return min(max(number, self.low), self.high)

    def places(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Where the logarithms of numbers are between those of the ends."""
        low, high = log(self.low), log(self.high)
        return np.clip((np.log(_floats(values)) - low) / (high - low), 0, 1)

    def at(self, place: float) -> float:
        """The number at a place."""
        number = exp(log(self.low) * (1 - place) + log(self.high) * place)
        return min(max(number, self.low), self.high)

    def describe(self) -> dict[str, Any]:
        """Its ends."""
        said: dict[str, Any] = {"log-uniform": [self.low, self.high]}
        return said if self.likely is None else {**said, "likely": self.likely}


@dataclass(frozen=True, slots=True)
class Normal(Domain):
    """A number that is the more likely, the nearer it is to the mean: the normal distribution.

    - `mean`: the most likely number.
    - `sd`: the standard deviation. Two thirds of all numbers are within one of the mean.
    - `low`, `high`: ends that no number lies beyond. Left out, there are none.

    >>> random = np.random.default_rng(0)
    >>> [round(Normal(0.9, 0.05, high=1.0).sample(random), 2) for _ in range(4)]
    [0.92, 0.87, 0.81, 0.79]
    """

    mean: float
    sd: float
    low: float = -inf
    high: float = inf

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("mean", "sd", "low", "high")}
        for name, value in given.items():
            number = as_float(value)
            if isnan(number) or (name in ("mean", "sd") and not isfinite(number)):
                rule = f"{name} is a number that says what a Normal draws"
                raise InvalidArgument.of(name, value, rule, "Use a finite number")
            object.__setattr__(self, name, number)
        if self.sd <= 0:
            rule = "it is the standard deviation"
            raise InvalidArgument.of("sd", given["sd"], rule, "Use a number greater than 0")
        below, above = self._shares()
        if not below < above:
            rule = f"hardly any number of this Normal is between low={self.low} and high"
            way_out = "Use a low below high, not far from the mean; or Uniform"
            raise InvalidArgument.of("high", given["high"], rule, way_out)

    def _shares(self) -> tuple[float, float]:
        """How much of the distribution lies below each end."""
        normal = NormalDist(self.mean, self.sd)
        return normal.cdf(self.low), normal.cdf(self.high)

    def contains(self, value: Any) -> bool:
        """Whether it is a finite number between the ends."""
        return isfinite(as_float(value)) and self.low <= as_float(value) <= self.high

    def sample(self, random: np.random.Generator) -> float:
        """One number, by the inverse of the distribution function."""
        share = _between(*self._shares(), random)
        share = min(max(share, 2**-53), 1 - 2**-53)  # at 0 and 1 the inverse is infinite
        number = self.mean + self.sd * NormalDist().inv_cdf(share)
        return min(max(number, self.low), self.high)

    def describe(self) -> dict[str, Any]:
        """Its mean and deviation, and its ends where it has them."""
        ends = {"low": self.low, "high": self.high}
        kept = {name: end for name, end in ends.items() if isfinite(end)}
        return {"normal": [self.mean, self.sd], **kept}

    def _reach(self) -> tuple[float, float]:
        """Between which numbers nearly all are."""
        return max(self.low, self.mean - 3 * self.sd), min(self.high, self.mean + 3 * self.sd)

    def places(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Where numbers are within three deviations of the mean; others are at the ends."""
        low, high = self._reach()
        if not 0 < high - low < inf:
            return np.full(len(values), 0.5)
        return np.clip((_floats(values) - low) / (high - low), 0, 1)

    def at(self, place: float) -> float:
        """The number at a place."""
        low, high = self._reach()
        return min(max(low * (1 - place) + high * place, self.low), self.high)

    def recalled(self, written: Any) -> list[float]:
        """The number itself."""
        return [written] if type(written) is float and self.contains(written) else []


@dataclass(frozen=True, slots=True, repr=False)
class Integer(Finite, Believed):
    """A whole number between two ends, both included.

    - `low`, `high`: the ends, two whole numbers.
    - `log`: with True each order of magnitude is equally likely, not each number. The number is
      then a log-uniform one between low - ½ and high + ½, rounded, so that k has a weight of
      log (k + ½) / (k - ½).
    - `step`: the distance between two numbers. The numbers are low, low + step, and so on, up to
      high or just below it. It cannot be used with `log`.
    - `likely`: a number that you expect to do well. Half of all numbers are then drawn near it.

    >>> Integer(1, 4, log=True).weights().round(2).tolist()
    [0.5, 0.23, 0.15, 0.11]
    >>> Integer(16, 70, step=16).values()
    [16, 32, 48, 64]
    """

    low: int
    high: int
    log: bool = False
    step: int = 1
    likely: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        least = 1 if self.log else -(2**63)
        low = whole_number("low", self.low, least, "the least value of an Integer")
        high = whole_number("high", self.high, low, "the greatest value of an Integer")
        step = whole_number("step", self.step, 1, "the distance between two numbers")
        if self.log and step != 1:
            rule = "with log=True there are no equal steps"
            way_out = "Leave one of the two out, or list the numbers in a Choice"
            raise InvalidArgument.of("step", step, rule, way_out)
        if step > max(1, high - low):
            rule = "it is the distance between two numbers of the domain"
            raise InvalidArgument.of("step", step, rule, f"Use at most {max(1, high - low)}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "log", bool(self.log))
        object.__setattr__(self, "step", step)
        _take_likely(self)

    @property
    def size(self) -> int:
        """How many there are, both ends included."""
        return (self.high - self.low) // self.step + 1

    def contains(self, value: Any) -> bool:
        """Whether it is a whole number between the ends, and at a step."""
        value = as_python(value)
        inside = type(value) is int and self.low <= value <= self.high
        return inside and (value - self.low) % self.step == 0

    def sample(self, random: np.random.Generator) -> int:
        """One number."""
        if self.likely is not None:
            return self.at(near(_place(self, self.likely), random))
        if self.step != 1:
            return self.low + self.step * int(random.integers(self.size))
        if not self.log:
            return int(random.integers(self.low, self.high, endpoint=True))
        number = exp(_between(log(self.low - 0.5), log(self.high + 0.5), random))
        return min(max(floor(number + 0.5), self.low), self.high)

    def values(self) -> list[int]:
        """All of them, from low to high."""
        return list(range(self.low, self.high + 1, self.step))

    def weights(self) -> NDArray[np.float64]:
        """How likely each is."""
        weights = Finite.weights(self)
        if self.log:
            numbers = np.arange(self.low, self.high + 1, dtype=np.float64)
            weights = np.log1p(1 / (numbers - 0.5))
            weights /= weights.sum()
        return weights if self.likely is None else _believed(self, weights, self.likely)

    def places(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Where numbers are: in the middle of the room of each, on its scale."""
        if self.log:
            low, high = log(self.low - 0.5), log(self.high + 0.5)
            return (np.array([log(value) for value in values]) - low) / (high - low)
        room = 2 * self.size  # Python's integers may be too large for an array
        return np.array([((v - self.low) // self.step * 2 + 1) / room for v in values])

    def at(self, place: float) -> int:
        """The number at a place."""
        if self.log:
            low, high = log(self.low - 0.5), log(self.high + 0.5)
            number = floor(exp(low * (1 - place) + high * place) + 0.5)
            return min(max(number, self.low), self.high)
        return self.low + self.step * min(int(place * self.size), self.size - 1)

    def describe(self) -> dict[str, Any]:
        """Its ends, its scale and its step."""
        said: dict[str, Any] = {"integer": [self.low, self.high]}
        said |= {"log": True} if self.log else {}
        said |= {"step": self.step} if self.step != 1 else {}
        return said if self.likely is None else {**said, "likely": self.likely}

    def recalled(self, written: Any) -> list[int]:
        """The number itself."""
        return [written] if type(written) is int and self.contains(written) else []


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Choice(Finite):
    """One of several options, each equally likely.

    - `options`: any values. An option that is given twice is kept once. A single list, tuple,
      range or one-dimensional array stands for its elements; a single string is that string.
    - `ordered`: whether the order of the options means something, as in "small", "medium",
      "large". Samplers may then try the neighbours of an option that did well. Options that are
      all numbers have their order anyway.

    >>> Choice("relu", "tanh", "relu"), Choice(["relu", "tanh"])
    (Choice('relu', 'tanh'), Choice('relu', 'tanh'))
    >>> Choice(1, 1.0, True).size, Choice([64, 64], [128]).size
    (3, 2)
    """

    options: tuple[Any, ...]
    ordered: bool

    def __init__(self, *options: Any, ordered: bool = False) -> None:
        if len(options) == 1 and (elements := _elements(options[0])) is not None:
            options = tuple(elements)
        self._take(options, ordered)

    @classmethod
    def of(cls, options: Iterable[Any]) -> Choice:
        """A choice among options as they are, also if there is only one and it is a list.

        >>> Choice.of([[64, 64]])
        Choice([[64, 64]])
        """
        choice = cls.__new__(cls)
        choice._take(tuple(options), ordered=False)
        return choice

    def _take(self, options: tuple[Any, ...], ordered: bool) -> None:
        if not options:
            raise InvalidArgument(
                "Choice() has no options. Use at least one.", argument="options", given=options
            )
        options = tuple(as_python(option) for option in options)
        if any(isinstance(option, float) and isnan(option) for option in options):
            rule = "nan does not equal anything, not even itself"
            raise InvalidArgument.of("options", options, rule, "Use None or a string in its place")
        for option in options:
            require_plain("options", option)
        if not isinstance(ordered, bool):
            rule = "it says whether the order of the options means something"
            raise InvalidArgument.of("ordered", ordered, rule, "Use True or False")
        if len(options) == 1:
            _refuse_unordered("options", options[0])
        distinct: dict[Hashable, Any] = {}
        for option in options:
            distinct.setdefault(identity(option), option)
        object.__setattr__(self, "options", tuple(distinct.values()))
        object.__setattr__(self, "ordered", ordered)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.options))
        if len(self.options) == 1 and _elements(self.options[0]) is not None:
            shown = f"[{shown}]"
        return f"Choice({shown}, ordered=True)" if self.ordered else f"Choice({shown})"

    def sample(self, random: np.random.Generator) -> Any:
        """One option."""
        return self.options[int(random.integers(len(self.options)))]

    def values(self) -> list[Any]:
        """The options, in the order in which they were given."""
        return list(self.options)

    def describe(self) -> dict[str, Any]:
        """Its options, and whether they are ordered."""
        listed = {"choice": [described(option) for option in self.options]}
        return {**listed, "ordered": True} if self.ordered else listed

    def in_order(self) -> list[Any] | None:
        """The options from low to high; None if they have no order."""
        if self.ordered:
            return list(self.options)
        numbers = all(type(v) is int or (type(v) is float and isfinite(v)) for v in self.options)
        return sorted(self.options) if numbers else None

    def places(self, values: Sequence[Any]) -> NDArray[np.float64] | None:
        """Where options are in their order, if there is one: in the middle of the room of each."""
        ordered = self.in_order()
        if ordered is None:
            return None
        return np.array([(place + 0.5) / len(ordered) for place in numbers_of(ordered, values)])

    def at(self, place: float) -> Any:
        """The option at a place."""
        ordered = self.in_order()
        if ordered is None:
            return Finite.at(self, place)
        return ordered[min(int(place * len(ordered)), len(ordered) - 1)]


@dataclass(frozen=True, slots=True)
class Constant(Finite):
    """A value that is the same for every arm."""

    value: Any

    def __post_init__(self) -> None:
        require_plain("value", self.value)
        object.__setattr__(self, "value", as_python(self.value))
        if isinstance(self.value, float) and isnan(self.value):
            raise InvalidArgument(
                "nan is not valid as a value, because it does not equal anything, not even "
                "itself. Use None or a string in its place, or set it in the trainer."
            )

    def sample(self, random: np.random.Generator) -> Any:
        """The value."""
        return self.value

    def values(self) -> list[Any]:
        """The value alone."""
        return [self.value]

    def describe(self) -> dict[str, Any]:
        """The value."""
        return {"constant": described(self.value)}


@dataclass(frozen=True, slots=True)
class Distribution(Domain):
    """A frozen distribution of scipy.stats, or another object with `rvs(random_state=...)`.

    Its values are not counted, even if it is discrete, so several arms may get the same one.
    """

    frozen: Any

    def __post_init__(self) -> None:
        try:
            value = self.sample(np.random.default_rng(0))
        except Exception as error:  # other packages raise anything
            reason = " ".join(str(error).split())
        else:
            if not (isinstance(value, float) and isnan(value)):
                return
            reason = "it gives nan"
        raise InvalidArgument(
            f"no value can be drawn from {self.frozen!r}: {reason}. Use a frozen distribution, "
            "such as scipy.stats.loguniform(1e-5, 1e-1), with arguments that it accepts."
        )

    def contains(self, value: Any) -> bool:
        """Whether it is in the support, where the distribution has one."""
        if not callable(getattr(self.frozen, "support", None)):
            return True
        low, high = self.frozen.support()
        return bool(low <= as_float(value) <= high)

    def places(self, values: Sequence[Any]) -> NDArray[np.float64] | None:
        """How likely a lower number is, where the distribution says so; in the middle, if not."""
        one = as_float(self.sample(np.random.default_rng(0)))
        if isnan(one) or not callable(getattr(self.frozen, "cdf", None)):
            return None  # of vectors, or of something else
        shares = np.asarray(self.frozen.cdf(_floats(values)), dtype=np.float64)
        return np.clip(np.where(np.isfinite(shares), shares, 0.5), 0, 1)

    def sample(self, random: np.random.Generator) -> Any:
        """One value; a list, if the distribution is of vectors."""
        value = self.frozen.rvs(random_state=random)
        return value.tolist() if isinstance(value, np.ndarray) else as_python(value)

    def describe(self) -> dict[str, Any]:
        """Its name and arguments."""
        dist = getattr(self.frozen, "dist", self.frozen)
        said = {
            "distribution": getattr(dist, "name", repr(dist)),
            "args": described(list(getattr(self.frozen, "args", ()))),
            "kwds": {k: described(v) for k, v in getattr(self.frozen, "kwds", {}).items()},
        }
        if hasattr(dist, "xk"):  # rv_discrete(values=(xk, pk)) has no other name
            said |= {"xk": described(list(dist.xk)), "pk": described(list(dist.pk))}
        return said


def numbers_of(options: Sequence[Any], values: Iterable[Any]) -> list[int]:
    """Which of the `options` each value is; a number also if it is another kind of number."""
    if all(type(option) is str for option in options):  # most are, and this is much faster
        places = {option: number for number, option in enumerate(options)}
        return [places.get(value, 0) for value in values]
    same = {identity(option): number for number, option in enumerate(options)}
    numbers = []
    for value in values:
        number = same.get(identity(value))
        if number is None:
            like, said = as_float(value), identity(as_python(value))
            number = next((n for n, o in enumerate(options) if as_float(o) == like), None)
            number = same.get(said, 0) if number is None else number
        numbers.append(number)
    return numbers


def _floats(values: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([v if type(v) is float else as_float(v) for v in values], dtype=np.float64)


def _take_likely(domain: Uniform | LogUniform | Integer) -> None:
    """Keep the user's belief as a number of the domain, or refuse it."""
    if domain.likely is None:
        return
    require_likely(domain.likely, domain.low, domain.high, domain.contains(domain.likely))
    kind = int if isinstance(domain, Integer) else as_float
    object.__setattr__(domain, "likely", kind(domain.likely))


def _place(domain: Domain, value: Any) -> float:
    places = domain.places([value])
    assert places is not None, "a number has a place"
    return float(places[0])


def _believed(domain: Domain, weights: NDArray[np.float64], likely: float) -> NDArray[np.float64]:
    """The weights with the belief; without it, each value has as much room as its weight."""
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    return with_belief(weights, edges / edges[-1], _place(domain, likely))


def as_domain(name: str, value: Any) -> Domain:
    """The domain that a space gives for one parameter, or what stands for one."""
    try:
        if isinstance(value, Domain):
            return value
        if (elements := _elements(value)) is not None:
            _refuse_bounds(elements)
            return Choice.of(elements)
        if is_distribution(value):
            return Distribution(value)
        _refuse_other_forms(value)
        return Constant(value)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}", argument=name, given=value) from None


def _elements(value: Any) -> list[Any] | None:
    """What a list, tuple, range or one-dimensional array has; None for anything else."""
    if isinstance(value, list | tuple | range):
        return list(value)
    if getattr(value, "ndim", None) == 1 and callable(getattr(value, "tolist", None)):
        listed: list[Any] = value.tolist()  # of NumPy, pandas, PyTorch, …
        return listed
    return None


def is_distribution(value: Any) -> bool:
    """Whether values can be drawn from it, as from a frozen distribution of scipy.stats."""
    return callable(getattr(value, "rvs", None)) and not isinstance(value, type)


# What people write, and what would be passed on in silence ---------------------------------------


_FOREIGN = ("ray", "optuna", "hyperopt", "ConfigSpace", "skopt", "syne_tune", "nevergrad", "neps")
_OF_THE_COMMAND = re.compile(r"(uniform|log|int|logint|normal|choice|ordered):.+")
TOO_LONG = 10**4300
_SCALES = ("uniform", "log-uniform", "loguniform", "log")


def require_plain(argument: str, value: Any) -> None:
    """Refuse a value that no arm can get: one with a domain inside, or that cannot be written."""
    if type(value) is int and abs(value) >= TOO_LONG:
        rule = "Python does not write whole numbers of more than 4,300 digits"
        raise InvalidArgument.of(argument, value, rule, "Use a number that can be written")
    if value is None or type(value) in (bool, int, float, str):
        return
    if isinstance(value, type) and issubclass(value, Domain):
        rule, way_out = "it is a class", f"Use an instance of {value.__name__}, with its arguments"
        raise InvalidArgument.of(argument, value, rule, way_out)
    if isinstance(value, Domain) or is_distribution(value):
        rule = "nothing is drawn from a domain that is inside of a value"
        way_out = (
            'Give each domain a name at the top of a space, such as {"model.lr": LogUniform(…)}; '
            "for a choice between domains, use a list of spaces"
        )
        raise InvalidArgument.of(argument, value, rule, way_out)
    inside = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list | tuple | AnySet):
        for one in inside:
            require_plain(argument, one)


def _refuse_other_forms(value: Any) -> None:
    """Refuse what stands for a domain elsewhere, and would be the same value for all arms here."""
    _refuse_unordered("value", value)
    if type(value).__module__.partition(".")[0] in _FOREIGN:
        rule = f"it belongs to {type(value).__module__.partition('.')[0]}"
        way_out = "Use Uniform, LogUniform, Normal, Integer or Choice"
        raise InvalidArgument.of("value", value, rule, way_out)
    if isinstance(value, str) and _OF_THE_COMMAND.fullmatch(value):
        rule = "a domain is written like this on the command line and in files only"
        way_out = "Use Uniform, LogUniform, Normal, Integer or Choice"
        raise InvalidArgument.of("value", value, rule, way_out)
    if isinstance(value, FunctionType) and not signature(value).parameters:
        rule = "a function is not called to draw values: it would be the same for all arms"
        way_out = "Use Uniform, LogUniform, Normal, Integer or Choice; or [function] to pass it on"
        raise InvalidArgument.of("value", value, rule, way_out)


def _refuse_bounds(elements: list[Any]) -> None:
    """Refuse (low, high, "log-uniform"), which is a choice between three values here."""
    *ends, scale = elements or [None]
    if len(ends) == 2 and scale in _SCALES and all(map(isfinite, map(as_float, ends))):
        rule = "a list or a tuple is a choice among its elements"
        way_out = "Use Uniform(low, high) or LogUniform(low, high)"
        raise InvalidArgument.of("value", elements, rule, way_out)


def _refuse_unordered(argument: str, value: Any) -> None:
    """Refuse a set, a view of a dict or an iterator, which may be meant as a choice."""
    if isinstance(value, AnySet | MappingView | Iterator) and not isinstance(value, frozenset):
        rule = f"a {type(value).__name__} has no order that is the same in every process"
        way_out = "Use a list of the elements to choose among them"
        raise InvalidArgument.of(argument, value, rule, way_out)


def _between(low: float, high: float, random: np.random.Generator) -> float:
    part = random.random()
    number = low * (1 - part) + high * part  # high - low may be more than a float can hold
    return min(max(number, low), high)


def _exact(number: float) -> Fraction:
    """A number as it is printed: 0.1 is 1/10."""
    return Fraction(repr(number))
