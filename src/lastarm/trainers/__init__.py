"""How an arm is trained and judged: the protocol, and the trainers that come with lastarm."""

from lastarm.trainers.protocol import Config, Trainer, arm_seed, as_loss
from lastarm.trainers.recorded import RecordedCurves
from lastarm.trainers.sampled import RunningMean, RunningMinimum

__all__ = [
    "Config",
    "RecordedCurves",
    "RunningMean",
    "RunningMinimum",
    "Trainer",
    "arm_seed",
    "as_loss",
]
