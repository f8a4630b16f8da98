"""The configs of one mapping of names to domains, in the order in which arms draw them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import prod
from typing import Any

import numpy as np

from lastarm.plain import fingerprint
from lastarm.space.domains import Domain, Finite
from lastarm.space.values import config_identity

Part = dict[str, Domain]
SHUFFLED = 2**20  # a mapping with more configs than this is not put in order as a whole


def generator(seed: int, *purpose: int | str) -> np.random.Generator:
    """Random numbers for one purpose, which those for another have nothing to do with."""
    return np.random.default_rng(int(fingerprint([seed, *purpose]), 16))


def count_of(part: Part) -> int | None:
    """How many configs a mapping has, None when they are not counted."""
    sizes = [domain.size for domain in part.values()]
    return None if None in sizes else prod(filter(None, sizes))


def configs_of(part: Part, seed: int, which: int, seen: set[Hashable]) -> Iterator[dict[str, Any]]:
    """The configs of a mapping; when it has only so many, each unless it was `seen`."""
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
    """Draws without end; a parameter's do not depend on what other parameters there are."""
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
        assert isinstance(domain, Finite)
        rates = np.outer(domain.weights(), rates).ravel()
        values[name] = domain.values()
    times = generator(seed, which).standard_exponential(len(rates)) / rates
    for number in np.argsort(times, kind="stable").tolist():
        config, rest = dict.fromkeys(part), number
        for name, options in values.items():
            rest, digit = divmod(rest, len(options))
            config[name] = options[digit]
        yield config
