"""lastarm: find the best of many hyperparameter settings without training them all."""

from __future__ import annotations

import importlib

from lastarm.later import later

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes a while to import
    from typing import Any

    __version__: str
    from lastarm.checkpoints import Checkpoints
    from lastarm.errors import Dropped
    from lastarm.events import Changed, Closed, Extended, Failure, Loss, Opened, Pull
    from lastarm.policies import (
        ASHA,
        EXP3,
        LUCB,
        Brackets,
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
    from lastarm.samplers import Forest, GaussianProcess, Sampler
    from lastarm.searching import load, search
    from lastarm.space import Choice, Configs, Grid, Integer, LogUniform, Normal, Uniform
    from lastarm.trainers import (
        Functions,
        Generated,
        Program,
        RecordedCurves,
        Reporting,
        RunningMean,
        RunningMinimum,
        Trainer,
    )

__all__ = [
    "ASHA",
    "EXP3",
    "LUCB",
    "Batched",
    "Brackets",
    "Changed",
    "Checkpoints",
    "Choice",
    "Closed",
    "Configs",
    "Doubling",
    "Dropped",
    "EnvelopeHalving",
    "ExponentialGap",
    "Extended",
    "Failure",
    "Forest",
    "Functions",
    "GaussianProcess",
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
    "Reporting",
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

# A module is there as soon as one of its names is, and these at once.
_MODULES = {"checkpoints", "errors", "events", "policies", "policy", "result"}
_MODULES |= {"runners", "samplers", "searching", "space", "trainers"}

# NumPy and the rest take their time, so that a name is loaded when it is first asked for.
_name = later(
    __name__,
    {
        "checkpoints": "Checkpoints",
        "errors": "Dropped",
        "events": "Changed Closed Extended Failure Loss Opened Pull",
        "policies": (
            "ASHA EXP3 LUCB Brackets Doubling EnvelopeHalving ExponentialGap HorizonHalving "
            "Hyperband LilUCB PricedHalving SuccessiveElimination SuccessiveHalving "
            "SuccessiveRejects TimedHalving UniformAllocation"
        ),
        "policy": "Policy Rounds",
        "result": "Result",
        "runners": "Batched Processes Serial Simulated",
        "samplers": "Forest GaussianProcess Sampler",
        "searching": "load search",
        "space": "Choice Configs Grid Integer LogUniform Normal Uniform",
        "trainers": (
            "Functions Generated Program RecordedCurves Reporting RunningMean RunningMinimum "
            "Trainer"
        ),
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("lastarm")
    if name in _MODULES:
        return importlib.import_module(f"lastarm.{name}")
    return _name(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
