"""lastarm: find the best of many hyperparameter settings without training them all."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes a while to import
    from typing import Any

    __version__: str
    from lastarm.checkpoints import Checkpoints
    from lastarm.events import Changed, Closed, Extended, Failure, Loss, Opened, Pull
    from lastarm.loading import load
    from lastarm.policies import (
        ASHA,
        EXP3,
        LUCB,
        Doubling,
        EnvelopeHalving,
        ExponentialGap,
        HorizonHalving,
        Hyperband,
        LilUCB,
        PricedHalving,
        SuccessiveElimination,
        SuccessiveHalving,
        SuccessiveRejects,
        TimedHalving,
        UniformAllocation,
    )
    from lastarm.policy import Policy, Rounds
    from lastarm.result import Result
    from lastarm.runners import Batched, Processes, Serial, Simulated
    from lastarm.samplers import Forest, Sampler
    from lastarm.searching import search
    from lastarm.space import Choice, Configs, Grid, Integer, LogUniform, Normal, Uniform
    from lastarm.trainers import (
        Functions,
        Generated,
        Program,
        RecordedCurves,
        RunningMean,
        RunningMinimum,
        Trainer,
    )

__all__ = [
    "ASHA",
    "EXP3",
    "LUCB",
    "Batched",
    "Changed",
    "Checkpoints",
    "Choice",
    "Closed",
    "Configs",
    "Doubling",
    "EnvelopeHalving",
    "ExponentialGap",
    "Extended",
    "Failure",
    "Forest",
    "Functions",
    "Generated",
    "Grid",
    "HorizonHalving",
    "Hyperband",
    "Integer",
    "LilUCB",
    "LogUniform",
    "Loss",
    "Normal",
    "Opened",
    "Policy",
    "PricedHalving",
    "Processes",
    "Program",
    "Pull",
    "RecordedCurves",
    "Result",
    "Rounds",
    "RunningMean",
    "RunningMinimum",
    "Sampler",
    "Serial",
    "Simulated",
    "SuccessiveElimination",
    "SuccessiveHalving",
    "SuccessiveRejects",
    "TimedHalving",
    "Trainer",
    "Uniform",
    "UniformAllocation",
    "load",
    "search",
]

# Where to look for a name when it is first asked for: NumPy and the rest take their time.
_HOMES = (
    "policies",
    "events",
    "policy",
    "space",
    "trainers",
    "checkpoints",
    "runners",
    "samplers",
    "result",
    "searching",
    "loading",
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("lastarm")
    if name in (*_HOMES, "errors"):
        return importlib.import_module(f"lastarm.{name}")
    if name in __all__:
        for home in _HOMES:
            found = getattr(importlib.import_module(f"lastarm.{home}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module 'lastarm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
