"""Names of a package that are loaded when they are first asked for, because that takes time."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes a while to import
    from collections.abc import Callable, Mapping
    from typing import Any


def later(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: names by the file of the package that has them.

    >>> later("lastarm", {"events": "Pull Loss"})("Pull")(arm=0, upto=1)
    Pull(arm=0, upto=1)

    :param package: its name.
    :param homes: the names in each of its files, with a space between them.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def found(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # it is asked for only once
        return value

    return found
