"""How an arm is trained and judged: the protocol, and the trainers that come with lastarm."""

from lastarm.trainers.accepted import as_trainer
from lastarm.trainers.functions import Functions
from lastarm.trainers.generators import Generated
from lastarm.trainers.maximized import Maximized
from lastarm.trainers.observed import observation
from lastarm.trainers.programs import Program
from lastarm.trainers.protocol import AnyTrainer, Config, Trainer, arm_seed, as_loss
from lastarm.trainers.recorded import RecordedCurves
from lastarm.trainers.sampled import RunningMean, RunningMinimum

__all__ = [
    "AnyTrainer",
    "Config",
    "Functions",
    "Generated",
    "Maximized",
    "Program",
    "RecordedCurves",
    "RunningMean",
    "RunningMinimum",
    "Trainer",
    "arm_seed",
    "as_loss",
    "as_trainer",
    "observation",
]
