"""Trainers that advance many arms together: the contract, and what leads to it and from it.

The models are in files of their own, which need numba: `ridge`, `kernel_svm`, `completion`.
"""

from lastarm.batched.adapters import Single, Together, as_batched, is_batched
from lastarm.batched.protocol import BatchedTrainer, SomeFailed

__all__ = ["BatchedTrainer", "Single", "SomeFailed", "Together", "as_batched", "is_batched"]
