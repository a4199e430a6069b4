"""One situation at work: events in stream order in, matches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from weft.algebra.contexts import Whole, Windows
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.situations import SituationQuery
from weft.runtime.situations.formulas import Attributes, value_of
from weft.runtime.situations.happenings import Happening, tupled
from weft.runtime.situations.partitions import Partition, Partitions
from weft.runtime.situations.search import Chosen, Searcher

Places = tuple[tuple[int, int], ...]  # place and slot of each member
_NOTHING: Attributes = {}


class Match(NamedTuple):
    """A match, and what orders it among those of the same times and positions."""

    start: int
    end: int
    first: int
    last: int
    positions: tuple[int, ...]
    bindings: dict[str, tuple[int, ...]]
    event: dict[str, object]
    rank: tuple[Any, ...]


class Stage:
    """The state of one situation: what waits for its turn, the open partitions, and what they have selected."""

    def __init__(self, query: SituationQuery) -> None:
        self.query = query
        situation = query.situation
        self.searcher = Searcher(situation)
        self.is_absence = situation.kind == "absence"
        self.immediate = situation.evaluation is Evaluation.IMMEDIATE
        self.single = situation.cardinality is Cardinality.SINGLE
        # An absence counts all time since the first event, whatever its type.
        self.needs_all = self.is_absence and isinstance(situation.context, Windows | Whole)
        self.types = situation.types
        self.partitions = Partitions(self.searcher, self.is_absence)
        self.taken = 0  # events that had their turn
        self.time: int | None = None  # all further events end then or later
        self._selected: set[Places] = set()  # by partitions that have closed, while others may select the same
        slots: dict[str | None, int] = {**self.searcher.slots, None: self.searcher.count}
        self._fields = [(field.name, value_of(field.value, slots)) for field in query.fields]
        self._consumes = [slot.consumption is Consumption.CONSUME for slot in situation.participants]
        self._overrides = [slot.repeated is Repeated.OVERRIDE for slot in situation.participants]

    # -- events and time ------------------------------------------------------------------------

    def take(self, event: Happening) -> Iterator[Match]:
        """The matches that an event gives. It must be the next in stream order."""
        if event.type not in self.types and not self.needs_all:
            return
        if self.time is None or event.end > self.time:
            yield from self.pass_time(event.end)
        event = event.at(self.taken)
        self.taken += 1
        own = self.searcher.slots_of(event)
        chosen: dict[Places, tuple[Chosen, Partition]] = {}
        for part in self.partitions.entered(event):
            self._enter(part, event, own, chosen)
        closed = list(self.partitions.closed_by(event))
        opened = self.partitions.reopened_by(event)
        if opened is not None:
            self._enter(opened, event, own, chosen)
        for places, (members, part) in chosen.items():
            yield self._match(members, places, part)
        yield from self._close(closed)

    def pass_time(self, time: int) -> Iterator[Match]:
        """The matches of partitions that close because all further events end at this time or later."""
        if self.time is None or time > self.time:
            self.time = time
            yield from self._close(self.partitions.closed_at(time))

    def finish(self, last: int) -> Iterator[Match]:
        """The matches of the partitions that close with the input, whose last time this is."""
        yield from self._close(self.partitions.closed_last(last))

    @property
    def settled(self) -> int | None:
        """All further matches end then or later; None when nothing is known."""
        situation = self.query.situation
        if self.time is None or self.is_absence or self.immediate:
            return None if self.is_absence and isinstance(situation.context, Whole) else self.time
        oldest, _ = self.partitions.oldest()
        return self.time if oldest is None else min(oldest, self.time)

    # -- selection ------------------------------------------------------------------------------

    def _enter(
        self, part: Partition, event: Happening, own: tuple[int, ...], chosen: dict[Places, tuple[Chosen, Partition]]
    ) -> None:
        if part.taken or not own:
            return
        if self.is_absence:
            part.taken = any(self.searcher.is_candidate(event, slot) for slot in own)
            return
        if part.first_end is None:
            part.first_end, part.first_place = event.end, event.place
        for slot in own:
            if self._overrides[slot]:
                part.slots[slot].clear()
            part.slots[slot].add(event)
        if self.immediate:
            found, _ = self._select(part, event, own)
            chosen.update((_places(members), (members, part)) for members in found)

    def _select(self, part: Partition, new: Happening | None, own: tuple[int, ...]) -> tuple[list[Chosen], bool]:
        """What is selected at one moment, and whether something was consumed."""
        found = self.searcher.select(part.slots, new, own)
        gone = {
            event.place: event
            for members in found
            for consumes, event in zip(self._consumes, members, strict=True)
            if consumes and event is not None
        }
        for event in gone.values():
            for slot in part.slots:
                slot.remove(event)
        if found and self.single:
            part.taken = True
            part.slots = self.partitions.new_slots()
        return found, bool(gone)

    def _close(self, closed: Iterable[Partition]) -> Iterator[Match]:
        for part in closed:
            if self.is_absence:
                if not part.taken:
                    yield self._absence(part)
            elif not self.immediate:
                again = True
                while again and not part.taken:
                    found, again = self._select(part, None, ())
                    for members in found:
                        places = _places(members)
                        if places not in self._selected:
                            self._selected.add(places)
                            yield self._match(members, places, part)
        if self._selected:
            _, place = self.partitions.oldest()
            self._selected = {p for p in self._selected if place is not None and min(p)[0] >= place}

    # -- matches --------------------------------------------------------------------------------

    def _match(self, members: Chosen, places: Places, part: Partition) -> Match:
        present = [event for event in members if event is not None]
        positions = tuple(sorted({position for event in present for position in event.positions}))
        bound = zip(self.query.situation.variables, members, strict=True)
        read = [_NOTHING if event is None else event.attributes for event in members]
        return Match(
            min(event.start for event in present),
            max(event.end for event in present),
            positions[0] if positions else -1,
            positions[-1] if positions else -1,
            positions,
            {variable: event.positions for variable, event in bound if event is not None},
            self._event(read, part),
            (positions, places),
        )

    def _absence(self, part: Partition) -> Match:
        """A match without events; `first` and `last` tell it apart from other absences at the same time."""
        assert part.end is not None
        read = [_NOTHING] * self.searcher.count
        return Match(part.start, part.end, part.start, part.origin, (), {}, self._event(read, part), (part.origin,))

    def _event(self, read: list[Attributes], part: Partition) -> dict[str, object]:
        by = self.query.situation.context.by
        bound = [*read, {name: value for name, (_, value) in zip(by, part.key, strict=True)}]
        return {name: value(bound) for name, value in self._fields}

    # -- state ----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        events: dict[int, Happening] = {}
        parts = self.partitions.to_json(events)
        return {
            "taken": self.taken,
            "time": self.time,
            "selected": sorted(self._selected),
            "partitions": parts,
            "events": [event.to_json() for event in events.values()],
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Go on from `to_json`."""
        self.taken, self.time = saved["taken"], saved["time"]
        self._selected = {tupled(places) for places in saved["selected"]}
        events = [Happening.from_json(values) for values in saved["events"]]
        self.partitions.load(saved["partitions"], {event.place: event for event in events})


def _places(members: Chosen) -> Places:
    """What tells candidates apart, and sorts them by the places of their members, in declared order."""
    return tuple((event.place, slot) for slot, event in enumerate(members) if event is not None)
