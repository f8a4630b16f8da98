"""PyTorch networks as arms: `Module` trains ordinary modules, one by one.

Here belongs what needs PyTorch: the trainer (`module`), an arm with what it has learnt (`arm`),
and where its rows and its randomness come from (`data`, `randomness`). A loop that a framework
owns, or one of your own, needs nothing of this: it is an ordinary trainer (`lastarm.trainers`).
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
