"""Arrays of unknown final length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device

Int64s = npt.NDArray[np.int64]


@device
def enlarged(array: Int64s, used: int, needed: int) -> Int64s:
    """Return a copy with space for `needed` more items."""
    larger = np.empty(2 * len(array) + needed, np.int64)
    for k in range(used):
        larger[k] = array[k]
    return larger


@device
def grown(array: Int64s, used: int, needed: int) -> Int64s:
    """Return the array, or a copy, with space for `needed` more items."""
    return array if used + needed <= len(array) else enlarged(array, used, needed)
