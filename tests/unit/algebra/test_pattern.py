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


def _chain(steps: int) -> Pattern:
    pattern = Pattern.begin("s0")
    for at in range(1, steps):
        pattern = pattern.followed_by(f"s{at}")
    return pattern


def _nested(groups: int) -> Pattern:
    pattern = Pattern.begin("s0")
    for at in range(1, groups):
        pattern = Pattern.begin(pattern).followed_by(f"s{at}")
    return pattern


def _added(terms: int) -> Any:
    value = e.x
    for _ in range(terms):
        value = value + 1
    return value


BOMBS: dict[str, tuple[Callable[[], Any], str]] = {
    "steps": (lambda: _chain(1_001), "1,001 steps; 1,000 is the limit"),
    "groups": (lambda: _nested(400), "more than 200 steps or operators are nested"),
    "terms": (lambda: Pattern.begin("a").where(_added(1_000) > 3), "more than 200 steps or operators are nested"),
    "having": (lambda: Pattern.begin("a").having(_added(1_000) > 3), "more than 200 steps or operators are nested"),
    "count": (lambda: Pattern.begin("a").times(10**9), "more than 10,000 events one by one"),
    "counts": (lambda: Pattern.begin(_chain(2).times(200)).times(200), "more than 10,000 events one by one"),
    "part of an event": (lambda: Pattern.begin("a").times(1.5), "an integer, not 1.5"),  # type: ignore[arg-type]
    "digits": (lambda: Pattern.begin("a").where(e.x > 10**5_000), "at most 1,000 digits"),
    "no number": (lambda: Pattern.begin("a").where(e.x > float("nan")), "nothing compares with NaN"),
    "half a character": (lambda: Pattern.begin("a").where(e.x == "\ud800"), "not Unicode"),
    "name": (lambda: Pattern.begin("\ud800"), "not Unicode"),
    "type": (lambda: Pattern.begin("a").subtype(5), "an event type is a text"),  # type: ignore[arg-type]
    "regular expression": (lambda: Pattern.begin("a").where(e.x.matches("(")), "cannot be read: missing"),
    "days": (lambda: Pattern.begin("a").within("9" * 5_000 + " days"), "is no time"),
    "digit": (lambda: Pattern.begin("a").within("² days"), "is no time"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_pattern_that_is_too_large_is_refused(name: str) -> None:
    build, said = BOMBS[name]
    with pytest.raises(UsageError, match=said):
        build().program()


@pytest.mark.parametrize("duration", [2**63, 10**30, "9999999999999999 days"])
def test_a_window_beyond_64_bits_is_the_longest(duration: Any) -> None:
    events = [{"type": "A", "ts": -(2**61)}, {"type": "B", "ts": 2**61 - 2}]
    pattern = Pattern.begin("a").subtype("A").followed_by("b").subtype("B").within(duration)
    assert len(list(weft.detect(events, pattern))) == 1
