"""Trainers that train many arms in one call: the contract, adapters, and the models.

Here belong the contract (`protocol`), the adapters to and from ordinary trainers (`adapters`), and
models that follow the contract, a file each: `linear`, `ridge`, `kernel_svm`, `completion`. What
is compiled is in `kernels`. The models need numba; the contract and the adapters do not. The
runner that calls batched trainers is in `lastarm.runners.batched`.
"""

from lastarm.batched.adapters import OneByOne, Single, as_batched, is_batched
from lastarm.batched.protocol import BatchedTrainer, SomeFailed

Together = OneByOne  # its name in version 0.1, which code of users may have

__all__ = [
    "BatchedTrainer",
    "OneByOne",
    "Single",
    "SomeFailed",
    "Together",
    "as_batched",
    "is_batched",
]
