"""lastarm: find the best of many hyperparameter settings without training them all."""

from lastarm.checkpoints import Checkpoints
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
from lastarm.runners import Batched, Processes, Serial, Simulated
from lastarm.search import search
from lastarm.space import Choice, Configs, Grid, Integer, LogUniform, Uniform
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
    "Checkpoints",
    "Choice",
    "Closed",
    "Configs",
    "Doubling",
    "ExponentialGap",
    "Failure",
    "Functions",
    "Generated",
    "Grid",
    "Hyperband",
    "Integer",
    "LilUCB",
    "LogUniform",
    "Loss",
    "Opened",
    "Policy",
    "Processes",
    "Program",
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
    "Uniform",
    "UniformAllocation",
    "search",
]
