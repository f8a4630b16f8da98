"""All problems that some folders have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from arena.problems.forests import forests
from arena.problems.models import models
from arena.problems.noisy import NOISY, SHARE, Noisy
from arena.problems.problem import Problem
from arena.problems.surrogates import surrogates
from arena.scales import scales


class Folders(NamedTuple):
    """Where problems and their scales are; a folder that is not given has no problem."""

    arena: Path
    surrogates: Path | None = None
    curves: Path | None = None
    data: Path | None = None


def free_of_noise(folders: Folders) -> list[Problem]:
    """Surrogates, trees and models."""
    return [
        *(surrogates(folders.surrogates) if folders.surrogates else ()),
        *(forests(folders.curves) if folders.curves else ()),
        *(models(folders.data) if folders.data else ()),
    ]


def families(problems: Iterable[Problem]) -> dict[str, list[Problem]]:
    """The problems of each family; those without noise of their own come with it, too."""
    found: dict[str, list[Problem]] = {}
    for problem in problems:
        found.setdefault(problem.family, []).append(problem)
    for family, those in list(found.items()):
        if not those[0].has_test:
            found[family + NOISY] = those
    return found


def with_noise(problem: Problem, arena: Path) -> Problem:
    """The same, with noise on every look that is a share of its scale."""
    scale = scales([problem], arena)[problem.name]
    return Noisy(problem, SHARE * (scale.median - scale.best))


def named(folders: Folders, name: str) -> Problem:
    """One of them."""
    plain = name.removesuffix(NOISY)
    [problem] = [one for one in free_of_noise(folders) if one.name == plain]
    return problem if name == plain else with_noise(problem, folders.arena)
