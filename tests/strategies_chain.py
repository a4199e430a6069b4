"""Random patterns of the builder, and streams for them."""

from __future__ import annotations

import operator
from typing import Any

from hypothesis import strategies as st
from tests.strategies import with_some_extremes

from weft import AfterMatch, Pattern, e, step
from weft.errors import UsageError
from weft.pattern import Condition
from weft.pattern.builder import taken_by

EventDict = dict[str, object]
TYPES = ("A", "B", "C")


@st.composite
def streams(draw: st.DrawFn, most: int = 9) -> list[EventDict]:
    """Events of few types in time order, some at the same time."""
    time = 0
    events: list[EventDict] = []
    for _ in range(draw(st.integers(0, most))):
        time += draw(st.integers(0, 3))
        attributes = {"x": draw(st.integers(0, 2)), "k": draw(st.sampled_from(["p", "q"]))}
        kept = {name: value for name, value in attributes.items() if draw(st.integers(0, 9))}
        events.append({"type": draw(st.sampled_from(TYPES)), "ts": time, **kept})
    return draw(with_some_extremes(events, "xk"))


CONDITIONS = st.sampled_from([e.x > 0, e.x < 2, e.x == 1, (e.x == 0) | (e.k == "p"), ~(e.x == 2), e.x.is_null()])


@st.composite
def steps(draw: st.DrawFn, pattern: Any, depth: int = 0, names: Any = None) -> Pattern:
    """A pattern with some more steps; those calls that make no sense where they are drawn are left out."""
    names = names if names is not None else iter("abcdefghij")
    count = draw(st.integers(1, 4 - depth))
    for _ in range(count):
        calls = ["next", "followed_by", "followed_by_any", "not_next", "not_followed_by"]
        call = draw(st.sampled_from(calls)) if pattern is not Pattern else "begin"
        grouped = depth == 0 and not call.startswith("not") and draw(st.integers(0, 5)) == 0
        step = draw(steps(Pattern, depth + 1, names)) if grouped else next(names)
        pattern = _tried(pattern, call, step)
        if pattern is Pattern:
            continue
        if not pattern.links[-1].group:
            pattern = pattern.subtype(draw(st.sampled_from(TYPES))) if draw(st.integers(0, 3)) else pattern
            pattern = pattern.where(draw(CONDITIONS)) if draw(st.booleans()) else pattern
        pattern = draw(_repeated(pattern))
    return Pattern.begin(next(names)) if pattern is Pattern else pattern


@st.composite
def _repeated(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    how = draw(st.integers(0, 5))
    if how == 1:
        pattern = _tried(pattern, "one_or_more")
    elif how == 2:
        pattern = _tried(pattern, "times", draw(st.integers(1, 2)))
    elif how == 3:
        pattern = _tried(pattern, "times", *draw(st.sampled_from([(1, 2), (0, 2), (2, 3)])))
    elif how == 4:
        pattern = _tried(pattern, "times_or_more", 2)
    for call in ("optional", "consecutive", "allow_combinations", "greedy"):
        if draw(st.integers(0, 3)) == 0:
            pattern = _tried(pattern, call)
    if draw(st.integers(0, 3)) == 0:
        pattern = _tried(pattern, "until", draw(CONDITIONS))
    return pattern


def _tried(pattern: Any, call: str, *arguments: Any) -> Any:
    try:
        return getattr(pattern, call)(*arguments)
    except UsageError:
        return pattern


@st.composite
def _comparisons(draw: st.DrawFn, names: list[str]) -> Condition:
    """Values of whole steps compared with each other, with each event of a step, or with a constant."""
    one, other = (step(draw(st.sampled_from(names))) for _ in range(2))
    values = [one.x.sum(), one.x.avg(), one.x.min(), one.x.max(), one.x.first(), one.x.last(), one.count()]
    against = [1, 2, other.x, other.x.last(), other.x.max(), other.count() + 1]
    compare = draw(st.sampled_from([operator.lt, operator.ge, operator.eq]))
    compared: Condition = compare(draw(st.sampled_from(values)), draw(st.sampled_from(against)))
    return compared


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """A whole pattern, with or without a time, keys and skipping."""
    pattern = draw(steps(Pattern))
    pattern = pattern.within(draw(st.integers(1, 9))) if draw(st.booleans()) or pattern.links[-1].negated else pattern
    pattern = pattern.by("k") if draw(st.integers(0, 2)) == 0 else pattern
    names = pattern._names()
    taken = taken_by(pattern.links)
    pattern = pattern.having(draw(_comparisons(taken))) if draw(st.integers(0, 2)) == 0 else pattern
    skips = [AfterMatch.skip_to_next(), AfterMatch.skip_past_last_event()]
    skips += [make(name) for name in names for make in (AfterMatch.skip_to_first, AfterMatch.skip_to_last)]
    return pattern.after_match(draw(st.sampled_from(skips))) if draw(st.booleans()) else pattern
