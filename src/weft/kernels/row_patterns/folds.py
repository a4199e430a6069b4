"""Running aggregates over the rows of matches, and the first occurrence of each value in a match."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import bare_kernel
from weft.kernels.row_patterns.tables import Int64s, UInt8s

Numbers = Annotated[npt.NDArray[Any], np.int64, np.float64]
ADD_UP, LEAST, GREATEST = range(3)


@bare_kernel
def running(kind: int, values: Numbers, valid: UInt8s, begins: Int64s, out: Numbers) -> None:
    """Aggregate present values from the beginning of each match on (`begins`, and the end of the last)."""
    for m in range(len(begins) - 1):
        is_first = True
        for i in range(begins[m], begins[m + 1]):
            if i > begins[m]:
                out[i] = out[i - 1]
            if valid[i] == 0:
                continue
            value = values[i]
            if is_first:
                out[i] = value
            elif kind == ADD_UP:
                out[i] += value
            elif value < out[i] if kind == LEAST else value > out[i]:
                out[i] = value
            is_first = False


@bare_kernel
def first_occurrences(codes: Int64s, begins: Int64s, seen: Int64s, out: UInt8s) -> None:
    """Mark values that are new in their match; `seen` has a zero for each code."""
    for m in range(len(begins) - 1):
        for i in range(begins[m], begins[m + 1]):
            if seen[codes[i]] != m + 1:
                seen[codes[i]] = m + 1
                out[i] = 1
