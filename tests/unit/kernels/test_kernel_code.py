"""What kernels are compiled to does what their Python says: elements from the end, and mistakes in parts of parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.kernels import jit


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


@jit.bare
def _share(whole: int, among: int) -> int:
    return whole // among


@jit.inlined
def _shares(numbers: Any, among: int) -> int:
    found = np.zeros(len(numbers), np.int64)
    for k in range(len(numbers)):
        found[k] = _share(numbers[k], among)
    return int(found.sum())


@pytest.mark.parametrize("decorate", [jit.kernel, jit.bare_kernel])
def test_a_mistake_in_a_part_of_a_part_reaches_the_caller(decorate: Any) -> None:
    def share_all(numbers: Any, among: int) -> int:
        return _shares(numbers, among) + 1

    share = decorate(share_all)
    assert share(np.array([4, 6, 9]), 2) == 10
    with pytest.raises(ZeroDivisionError):
        share(np.array([4, 6, 9]), 0)


def test_what_may_be_nothing_is_told_from_nought() -> None:
    @jit.bare
    def found(number: int) -> Any:
        return None if number < 0 else number

    def is_there(number: int) -> bool:
        return found(number) is not None

    there = jit.bare_kernel(is_there)
    assert [there(number) for number in (-1, 0, 1)] == [False, True, True]
