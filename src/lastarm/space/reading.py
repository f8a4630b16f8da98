"""What a space says of one parameter: its name, and a domain or what stands for one."""

from __future__ import annotations

import reprlib
import unicodedata
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from lastarm.errors import InvalidArgument
from lastarm.space.domains import Choice, Domain, Finite
from lastarm.space.values import as_json, plain


def as_name(name: Any) -> str:
    """The name of a parameter, if it will do as one."""
    if (
        not isinstance(name, str)
        or not 1 <= len(name) <= 128
        or any(unicodedata.category(character) in ("Cc", "Cs") for character in name)
    ):
        raise InvalidArgument(
            f"{reprlib.repr(name)} will not do as the name of a parameter. Give a string of 1 to "
            "128 characters without line breaks or other control characters."
        )
    return name


def as_domain(name: str, value: Any) -> Domain:
    """What a parameter is drawn from, in the words of a space."""
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
        raise InvalidArgument(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Constant(Finite):
    """A value that is the same for every arm."""

    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", plain(self.value))
        if isinstance(self.value, float) and isnan(self.value):
            raise InvalidArgument(
                "nan will not do as a value: it equals nothing, not even itself. Give None or a "
                "string in its place, or set it in the trainer."
            )

    @property
    def size(self) -> int:
        """One."""
        return 1

    def sample(self, random: np.random.Generator) -> Any:
        """The value."""
        return self.value

    def values(self) -> list[Any]:
        """The value alone."""
        return [self.value]

    def describe(self) -> dict[str, Any]:
        """The value."""
        return {"constant": as_json(self.value)}


@dataclass(frozen=True, slots=True)
class Distribution(Domain):
    """A frozen distribution of scipy.stats, or anything else with `rvs(random_state=...)`.

    Its values are not counted, even when it is discrete, so it may give one to several arms.
    """

    frozen: Any

    def __post_init__(self) -> None:
        try:
            value = self.sample(np.random.default_rng(0))
        except Exception as error:  # whatever a foreign distribution does, it cannot be drawn from
            reason = " ".join(str(error).split())
        else:
            if not (isinstance(value, float) and isnan(value)):
                return
            reason = "it gives nan"
        raise InvalidArgument(
            f"{self.frozen!r} cannot be drawn from: {reason}. Give a frozen distribution, such as "
            "scipy.stats.loguniform(1e-5, 1e-1), with arguments that are in its domain."
        )

    def sample(self, random: np.random.Generator) -> Any:
        """One value; a list, if the distribution is of vectors."""
        value = self.frozen.rvs(random_state=random)
        return value.tolist() if isinstance(value, np.ndarray) else plain(value)

    def describe(self) -> dict[str, Any]:
        """Its name and arguments."""
        dist = getattr(self.frozen, "dist", self.frozen)
        described = {
            "distribution": getattr(dist, "name", repr(dist)),
            "args": as_json(list(getattr(self.frozen, "args", ()))),
            "kwds": {k: as_json(v) for k, v in getattr(self.frozen, "kwds", {}).items()},
        }
        if hasattr(dist, "xk"):  # rv_discrete(values=(xk, pk)) has no other name
            described |= {"xk": as_json(list(dist.xk)), "pk": as_json(list(dist.pk))}
        return described
