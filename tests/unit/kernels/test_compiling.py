"""A word to the user when kernels are compiled for a while; none when they come from the cache."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numba
import pytest

from weft.kernels import compiling


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was said."""
    monkeypatch.setattr(compiling, "REPORT_COMPILING_AFTER_S", 0.0)
    words: list[str] = []
    end = compiling.when_compiling(lambda: words.append("compiling"))
    yield words
    end()


def test_it_is_said_once(told: list[str]) -> None:
    for number in (1, 2):
        numba.njit(lambda x, y=number: x + y)(3)
    deadline = time.monotonic() + 5
    while not told and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told == ["compiling"]


def test_nothing_is_said_when_nothing_is_compiled(told: list[str]) -> None:
    assert told == []


def test_nothing_is_said_of_what_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    monkeypatch.setattr(compiling, "REPORT_COMPILING_AFTER_S", 60.0)
    numba.njit(lambda x: x + 5)(3)
    assert told == []
