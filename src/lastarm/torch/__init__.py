"""PyTorch networks as arms: `Module` trains ordinary modules, one by one or many in one step.

Here belongs what needs PyTorch. `module` is the trainer, `course` what all arms have in common,
`arm` one of them with what it has learnt; rows and randomness come from `data` and `randomness`.
Many networks in one step are `together`, with `kinds`, `stack` and `stacked_optimizers`, and `way`
times whether that is faster. A loop that a framework owns, or one of your own, needs nothing of
this: it is an ordinary trainer (`lastarm.trainers`).
"""

try:
    from lastarm.torch.arm import Arm
    from lastarm.torch.module import Module
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "PyTorch is needed for Module. Install it with pip install 'lastarm[torch]'."
    ) from error

__all__ = ["Arm", "Module"]
