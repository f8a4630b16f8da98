"""lastarm: find the best of many hyperparameter settings without training them all."""

from lastarm.events import Closed, Failure, Loss, Opened, Pull
from lastarm.policies import (
    ASHA,
    EXP3,
    LUCB,
    Doubling,
    ExponentialGap,
    Hyperband,
    LilUCB,
    SuccessiveElimination,
    SuccessiveHalving,
    SuccessiveRejects,
    UniformAllocation,
)
from lastarm.policy import Policy, Rounds
from lastarm.result import Result
from lastarm.runners import Serial, Simulated
from lastarm.search import search
from lastarm.trainers import RecordedCurves, RunningMean, RunningMinimum, Trainer

__all__ = [
    "ASHA",
    "EXP3",
    "LUCB",
    "Closed",
    "Doubling",
    "ExponentialGap",
    "Failure",
    "Hyperband",
    "LilUCB",
    "Loss",
    "Opened",
    "Policy",
    "Pull",
    "RecordedCurves",
    "Result",
    "Rounds",
    "RunningMean",
    "RunningMinimum",
    "Serial",
    "Simulated",
    "SuccessiveElimination",
    "SuccessiveHalving",
    "SuccessiveRejects",
    "Trainer",
    "UniformAllocation",
    "search",
]
