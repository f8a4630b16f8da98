"""Configs as rows of numbers that a model can learn from, and the neighbours of a config."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lastarm.plain import as_python, config_identity, identity
from lastarm.space.domains import Choice, Distribution, Domain, numbers_of
from lastarm.space.spaces import AnyOf, Configs, Grid, Part, Space, read_space

MISSING = 0.5  # the place of a number that a config does not have: no nearer to one end
APART = 0.5**0.5  # so that two options are as far from each other as the ends of a number

ELSEWHERE = 1 / 8  # the share of neighbours that are of another mapping, where there are several
MOST_CHANGES = 3  # of parameters in a neighbour


class Encoded(NamedTuple):
    """Configs as numbers.

    - `rows`: a row for each config. Numbers are from 0 to 1, and of a choice one column is not 0.
    - `parameters`: for each column, the number of the hyperparameter that it belongs to.
    """

    rows: NDArray[np.float64]
    parameters: NDArray[np.int64]


def encode(space: Space, configs: Sequence[Mapping[str, Any]]) -> Encoded:
    """Configs of a space as rows of numbers.

    - `space`: as in `draw`.
    - `configs`: configs of this space.

    >>> from lastarm.space import LogUniform
    >>> space = {"lr": LogUniform(1e-4, 1), "act": ["relu", "tanh"], "epochs": 10}
    >>> encode(space, [{"lr": 0.01, "act": "tanh", "epochs": 10}]).rows.round(2)
    array([[0.  , 0.71, 0.5 ]])

    - Parameters are in the order of their names.
    - A number is at its place between the ends, on the scale of its domain. So are whole numbers,
      steps and ordered options, which divide the scale among them.
    - An option that has no order is a column of its own.
    - What is the same for all arms is left out.
    - In a list of mappings, which mapping a config is of counts as a choice. Parameters that it
      does not have are in the middle.
    - A number of a distribution of scipy is at its share of the distribution. Vectors are left out.
    - `Configs` have no domains: their numbers are ranked among the `configs`.
    """
    read = read_space(space)
    if isinstance(read, Configs):
        columns = list(_listed(configs))
    else:
        columns = list(_columns(read, configs))
    owners = [number for number, block in enumerate(columns) for _ in range(block.shape[1])]
    rows = np.hstack(columns) if columns else np.zeros((len(configs), 0))
    return Encoded(rows, np.array(owners, dtype=np.int64))


def _columns(read: AnyOf | Grid, configs: Sequence[Mapping[str, Any]]) -> Iterator[NDArray[Any]]:
    """The columns of each hyperparameter."""
    which = np.array([part_of(read.parts, config) for config in configs], dtype=np.int64)
    if len(read.parts) > 1:
        yield np.eye(len(read.parts))[which] * APART
    named = [
        (name, domain, k) for k, part in enumerate(read.parts) for name, domain in part.items()
    ]
    named.sort(key=lambda item: item[0])
    for name, same in groupby(named, key=lambda item: item[0]):
        having: list[tuple[Domain, list[int]]] = []  # a domain that several mappings share is one
        for _, domain, k in same:
            for known, parts in having:
                if type(known) is type(domain) and known == domain:
                    parts.append(k)
                    break
            else:
                having.append((domain, [k]))
        for domain, parts in having:
            if domain.size != 1:
                rows = np.flatnonzero(np.isin(which, parts))
                values = [configs[row][name] for row in rows.tolist()]
                block = _block(domain, values)
                if block.shape[1]:
                    filled = np.full((len(configs), block.shape[1]), _missing(domain))
                    filled[rows] = block
                    yield filled


def _missing(domain: Domain) -> float:
    return MISSING if domain.places([]) is not None else 0.0


def _block(domain: Domain, values: Sequence[Any]) -> NDArray[np.float64]:
    """The columns of one domain."""
    places = domain.places(values)
    if places is not None:
        return places.reshape(-1, 1)
    if not isinstance(domain, Choice):
        return np.zeros((len(values), 0))
    return np.eye(len(domain.options))[numbers_of(domain.options, values)] * APART


def _listed(configs: Sequence[Mapping[str, Any]]) -> Iterator[NDArray[Any]]:
    """The columns of configs without domains: what is always a finite number is ranked."""
    for name in sorted({name for config in configs for name in config}):
        has = [row for row, config in enumerate(configs) if name in config]
        values = [as_python(configs[row][name]) for row in has]
        distinct = {identity(value): value for value in values}
        if len(distinct) == 1 and len(has) == len(configs):
            continue
        if all(type(v) is int or (type(v) is float and isfinite(v)) for v in values):
            place = {value: rank for rank, value in enumerate(sorted(set(values)))}
            column = np.full((len(configs), 1), MISSING)
            column[has, 0] = [(place[value] + 0.5) / len(place) for value in values]
            yield column
        else:
            number = {key: k for k, key in enumerate(distinct)}
            block = np.zeros((len(configs), len(distinct)))
            block[has, [number[identity(value)] for value in values]] = APART
            yield block


def part_of(parts: Sequence[Part], config: Mapping[str, Any]) -> int:
    """Which of the mappings a config is of: the first that has its names and values."""
    if len(parts) == 1:
        return 0
    alike = [k for k, part in enumerate(parts) if part.keys() == config.keys()]
    for k in alike[:-1]:
        if all(domain.contains(config[name]) for name, domain in parts[k].items()):
            return k
    return alike[-1] if alike else 0


def neighbours(
    space: Space,
    config: Mapping[str, Any],
    count: int,
    random: np.random.Generator,
    reach: float = 0.15,
) -> list[dict[str, Any]]:
    """Configs of a space that differ from `config` in a few parameters.

    - `space`: as in `draw`.
    - `config`: a config of it.
    - `count`: how many are tried. Those that turn out to be the same as another are left out.
    - `random`: what they are drawn with.
    - `reach`: how far numbers go, as a share of the domain: a normal distribution's deviation.

    >>> from lastarm.space import Integer, Uniform
    >>> space = {"x": Uniform(0, 1), "layers": Integer(1, 6)}
    >>> for near in neighbours(space, {"x": 0.5, "layers": 3}, 3, np.random.default_rng(0)):
    ...     print(near)
    {'x': 0.5157..., 'layers': 4}
    {'x': 0.6956..., 'layers': 4}
    {'x': 0.4065..., 'layers': 2}

    One to three parameters change: mostly one or two. A whole number changes by at least 1, and a
    choice becomes any other option. In a list of mappings one in eight neighbours is of another
    mapping, with the values that both have kept. `Configs` have no neighbours, and neither has a
    `Grid` with `samples`, which would lack most of them.
    """
    read = read_space(space)
    if isinstance(read, Configs) or (isinstance(read, Grid) and read.samples is not None):
        return []
    home = part_of(read.parts, config)
    free = sorted(name for name, domain in read.parts[home].items() if domain.size != 1)
    found: dict[Hashable, dict[str, Any]] = {}
    for _ in range(count):
        if len(read.parts) > 1 and random.random() < ELSEWHERE:
            near = _elsewhere(read.parts, home, config, random)
            found.setdefault(config_identity(near), near)
        elif free:
            changes = min(int(random.geometric(0.5)), MOST_CHANGES, len(free))
            changed = {}
            for k in sorted(random.permutation(len(free))[:changes].tolist()):
                name, domain = free[k], read.parts[home][free[k]]
                value = _other(domain, config[name], random, reach)
                if identity(value) != identity(config[name]):
                    changed[name] = value
            if changed:
                key = tuple((name, identity(value)) for name, value in changed.items())
                found.setdefault(key, {**config, **changed})
    return list(found.values())


def _elsewhere(
    parts: Sequence[Part], home: int, config: Mapping[str, Any], random: np.random.Generator
) -> dict[str, Any]:
    """A config of another mapping, with the values of this one that it may have."""
    other = int(random.integers(len(parts) - 1))
    drawn = {}
    for name, domain in sorted(parts[other + (other >= home)].items()):
        value = domain.sample(random)
        kept = name in config and domain.contains(config[name])
        drawn[name] = config[name] if kept else value
    return {name: drawn[name] for name in parts[other + (other >= home)]}


def _other(domain: Domain, value: Any, random: np.random.Generator, reach: float) -> Any:
    """Another value of a domain: near to it, where there is an order."""
    places = None if isinstance(domain, Distribution) else domain.places([value])
    if places is not None:
        place, step = float(places[0]), reach * float(random.standard_normal())
        if not 0 <= place + step <= 1:
            step = -step  # away from the end
        moved = min(max(place + step, 0.0), 1.0)
        new = domain.at(moved)
        if domain.size is not None and new == value:
            room = 1 / domain.size
            new = domain.at(min(max(place + (room if step > 0 else -room), 0.0), 1.0))
        return new
    if isinstance(domain, Choice):
        others = len(domain.options) - 1
        number = int(random.integers(others))
        return domain.options[number + (number >= numbers_of(domain.options, [value])[0])]
    return domain.sample(random)
