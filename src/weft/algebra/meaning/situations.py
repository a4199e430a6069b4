"""The matches of a situation over a finite stream: all candidates, and what the policies select of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from weft.algebra.contexts import Windows
from weft.algebra.meaning.match import Match, bindings_of
from weft.algebra.meaning.partitions import Partition, absent_windows, key_values, partitions
from weft.algebra.meaning.stream import Happening, Stream, positions_of
from weft.algebra.meaning.values import EventDict, ValueScope, holds, shown
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.situations import Participant, Situation, SituationQuery

Candidate = tuple[Happening | None, ...]  # the event in each slot; in `any` all slots but one are empty


def situation_matches(query: SituationQuery, seen: Stream) -> list[Match]:
    """The matches of a situation, in match order."""
    last = max((event.end for event in seen if not event.is_derived), default=0)
    context = query.situation.context
    if query.situation.kind == "absence":
        matches = [_absence(query, part) for part in _absent(query.situation, seen, last)]
        return sorted(matches, key=lambda m: (m.end, m.start, m.first, m.last))
    parts = partitions(context, seen, last)
    # A set that several partitions select is one match.
    selected = {candidate: part for part in parts for candidate in selected_in(query.situation, part)}
    matches = [_match(query, candidate, selected[candidate]) for candidate in sorted(selected, key=_places)]
    return sorted(matches, key=lambda m: (m.end, m.start, m.positions))


# ---------------------------------------------------------------- when


def selected_in(situation: Situation, part: Partition) -> list[Candidate]:
    """The matching sets of a partition, in the order in which they are selected."""
    selected: list[Candidate] = []
    consumed: set[Happening] = set()
    single = situation.cardinality is Cardinality.SINGLE
    for arrived, new in _moments(situation, part):
        again = True
        while again and not (single and selected):
            chosen = _chosen(situation, _candidates(situation, arrived, consumed, new))
            chosen = chosen[:1] if single else chosen
            gone = {event for candidate in chosen for event in _consumed(situation, candidate)}
            selected += chosen
            consumed |= gone
            again = new is None and bool(gone)
    return selected


def _moments(situation: Situation, part: Partition) -> Iterator[tuple[Sequence[Happening], Happening | None]]:
    """When something is selected: the events that have arrived by then, and the one that must be a member."""
    if situation.evaluation is Evaluation.IMMEDIATE:
        yield from ((part.events[: number + 1], event) for number, event in enumerate(part.events))
    elif part.end is not None:
        yield part.events, None


def _consumed(situation: Situation, candidate: Candidate) -> Iterator[Happening]:
    for slot, event in zip(situation.participants, candidate, strict=True):
        if event is not None and slot.consumption is Consumption.CONSUME:
            yield event


# ---------------------------------------------------------------- candidates


def _candidates(
    situation: Situation, arrived: Sequence[Happening], consumed: set[Happening], new: Happening | None
) -> list[Candidate]:
    """All candidates among what has arrived and is not consumed; with a new event, those it is a member of."""
    views = [_visible(slot, arrived, consumed) for slot in situation.participants]
    return [
        candidate
        for candidate in (_single(views) if situation.kind == "any" else _full(views, situation.kind == "sequence"))
        if (new is None or new in candidate) and satisfies(situation, candidate)
    ]


def _visible(slot: Participant, arrived: Sequence[Happening], consumed: Iterable[Happening]) -> list[Happening]:
    """The events that a slot can hold."""
    existing = [event for event in arrived if event.type == slot.type and is_seen(slot, event)]
    newest = existing[-1:] if slot.repeated is Repeated.OVERRIDE else existing
    return [event for event in newest if event not in consumed]


def is_seen(slot: Participant, event: Happening) -> bool:
    """Whether an event exists for a slot."""
    return all(holds(condition, ValueScope({slot.variable: event.attributes})) for condition in slot.where)


def _full(views: Sequence[Sequence[Happening]], in_sequence: bool) -> list[Candidate]:
    """An event for each slot, all different; in a sequence each before the next."""
    chosen: list[tuple[Happening, ...]] = [()]
    for view in views:
        chosen = [
            (*members, event)
            for members in chosen
            for event in view
            if event not in members and (not in_sequence or not members or members[-1].is_before(event))
        ]
    return list(chosen)


def _single(views: Sequence[Sequence[Happening]]) -> list[Candidate]:
    """Return candidates with an event in one slot, all other slots being empty."""
    return [
        tuple(event if number == other else None for other in range(len(views)))
        for number, view in enumerate(views)
        for event in view
    ]


def satisfies(situation: Situation, candidate: Candidate) -> bool:
    """Whether the assertion holds."""
    scope = ValueScope(read_of(situation, candidate))
    return all(holds(condition, scope) for condition in situation.assertion)


def read_of(situation: Situation, candidate: Candidate) -> dict[str | None, EventDict]:
    """What each variable reads; of an empty slot all attributes are missing."""
    pairs = zip(situation.variables, candidate, strict=True)
    return {variable: {} if event is None else event.attributes for variable, event in pairs}


def _places(candidate: Candidate) -> tuple[tuple[int, int], ...]:
    """Sorts candidates by the places of their members, in declared order; equal ones by slot."""
    return tuple((event.place, slot) for slot, event in enumerate(candidate) if event is not None)


# ---------------------------------------------------------------- which


def _chosen(situation: Situation, candidates: Sequence[Candidate]) -> list[Candidate]:
    """What the policies for repeated types select, in order."""
    choose = _choose_alternatives if situation.kind == "any" else _walk
    return sorted(choose(situation.participants, candidates), key=_places)


def _walk(slots: Sequence[Participant], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Apply the policies slot by slot: `first` and `last` keep the candidates with that event, `every` branches by
    event.
    """
    groups = [list(candidates)] if candidates else []
    for number, slot in enumerate(slots):
        groups = [kept for group in groups for kept in _kept(group, number, slot.repeated)]
    return [candidate for group in groups for candidate in group]


def _kept(group: Sequence[Candidate], number: int, repeated: Repeated) -> list[list[Candidate]]:
    by_place: dict[int, list[Candidate]] = {}
    for candidate in sorted(group, key=_places):
        event = candidate[number]
        assert event is not None
        by_place.setdefault(event.place, []).append(candidate)
    if repeated is Repeated.FIRST:
        return [by_place[min(by_place)]]
    if repeated is Repeated.LAST:
        return [by_place[max(by_place)]]
    return list(by_place.values())


def _choose_alternatives(slots: Sequence[Participant], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Choose in `any`: the earliest in slots under `first`, the latest in slots under `last`, and everything else."""
    by_policy: dict[Repeated, list[Candidate]] = {repeated: [] for repeated in Repeated}
    for candidate in sorted(candidates, key=_places):
        slot = next(slot for slot, event in zip(slots, candidate, strict=True) if event is not None)
        by_policy[slot.repeated].append(candidate)
    ends = [*by_policy[Repeated.FIRST][:1], *by_policy[Repeated.LAST][-1:]]
    return [*ends, *by_policy[Repeated.EVERY], *by_policy[Repeated.OVERRIDE]]


# ---------------------------------------------------------------- matches


def _match(query: SituationQuery, candidate: Candidate, part: Partition) -> Match:
    members = [event for event in candidate if event is not None]
    positions = positions_of(members)
    bound = zip(query.situation.variables, candidate, strict=True)
    start, end = min(event.start for event in members), max(event.end for event in members)
    return Match(
        query=query.name,
        start=start,
        end=end,
        # Sets of absences alone have no positions and are told apart by their times.
        first=min(positions, default=start),
        last=max(positions, default=end),
        positions=positions,
        bindings=bindings_of({variable: [event] for variable, event in bound if event is not None}),
        event=_fields(query, read_of(query.situation, candidate), part),
    )


def _absent(situation: Situation, seen: Stream, last: int) -> Iterable[Partition]:
    """The partitions of an absence."""
    if isinstance(situation.context, Windows):
        return absent_windows(situation.context, seen, last, lambda part: _is_absent(situation, part))
    return (part for part in partitions(situation.context, seen, last) if _is_absent(situation, part))


def _is_absent(situation: Situation, part: Partition) -> bool:
    """Whether the partition closes and had no candidate, whatever the policies."""
    views = [
        [event for event in part.events if event.type == slot.type and is_seen(slot, event)]
        for slot in situation.participants
    ]
    return part.end is not None and not any(satisfies(situation, candidate) for candidate in _single(views))


def _absence(query: SituationQuery, part: Partition) -> Match:
    """A match without events; `first` and `last` tell it apart from other absences at the same time."""
    assert part.end is not None
    return Match(
        query=query.name,
        start=part.start,
        end=part.end,
        first=part.start,
        last=part.origin,
        positions=(),
        bindings={},
        event=_fields(query, {}, part),
        key=part.key,
    )


def _fields(query: SituationQuery, chosen: dict[str | None, EventDict], part: Partition) -> dict[str, object]:
    scope = ValueScope({**chosen, None: key_values(query.situation.context.by, part.key)})
    return {field.name: shown(field.value, scope) for field in query.fields}
