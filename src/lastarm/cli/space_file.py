"""Search spaces as people write them on the command line and in files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from lastarm.cli.options import number
from lastarm.errors import InvalidArgument
from lastarm.space import Choice, Integer, LogUniform, Space, Uniform

FORMS = "uniform:LOW:HIGH, log:LOW:HIGH, int:LOW:HIGH, logint:LOW:HIGH, choice:A,B,C, or a value"
INTERVALS: dict[str, Callable[..., Any]] = {
    "uniform": Uniform,
    "log": LogUniform,
    "int": Integer,
    "logint": partial(Integer, log=True),
}


def parameter(text: str) -> tuple[str, Any]:
    """The name and the domain in `name=domain`.

    >>> parameter("lr=log:1e-5:1")
    ('lr', LogUniform(low=1e-05, high=1.0))
    >>> parameter("act=choice:relu,tanh"), parameter("epochs=10")
    (('act', Choice('relu', 'tanh')), ('epochs', 10))
    """
    name, equals, spelled = text.partition("=")
    if not equals:
        rule = f"it names a parameter and its domain: {FORMS}"
        raise InvalidArgument.of("--param", text, rule, "Write NAME=DOMAIN")
    return name, domain(name, spelled)


def domain(name: str, spelled: str) -> Any:
    """The domain, or the constant, that a text stands for."""
    kind, colon, rest = spelled.partition(":")
    try:
        if colon and kind == "choice":
            return Choice(*(number(option) for option in rest.split(",") if rest))
        if not colon or kind not in INTERVALS:
            if re.fullmatch(r"[A-Za-z]+:[-+.\deE]+:[-+.\deE]+", spelled):
                raise InvalidArgument(f"{spelled!r} is not a known domain: write {FORMS}.")
            return number(spelled)
        bounds = [number(bound) for bound in rest.split(":")]
        if len(bounds) != 2:
            raise InvalidArgument(f"{spelled!r} has {len(bounds)} bounds: write {kind}:LOW:HIGH.")
        return INTERVALS[kind](*bounds)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}", argument=name, given=spelled) from None


def space_file(path: str) -> tuple[Space, list[dict[str, Any]]]:
    """The space in a TOML file, and the configs to try first.

        lr = "log:1e-5:1"             # as on the command line
        act = ["relu", "tanh"]        # a list is a choice
        momentum = 0.9                # anything else is a constant

    With a table `[space]`, the parameters are those in it. Of several tables `[[space]]`, each arm
    draws one. Each table `[[include]]` is a config to try first.
    """
    try:
        content = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidArgument(
            f"the space {path!r} cannot be read: {getattr(error, 'strerror', None) or error}. "
            f"Use a TOML file with a line NAME = DOMAIN for each parameter, where a domain is a "
            f"list of choices, or a text: {FORMS}.",
            argument="--space",
            given=path,
        ) from error
    if "space" not in content or not isinstance(content["space"], dict | list):
        return _mapping(content), []
    unknown = content.keys() - {"space", "include"}
    if unknown:
        rule = f"{', '.join(sorted(unknown))} must not be outside of [space]"
        raise InvalidArgument.of("--space", path, rule, "Put all parameters into [space]")
    spaces, include = content["space"], list(content.get("include", []))
    if isinstance(spaces, list):
        return [_mapping(one) for one in spaces], include
    return _mapping(spaces), include


def space_of(file: str | None, parameters: Iterable[str]) -> tuple[Space, list[dict[str, Any]]]:
    """The space in a file, with the parameters of the command line added to it."""
    space: Any
    space, include = space_file(file) if file else ({}, [])
    added: dict[str, Any] = {}
    for name, value in map(parameter, parameters):
        if name in added:
            raise InvalidArgument.of("--param", name, "it is given twice", "Give it once")
        added[name] = value
    if not file and not added:
        raise InvalidArgument(
            "there is nothing to vary. Add --param NAME=DOMAIN for each parameter, with "
            f"{FORMS}; or --space FILE.",
            argument="--param",
        )
    if isinstance(space, list):
        return [{**one, **added} for one in space], include
    return {**space, **added}, include


def _mapping(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: domain(name, value) if isinstance(value, str) else value
        for name, value in table.items()
    }
