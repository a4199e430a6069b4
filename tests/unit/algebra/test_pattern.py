"""The builder says what is wrong where it is written, and programs print shortly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import weft
from weft import Pattern, UsageError, e, step

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
    "another step in where": (lambda: Pattern.begin("a").where(e.x > step("a").x), "into having"),
    "the event at hand in having": (lambda: Pattern.begin("a").having(e.x > 1), "use where"),
    "each event of one step": (lambda: Pattern.begin("a").having(step("a").x > 1), "say it by where"),
    "or of comparisons": (
        lambda: Pattern.begin("a").having((step("a").x.sum() > 1) | (step("a").count() > 1)),
        "two patterns",
    ),
    "having of what is not there": (
        lambda: Pattern.begin("a").not_next("b").having(step("b").count() > 1).program(),
        "no events are taken by 'b': having is about a",
    ),
    "having in a group": (
        lambda: Pattern.begin("a").next(Pattern.begin("b").having(step("b").count() > 1)),
        "about the whole pattern",
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


@pytest.mark.parametrize("engine", ["meaning", "local"])
def test_matches_are_chosen_by_the_events_of_their_steps(engine: str) -> None:
    """As FlinkCEP's iterative conditions do, where a step may pass over any event or none."""
    events = [{"type": "A", "ts": ts, "price": price} for ts, price in enumerate([3, 4, 8, 7, 20])]
    rising = Pattern.begin("low").one_or_more().consecutive().next("high")
    pattern = rising.having(step("high").price > step("low").price.sum()).having(step("low").count() >= 2)
    found = [match.bindings for match in weft.detect(events, pattern, engine=engine)]
    assert found == [
        {"low": (0, 1), "high": (2,)},
        {"low": (1, 2, 3), "high": (4,)},
        {"low": (2, 3), "high": (4,)},
    ]
    assert eval(str(pattern), {"Pattern": Pattern, "step": step}) == pattern


def test_a_program_prints_shortly() -> None:
    assert repr(Pattern.begin("a").program("alarm")) == "<pattern program: alarm>"
