"""Domains: the values that one parameter may take, and how likely each is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from math import exp, floor, isfinite, isnan, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastarm.arguments import as_float, whole_number
from lastarm.errors import InvalidArgument
from lastarm.plain import as_python, described, identity, readable


class Domain(ABC):
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

    def recalled(self, written: Any) -> list[Any]:
        """Its values that `readable` writes like this: one, none or several."""
        return [written] if type(written) in (int, float, list) else []


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

    def recalled(self, written: Any) -> list[Any]:
        """Its values that are written like this."""
        return [v for v in self.values() if identity(readable(v)) == identity(written)]

    def weights(self) -> NDArray[np.float64]:
        """How likely each of `values()` is."""
        return np.full(self.size, 1 / self.size)


@dataclass(frozen=True, slots=True)
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

    def recalled(self, written: Any) -> list[float]:
        """The number itself."""
        return [written] if type(written) is float and self.low <= written <= self.high else []


@dataclass(frozen=True, slots=True)
class Uniform(Continuous):
    """A number between two ends, each equally likely.

    - `low`, `high`: the ends, two finite numbers.

    >>> Uniform(0, 1).sample(np.random.default_rng(0))
    0.6369616873214543
    """

    def sample(self, random: np.random.Generator) -> float:
        """One number."""
        return _between(self.low, self.high, random)

    def describe(self) -> dict[str, Any]:
        """Its ends."""
        return {"uniform": [self.low, self.high]}


@dataclass(frozen=True, slots=True)
class LogUniform(Continuous):
    """A number between two ends, each order of magnitude equally likely.

    - `low`, `high`: the ends, two finite numbers above 0.

    >>> random = np.random.default_rng(0)
    >>> [f"{LogUniform(1e-5, 1e-1).sample(random):.0e}" for _ in range(4)]
    ['4e-03', '1e-04', '1e-05', '1e-05']
    """

    def __post_init__(self) -> None:
        Continuous.__post_init__(self)
        if self.low <= 0:
            rule = "a LogUniform begins above 0"
            raise InvalidArgument.of("low", self.low, rule, "Use a positive low, or Uniform")

    def sample(self, random: np.random.Generator) -> float:
        """One number."""
        number = exp(_between(log(self.low), log(self.high), random))
        return min(max(number, self.low), self.high)

    def describe(self) -> dict[str, Any]:
        """Its ends."""
        return {"log-uniform": [self.low, self.high]}


@dataclass(frozen=True, slots=True)
class Integer(Finite):
    """A whole number between two ends, both included.

    - `low`, `high`: the ends, two whole numbers.
    - `log`: with True each order of magnitude is equally likely, not each number. The number is
      then a log-uniform one between low - ½ and high + ½, rounded, so that k has a weight of
      log (k + ½) / (k - ½).

    >>> Integer(1, 4, log=True).weights().round(2).tolist()
    [0.5, 0.23, 0.15, 0.11]
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        least = 1 if self.log else -(2**63)
        low = whole_number("low", self.low, least, "the least value of an Integer")
        high = whole_number("high", self.high, low, "the greatest value of an Integer")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "log", bool(self.log))

    @property
    def size(self) -> int:
        """How many there are, both ends included."""
        return self.high - self.low + 1

    def sample(self, random: np.random.Generator) -> int:
        """One number."""
        if not self.log:
            return int(random.integers(self.low, self.high, endpoint=True))
        number = exp(_between(log(self.low - 0.5), log(self.high + 0.5), random))
        return min(max(floor(number + 0.5), self.low), self.high)

    def values(self) -> list[int]:
        """All of them, from low to high."""
        return list(range(self.low, self.high + 1))

    def weights(self) -> NDArray[np.float64]:
        """How likely each is."""
        if not self.log:
            return Finite.weights(self)
        numbers = np.arange(self.low, self.high + 1, dtype=np.float64)
        weights = np.log1p(1 / (numbers - 0.5))
        return np.asarray(weights / weights.sum())

    def describe(self) -> dict[str, Any]:
        """Its ends and its scale."""
        return {"integer": [self.low, self.high]} | ({"log": True} if self.log else {})

    def recalled(self, written: Any) -> list[int]:
        """The number itself."""
        return [written] if type(written) is int and self.low <= written <= self.high else []


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Choice(Finite):
    """One of several options, each equally likely.

    - `options`: any values. An option that is given twice is kept once.

    >>> Choice("relu", "tanh", "relu")
    Choice('relu', 'tanh')
    >>> Choice(1, 1.0, True).size
    3
    """

    options: tuple[Any, ...]

    def __init__(self, *options: Any) -> None:
        if not options:
            raise InvalidArgument(
                "Choice() has no options. Use at least one.", argument="options", given=options
            )
        options = tuple(as_python(option) for option in options)
        if any(isinstance(option, float) and isnan(option) for option in options):
            rule = "nan does not equal anything, not even itself"
            raise InvalidArgument.of("options", options, rule, "Use None or a string in its place")
        distinct: dict[Hashable, Any] = {}
        for option in options:
            distinct.setdefault(identity(option), option)
        object.__setattr__(self, "options", tuple(distinct.values()))

    def __repr__(self) -> str:
        return f"Choice({', '.join(map(repr, self.options))})"

    def sample(self, random: np.random.Generator) -> Any:
        """One option."""
        return self.options[int(random.integers(len(self.options)))]

    def values(self) -> list[Any]:
        """The options, in the order in which they were given."""
        return list(self.options)

    def describe(self) -> dict[str, Any]:
        """Its options."""
        return {"choice": [described(option) for option in self.options]}


@dataclass(frozen=True, slots=True)
class Constant(Finite):
    """A value that is the same for every arm."""

    value: Any

    def __post_init__(self) -> None:
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


def as_domain(name: str, value: Any) -> Domain:
    """The domain that a space gives for one parameter, or what stands for one."""
    try:
        match value:
            case Domain():
                return value
            case list() | tuple() | range():
                return Choice(*value)
            case np.ndarray() if value.ndim == 1:
                return Choice(*value.tolist())
        if callable(getattr(value, "rvs", None)) and not isinstance(value, type):
            return Distribution(value)
        return Constant(value)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}", argument=name, given=value) from None


def _between(low: float, high: float, random: np.random.Generator) -> float:
    part = random.random()
    number = low * (1 - part) + high * part  # high - low may be more than a float can hold
    return min(max(number, low), high)
