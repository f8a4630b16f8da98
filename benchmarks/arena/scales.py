"""What regret 0 and 1 are: the best config known and the median random one, found once and kept.

The best known of a problem comes from many random configs, and a local search from each of the
best: again and again it is changed a little, and what is better takes its place. No contender is
part of it, so that it does not move when one enters. A contender that finds something better has a
regret below 0. Both ends are of losses at full training, without noise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import exp, isnan, log, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from arena.problems.models import Model
from arena.problems.problem import Config, Problem
from lastarm.space import draw
from lastarm.space.domains import Choice, Domain, Integer, LogUniform

FILE = "scales.json"
SEED = 2026  # apart from those of the contenders, which are small


class Effort(NamedTuple):
    """How long the best config is looked for."""

    random: int
    rounds: int
    keep: int
    changed: int  # configs that are tried near each of those kept, in a round


SURROGATE, TRAINED = Effort(10_000, 100, 40, 10), Effort(150, 15, 5, 1)


class Scale(NamedTuple):
    """Regret 0 and 1 of a problem, by validation and by test."""

    best: float
    median: float
    best_test: float = nan
    median_test: float = nan

    def regret(self, loss: float) -> float:
        """Of a config with this loss at full training."""
        return (loss - self.best) / (self.median - self.best)

    def test_regret(self, loss: float) -> float:
        """Of a config with this test loss."""
        return (loss - self.best_test) / (self.median_test - self.best_test)


def measured(problem: Problem, effort: Effort) -> Scale:
    """Random configs, then neighbours of the best, then those of what is better, and so on."""
    random = np.random.default_rng(SEED)
    drawn = draw(problem.space, effort.random, SEED)
    ends = problem.final(drawn, SEED)
    medians = np.median([tuple(end) for end in ends], axis=0).tolist()
    tests = [end.test for end in ends]
    best = np.argsort([end.loss for end in ends], kind="stable")[: effort.keep].tolist()
    kept = [(ends[place].loss, drawn[place]) for place in best]
    for number in range(effort.rounds):
        width = 0.3 * 0.95**number
        near = [
            changed(problem.space, config, random, width)
            for _, config in kept
            for _ in range(effort.changed)
        ]
        ends = problem.final(near, SEED)
        tests += [end.test for end in ends]
        tried = [(end.loss, config) for end, config in zip(ends, near, strict=True)]
        kept = [
            min([one, *tried[k * effort.changed : (k + 1) * effort.changed]], key=lambda o: o[0])
            for k, one in enumerate(kept)
        ]
    least = min(loss for loss, _ in kept)
    if not problem.has_test:
        return Scale(least, medians[0])
    return Scale(least, medians[0], float(np.min(tests)), medians[1])


def changed(
    space: Mapping[str, Domain], config: Config, random: np.random.Generator, width: float
) -> Config:
    """A config that differs in one or two hyperparameters, in numbers by a share of the range."""
    names = random.choice(list(space), size=min(len(space), 1 + int(random.integers(2))))
    return {**config, **{str(n): _near(space[n], config[n], random, width) for n in names}}


def _near(domain: Domain, value: Any, random: np.random.Generator, width: float) -> Any:
    if isinstance(domain, Choice):
        return domain.sample(random)
    low, high = (getattr(domain, end) for end in ("low", "high"))
    is_log = isinstance(domain, LogUniform) or (isinstance(domain, Integer) and domain.log)
    scaled = [log(number) if is_log else number for number in (low, high, value)]
    moved = scaled[2] + width * (scaled[1] - scaled[0]) * random.standard_normal()
    moved = exp(moved) if is_log else moved
    if isinstance(domain, Integer):
        moved = round(moved)
    return min(max(moved, low), high)


def stored(arena: Path) -> dict[str, Scale]:
    """Those that are known."""
    file = arena / FILE
    known = json.loads(file.read_text()) if file.exists() else {}
    return {name: Scale(*ends) for name, ends in known.items()}


def scales(problems: Iterable[Problem], arena: Path) -> dict[str, Scale]:
    """Those of all problems; what is not known is measured, and written down."""
    found = stored(arena)
    for problem in problems:
        if problem.name not in found:
            print(f"looking for the best config of {problem.name}", flush=True)
            effort = TRAINED if isinstance(problem, Model) else SURROGATE
            found[problem.name] = measured(problem, effort)
            lines = (f"  {json.dumps(name)}: {json.dumps(_told(found[name]))}" for name in found)
            text = ",\n".join(lines)
            (arena / FILE).write_text(f"{{\n{text}\n}}\n")
    return found


def _told(scale: Scale) -> list[float]:
    return [end for end in scale if not isnan(end)]
