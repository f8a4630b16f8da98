"""The protocol: each contender on each problem with each seed, scored at each budget."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from arena.contenders.contender import Contender
from arena.contenders.entered import ENTERED
from arena.desk import Desk, Spent, incumbent
from arena.problems.found import Folders, named
from arena.problems.problem import Config, Problem
from arena.results import BUDGETS, Played, file_of, known, write


def played(problem: Problem, contender: Contender, seed: int, most: int = BUDGETS[-1]) -> Played:
    """A contender on a problem, as it stands at each budget up to `most` full trainings."""
    budgets = [budget for budget in BUDGETS if budget <= min(most, contender.until)]
    choices: list[tuple[int, Config, float]] = []
    desk = None
    for budget in budgets if contender.knows_budget else budgets[-1:]:
        desk = Desk(problem, budget * problem.max_pulls, seed)
        chosen = None
        with suppress(Spent):  # it is stopped in the middle, as by a user who has no more time
            chosen = contender.play(desk)
        own = desk.seconds
        assert desk.spent <= desk.budget
        if contender.knows_budget:
            choices.append((budget, _chosen(desk, chosen, desk.budget), own))
            continue
        for reached in budgets:
            until = reached * problem.max_pulls
            later = (look.seconds for look in desk.looks if look.spent > until)
            choices.append((reached, _chosen(desk, None, until), next(later, own)))
    assert desk is not None
    ends = problem.final([config for _, config, _ in choices], seed)
    scored = {budget: end for (budget, _, _), end in zip(choices, ends, strict=True)}
    return Played(
        problem.name,
        contender.name,
        seed,
        len(desk.configs),
        len(desk.looks),
        {budget: end.loss for budget, end in scored.items()},
        {budget: end.test for budget, end in scored.items()},
        {budget: own for budget, _, own in choices},
    )


def _chosen(desk: Desk, chosen: Config | None, spent: int) -> Config:
    """What the contender recommends, or what anybody would who has seen what it saw."""
    if chosen is not None:
        return chosen
    arm = incumbent(desk.looks, spent)
    assert arm is not None, "it had nothing trained"
    return desk.configs[arm]


class Search(NamedTuple):
    """A search that may have to be played."""

    family: str
    problem: str
    contender: str
    seed: int


def missing(
    problems: Mapping[str, Sequence[str]],
    contenders: Sequence[Contender],
    seeds: int,
    most: int,
    arena: Path,
) -> Iterator[Search]:
    """What no file has yet up to `most` full trainings, of each family's problems by name.

    One seed comes after the other, so that there is soon something of everything, and all
    contenders of a problem come together, because models then train no config twice.
    """
    done = {
        one.key: max(one.final) for family in problems for one in known(file_of(arena, family))
    }
    for seed in range(seeds):
        for family, names in problems.items():
            for name in names:
                for contender in contenders:
                    reached = done.get((name, contender.name, seed), 0)
                    if reached < min(most, contender.until) and seed < contender.seeds:
                        yield Search(family, name, contender.name, seed)


def play(folders: Folders, todo: Sequence[Search], workers: int, most: int = BUDGETS[-1]) -> None:
    """Play what is missing and write it down, one line as soon as it is known."""
    began = perf_counter()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        rest, running = iter(todo), dict[Future[Played], Search]()
        for number in range(len(todo)):
            while len(running) < 2 * workers and (one := next(rest, None)):
                running[pool.submit(_one, folders, one, most)] = one
            done = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
            search = running.pop(done)
            write(file_of(folders.arena, search.family), done.result())
            took = perf_counter() - began
            print(f"{number + 1} of {len(todo)}, {took:.0f} s: {search[1:]}", file=sys.stderr)


_problem = lru_cache(maxsize=64)(named)


def _one(folders: Folders, search: Search, most: int) -> Played:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    [entered] = [one for one in ENTERED if one.name == search.contender]
    return played(_problem(folders, search.problem), entered, search.seed, most)
