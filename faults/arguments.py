"""F14: arguments that are not valid, in every place where one can be given.

A search is made of good arguments, of which one or two are then spoiled. It runs, or is refused
with an `InvalidArgument` before anything is trained. Nothing else is ever raised.
"""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from faults.campaign import SEARCHING, Campaign, Figures, replayable
from lastarm import Choice, Configs, Grid, Integer, LogUniform, Serial, Simulated, Uniform, search
from lastarm.errors import AllArmsFailed, InvalidArgument
from lastarm.policies import POLICIES
from lastarm.trainers import Config

MOST = 2**63 - 1
BAD: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 7, MOST, MOST + 1, -MOST - 2, 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, 1.0, 1.01, 3.0, 1e308, -1e308, 5e-324, nan, inf, -inf),
    *(Fraction(7, 2), Fraction(10**400), Decimal(3), Decimal("sNaN"), 1j),
    *("", "3", "nan", "\ud800", b"3", [], [1, 2], (), {}, {"a": 1}, {1, 2}, range(0), range(3)),
    *(np.int64(3), np.float32(0.5), np.float64("nan"), np.array(3), np.array([1, 2])),
    *(np.array([[0.5]]), np.array(["a"]), np.datetime64("2026-01-01"), np.bool_(True)),
]
bad = st.sampled_from(BAD)
not_large = bad.filter(lambda value: value is not MOST)
COUNTED = {"arms", "budget", "retries", "workers"}  # a large number would really be tried


class Made(NamedTuple):
    """Something that will be made of these arguments, which may raise."""

    of: Any
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}

    def make(self) -> Any:
        """Make it and its arguments."""
        named = {name: made(value) for name, value in self.named.items()}
        return self.of(*map(made, self.positional), **named)


def made(value: Any) -> Any:
    """A value in which everything is made."""
    match value:
        case Made():
            return value.make()
        case dict():
            return {name: made(item) for name, item in value.items()}
        case list():
            return [made(item) for item in value]
    return value


@st.composite
def spoiled(draw: st.DrawFn, good: Mapping[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """Good arguments, except for one or two."""
    arguments = {name: draw(strategy) for name, strategy in good.items()}
    for name in draw(st.lists(st.sampled_from(sorted(good)), min_size=1, max_size=2)):
        arguments[name] = draw(not_large if name in COUNTED else bad)
    return arguments


LARGE = st.one_of(st.integers(1, 300), st.integers(1, 300), st.sampled_from([10**6, MOST]))
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "arms": st.integers(1, 9),
    "budget": st.integers(40, 300),
    "eta": st.one_of(st.integers(2, 5), st.just(MOST)),
    "look_cost": st.sampled_from([0, 1, "3/2", 7]),
    "seconds": st.none() | st.floats(1e-9, 1e9),
    "max_pulls": LARGE,
    "seed": LARGE,
    "at_once": LARGE,
    "open_ended": st.booleans(),
    "delta": st.floats(1e-12, 0.99),
    "low": st.none() | st.floats(-1e308, 0),
    "high": st.none() | st.floats(1, 1e308),
    "constants": st.sampled_from(["heuristic", "proven"]),
    "restarts": st.sampled_from([False, False, True]),  # refused if the trainer goes on
    "of": st.sampled_from(["successive-halving", "successive-rejects", "uniform"]),
}
FEW_LOOKS = {"uniform", "successive-halving", "successive-rejects", "hyperband"}
FEW_LOOKS |= {"horizon-halving", "envelope-halving", "priced-halving", "timed-halving"}


@st.composite
def policies(draw: st.DrawFn, *, good: bool) -> Made:
    """A policy; those that look at few losses may have any budget."""
    kind = draw(st.sampled_from(list(POLICIES.values())))
    arguments = {field.name: FIELDS[field.name] for field in dataclasses.fields(kind)}
    if kind.name in FEW_LOOKS:
        arguments["budget"] = LARGE
    return Made(kind, (), draw(st.fixed_dictionaries(arguments) if good else spoiled(arguments)))


numbers = st.integers(-20, 20) | st.floats(-1e3, 1e3)
ends = st.one_of(numbers, numbers, numbers, bad)
DOMAINS = st.one_of(
    *(st.tuples(ends, ends).map(partial(Made, kind)) for kind in (Uniform, LogUniform, Integer)),
    st.tuples(ends, ends, st.booleans()).map(partial(Made, Integer)),
    st.lists(bad, max_size=4).map(tuple).map(partial(Made, Choice)),
    st.lists(st.integers(0, 9) | bad, min_size=1, max_size=4),
    bad,
)
NAMES: list[Any] = [
    *("x", "y", "learning rate", "é", "e\u0301", "🙂", "../x", "'; DROP TABLE arms", "x" * 128),
    *("", "\x00", "a\nb", "x" * 129, "\ud800", "\x1b]0;", 3, None, b"x", ("a",), 0.5),
]
names = st.one_of(st.just("lr"), st.just("layers"), st.sampled_from(NAMES))
mappings = st.dictionaries(names, DOMAINS, max_size=3)
configs = st.lists(st.dictionaries(names, bad, max_size=2), max_size=4)
LR = {"lr": Made(LogUniform, (1e-5, 1e-1))}
GOOD_SPACES = st.one_of(
    st.just(LR),
    st.just({"lr": Made(Uniform, (-1e308, 1e308)), "layers": Made(Integer, (1, 9, True))}),
    st.sampled_from(NAMES[:9]).map(lambda name: {name: Made(Integer, (-MOST, MOST))}),
    st.just([{"kernel": "rbf", "gamma": [0.1 * k for k in range(9)]}, {"kernel": "linear"}]),
    st.just(Made(Grid, (LR, 9))),
    st.just(Made(Configs, ([{"x": value} for value in BAD],))),
)
BAD_SPACES = st.one_of(
    DOMAINS.map(lambda domain: {"x": domain, **LR}),
    names.map(lambda name: {name: 1, **LR}),
    mappings,
    mappings.map(lambda mapping: {**mapping, **LR}),
    st.lists(mappings, max_size=3),
    st.tuples(mappings, st.none() | st.integers(1, 3) | not_large).map(partial(Made, Grid)),
    st.tuples(configs).map(partial(Made, Configs)),
    bad,
)

SIMULATED: dict[str, st.SearchStrategy[Any]] = {
    "workers": st.integers(1, 5),
    "seconds_per_pull": st.floats(0, 9),
    "seconds_per_look": st.floats(0, 9),
    "straggling": st.floats(0, 1),
    "slowdown": st.floats(0, 20),
    "failing": st.just(0.0),
    "duplicating": st.floats(0, 1),
    "lease": st.just(inf),
}
GOOD_RUNNERS = st.one_of(
    st.sampled_from([None, "serial", "batched"]),
    st.builds(partial(partial, Serial), group=st.integers(1, 5)),
    st.fixed_dictionaries(SIMULATED).map(lambda arguments: partial(Simulated, **arguments)),
)
BAD_RUNNERS = st.one_of(
    bad,
    st.builds(partial(partial, Serial), group=bad),
    spoiled(SIMULATED).map(lambda arguments: partial(Simulated, **arguments)),
)


class Counting:
    """A trainer that counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def start(self, config: Config, seed: int) -> tuple[float, int]:
        """A height of its own."""
        self.calls += 1
        return seed % 7 / 7, 0

    def train(self, state: tuple[float, int], pulls: int) -> tuple[float, int]:
        """Down to that height."""
        return state[0], state[1] + pulls

    def loss(self, state: tuple[float, int]) -> float:
        """Where it is."""
        return state[0] + 1 / state[1]


class Restarting(Counting):
    """The same, trained from zero at every level."""

    restarts = True


OTHERS: dict[str, st.SearchStrategy[Any]] = {
    "seed": LARGE,
    "retries": st.integers(0, 3),
    "seconds": st.none() | st.just(3600.0),
    "include": st.none(),
    "maximize": st.booleans(),
    "metric": st.none() | st.sampled_from(["accuracy", "=1+1", "[red]"]),
    "recommend": st.sampled_from(["latest", "best"]),
}
# Workers and limits of time that will do are left out: they start processes, which takes long.
BAD_WORKERS: list[Any] = [0, -1, 1.5, "2", MOST + 1, True, nan, []]
BAD_SECONDS: list[Any] = [0, -1, nan, -inf, True, "3", [], 1j, -(10**400)]
BAD_LIMITS = [
    *({"workers": value} for value in BAD_WORKERS),
    *({"pull_seconds": value} for value in BAD_SECONDS),
]
no_paths = bad.filter(lambda value: not isinstance(value, str))  # which would be written to
PARTS: dict[str, tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "trainer": (st.sampled_from([Counting, Restarting]).map(Made), bad),
    "policy": (policies(good=True), policies(good=False) | bad),
    "space": (GOOD_SPACES, BAD_SPACES),
    "runner": (GOOD_RUNNERS, BAD_RUNNERS),
    "others": (st.fixed_dictionaries(OTHERS), spoiled(OTHERS)),
    "limits": (st.just({}), st.sampled_from(BAD_LIMITS)),
    "journal": (st.none() | st.just(Path("journal")), no_paths),
    "checkpoints": (st.booleans() | st.just(Path("states")), no_paths),
}


@st.composite
def searches(draw: st.DrawFn) -> dict[str, Any]:
    """All that a search is made of; up to two parts of it are spoiled, these two most often."""
    often = ["policy", "space"] * 4
    spoil = draw(st.lists(st.sampled_from([*often, *PARTS]), max_size=2))
    return {name: draw(PARTS[name][name in spoil]) for name in PARTS}


def attempt(asked: Mapping[str, Any], folder: Path) -> str:
    """Search, and say whether it ran or was refused; anything else is an error."""
    trainer = made(asked["trainer"])
    with tempfile.TemporaryDirectory(dir=folder) as own, warnings.catch_warnings():
        warnings.simplefilter("error")
        keeping: dict[str, Any] = {
            name: Path(own, value) if isinstance(value := asked[name], Path) else value
            for name in ("journal", "checkpoints")
        }
        try:
            policy = made(asked["policy"])
            if isinstance(asked["policy"], Made):
                policy.plan()
            search(
                trainer,
                made(asked["space"]),
                policy=policy,
                runner=asked["runner"],
                progress=False,
                **asked["others"],
                **asked["limits"],
                **keeping,
            )
        except InvalidArgument:
            assert not getattr(trainer, "calls", 0), "refused when something had been trained"
            return "refused"
        except AllArmsFailed:
            assert asked["runner"].func is Simulated, "only workers that always fail do this"
    return "ran"


def run(tries: range, folder: Path, *, shrink: bool = True) -> Figures:
    """Try that many searches; what goes wrong is then made as simple as possible."""
    seen: Counter[str] = Counter()

    @seed(tries.start)
    @settings(
        max_examples=len(tries),
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(asked=searches())
    def try_one(asked: dict[str, Any]) -> None:
        seen[attempt(asked, folder)] += 1

    with replayable(f"faults.arguments.run({tries}, FOLDER)"), patch("os.fsync"):
        try_one()
    assert seen["ran"] > len(tries) // 9, "hardly any search ran, so this has shown nothing"
    return {**seen, "other errors": 0}


ARGUMENTS = Campaign(
    "F14",
    "arguments that are not valid",
    run,
    full=10_000,
    short=150,
    paths=(
        *SEARCHING,
        "src/lastarm/arguments/*.py",
        "src/lastarm/policies/**/*.py",
        "faults/arguments.py",
    ),
)
