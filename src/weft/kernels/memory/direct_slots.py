"""Slots of keys that are small integers, looked up directly in a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel
from weft.kernels.signatures import Read

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@bare_kernel
def find_direct(values: Read[Int64s], low: int, table: Int32s, slots: Int32s) -> int:
    """Write the slot of each value, or -1 if it is not in the table; return how many are not.

    The table has slot + 1 of the values from `low` on (0: unknown). Its last item is for all values beyond it.
    """
    last = np.uint64(len(table) - 1)
    unknown = np.int64(0)
    for i in range(np.uint64(len(values))):
        slot = table[min(np.uint64(values[i]) - np.uint64(low), last)] - np.int32(1)
        slots[i] = slot
        unknown += slot < 0
    return int(unknown)
