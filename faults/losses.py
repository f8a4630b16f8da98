"""F13: losses that a trainer should not return, on every runner.

What becomes of it is said by `lastarm.trainers.as_loss`: a real number counts, one that is not
finite puts its arm out of the race, and anything else is that arm's failure. An arm that is out
never wins; when all are out, that is one error which lists the causes.
"""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from faults.campaign import SEARCHING, Campaign, Figures, Most, replayable
from lastarm import Batched, Configs, Processes, Serial, Simulated, SuccessiveHalving, search
from lastarm.errors import AllArmsFailed
from lastarm.runners import MakeRunner
from lastarm.trainers import Config

RUNNERS: dict[str, MakeRunner] = {
    "serial": Serial,
    "in groups": partial(Serial, group=3),
    "batched": Batched,
    "simulated": partial(Simulated, workers=3),
    "processes": partial(Processes, workers=2),
}
HEALTHY = 0.25


class Unshowable:
    """Its text cannot be had."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Unreadable:
    """An array without dimensions whose number cannot be read."""

    ndim = 0

    def item(self) -> float:
        """As of a tensor on a device that is gone."""
        raise RuntimeError("the device is gone")


class Uncountable(float):
    """A number that cannot be converted."""

    def __float__(self) -> float:
        raise RuntimeError("no float")


class Named:
    """Shown by its name."""

    def __repr__(self) -> str:
        return "Named()"


def no(shown: str, kind: str) -> str:
    """The error for what is not a number."""
    return f"BadLoss: the loss {shown} is a {kind}, not a real number"


def raising(error: BaseException) -> Any:
    """An arm that raises instead of returning a loss."""
    raise error


MISSING = "has no 'loss': return the number to minimize under that key"
Outcome = float | str
"""The loss that counts, or the error that is told."""

GIVEN: Mapping[str, tuple[Callable[[], Any], Outcome]] = {
    "nan": (lambda: math.nan, math.nan),
    "inf": (lambda: math.inf, math.inf),
    "-inf": (lambda: -math.inf, -math.inf),
    "a huge int": (lambda: 10**400, math.inf),
    "a huge negative int": (lambda: -(10**400), -math.inf),
    "a huge Fraction": (lambda: Fraction(10**400, 3), math.inf),
    "a Decimal nan": (lambda: Decimal("nan"), math.nan),
    "a signalling nan": (lambda: Decimal("sNaN"), math.nan),
    "a Decimal infinity": (lambda: Decimal("-Infinity"), -math.inf),
    "a huge Decimal": (lambda: Decimal("1e999"), math.inf),
    "a nan of NumPy": (lambda: np.float32("nan"), math.nan),
    "a nan beside metrics": (lambda: {"loss": math.nan, "accuracy": 0.5}, math.nan),
    "an int": (lambda: 0, 0.0),
    "a Decimal": (lambda: Decimal("0.125"), 0.125),
    "a Fraction": (lambda: Fraction(1, 8), 0.125),
    "a scalar of NumPy": (lambda: np.float32(0.125), 0.125),
    "an int of NumPy": (lambda: np.int64(-3), -3.0),
    "an array of no dimensions": (lambda: np.array(0.125), 0.125),
    "the least float": (lambda: 5e-324, 5e-324),
    "minus zero": (lambda: -0.0, -0.0),
    "a loss and metrics": (lambda: {"loss": Decimal("0.125"), 1: {1, 2}, "x": Named()}, 0.125),
    "True": (lambda: True, no("True", "bool")),
    "False": (lambda: False, no("False", "bool")),
    "a bool of NumPy": (lambda: np.array(False), no("array(False)", "ndarray")),
    "None": (lambda: None, no("None", "NoneType")),
    "a str": (lambda: "0.125", no("'0.125'", "str")),
    "a str that says nan": (lambda: "nan", no("'nan'", "str")),
    "bytes": (lambda: b"1", no("b'1'", "bytes")),
    "complex": (lambda: 0.5 + 0j, no("(0.5+0j)", "complex")),
    "complex of NumPy": (lambda: np.array(1j), no("array(0.+1.j)", "ndarray")),
    "a list": (lambda: [0.125], no("[0.125]", "list")),
    "a long list": (lambda: [0] * 999, no(repr([0] * 999)[:200], "list")),
    "a tuple": (lambda: (0.125, {}), no("(0.125, {})", "tuple")),
    "an array of one": (lambda: np.array([0.125]), no("array([0.125])", "ndarray")),
    "an array of none": (lambda: np.array([]), no("array([], dtype=float64)", "ndarray")),
    "a class": (lambda: Real, no("<class 'numbers.Real'>", "ABCMeta")),
    "an object": (Named, no("Named()", "Named")),
    "what cannot be shown": (Unshowable, no("a Unshowable that cannot be shown", "Unshowable")),
    "an error": (lambda: ValueError("x"), no("ValueError('x')", "ValueError")),
    "an empty dict": (dict, f"BadLoss: the mapping with the keys (none) {MISSING}"),
    "a dict without loss": (
        lambda: {"accuracy": 0.5},
        f"BadLoss: the mapping with the keys 'accuracy' {MISSING}",
    ),
    "a loss of None": (lambda: {"loss": None}, no("None", "NoneType")),
    "a nested loss": (lambda: {"loss": {"loss": 0.125}}, no("{'loss': 0.125}", "dict")),
    "what cannot be read": (Unreadable, "RuntimeError: the device is gone"),
    "what is not a float": (lambda: Uncountable(0.125), "RuntimeError: no float"),
    "an error that is raised": (lambda: raising(ValueError("why")), "ValueError: why"),
    "sys.exit": (lambda: raising(SystemExit(0)), "SystemExit: 0"),
    "a cancelled task": (lambda: raising(CancelledError()), "CancelledError"),
    "the end of a generator": (lambda: raising(GeneratorExit("x")), "GeneratorExit: x"),
    "a group of errors": (
        lambda: raising(BaseExceptionGroup("both", [SystemExit(), KeyError()])),
        "BaseExceptionGroup: both (2 sub-exceptions)",
    ),
}


class Giving:
    """An arm returns what its config names, at every look."""

    def start(self, config: Config, seed: int) -> str:
        """The name of what it returns."""
        return str(config["gives"])

    def train(self, state: str, pulls: int) -> str:
        """There is nothing to learn."""
        return state

    def loss(self, state: str) -> Any:
        """What it returns."""
        return HEALTHY if state == "healthy" else GIVEN[state][0]()


def outcomes(runner: MakeRunner, given: list[str]) -> tuple[dict[int, str], str, str]:
    """The outcome of each arm, what the winner returned, and the digest."""
    policy = SuccessiveHalving(len(given), 8 * len(given))
    configs = Configs([{"gives": name} for name in given])
    try:
        result = search(Giving(), configs, policy=policy, runner=runner)
    except AllArmsFailed as error:
        return error.causes, "nothing", ""
    losses = {arm: f"its loss became {curve[0][1]!r}" for arm, curve in result.curves.items()}
    errors = {arm: failure.error for arm, failure in result.failures.items()}
    assert result.config, "all of it was spent and nothing was found"
    return losses | errors, result.config["gives"], result.digest


def check(given: list[str]) -> None:
    """All runners give the expected outcome, and one digest."""
    documented = {name: HEALTHY if name == "healthy" else GIVEN[name][1] for name in given}
    finite = {n: v for n, v in documented.items() if isinstance(v, float) and math.isfinite(v)}
    best = min(finite, key=finite.__getitem__, default="nothing")
    digests = set()
    for runner, make in RUNNERS.items():
        became, won, digest = outcomes(make, given)
        for arm, name in enumerate(given):
            outcome = documented[name]
            told = outcome if isinstance(outcome, str) else f"its loss became {outcome!r}"
            assert became[arm] == told, f"{runner}: of {name}, {became[arm]!r} and not {told!r}"
        assert won == best, f"{runner}: {won} won and not {best}"
        digests.add(digest)
    assert len(digests) == 1, f"{len(digests)} digests"


def run(tries: range, folder: Path) -> Figures:
    """All of them in one search; then some of them, each as one bad arm and as all arms."""
    some = list(GIVEN)[tries.start : tries.stop]
    out = [name for name, (_, v) in GIVEN.items() if isinstance(v, str) or not math.isfinite(v)]
    asked = [] if tries.start else [[*GIVEN, "healthy"], out]
    asked += [given for name in some for given in ([name, *["healthy"] * 3], [name] * 4)]
    for given in asked:
        with replayable(f"faults.losses.check({given})"):
            check(given)
    return {
        "values": Most(len(GIVEN)),
        "runners": Most(len(RUNNERS)),
        "searches": len(asked) * len(RUNNERS),
        "other outcomes": 0,
    }


LOSSES = Campaign(
    "F13",
    "losses that are none, on every runner",
    run,
    full=len(GIVEN),
    short=1,
    paths=(*SEARCHING, "faults/losses.py"),
)
