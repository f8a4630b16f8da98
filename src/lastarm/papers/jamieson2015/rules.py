"""The rules by which the page says yes and no, from `rules.toml`: no part has rules of its own."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, Final

RULES: Final[dict[str, Any]] = tomllib.loads(
    files(__package__).joinpath("rules.toml").read_text(encoding="utf-8")
)


def look_costs() -> list[float]:
    """What a look may cost, in pulls.

    >>> look_costs()[:3], look_costs()[-1], len(look_costs())
    ([0.0, 1.0, 1.33], 10000.0, 34)
    """
    each, most = RULES["looks"]["each"], RULES["looks"]["most"]
    costs, k = [0.0], 0
    while (cost := 10 ** (k / each)) <= most * (1 + 1e-9):
        costs.append(float(f"{cost:.3g}"))
        k += 1
    return costs
