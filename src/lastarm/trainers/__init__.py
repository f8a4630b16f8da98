"""How an arm is trained and judged: the protocol, and the trainers that come with lastarm.

One kind of trainer is one file, and `any_trainer.py` turns whatever `search` is given into one of
them. Estimators have a folder, which is imported only when it is asked for, as it needs
scikit-learn. Training many arms in one step belongs to `lastarm.batched`; where and when arms are
trained belongs to `lastarm.runners`. How people read a loss, by its name and sign, is `metric.py`.
"""

from lastarm.later import later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastarm.trainers.any_trainer import AnyTrainer, as_trainer
    from lastarm.trainers.functions import Functions
    from lastarm.trainers.generators import Generated
    from lastarm.trainers.losses import as_loss, loss_in, observation
    from lastarm.trainers.maximized import Maximized
    from lastarm.trainers.programs import Program
    from lastarm.trainers.protocol import Config, Trainer, arm_seed, continues, finished
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
    "continues",
    "finished",
    "loss_in",
    "observation",
]

__getattr__ = later(
    __name__,
    {
        "any_trainer": "AnyTrainer as_trainer",
        "functions": "Functions",
        "generators": "Generated",
        "losses": "as_loss loss_in observation",
        "maximized": "Maximized",
        "programs": "Program",
        "protocol": "Config Trainer arm_seed continues finished",
        "recorded": "RecordedCurves",
        "stochastic": "RunningMean RunningMinimum",
    },
)
