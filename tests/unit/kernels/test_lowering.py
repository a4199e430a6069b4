"""What kernels are compiled to: the same answers as Python gives, for elements of arrays and operators of all kinds."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from weft.kernels.compiler import KernelCompiler
from weft.kernels.jit import spliced


def compiled(function: Callable[..., Any], *, counts: bool = False) -> Callable[..., Any]:
    """A function as kernels are compiled; it counts references to arrays, or does not."""
    found: Callable[..., Any] = numba.njit(function, pipeline_class=KernelCompiler, nogil=True, _nrt=counts)
    return found


def turn(values: Any, shift: Any) -> Any:
    """Reads and writes by constants, from both ends, and by variables, which count from the beginning."""
    values[0], values[-1] = values[-1], values[0]
    for place in range(0, len(values), 2):
        values[place] += values[place + 1]
    values[shift] = values[shift + 1] * 2 - values[1]
    return values[2] + values[shift]


@pytest.mark.parametrize(("kind", "counts"), [(np.int64, True), (np.uint8, False), (np.float32, False)])
def test_elements(kind: type[Any], counts: bool) -> None:
    ours, plain = np.arange(3, 11).astype(kind), np.arange(3, 11).astype(kind)
    numbas = numba.njit(turn)
    for shift in (np.int32(3), np.uint8(4)):
        assert compiled(turn, counts=counts)(ours, shift) == numbas(plain, shift)
        assert ours.tolist() == plain.tolist()


def test_truths_and_columns_that_nobody_may_write() -> None:
    def mark(values: Any, marks: Any, least: Any) -> Any:
        found = 0
        for place in range(len(values)):
            marks[place] = values[place] >= least
            if marks[place] and not (place and marks[place - 1]):
                found += 1
        return found

    values = np.array([5, 1, 7, 8, 2, 9])
    values.flags.writeable = False
    marks = np.zeros(6, bool)
    assert compiled(mark)(values, marks, 5) == 3
    assert marks.tolist() == [True, False, True, True, False, True]


@pytest.mark.parametrize(("left", "right"), [(-17, np.int32(5)), (np.uint8(200), -3), (2.5, 7), (6, np.True_)])
def test_operators(left: Any, right: Any) -> None:
    def several(one: Any, two: Any) -> Any:
        total = one + two
        total -= one * two
        return total, one / two, one // two, one % two, one < two, one == two, one >= two, one**2, -one

    assert compiled(several)(left, right) == numba.njit(several)(left, right)


def test_a_spliced_part_of_a_kernel_that_makes_arrays() -> None:
    @spliced
    def swap(values: Any, one: int, other: int) -> bool:
        if values[one] <= values[other]:
            return False
        values[one], values[other] = values[other], values[one]
        return True

    def in_order(values: Any) -> Any:
        made = values.copy()
        changed = True
        while changed:
            changed = False
            for place in range(1, len(made)):
                changed = swap(made, place - 1, place) or changed
        return made

    assert compiled(in_order, counts=True)(np.array([3, 1, 2, 9, 0])).tolist() == [0, 1, 2, 3, 9]


def test_garbage_is_collected_again_afterwards() -> None:
    assert gc.isenabled()
    assert compiled(lambda x: x + 1)(2) == 3
    assert gc.isenabled()
    with pytest.raises(numba.TypingError):
        compiled(lambda x: x.nothing)(2)
    assert gc.isenabled()
