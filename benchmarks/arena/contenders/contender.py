"""What a contender is: it is given a desk, and has configs trained until it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from arena.desk import Desk
from arena.problems.problem import Config

Play = Callable[[Desk], Config | None]
"""Searches until it ends or the desk raises `Spent`; gives the config that it recommends, if it
recommends one itself."""


@dataclass(frozen=True)
class Contender:
    """One who searches.

    - `name`: as the tables have it.
    - `play`: the search.
    - `knows_budget`: whether it plans for its budget. Then every budget is a search of its own;
      else one search serves all, and is cut where each budget ends.
    - `until`: the largest budget that it plays, in full trainings.
    - `seeds`: how many seeds it plays at most.
    - `packages`: what it is measured with.
    - `apart`: whether these cannot be installed beside those of the others.
    """

    name: str
    play: Play
    knows_budget: bool = False
    until: int = 200
    seeds: int = 1000
    packages: tuple[str, ...] = ()
    apart: bool = False
