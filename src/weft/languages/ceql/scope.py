"""What a query can speak of: the streams, event types and attributes that its FROM clause offers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from weft.errors import did_you_mean
from weft.languages.ceql import syntax
from weft.languages.defined import NOTHING_DEFINED, Defined
from weft.languages.findings import Findings
from weft.schema import Catalog, EventType, Kind

ANY_STREAM = "*"
NOTHING_DECLARED = Catalog()

# Attributes every event may have without a declaration (the input format gives them).
IMPLICIT = {"stream": Kind.TEXT, "type": Kind.TEXT, "ts": Kind.INT, "start": Kind.INT, "end": Kind.INT}

Occurrence = tuple[str | None, str]  # an event in a pattern: its stream, if named, and its type
Bindings = Mapping[str, frozenset[Occurrence]]  # variable -> the events of the pattern that are bound to it


@dataclass(frozen=True)
class CeqlScope:
    """The declared (stream, type) pairs of a query's FROM clause. None: nothing is declared or can be checked."""

    offered: tuple[tuple[str, EventType], ...] | None
    restricts: bool = True  # only what is offered exists; False for a schema that serves checks alone
    catalog: Catalog = NOTHING_DECLARED  # all that is declared, in FROM or not
    defined: Defined = NOTHING_DEFINED  # by other queries

    @cached_property
    def streams(self) -> frozenset[str]:
        """The streams in the scope."""
        return frozenset(stream for stream, _ in self.offered or () if stream != ANY_STREAM)

    @cached_property
    def type_names(self) -> frozenset[str]:
        """The types in the scope."""
        return frozenset(type_.name for _, type_ in self.offered or ())

    @cached_property
    def universe(self) -> tuple[tuple[str, str], ...] | None:
        """The scope as the algebra spells it."""
        if self.offered is None or not self.restricts:
            return None
        return tuple(dict.fromkeys((stream, type_.name) for stream, type_ in self.offered))

    def types(self, occurrence: Occurrence) -> list[EventType]:
        """The declared types an event of the pattern can be of."""
        stream, name = occurrence
        return [
            type_
            for from_stream, type_ in self.offered or ()
            if type_.name == name and (stream is None or from_stream in (stream, ANY_STREAM))
        ]

    def has(self, occurrence: Occurrence) -> bool:
        """Whether there may be events of the type, in the stream if one is named."""
        return self.offered is None or bool(self.types(occurrence)) or self.defined.has(occurrence[1])

    def only_stream_with(self, type_name: str) -> str | None:
        """The stream that carries the type, when there is one only."""
        carriers = {stream for stream, type_ in self.offered or () if type_.name == type_name}
        return carriers.pop() if len(carriers) == 1 else None

    def hint_for_type(self, occurrence: Occurrence) -> str | None:
        """What may have been meant by a type that is not in the scope."""
        stream, name = occurrence
        carriers = [s.name for s in self.catalog.streams if s.type_named(name) is not None]
        if carriers:
            return f"it is carried by {' and '.join(carriers)}" + ("" if stream else ", which FROM does not name")
        if any(type_.name == name for type_ in self.catalog.types):
            return f"it is declared, but no stream carries it: DECLARE STREAM S({name}, …)"
        return did_you_mean(name, [*self.type_names, *self.defined.types])

    def kinds(self, occurrences: Iterable[Occurrence], attribute: str) -> frozenset[Kind] | None:
        """The kinds an attribute of these events can have; empty: none has it; None: not known."""
        found: set[Kind] = set()
        for occurrence in occurrences:
            own = self._kinds_of(occurrence, attribute)
            if own is None:
                return None
            found |= own
        return frozenset(found)

    def _kinds_of(self, occurrence: Occurrence, attribute: str) -> frozenset[Kind] | None:
        """The same of one event: of a type that is declared, or that another query defines, or both."""
        types, fields = self.types(occurrence), self.defined.types.get(occurrence[1])
        if fields is None:
            is_unknown = self.offered is None or (self.defined.is_open and not types)
            return None if is_unknown else self._kinds_in(types, attribute)
        declared = self._kinds_in(types, attribute) if types else frozenset()
        if attribute not in fields:
            return declared
        kind = fields[attribute]
        return None if kind is None else declared | {kind}

    def kinds_anywhere(self, attribute: str) -> frozenset[Kind] | None:
        """The kinds an attribute of any event in the scope can have, like `kinds`."""
        if self.offered is None or any(attribute in fields for fields in self.defined.types.values()):
            return None
        return self._kinds_in((type_ for _, type_ in self.offered), attribute)

    def attributes(self, occurrences: Iterable[Occurrence] | None = None) -> set[str]:
        """The attributes of these events, or of all in the scope."""
        found = self.offered or ()
        types = [t for _, t in found] if occurrences is None else [t for o in occurrences for t in self.types(o)]
        names = {name for type_ in types for name, _ in type_.attributes}
        return names.union(*(self.defined.types.get(name, ()) for _, name in occurrences or ()))

    @staticmethod
    def _kinds_in(types: Iterable[EventType], attribute: str) -> frozenset[Kind]:
        found = {kind for type_ in types for name, kind in type_.attributes if name == attribute}
        if not found and attribute in IMPLICIT:
            found.add(IMPLICIT[attribute])
        return frozenset(found)


def scope_of(
    streams: tuple[syntax.Name, ...],
    catalog: Catalog,
    *,
    declared: bool,
    findings: Findings,
    defined: Defined = NOTHING_DEFINED,
) -> CeqlScope:
    """The scope of a FROM clause; streams that are not declared are reported.

    `declared`: the catalog is the program's own, and not a schema given beside it.
    """
    if not catalog.streams and not (declared and streams):
        types = tuple((ANY_STREAM, type_) for type_ in catalog.types)
        return CeqlScope(types or None, restricts=declared, catalog=catalog, defined=defined)
    chosen = []
    for name in streams:
        stream = catalog.stream_named(name.text)
        if stream is None:
            known = [s.name for s in catalog.streams]
            hint = did_you_mean(name.text, known) or f"declare it: DECLARE STREAM {name.text}(…)"
            findings.error("unknown-stream", f"there is no stream {name.text!r}", name.span, hint)
        else:
            chosen.append(stream)
    if len(chosen) < len(streams):
        return CeqlScope(None, defined=defined)  # what it would have offered is not known: report no follow-on mistakes
    offered = tuple((stream.name, type_) for stream in chosen or catalog.streams for type_ in stream.types)
    return CeqlScope(offered, restricts=declared, catalog=catalog, defined=defined)
