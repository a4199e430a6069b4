"""The arguments of public functions as one value."""

from __future__ import annotations

import inspect

import pytest

import weft
from weft import api
from weft.optimizer.pipeline import Choices
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.limits.shedding import Shed
from weft.runtime.options import USUAL, Arrival, EventColumns, FrameOptions, Options, as_columns


def defaults(function: object) -> dict[str, object]:
    """What a function is given where its caller says nothing."""
    assert callable(function)
    return {own.name: own.default for own in inspect.signature(function).parameters.values()}


@pytest.mark.parametrize("function", [api.match, api.detect, api.count, weft.live])
def test_what_is_not_said_is_as_usual_in_all_functions(function: object) -> None:
    assert Options.of(defaults(function)) == USUAL


def test_arguments_are_grouped() -> None:
    given = defaults(api.detect) | {"time": "at", "order": "seq", "key": ["id"], "delay": 5, "max_jump": None}
    given |= {"lanes": 2, "strategy": "key", "optimize": False, "shed": Shed(above=9)}
    found = Options.of(given)
    assert found.columns == EventColumns("at", "type", ("seq",), ("id",))
    assert found.arrival == Arrival(5, max_jump=None)
    assert found.sharing == Sharing("key", 2)
    assert found.choices == Choices(optimize=False)
    assert found.limits.shed == Shed(above=9)


def test_what_only_frames_take_is_told_apart() -> None:
    usual = defaults(api.match)
    assert not FrameOptions.of(usual).asked_for
    assert FrameOptions.of(usual | {"rows": True, "columns": ["id"]}).asked_for == {"rows", "columns"}


def test_one_name_is_a_column() -> None:
    assert as_columns("ts") == ("ts",)
    assert as_columns(["a", "b"]) == ("a", "b")
