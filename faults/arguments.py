"""F14: arguments that nobody should give, in every place where one can be given.

A search is made of good arguments, of which one or two are then spoiled. It runs, or is refused
with an `InvalidArgument` before anything is trained. Nothing else is ever raised.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, settings

from faults.campaign import Campaign, Figures
from faults.replayable import replayable
from faults.spoiled import Made, made, searches
from lastarm import Simulated, search
from lastarm.errors import AllArmsFailed, InvalidArgument


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


def run(times: int, folder: Path, *, shrink: bool = True) -> Figures:
    """Try so many; what goes wrong is then made as simple as it can be."""
    seen: Counter[str] = Counter()

    @settings(
        max_examples=times,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        derandomize=True,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(asked=searches())
    def try_one(asked: dict[str, Any]) -> None:
        seen[attempt(asked, folder)] += 1

    with replayable(f"the same {times} times"), patch("os.fsync"):
        try_one()
    return {**seen, "other errors": 0}


ARGUMENTS = Campaign("F14", "arguments that will not do", run, 10_000, 150)
