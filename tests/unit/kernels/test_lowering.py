"""What kernels are compiled to: the same answers as Python gives, for elements of arrays and operators of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from weft.kernels.compiler import KernelCompiler
from weft.kernels.jit import always_inline, device, device_no_refcount
from weft.kernels.memory.sorting import sort


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


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize(("begin", "end"), [(0, 6), (-2, 3), (4, 4), (5, 1)])
def test_ranges(begin: int, end: int, counts: bool) -> None:
    def walk(begin: Any, end: Any) -> Any:
        found, last = 1, -9
        for one in range(end):
            for two in range(begin, one):
                found = found * 3 + two
            last = one
        for down in range(end, begin, -2):
            found = found * 3 + down
        for up in range(begin, 10, 3):
            if up > end:
                break
            found = found * 5 + up
        return found, last

    assert compiled(walk, counts=counts)(begin, end) == walk(begin, end)


@pytest.mark.parametrize(
    ("left", "right"), [(3, 5), (np.int32(-7), 2), (np.uint8(200), np.uint64(7)), (np.uint8(200), -3), (2.5, 7)]
)
def test_the_greater_and_the_less(left: Any, right: Any) -> None:
    def extremes(one: Any, two: Any) -> Any:
        return max(one, two), min(one, two), max(two, 4), min(4, one, two)

    assert compiled(extremes)(left, right) == numba.njit(extremes)(left, right)


def test_a_part_is_compiled_once_whatever_constants_it_is_given() -> None:
    @device_no_refcount
    def nth(values: Any, stride: int, is_last: bool) -> int:
        return int(values[len(values) - stride] if is_last else values[stride])

    def several(values: Any, stride: int) -> Any:
        return nth(values, 1, True), nth(values, 2, False), nth(values, stride, stride > 2)

    assert compiled(several)(np.arange(10, 20), 3) == (19, 12, 17)
    assert len(nth.overloads) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("numbers", [[], [4], [1, 2, 3], [5, 1, 4, 1, -3, 9, 2], list(range(40, 0, -1))])
def test_numbers_are_sorted_where_they_are(numbers: list[int]) -> None:
    def sorted_to(numbers: Any, count: int) -> Any:
        sort(numbers, count)
        return numbers

    given = np.array([*numbers, -99], np.int64)
    assert compiled(sorted_to, counts=True)(given, len(numbers)).tolist() == [*sorted(numbers), -99]


def test_a_spliced_part_of_a_kernel_that_makes_arrays() -> None:
    @always_inline
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


def test_arrays_of_a_kernel_s_own() -> None:
    @device
    def counted(count: int) -> Any:
        found = np.zeros(count, np.uint64)
        for place in range(1, count):
            found[place] = found[place - 1] + np.uint64(place)
        return found

    def several(count: int) -> Any:
        marks, halves, kept = np.zeros(count, np.bool_), np.empty(count, np.float64), np.zeros(0, np.int32)
        for place in range(count):
            marks[place] |= place % 3 == 1
            halves[place] = place / 2
        sums = counted(count)
        for _ in range(1000):  # many are made and given up: nothing of the others may be written to
            sums = counted(count)
            kept = np.empty(count, np.int32)
            for place in range(count):
                kept[place] = place * place
        return marks, halves, kept, sums

    marks, halves, kept, sums = compiled(several, counts=True)(7)
    assert marks.tolist() == [False, True, False, False, True, False, False]
    assert halves.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3]
    assert (kept.tolist(), kept.dtype) == ([0, 1, 4, 9, 16, 25, 36], np.int32)
    assert (sums.tolist(), sums.dtype) == ([0, 1, 3, 6, 10, 15, 21], np.uint64)
    assert [len(made) for made in compiled(several, counts=True)(0)] == [0] * 4


def test_an_array_that_cannot_be() -> None:
    def much(count: int) -> Any:
        return np.empty(count, np.int64)

    with pytest.raises(MemoryError):
        compiled(much, counts=True)(1 << 58)


def test_what_an_exception_says() -> None:
    def checked(values: Any, place: int) -> Any:
        if place >= len(values):
            raise IndexError("there are fewer")
        return values[place]

    assert compiled(checked)(np.arange(4), 3) == 3
    with pytest.raises(IndexError, match="there are fewer"):
        compiled(checked)(np.arange(4), 4)
