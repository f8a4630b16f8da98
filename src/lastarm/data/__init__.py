"""The one data set that comes with lastarm, for the demo and for trying things without a network.

Optical recognition of handwritten digits: 1,797 images of 8 × 8 grey values from 0 to 16, with
the digit that each shows. E. Alpaydin and C. Kaynak, UCI Machine Learning Repository (1998),
doi:10.24432/C50P49, its test set; licence CC BY 4.0.
"""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray


def digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The images, one a row, and their digits.

    >>> images, labels = digits()
    >>> images.shape, images.max(), sorted(set(labels.tolist()))
    ((1797, 64), np.uint8(16), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    with as_file(files(__name__) / "digits.npz") as path, np.load(path) as arrays:
        return arrays["images"], arrays["labels"]
