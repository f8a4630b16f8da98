"""Drawing the configs of arms from a space: arm i's is a function of (seed, i)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import islice
from typing import Any

from lastarm.arguments import whole_number
from lastarm.errors import InvalidArgument
from lastarm.plain import config_identity, fingerprint, readable
from lastarm.space.domains import Constant
from lastarm.space.spaces import SHUFFLED, AnyOf, Configs, Grid, Space


def draw(
    space: Space, arms: int, seed: int, include: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The configs of all arms.

    - `space`: maps the name of each parameter to a domain; to a list, tuple, range or 1-d array,
      which is a choice among its items; to a frozen distribution of scipy.stats; or to any other
      value, which every arm then gets.
    - `arms`: the number of configs.
    - `seed`: all randomness is derived from it.
    - `include`: configs that come first, as they are. Each has exactly the names of the space. One
      that is given twice counts once.

    >>> from lastarm.space import Integer, LogUniform
    >>> space = {"lr": LogUniform(1e-5, 1e-1), "layers": Integer(1, 6), "act": ["relu", "tanh"]}
    >>> few, many = draw(space, arms=2, seed=0), draw(space, arms=20, seed=0)
    >>> few == many[:2]
    True

    If the configs of a mapping can be counted, each is drawn once. In a list of mappings, each arm
    draws a mapping first, each equally likely among those that have configs left.

    >>> kernels = [{"kernel": "linear"}, {"kernel": "rbf", "gamma": [0.1, 1.0]}]
    >>> for config in draw(kernels, arms=3, seed=0):
    ...     print(config)
    {'kernel': 'rbf', 'gamma': 1.0}
    {'kernel': 'linear'}
    {'kernel': 'rbf', 'gamma': 0.1}

    A list of mappings without anything to draw is taken as `Configs`.
    """
    arms = whole_number("arms", arms, 1, "how many configs are drawn")
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    read = _read(space)
    first: dict[Hashable, dict[str, Any]] = {}
    if not isinstance(include, Sequence):
        way_out = "Use a list of dicts, or leave it out"
        raise InvalidArgument.of("include", include, "it is a list of configs", way_out)
    for number, config in enumerate(include):
        if not isinstance(config, Mapping) or all(config.keys() != p.keys() for p in read.parts):
            names = {", ".join(part) or "(none)" for part in read.parts}
            rule = f"a config of this space has the names {' or '.join(sorted(names)[:3])}"
            raise InvalidArgument.of(f"include[{number}]", config, rule, "Use exactly these")
        first.setdefault(config_identity(config), dict(config))
    if len(first) > arms:
        rule = f"there are {len(first)} configs to include"
        way_out = f"Use at least {len(first)} arms, or include fewer configs"
        raise InvalidArgument.of("arms", arms, rule, way_out)
    drawn = list(first.values())
    most = len(first) + (arms if read.size is None else read.size)
    if arms <= most or most <= SHUFFLED:
        drawn += islice(read.configs(seed, set(first)), arms - len(first))
        most = len(drawn)
    if most < arms:
        rule = f"the space has {most} config{'s' * (most > 1)}, and none is drawn twice"
        raise InvalidArgument.of("arms", arms, rule, f"Use at most {most}, or a wider space")
    return drawn


def spare(
    space: Space, configs: Sequence[Mapping[str, Any]], count: int, seed: int
) -> list[dict[str, Any]]:
    """What `count` more arms would draw after these `configs`, or as many as there are.

    >>> space = {"act": ["relu", "tanh", "gelu"]}
    >>> spare(space, draw(space, arms=2, seed=0), 5, seed=0) == draw(space, arms=3, seed=0)[2:]
    True
    """
    taken = set(map(config_identity, configs))
    others = (c for c in _read(space).configs(seed, set()) if config_identity(c) not in taken)
    return list(islice(others, count))


def recalled(space: Space, written: Mapping[str, Any]) -> dict[str, Any] | None:
    """The config of a space that a journal has in `readable` form, with the values of the space.

    It is None if there is no such config in the space, or if there are several.

    >>> recalled({"act": [max, min], "rate": 0.5}, {"act": "builtins.min", "rate": 0.5})
    {'act': <built-in function min>, 'rate': 0.5}
    """
    read, found = _read(space), []
    if isinstance(read, Configs):
        same = fingerprint(written)
        found = [dict(config) for config in read.parts if fingerprint(readable(config)) == same]
    else:
        for part in read.parts:
            values = {name: part[name].recalled(written.get(name)) for name in part}
            if part.keys() == written.keys() and all(len(each) == 1 for each in values.values()):
                found.append({name: each[0] for name, each in values.items()})
    return found[0] if len(found) == 1 else None


def size(space: Space) -> int | None:
    """The number of configs in a space; None if they cannot be counted.

    A config that several mappings of a list share is counted for each of them, but drawn once.

    >>> from lastarm.space import Integer
    >>> size({"layers": Integer(1, 6), "act": ["relu", "tanh"], "epochs": 10})
    12
    """
    return _read(space).size


def describe(space: Space) -> dict[str, Any]:
    """A space as JSON for people to read. Spaces that differ are described differently.

    >>> from lastarm.space import Integer
    >>> describe({"layers": Integer(1, 6, log=True), "act": ["relu", max], "epochs": 10})
    {'layers': {'integer': [1, 6], 'log': True},
     'act': {'choice': ['relu', {'named': 'builtins.max'}]}, 'epochs': {'constant': 10}}
    """
    return _read(space).describe()


def domains(space: Space) -> dict[str, Any]:
    """Like `describe`, but empty for listed configs: there may be many, and that takes time."""
    read = _read(space)
    return {} if isinstance(read, Configs) else read.describe()


def _read(space: Space) -> AnyOf | Grid | Configs:
    if isinstance(space, Grid | Configs):
        return space
    read = AnyOf(space)
    varies = any(not isinstance(value, Constant) for part in read.parts for value in part.values())
    return read if varies or isinstance(space, Mapping) else Configs(space)
