"""The occurrences of a composite pattern over a finite stream, by structural recursion, and a query's matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, product

from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.algebra.meaning.conditions import NOTHING, ConditionView, all_hold, alone, value_of
from weft.algebra.meaning.match import Match, bindings_of
from weft.algebra.meaning.occurrences import (
    Occurrence,
    history_key,
    in_processing_order,
    joined,
    later,
    occurrence_of,
)
from weft.algebra.meaning.stream import Stream
from weft.algebra.meaning.values import shown_of


def composite_matches(query: CompositeQuery, stream: Stream) -> list[Match]:
    """One match for each different binding of the query's variables, in processing order."""
    found = {one.bound: one for one in reversed(occurrences(query.pattern, stream))}
    return [_match(query, one) for one in in_processing_order(found.values())]


def _match(query: CompositeQuery, found: Occurrence) -> Match:
    return Match(
        query=query.name,
        start=found.start,
        end=found.end,
        first=min(found.positions, default=found.start),
        last=max(found.positions, default=found.end),
        positions=found.positions,
        bindings=bindings_of(dict(found.bound)),
        event={field.name: value_of(field.value, alone(found)) for field in query.fields} | _all_fields(query, found),
    )


def _all_fields(query: CompositeQuery, found: Occurrence) -> dict[str, object]:
    """The attributes of all events, if the query shows them: those of repeated variables as lists, each with a value
    for every event."""
    fields: dict[str, object] = {}
    for variable in query.variables if query.all_fields else ():
        events = found.of(variable)
        for name in sorted({name for event in events for name in event.shown}):
            values = [shown_of(event.attributes, name) for event in events]
            if any(value is not None for value in values):
                fields[f"{variable}.{name}"] = values if variable in query.repeated else values[-1]
    return fields


def occurrences(pattern: Composite, stream: Stream) -> list[Occurrence]:
    """All occurrences of the pattern, each once, in processing order."""
    return in_processing_order(_occurrences(pattern, stream))


def _occurrences(pattern: Composite, stream: Stream) -> Iterator[Occurrence]:
    match pattern:
        case CompositeEvent(type_, variable, where):
            found = [occurrence_of(event, variable) for event in stream if event.type == type_]
            yield from (one for one in found if all_hold(where, alone(one)))
        case CompositeUnion(left, right):
            yield from occurrences(left, stream)
            yield from occurrences(right, stream)
        case CompositeFilter(inner, where):
            yield from (one for one in occurrences(inner, stream) if all_hold(where, alone(one)))
        case CompositeSequence(left, right):
            rights = occurrences(right, stream)
            for one in occurrences(left, stream):
                yield from _followed(one, [right for right in rights if one.is_before(right)], pattern)
        case Overlap(left, right):
            for pair in product(occurrences(left, stream), occurrences(right, stream)):
                if overlap(*pair) and all_hold(pattern.where, after(*pair)):
                    yield joined(*pair)
        case CompositeRepeat(inner):
            repeated = {"next": _runs, "each": sequences, "longest": longest}[pattern.pick]
            yield from repeated(occurrences(inner, stream), pattern)
        case Without(inner, unwanted):
            others = occurrences(unwanted, stream)
            yield from (c for c in occurrences(inner, stream) if not _is_spoilt(c, others, pattern))
        case After(inner, ticks):
            yield from (later(one, ticks) for one in occurrences(inner, stream))
        case _:
            raise TypeError(f"not a composite pattern: {pattern!r}")


def after(one: Occurrence, other: Occurrence) -> ConditionView:
    """What a condition on two operands sees: both, of which the first came before."""
    both = joined(one, other)
    return ConditionView(now=both, before=one, every=both, whole=both)


def in_run(run: Occurrence, candidate: Occurrence) -> ConditionView:
    """What a condition on a run and a candidate for its next member sees."""
    return ConditionView(now=joined(run, candidate), before=run, every=run, whole=candidate)


# ---------------------------------------------------------------- one after the other


def _followed(left: Occurrence, rights: Sequence[Occurrence], follow: CompositeSequence) -> list[Occurrence]:
    """The left occurrence joined with those that `pick` takes of the right ones it is before."""
    if follow.pick == "next":
        views = {right: after(left, right) for right in rights}
        return [joined(left, right) for right in _successors(views, follow)]
    fitting = [right for right in rights if all_hold(follow.where, after(left, right))]
    return [joined(left, right) for right in (fitting[:1] if follow.pick == "first" else fitting)]


def _successors(
    views: dict[Occurrence, ConditionView], pattern: CompositeSequence | CompositeRepeat
) -> list[Occurrence]:
    """The immediate successors among candidates that come after; `views` says what conditions see of each."""
    for _, group in groupby(sorted(views, key=history_key), history_key):
        deciding = [one for one in group if all_hold(pattern.among, views[one])]
        if deciding:
            return [one for one in deciding if all_hold(pattern.where, views[one])]
    return []


# ---------------------------------------------------------------- repetitions


def _runs(members: Sequence[Occurrence], pattern: CompositeRepeat) -> Iterator[Occurrence]:
    """EQL: every run from every member, each as it grows."""
    wanted = (*pattern.among, *pattern.where)
    new = [one for one in members if all_hold(wanted, ConditionView(one, NOTHING, NOTHING, one))]
    length = 1
    while new:
        yield from new if pattern.lengths.allow(length) else ()
        length += 1
        grown = []
        for run in dict.fromkeys(new):
            views = {one: in_run(run, one) for one in members if run.is_before(one)}
            grown += [joined(run, one) for one in _successors(views, pattern)]
        new = grown


def sequences(members: Sequence[Occurrence], pattern: CompositeRepeat) -> Iterator[Occurrence]:
    """Step's any iteration: the first and last member of every sub-sequence."""
    after = {
        one: [other for other in members if one.is_before(other) and all_hold(pattern.where, in_run(one, other))]
        for one in members
    }
    for first in members:
        reached = [first]
        for length in range(1, len(members) + 1):
            if pattern.lengths.allow(length):
                yield from (ends(first, last) for last in reached)
            reached = list(dict.fromkeys(other for one in reached for other in after[one]))


def longest(members: Sequence[Occurrence], pattern: CompositeRepeat) -> Iterator[Occurrence]:
    """Step's greedy iteration: one run at a time."""
    run: list[Occurrence] = []
    for one in [*members, None]:
        if one is not None and run and _extends(run, one, pattern):
            run.append(one)
            continue
        if pattern.lengths.allow(len(run)):
            yield ends(run[0], run[-1])
        run = [one] if one is not None else []


def _extends(run: Sequence[Occurrence], one: Occurrence, pattern: CompositeRepeat) -> bool:
    return (
        run[-1].is_before(one)
        and pattern.lengths.allow_above(len(run))
        and all_hold(pattern.where, in_run(run[-1], one))
    )


def ends(first: Occurrence, last: Occurrence) -> Occurrence:
    """Return the occurrence that represents a run of Step: its first member joined with its last."""
    return first if first == last else joined(first, last)


# ---------------------------------------------------------------- at the same time, or not at all


def overlap(one: Occurrence, other: Occurrence) -> bool:
    """Whether the intervals share a time and the two share no event; what is made of an event is another one."""
    return one.start <= other.end and other.start <= one.end and not one.events & other.events


def _is_spoilt(one: Occurrence, others: Sequence[Occurrence], pattern: Without) -> bool:
    return any(stands(u, one, pattern.when) and all_hold(pattern.where, after(one, u)) for u in others)


def stands(unwanted: Occurrence, one: Occurrence, when: str) -> bool:
    """Whether the unwanted occurrence stands where it must not."""
    match when:
        case "before":
            return unwanted.is_before(one)
        case "during":
            inside = one.start <= unwanted.start and unwanted.end <= one.end
            return inside and not unwanted.events <= one.events
        case "between":
            (_, first_end), (last_start, _) = one.times[0], one.times[-1]
            return first_end < unwanted.start and unwanted.end < last_start
    raise ValueError(f"not a place: {when!r}")
