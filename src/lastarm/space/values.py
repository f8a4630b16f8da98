"""The values of hyperparameters: which are the same, and how they are written down."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Set
from math import isfinite
from typing import Any

import numpy as np

from lastarm.errors import InvalidArgument
from lastarm.plain import fingerprint


def plain(value: Any) -> Any:
    """A numpy scalar as the Python value that it stands for; anything else as it is."""
    match value:
        case np.floating():
            return float(value)  # the item() of a long double is a long double
        case np.generic():
            return value.item()
    return value


def identity(value: Any) -> Hashable:
    """What two values share if and only if they are the same option: 1, 1.0 and True are three.

    Things that only their address tells apart, such as lambdas, are the same if they are one.
    """
    if value is None or type(value) in (bool, int, float, str):
        return type(value), value
    try:
        return type(value), fingerprint(value)
    except InvalidArgument:
        return type(value), id(value)


def config_identity(config: Mapping[str, Any]) -> Hashable:
    """The same for whole configs, whatever the order of their names."""
    return frozenset((name, identity(value)) for name, value in config.items())


def as_json(value: Any) -> Any:
    """A value as JSON that a person can read, different for values that are different.

    >>> as_json((1, "relu", float("inf"), max))
    {'tuple': [1, 'relu', {'float': 'inf'}, {'named': 'builtins.max'}]}
    """
    value = plain(value)
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if isfinite(value) else {"float": repr(value)}  # JSON has no nan
    match value:
        case list():
            return [as_json(item) for item in value]
        case tuple():
            return {"tuple": [as_json(item) for item in value]}
        case Set():
            return {"set": sorted((as_json(item) for item in value), key=json.dumps)}
        case Mapping():
            pairs = ([as_json(key), as_json(item)] for key, item in value.items())
            return {"dict": sorted(pairs, key=json.dumps)}
        case np.ndarray() if value.dtype.hasobject:
            return {"array": as_json(value.tolist())}
        case np.ndarray():
            shape = list(value.shape)
            return {"array": str(value.dtype), "shape": shape, "sha256": fingerprint(value)}
    name = getattr(value, "__qualname__", "<unnamed>")
    return {"object": repr(value)} if "<" in name else {"named": f"{value.__module__}.{name}"}
