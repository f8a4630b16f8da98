"""What a problem is: a space, and arms whose losses can be asked at every epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lastarm.space.domains import Choice, Domain, Integer

Config = dict[str, Any]


class Final(NamedTuple):
    """What a config comes to when it is fully trained: what contenders are scored by."""

    loss: float  # on the validation rows, without noise
    test: float  # on rows that no contender sees; nan where there are none


class Arm(Protocol):
    """A config in training."""

    def loss(self, level: int) -> float:
        """The validation loss after `level` epochs, as a contender sees it."""


class Problem(ABC):
    """Something to tune.

    - `name`: unlike all others.
    - `family`: what it is averaged with.
    - `space`: domains by the names of the hyperparameters.
    - `max_pulls`: how many epochs full training has.
    """

    name: str
    family: str
    space: Mapping[str, Domain]
    max_pulls: int
    has_test: bool = False

    @abstractmethod
    def arm(self, config: Config, seed: int) -> Arm:
        """A config that begins its training. All contenders with one seed get the same losses."""

    @abstractmethod
    def final(self, configs: Sequence[Config], seed: int) -> list[Final]:
        """What these configs come to when they are fully trained."""


def cleaned(space: Mapping[str, Domain], given: Mapping[str, Any]) -> Config:
    """A config as the space has it: peers give NumPy's numbers, or floats for whole numbers.

    >>> from lastarm import LogUniform
    >>> space = {"lr": LogUniform(1e-3, 1), "units": Integer(1, 8), "act": Choice("relu", "tanh")}
    >>> cleaned(space, {"units": 3.0, "lr": np.float64(1.0000000001), "act": "tanh"})
    {'lr': 1.0, 'units': 3, 'act': 'tanh'}
    """
    config: Config = {}
    for name, domain in space.items():
        value = given[name]
        if isinstance(domain, Integer):
            config[name] = min(max(round(float(value)), domain.low), domain.high)
        elif isinstance(domain, Choice):
            config[name] = next(option for option in domain.options if option == value)
        else:
            low, high = (getattr(domain, end) for end in ("low", "high"))
            config[name] = min(max(float(value), low), high)
    return config


class Curves(Problem):
    """A problem that knows the whole curve of a config at once, and keeps those of one seed."""

    def __init__(self, name: str, family: str) -> None:
        self.name, self.family = name, family
        self._known: dict[tuple[Any, ...], Arm] = {}
        self._seed = -1

    @abstractmethod
    def curves(self, configs: Sequence[Config]) -> NDArray[np.float64]:
        """A row of losses for each config, with a column for each epoch."""

    def arm(self, config: Config, seed: int) -> Arm:
        """Its curve. With one seed, many contenders begin with the same random configs."""
        if seed != self._seed:
            self._known, self._seed = {}, seed
        key = tuple(config.values())
        if key not in self._known:
            self._known[key] = Curve(self.curves([config])[0])
        return self._known[key]

    def final(self, configs: Sequence[Config], seed: int) -> list[Final]:
        """The last loss of each curve."""
        return [Final(float(loss), np.nan) for loss in self.curves(configs)[:, -1]]


class Curve:
    """An arm whose losses are all known."""

    def __init__(self, losses: NDArray[np.float64]) -> None:
        self._losses = losses

    def loss(self, level: int) -> float:
        """The loss in that column."""
        return float(self._losses[level - 1])
