"""The builder says what is wrong where it is written, and programs print shortly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import weft
from weft import Pattern, UsageError, e

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a function": (lambda: Pattern.begin("a").where(lambda event: True), "not a function"),  # type: ignore[arg-type]
    "and": (lambda: (e.x > 1) and (e.y > 2), "write & for and"),
    "none": (lambda: e.x == None, "is_null"),  # noqa: E711
    "two names": (lambda: Pattern.begin("a").next("a"), "two steps are called 'a'"),
    "greedy alone": (lambda: Pattern.begin("a").greedy(), "repeated step"),
    "optional twice": (lambda: Pattern.begin("a").optional().optional(), "optional already"),
    "not after optional": (lambda: Pattern.begin("a").optional().not_next("b"), "two patterns"),
    "not at the end": (lambda: Pattern.begin("a").not_followed_by("b").program(), "within"),
    "until alone": (lambda: Pattern.begin("a").until(e.x > 1), "one_or_more"),
    "no time": (lambda: Pattern.begin("a").within("soon"), "'10 minutes'"),
    "part of a tick": (lambda: Pattern.begin("a").within(timedelta(microseconds=1)).program(), "whole number of ticks"),
    "nothing again and again": (
        lambda: Pattern.begin(Pattern.begin("a").optional()).one_or_more(),
        "every step of the group may be left out",
    ),
    "skip to nothing": (
        lambda: Pattern.begin("a").after_match(weft.AfterMatch.skip_to_last("b")).program(),
        "no step 'b'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(UsageError, match=message):
        make()


def test_a_program_prints_shortly() -> None:
    assert repr(Pattern.begin("a").program("alarm")) == "<pattern program: alarm>"
