"""Sort numbers in place: NumPy's sort takes longer to compile than most kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import device

Int64s = npt.NDArray[np.int64]


@device
def sort(numbers: Int64s, count: int) -> None:
    """Sort the first `count` numbers; sorted input costs one pass."""
    width = count
    for k in range(1, count):
        if numbers[k - 1] > numbers[k]:
            width = 1
            break
    spare = np.empty(count if width < count else 0, np.int64)
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, k = low, middle
            for at in range(low, high):
                if k >= high or (i < middle and numbers[i] <= numbers[k]):
                    spare[at] = numbers[i]
                    i += 1
                else:
                    spare[at] = numbers[k]
                    k += 1
        for k in range(count):
            numbers[k] = spare[k]
        width *= 2
