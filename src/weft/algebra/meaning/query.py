"""The matches of one query over a stream: what exists for it, its partitions, its window, consumption, output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite, isinf

from weft.algebra.chains import Skip
from weft.algebra.meaning.chains import floor_after, satisfies
from weft.algebra.meaning.fields import computed, fields_of, variables_shown
from weft.algebra.meaning.functions import is_number
from weft.algebra.meaning.match import Match, bindings_of
from weft.algebra.meaning.selection import Candidate, choose, project
from weft.algebra.meaning.stream import Happening, positions_of
from weft.algebra.meaning.valuations import Fits, valuations
from weft.algebra.meaning.values import attribute_of, family, number_of, worth
from weft.algebra.query import OUTVOTED, Consume, Query, Top, Window

Key = tuple[object, ...]
Exact = int | float | Fraction
Found = tuple[Key, Candidate, Sequence[Happening]]  # with the partition in which it is
Candidates = dict[int, list[Candidate]]  # by the place of the completing event
Homes = dict[int, tuple[Key, list[Happening]]]  # by the place of an event


def query_matches(query: Query, stream: Sequence[Happening]) -> list[Match]:
    """The matches of the query, by completing event."""
    return [match_of(query, candidate, members) for _, candidate, members in kept(query, *gathered(query, stream))]


def gathered(query: Query, stream: Sequence[Happening]) -> tuple[Candidates, Homes]:
    """What the pattern shows, and where each event is: its key, and the events that it stands among."""
    candidates: Candidates = {}
    homes: Homes = {}
    for key, members in divided(query, stream):
        candidates |= _candidates(query, members)
        homes |= {event.place: (key, members) for event in members}
    return candidates, homes


def divided(query: Query, stream: Sequence[Happening]) -> list[tuple[Key, list[Happening]]]:
    """The events that exist for the query, by partition and session."""
    existing = [event for event in stream if exists(event, query.universe) and key_of(event, query) is not None]
    partitions: defaultdict[tuple[int, Key], list[Happening]] = defaultdict(list)
    for stretch, events in enumerate(in_order(existing, query.window)):
        for event in events:
            partitions[stretch, key_of(event, query) or ()].append(event)
    return [
        (key, members)
        for (_, key), events in partitions.items()
        for members in ([events] if query.session is None else _sessions(events, query.session))
    ]


def kept(query: Query, candidates: Candidates, homes: Homes) -> list[Found]:
    """Event by event: what ends there, of the runs that began after the last event that consumed them."""
    consumed: defaultdict[Key, int] = defaultdict(lambda: -1)
    found: list[Found] = []
    for place in sorted(candidates):
        key, members = homes[place]
        scope = key if query.consume is Consume.PARTITION else ()
        alive = [c for c in candidates[place] if members[c.first].place > consumed[scope]]
        chosen = choose(alive, query)
        if chosen and query.consume is not Consume.NONE:
            consumed[scope] = place
        found += ((key, c, members) for c in chosen if not _is_spoilt(query, c, members))
    found = found if query.skip is None else _skip(query.skip, found)
    return found if query.top is None else _top(query.top, found)


def _sessions(events: Sequence[Happening], gap: int) -> list[list[Happening]]:
    """The events, divided where one ends more than the gap after the one before."""
    sessions: list[list[Happening]] = []
    for event in events:
        if not sessions or event.end - sessions[-1][-1].end > gap:
            sessions.append([])
        sessions[-1].append(event)
    return sessions


def _top(top: Top, found: list[Found]) -> list[Found]:
    """The first matches of each span of time, in the order of their values."""
    spans: defaultdict[int, list[tuple[tuple[object, ...], Found]]] = defaultdict(list)
    for one in found:
        _, candidate, members = one
        value = computed(top.value, candidate.valuation, members)
        rank = (0, worth(value) * (1 if top.least else -1)) if is_number(value) else (1, 0)
        end, start = members[candidate.last].end, members[candidate.first].start
        places = [members[index].place for index, _ in candidate.names]
        order = (*rank, end, start, places, sorted(_places(candidate, members).items()))
        spans[end // top.every].append((order, one))
    best = [sorted(ranked, key=lambda pair: pair[0])[: top.count] for ranked in spans.values()]
    return [one for ranked in best for _, one in ranked]


def _is_spoilt(query: Query, candidate: Candidate, members: Sequence[Happening]) -> bool:
    """Whether an event comes after the match, inside its window, that must not."""
    return query.unless is not None and any(
        satisfies(query.unless, event) and fits(query.window, members[candidate.first], event)
        for event in members[candidate.last + 1 :]
    )


def _skip(skip: Skip, found: list[Found]) -> list[Found]:
    """Without the matches that another one, considered before them, skips."""
    floors: defaultdict[Key, int] = defaultdict(lambda: -1)
    kept: list[Found] = []
    for key, candidate, members in sorted(found, key=_order_of_skipping):
        if members[candidate.first].place >= floors[key]:
            kept.append((key, candidate, members))
            places = _places(candidate, members)
            every = sorted({place for bound in places.values() for place in bound})
            floors[key] = max(floors[key], floor_after(skip, every, places.get(skip.variable or "", ())))
    return kept


def _order_of_skipping(found: Found) -> tuple[object, ...]:
    _, candidate, members = found
    places = [members[index].place for index, _ in candidate.names]
    first, last = members[candidate.first].place, members[candidate.last].place
    return first, last, places, sorted(_places(candidate, members).items())


def _places(candidate: Candidate, members: Sequence[Happening]) -> dict[str, tuple[int, ...]]:
    """The places of what each variable is bound to."""
    bound: defaultdict[str, tuple[int, ...]] = defaultdict(tuple)
    for index, names in candidate.names:
        for name in names:
            bound[name] += (members[index].place,)
    return dict(bound)


def _candidates(query: Query, members: Sequence[Happening]) -> Candidates:
    """What the pattern shows inside the window, by the place of the completing event."""
    found = valuations(query.pattern, members, _may_fit(query.window, members))
    inside = [v for v in found if fits(query.window, members[v.start], members[v.end])]
    if query.session is not None:
        inside = [v for v in inside if v.start == 0 and v.end == len(members) - 1]
    by_end: defaultdict[int, list[Candidate]] = defaultdict(list)
    for candidate in project(inside, query.selected, members, variables_shown(query)):
        by_end[members[candidate.last].place].append(candidate)
    return by_end


def exists(event: Happening, universe: tuple[tuple[str, str], ...] | None) -> bool:
    """Whether the event is of a stream and type of the query; an event that names no stream may be of any.

    Derived events are here because the query names their type, and exist.
    """
    return (
        universe is None
        or event.is_derived
        or any(
            event.type == type_name and (stream == "*" or event.stream in (None, stream))
            for stream, type_name in universe
        )
    )


def key_of(event: Happening, query: Query) -> Key | None:
    """The kinds and values of the first attribute present of each part; None when a part has none."""
    key: list[object] = []
    for part in query.partition:
        values = [attribute_of(event.attributes, name) for name in part]
        present = [(family(value), value) for value in values if value is not None]
        if not present:
            return None
        key.append(present[0])
    return tuple(key)


def in_order(events: Sequence[Happening], window: Window | None) -> list[list[Happening]]:
    """Without the events whose window attribute is below one seen before, in whatever partition; in stretches.

    A value that is a jump above all before it (or the first) is doubted until another is as large. When OUTVOTED events
    show that values go on below it, it was wrong: a stretch begins anew with the last of them.
    """
    if window is None or window.attribute is None:
        return [list(events)]
    stretches: list[list[Happening]] = [[]]
    largest: Exact | None = None
    before: Exact | None = None  # the largest value before a doubted one
    is_doubted, against = False, 0
    for event in events:
        number = number_of(event.attributes, window.attribute)
        value = None if number is None else _exact(number)
        if value is not None and largest is not None and value < largest:
            against += is_doubted and (before is None or value >= before)
            if against < OUTVOTED:
                continue
            stretches.append([])
            largest = None
        if value is not None:
            is_doubted, against = _is_jump(value, largest, window.doubts_above), 0
            before, largest = largest, value
        stretches[-1].append(event)
    return stretches


def _is_jump(value: Exact, largest: Exact | None, jump: int | float) -> bool:
    if isinf(jump):
        return False
    return largest is None or _lower(value, jump) > largest


def fits(window: Window | None, first: Happening, last: Happening) -> bool:
    """Whether a run from the first to the last event is inside the window; both bounds are inclusive."""
    if window is None:
        return True
    match window.unit:
        case "events":
            return last.position - window.amount <= first.position
        case "time":
            return last.end - window.amount <= first.start
        case "attribute":
            assert window.attribute is not None
            low = number_of(first.attributes, window.attribute)
            high = number_of(last.attributes, window.attribute)
            return low is not None and high is not None and _lower(_exact(high), window.amount) <= _exact(low)


def _exact(number: int | float | Decimal) -> int | float | Fraction:
    """A number by its exact value, where a float would not do; decimals that are smaller count as floats."""
    if isinstance(number, int):
        return number
    return float(number) if -(2**53) < number < 2**53 or not isfinite(number) else Fraction(number)


def _lower(number: int | float | Fraction, amount: float) -> int | float | Fraction:
    """A number less the amount of a window: integers exactly, whatever their size."""
    if isinstance(number, float) and not isfinite(number):
        return number
    if isinstance(number, int) and amount == int(amount):
        return number - int(amount)
    if -(2**53) < number < 2**53 and amount < 2**53:
        return float(number) - float(amount)
    return Fraction(number) - Fraction(amount)


def _may_fit(window: Window | None, members: Sequence[Happening]) -> Fits:
    """Whether an interval is part of one inside the window. This only saves work: the window is applied at the end."""
    count = len(members)
    fitting: set[tuple[int, int]] = set()
    for first in range(count):
        for last in reversed(range(first, count)):
            if fits(window, members[first], members[last]) or {(first - 1, last), (first, last + 1)} & fitting:
                fitting.add((first, last))
    return lambda first, last: (first, last) in fitting


def match_of(query: Query, candidate: Candidate, members: Sequence[Happening]) -> Match:
    """Return the match that a query emits for a candidate that it keeps."""
    first, last = members[candidate.first], members[candidate.last]
    bound: defaultdict[str, list[Happening]] = defaultdict(list)
    for index, names in candidate.names:
        for name in names:
            bound[name].append(members[index])
    return Match(
        query=query.name,
        start=first.start,
        end=last.end,
        first=first.first,
        last=last.last,
        positions=positions_of(members[index] for index, _ in candidate.names),
        bindings=bindings_of(bound),
        event=fields_of(query, candidate.valuation, members),
        ends_apart=True,
    )
