"""What kernels are compiled to does what their Python says: elements from the end, and mistakes in parts of parts."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.errors import LoweringError

from weft.kernels import jit
from weft.kernels.compiler import KernelCompiler


@pytest.fixture(autouse=True)
def _kernels_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "KERNELS", [])
    monkeypatch.setenv("WEFT_CACHE", "")


def test_constants_below_zero_count_from_the_end() -> None:
    def turn(numbers: Any) -> Any:
        numbers[-2] = numbers[-1] + numbers[0]
        return numbers[-3]

    numbers = np.array([1, 2, 3, 4, 5])
    assert jit.bare_kernel(turn)(numbers) == 3
    assert numbers.tolist() == [1, 2, 3, 6, 5]


@jit.device_no_refcount
def _share(whole: int, among: int) -> int:
    return whole // among


@jit.device
def _shares(numbers: Any, among: int) -> int:
    found = np.zeros(1, np.int64)
    for k in range(len(numbers)):
        found[0] += _share(numbers[k], among)
    return int(found[0])


@pytest.mark.parametrize("decorate", [jit.kernel, jit.bare_kernel])
def test_a_mistake_in_a_part_of_a_part_reaches_the_caller(decorate: Any) -> None:
    def share_all(numbers: Any, among: int) -> int:
        return _shares(numbers, among) + 1

    share = decorate(share_all)
    assert share(np.array([4, 6, 9]), 2) == 10
    with pytest.raises(ZeroDivisionError):
        share(np.array([4, 6, 9]), 0)


def test_what_may_be_nothing_is_told_from_nought() -> None:
    @jit.device_no_refcount
    def found(number: int) -> Any:
        return None if number < 0 else number

    def is_there(number: int) -> bool:
        return found(number) is not None

    there = jit.bare_kernel(is_there)
    assert [there(number) for number in (-1, 0, 1)] == [False, True, True]


class Pair(NamedTuple):
    """What kernels are given."""

    numbers: Any
    factor: int


def _scaled(pair: Pair, other: Any, up: bool) -> Any:
    found = np.empty(pair.numbers.size, np.int64)
    for k in range(pair.numbers.size):
        found[k] = pair.numbers[k] * pair.factor + up
    return found, other[0]


def test_what_python_gives_is_taken_and_given_back() -> None:
    scaled, numbers = jit.kernel(_scaled), np.arange(5)
    held = sys.getrefcount(numbers)
    for _ in range(3):
        found, first = scaled(Pair(numbers, 3), np.array([2.5]), True)
        assert (found.tolist(), first) == ([1, 4, 7, 10, 13], 2.5)
    assert sys.getrefcount(numbers) == held


@pytest.mark.parametrize("decorate", [jit.kernel, jit.bare_kernel])
def test_what_a_kernel_cannot_take_is_an_error_and_nothing_is_kept(decorate: Any) -> None:
    def first_of(pair: Pair, other: Any) -> Any:
        return pair.numbers[0] * pair.factor + other[0]

    taken: Any = decorate(first_of)
    numbers, other = np.arange(5), np.array([2.5])
    held = sys.getrefcount(numbers)
    assert taken(Pair(numbers, 3), other) == 2.5
    (entry,) = (one.entry_point for one in taken.overloads.values())
    for wrong in ([], ["x"], [3, 4]):
        with pytest.raises((TypeError, ValueError, IndexError)):
            entry((numbers, *wrong), other)
    with pytest.raises(TypeError):
        entry(Pair(numbers, 3), np.array([2], np.int8))
    assert sys.getrefcount(numbers) == held


def _summed(array: Any) -> Any:
    return np.cumsum(array)


def _doubled(array: Any) -> Any:
    return np.concatenate((array, array))


@pytest.mark.parametrize("ask", [_summed, _doubled])
def test_a_kernel_gives_no_array_to_a_function_that_takes_it_otherwise(ask: Any) -> None:
    with pytest.raises(LoweringError, match="a kernel cannot give arrays to"):
        jit.kernel(ask)(np.arange(3))


def test_ctrl_c_that_was_lost_inside_llvm_is_not_forgotten() -> None:
    def twice(number: int) -> int:
        return 2 * number

    compiled = numba.njit(twice, pipeline_class=KernelCompiler)
    assert compiled(4) == 8
    library = next(iter(compiled.overloads.values())).library
    assert library.serialize_using_object_code()[2][0].startswith(b"\x7fELF")
    library._compiled_object = None  # as it is when the callback that keeps it was interrupted
    with pytest.raises(KeyboardInterrupt):
        library.serialize_using_object_code()
