"""How an arm is trained and judged: the protocol, and the trainers that come with lastarm."""

from lastarm.trainers.any_trainer import AnyTrainer, as_trainer
from lastarm.trainers.functions import Functions
from lastarm.trainers.generators import Generated
from lastarm.trainers.losses import as_loss, observation
from lastarm.trainers.maximized import Maximized
from lastarm.trainers.programs import Program
from lastarm.trainers.protocol import Config, Trainer, arm_seed
from lastarm.trainers.recorded import RecordedCurves
from lastarm.trainers.stochastic import RunningMean, RunningMinimum

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
