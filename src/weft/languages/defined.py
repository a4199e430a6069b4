"""The event types that queries of a program define for each other: what a text may read beside its own declarations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.algebra.definition import Definition
from weft.algebra.query import Program
from weft.errors import Diagnostic, ProgramError, did_you_mean
from weft.languages.conditions import Families
from weft.languages.findings import Findings
from weft.languages.syntax import Name
from weft.schema import Catalog, Kind
from weft.source import SourceText, Span

Fields = Mapping[str, Kind | None]
Compile = Callable[..., tuple[Program, tuple[Diagnostic, ...]]]
Compiled = tuple[Program | None, tuple[Diagnostic, ...]]


@dataclass(frozen=True)
class Defined:
    """The defined types with their fields. While these are not known yet (`is_open`) any type may be one of them."""

    types: Mapping[str, Fields] = field(default_factory=dict)
    is_open: bool = False
    read: frozenset[str] = frozenset()  # the types that queries beside the text read
    declared: frozenset[str] = frozenset()  # the types that programs beside the text declare for the input
    wanted: set[str] = field(default_factory=set)  # the types that were asked for

    def has(self, type_: str) -> bool:
        """Whether a query defines the type, as far as is known."""
        self.wanted.add(type_)
        return self.is_open or type_ in self.types

    def families(self, type_: str, attribute: Name, findings: Findings) -> Families:
        """What a field of a type can be, if one is defined; one that the type does not have is reported."""
        fields = self.types.get(type_)
        if fields is None:
            return None
        if attribute.text not in fields:
            message = f"{type_!r} is defined without a field {attribute.text!r}"
            hint = did_you_mean(attribute.text, fields) or "the query that defines it gives its events no fields"
            findings.error("unknown-attribute", message, attribute.span, hint)
            return None
        kind = fields[attribute.text]
        return None if kind is None else frozenset({kind.family})


NOTHING_DEFINED = Defined()


def defined_by(programs: Sequence[Program]) -> Defined:
    """What programs that run as one define, read and declare."""
    queries = [query for program in programs for query in program.queries]
    return Defined(
        defined_types(queries),
        read=frozenset(type_ for query in queries for type_ in query.reads),
        declared=frozenset(type_.name for program in programs for type_ in program.catalog.all_types()),
    )


def doubts_about(program: Program, given: Catalog, defined: Defined, source: SourceText) -> tuple[Diagnostic, ...]:
    """A warning for each type that the program defines and the input has too, if it is read."""
    read = defined.read.union(*(query.reads for query in program.queries))
    declared = defined.declared.union(
        type_.name for catalog in (program.catalog, given) for type_ in catalog.all_types()
    )
    found: list[Diagnostic] = []
    for type_ in dict.fromkeys(query.defines for query in program.queries):
        if type_ in read and type_ in declared:
            message = f"events of the type {type_!r} are defined here, and declared as events of the input"
            hint = "queries that read it see both; give one of them another name if that is not meant"
            place = place_of(type_, source)
            found.append(Diagnostic("defined-and-declared", message, source, place, hint, severity="warning"))
    return tuple(found)


def place_of(name: str, source: SourceText) -> Span:
    """Where a text first has a name, else where it begins."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source.text)
    return Span(*found.span()) if found else Span(0, 0)


def defined_types(queries: Iterable[Definition]) -> dict[str, dict[str, Kind | None]]:
    """The types that queries define, with all fields that events of each may have."""
    types: dict[str, dict[str, Kind | None]] = {}
    for query in queries:
        fields = types.setdefault(query.defines, {})
        for name, kind in query.field_kinds.items():
            fields[name] = kind if fields.get(name, kind) == kind else None
    return types


def compile_together(texts: Sequence[Compile], beside: Sequence[Program] = ()) -> list[Compiled]:
    """Texts that are one program, with programs beside them: each is compiled with what all of them define.

    A text that is wrong gives no program, and its errors.
    """
    if len(texts) == 1 and not beside:
        return [_compiled(texts[0])]
    first = [_compiled(text, defined=Defined(is_open=True))[0] for text in texts]
    parts = [*beside, *(part for part in first if part is not None)]
    known = defined_by(parts)
    return [_compiled(text, defined=known) for text in texts]


def _compiled(text: Compile, **context: Any) -> Compiled:
    try:
        return text(**context)
    except ProgramError as error:
        return None, error.diagnostics
