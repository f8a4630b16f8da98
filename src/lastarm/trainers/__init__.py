"""How an arm is trained and judged: the protocol, and the trainers that come with lastarm.

One kind of trainer is one file, and `any_trainer.py` turns whatever `search` is given into one of
them. A loop that reports has a folder, because it waits in a thread of its own. So have
estimators, which are imported only when they are asked for, as they need scikit-learn. Training
many arms in one step belongs to `lastarm.batched`; where and when arms are trained belongs to
`lastarm.runners`. How people read a loss, by its name and sign, is `metric.py`.
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
    from lastarm.trainers.reporting import Reporting
    from lastarm.trainers.stochastic import RunningMean, RunningMinimum

__all__ = [
    "AnyTrainer",
    "Config",
    "Functions",
    "Generated",
    "Maximized",
    "Program",
    "RecordedCurves",
    "Reporting",
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
        "reporting": "Reporting",
        "stochastic": "RunningMean RunningMinimum",
    },
)
