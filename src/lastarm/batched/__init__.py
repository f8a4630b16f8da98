"""Trainers that advance many arms together: the contract, and what leads to it and from it.

The models are in files of their own, which need numba: `ridge`, `kernel_svm`, `completion`.
"""

from lastarm.batched.one_by_one import Together, as_batched, is_batched
from lastarm.batched.protocol import BatchedTrainer, SomeFailed
from lastarm.batched.single import Single

__all__ = ["BatchedTrainer", "Single", "SomeFailed", "Together", "as_batched", "is_batched"]
