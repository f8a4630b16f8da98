"""Spaces: one mapping or several, a grid, a list of configs; and drawing from them."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from math import inf, prod
from numbers import Real
from typing import Any

import numpy as np

from lastarm.arguments import whole_number
from lastarm.errors import InvalidArgument, shown
from lastarm.plain import config_identity, described, fingerprint, readable
from lastarm.space.domains import (
    Choice,
    Constant,
    Domain,
    Integer,
    Uniform,
    as_domain,
    require_plain,
)
from lastarm.space.drawn import Drawn

Part = dict[str, Domain]
SHUFFLED = 2**20  # a mapping with more configs than this is not shuffled as a whole


class AnyOf:
    """Mappings of names to domains, of which an arm draws one, then its values."""

    def __init__(self, mappings: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        if isinstance(mappings, Mapping):
            mappings = [mappings]
        _require_mappings("space", mappings)
        self.parts: list[Part] = [
            {as_name(name): as_domain(name, value) for name, value in mapping.items()}
            for mapping in mappings
        ]

    @property
    def size(self) -> int | None:
        """How many configs there are, None when they are not counted."""
        sizes = [count_of(part) for part in self.parts]
        return None if None in sizes else sum(filter(None, sizes))

    def describe(self) -> dict[str, Any]:
        """The domains by name."""
        described = [{n: domain.describe() for n, domain in part.items()} for part in self.parts]
        return described[0] if len(described) == 1 else {"any of": described}

    def configs(self, seed: int, seen: set[Hashable]) -> Iterator[dict[str, Any]]:
        """Configs in the order of the arms, without those that were `seen`."""
        random = generator(seed, "which")
        streams = [configs_of(part, seed, which, seen) for which, part in enumerate(self.parts)]
        while streams:
            stream = streams[int(random.integers(len(streams))) if len(streams) > 1 else 0]
            config = next(stream, None)
            if config is None:
                streams.remove(stream)
            else:
                yield config


class Grid:
    """All combinations of the values of the parameters.

    - `space`: a mapping of names to domains, or a list of such mappings.
    - `samples`: how many values of each continuous domain are tried, and at most how many of each
      integer or stepped domain: the paper's "4 samples of each". They depend on the seed and the
      name. Left out, all values are tried, and continuous domains are refused.

    >>> from lastarm.space import LogUniform, draw, size
    >>> grid = Grid({"lr": LogUniform(1e-5, 1e-1), "layers": [1, 2, 3]}, samples=4)
    >>> size(grid)
    12
    >>> [config["layers"] for config in draw(grid, arms=12, seed=0)].count(3)
    4

    Arms get the combinations in a random order, so that also a few arms cover the whole grid.
    """

    def __init__(
        self, space: Mapping[str, Any] | Sequence[Mapping[str, Any]], samples: int | None = None
    ) -> None:
        if samples is not None:
            meaning = "how many values of each continuous domain are tried"
            samples = whole_number("samples", samples, 1, meaning)
        self.space, self.samples = AnyOf(space), samples
        self.parts = self.space.parts
        for name, domain in (item for part in self.parts for item in part.items()):
            if samples is None and domain.size is None:
                rule = "a grid tries all values, and there is no end of them"
                way_out = "Use Grid(..., samples=k) to try k of them, or list the ones to try"
                raise InvalidArgument.of(name, domain, rule, way_out)

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return sum(prod(self._count(domain) for domain in part.values()) for part in self.parts)

    def describe(self) -> dict[str, Any]:
        """The space that it was made of, and the samples."""
        return {"grid": [self.space.describe()], "samples": self.samples}

    def configs(self, seed: int, seen: set[Hashable]) -> Iterator[dict[str, Any]]:
        """Combinations in the order of the arms, without those that were `seen`."""
        grid = [
            {name: self._values(name, domain, seed) for name, domain in part.items()}
            for part in self.parts
        ]
        return AnyOf(grid).configs(seed, seen)

    def _count(self, domain: Domain) -> int:
        sampled = domain.size is None or isinstance(domain, Integer | Uniform)
        counts = (domain.size, self.samples if sampled else None)
        return min(count for count in counts if count is not None)

    def _values(self, name: str, domain: Domain, seed: int) -> Domain:
        count = self._count(domain)
        if count == domain.size:  # on a grid, all are equally likely
            if isinstance(domain, Integer):
                return replace(domain, log=False, likely=None)
            return replace(domain, likely=None) if isinstance(domain, Uniform) else domain
        drawn = AnyOf({name: domain}).configs(seed, set())
        return Choice.of(config[name] for config in islice(drawn, count))


class Configs:
    """Exactly these configs, in this order, with every value taken as it is.

    - `configs`: a list of mappings of names to values.

    >>> from lastarm.space import draw
    >>> draw(Configs([{"layers": [64, 64]}, {"layers": [128]}]), arms=2, seed=0)
    [{'layers': [64, 64]}, {'layers': [128]}]
    """

    def __init__(self, configs: Sequence[Mapping[str, Any]]) -> None:
        _require_mappings("configs", configs)
        self.parts = [{as_name(name): config[name] for name in config} for config in configs]
        for name, value in (item for part in self.parts for item in part.items()):
            require_plain(name, value)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.parts)

    def describe(self) -> dict[str, Any]:
        """Their number and checksum: there may be many."""
        return {"configs": self.size, "sha256": fingerprint(described(self.parts))}

    def configs(self, seed: int, seen: set[Hashable]) -> Iterator[dict[str, Any]]:
        """The configs, without those that were `seen`."""
        return (dict(config) for config in self.parts if config_identity(config) not in seen)

    def recalled(self, written: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The configs that are written like this in a journal."""
        return [dict(self.parts[i]) for i in self._by_writing.get(fingerprint(written), ())]

    @cached_property
    def _by_writing(self) -> dict[str, list[int]]:
        """Which configs are written alike: looking at all of them for each arm takes long."""
        alike: dict[str, list[int]] = {}
        for i, config in enumerate(self.parts):
            alike.setdefault(fingerprint(readable(config)), []).append(i)
        return alike


Space = Mapping[str, Any] | Sequence[Mapping[str, Any]] | AnyOf | Grid | Configs
"""What may vary: a dict of names and domains, a list of such dicts, a `Grid`, or `Configs`."""


def draw(
    space: Space, arms: int, seed: int, include: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The configs of all arms.

    - `space`: maps the name of each parameter to a domain; to a list, tuple, range or 1-d array,
      which is a choice among its items; to a frozen distribution of scipy.stats; or to any other
      value, which every arm then gets.
    - `arms`: the number of configs.
    - `seed`: all randomness is derived from it.
    - `include`: configs that come first, as they are. Each has exactly the names of the space, and
      values of its domains. One that is given twice counts once.

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
    return list(drawn(space, arms, seed, include))


def drawn(
    space: Space,
    arms: int,
    seed: int,
    include: Sequence[Mapping[str, Any]] = (),
    *,
    fewer: bool = False,
    when_asked: bool = False,
) -> Drawn:
    """What `draw` gives, in less memory; or `fewer`, if that is fine and there are no more.

    With `when_asked`, a config is drawn when it is asked for, and more arms may follow.
    """
    arms = whole_number("arms", arms, 1, "how many configs are drawn")
    seed = whole_number("seed", seed, 0, "what all randomness is derived from")
    read = read_space(space)
    first: dict[Hashable, dict[str, Any]] = {}
    if not isinstance(include, Sequence):
        way_out = "Use a list of dicts, or leave it out"
        raise InvalidArgument.of("include", include, "it is a list of configs", way_out)
    for number, config in enumerate(include):
        if not isinstance(config, Mapping) or all(config.keys() != p.keys() for p in read.parts):
            names = {", ".join(part) or "(none)" for part in read.parts}
            rule = f"a config of this space has the names {' or '.join(sorted(names)[:3])}"
            raise InvalidArgument.of(f"include[{number}]", config, rule, "Use exactly these")
        if not isinstance(read, Configs):
            _require_inside(f"include[{number}]", config, read.parts)
        first.setdefault(config_identity(config), dict(config))
    if len(first) > arms:
        rule = f"there are {len(first)} configs to include"
        way_out = f"Use at least {len(first)} arms, or include fewer configs"
        raise InvalidArgument.of("arms", arms, rule, way_out)
    if when_asked:
        configs = Drawn(first.values(), read.configs(seed, set(first)), _surely(read))
        configs.grow(arms)
        if fewer or len(configs) >= arms:
            return configs
    configs = Drawn(first.values())
    most = len(first) + (arms if read.size is None else read.size)
    if fewer or arms <= most or most <= SHUFFLED:
        configs.extend(islice(read.configs(seed, set(first)), arms - len(first)))
        most = len(configs)
    if most < arms and not fewer:
        rule = f"the space has {most} config{'s' * (most > 1)}, and none is drawn twice"
        raise InvalidArgument.of("arms", arms, rule, f"Use at most {most}, or a wider space")
    return configs


def _surely(read: AnyOf | Grid | Configs) -> float:
    """How many configs there are at least."""
    if read.size is None:
        return inf
    return read.size if len(read.parts) == 1 else 0  # mappings may share some


def _require_inside(argument: str, config: Mapping[str, Any], parts: Sequence[Part]) -> None:
    """Refuse a config with a value that its domain does not have, in each part of that form."""
    outside: list[str] = []
    for part in parts:
        if part.keys() == config.keys():
            outside = [name for name in part if not part[name].contains(config[name])]
            if not outside:
                return
            last = part
    name = outside[0]
    rule = f"{name}={shown(config[name])} is outside of {last[name]}"
    way_out = "Use a value inside of the domain, or widen the domain"
    raise InvalidArgument.of(argument, config, rule, way_out)


def others(space: Space, taken: Set[Hashable], count: int, seed: int) -> list[dict[str, Any]]:
    """`count` random configs, or as many as there are, without those whose identity is `taken`."""
    configs = read_space(space).configs(seed, set())
    return list(islice((c for c in configs if config_identity(c) not in taken), count))


def holds(space: Space, config: Mapping[str, Any]) -> bool:
    """Whether a config is one of a space.

    >>> space = {"act": ["relu", "tanh"]}
    >>> holds(space, {"act": "relu"}), holds(space, {"act": "gelu"})
    (True, False)
    """
    read = read_space(space)
    if isinstance(read, Configs):
        return config_identity(config) in map(config_identity, read.parts)
    return any(
        part.keys() == config.keys() and all(part[name].contains(config[name]) for name in part)
        for part in read.parts
    )


def spare(
    space: Space, configs: Sequence[Mapping[str, Any]], count: int, seed: int
) -> list[dict[str, Any]]:
    """What `count` more arms would draw after these `configs`, or as many as there are.

    >>> space = {"act": ["relu", "tanh", "gelu"]}
    >>> spare(space, draw(space, arms=2, seed=0), 5, seed=0) == draw(space, arms=3, seed=0)[2:]
    True
    """
    return others(space, set(map(config_identity, configs)), count, seed)


def recalled(space: Space, written: Mapping[str, Any]) -> dict[str, Any] | None:
    """The config of a space that a journal has in `readable` form, with the values of the space.

    It is None if there is no such config in the space, or if there are several.

    >>> recalled({"act": [max, min], "rate": 0.5}, {"act": "builtins.min", "rate": 0.5})
    {'act': <built-in function min>, 'rate': 0.5}
    """
    read, found = read_space(space), []
    if isinstance(read, Configs):
        found = read.recalled(written)
    else:
        for part in read.parts:
            values = {name: part[name].recalled(written.get(name)) for name in part}
            if part.keys() == written.keys() and all(len(each) == 1 for each in values.values()):
                found.append({name: each[0] for name, each in values.items()})
    return found[0] if len(set(map(config_identity, found))) == 1 else None


def size(space: Space) -> int | None:
    """The number of configs in a space; None if they cannot be counted.

    A config that several mappings of a list share is counted for each of them, but drawn once.

    >>> from lastarm.space import Integer
    >>> size({"layers": Integer(1, 6), "act": ["relu", "tanh"], "epochs": 10})
    12
    """
    return read_space(space).size


def is_listed(space: Space) -> bool:
    """Whether it is a list of configs, of which nothing is known but that they differ."""
    return isinstance(read_space(space), Configs)


def describe(space: Space) -> dict[str, Any]:
    """A space as JSON for people to read. Spaces that differ are described differently.

    >>> from lastarm.space import Integer
    >>> describe({"layers": Integer(1, 6, log=True), "act": ["relu", max], "epochs": 10})
    {'layers': {'integer': [1, 6], 'log': True},
     'act': {'choice': ['relu', {'named': 'builtins.max'}]}, 'epochs': {'constant': 10}}
    """
    return read_space(space).describe()


def domains(space: Space) -> dict[str, Any]:
    """Like `describe`, but empty for listed configs: there may be many, and that takes time."""
    read = read_space(space)
    return {} if isinstance(read, Configs) else read.describe()


def examples(space: Space, include: Sequence[Mapping[str, Any]] = ()) -> dict[str, list[Any]]:
    """Values of each parameter: all that are listed, but of numbers only one.

    - `space`: as in `draw`.
    - `include`: configs that are tried, too.

    >>> from lastarm.space import LogUniform
    >>> examples({"C": LogUniform(1, 2), "solver": ["sag", "saga"]}, [{"C": 5, "solver": "lbfgs"}])
    {'C': [1.03...], 'solver': ['sag', 'saga', 'lbfgs']}
    """
    found: dict[str, list[Any]] = {}
    seen: set[tuple[str, Any]] = set()
    for part in chain(read_space(space).parts, include):
        for name, value in part.items():
            if isinstance(value, Choice | Constant):
                some = value.values()
            else:
                some = [value.sample(generator(0)) if isinstance(value, Domain) else value]
            for one in some:
                number = isinstance(one, Real) and not isinstance(one, bool)
                key = (name, Real if number else one if isinstance(one, str) else id(one))
                if key not in seen:
                    seen.add(key)
                    found.setdefault(name, []).append(one)
    return found


def read_space(space: Space) -> AnyOf | Grid | Configs:
    """A space as a user gives it, read."""
    if isinstance(space, AnyOf | Grid | Configs):
        return space
    read = AnyOf(space)
    varies = any(not isinstance(value, Constant) for part in read.parts for value in part.values())
    return read if varies or isinstance(space, Mapping) else Configs(space)


def as_name(name: Any) -> str:
    """The name of a parameter, if it is a valid one."""
    if (
        not isinstance(name, str)
        or not 1 <= len(name) <= 128
        or any(unicodedata.category(character) in ("Cc", "Cs") for character in name)
    ):
        rule = "the name of a parameter is a short text"
        way_out = "Use 1 to 128 characters, without line breaks or other control characters"
        raise InvalidArgument.of("name", name, rule, way_out)
    return name


def _require_mappings(name: str, given: Any) -> None:
    mappings = isinstance(given, Sequence) and all(isinstance(item, Mapping) for item in given)
    if not mappings or not given:
        rule = "it is a dict of names and values, or a list of one or more such dicts"
        way_out = 'Use, for example, {"lr": LogUniform(1e-5, 1e-1)}'
        raise InvalidArgument.of(name, given, rule, way_out)


def generator(seed: int, *purpose: int | str) -> np.random.Generator:
    """Random numbers for one purpose, independent of those for any other."""
    return np.random.default_rng(int(fingerprint([seed, *purpose]), 16))


def count_of(part: Part) -> int | None:
    """How many configs a mapping has, None when they are not counted."""
    sizes = [domain.size for domain in part.values()]
    return None if None in sizes else prod(filter(None, sizes))


def configs_of(part: Part, seed: int, which: int, seen: set[Hashable]) -> Iterator[dict[str, Any]]:
    """The configs of a mapping; if they can be counted, each once, unless it was `seen`."""
    total = count_of(part)
    if total is None:
        yield from _independent(part, seed, which)
        return
    drawing = _shuffled if total <= SHUFFLED else _independent
    configs, own = drawing(part, seed, which), set[Hashable]()
    while len(own) < total:
        config = next(configs)
        identity = config_identity(config)
        own.add(identity)
        if identity not in seen:
            seen.add(identity)
            yield config


def _independent(part: Part, seed: int, which: int) -> Iterator[dict[str, Any]]:
    """Draws without end. Those of a parameter do not depend on the other parameters."""
    streams = {name: generator(seed, which, name) for name in part}
    while True:
        yield {name: domain.sample(streams[name]) for name, domain in part.items()}


def _shuffled(part: Part, seed: int, which: int) -> Iterator[dict[str, Any]]:
    """All configs in the order in which drawing without replacement would give them.

    The least of independent exponential times with rates w is the i-th with probability w_i / Σw,
    and so on with the rest: Efraimidis & Spirakis, "Weighted random sampling" (2006).
    """
    rates, values = np.ones(1), {}
    for name, domain in sorted(part.items()):  # whatever the order they are given in
        rates = np.outer(domain.weights(), rates).ravel()
        values[name] = domain.values()
    times = generator(seed, which).standard_exponential(len(rates)) / rates
    for number in np.argsort(times, kind="stable").tolist():
        config, rest = dict.fromkeys(part), number
        for name, options in values.items():
            rest, digit = divmod(rest, len(options))
            config[name] = options[digit]
        yield config
