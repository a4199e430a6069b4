"""From CREATE and DECLARE statements, or a schema given with the program, to a catalog of event types."""

from __future__ import annotations

from collections.abc import Mapping

from weft.errors import UsageError, did_you_mean
from weft.languages.ceql import syntax
from weft.languages.findings import Findings
from weft.schema import Catalog, EventType, Kind, Stream

KINDS = {
    "int": Kind.INT,
    "integer": Kind.INT,
    "long": Kind.INT,
    "primary_time": Kind.INT,
    "double": Kind.FLOAT,
    "float": Kind.FLOAT,
    "string": Kind.TEXT,
    "text": Kind.TEXT,
    "boolean": Kind.BOOL,
    "bool": Kind.BOOL,
}

Schema = Catalog | Mapping[str, Mapping[str, str]]


def declared_catalog(program: syntax.Program, findings: Findings) -> Catalog:
    """All that the program declares. Statements may come in any order."""
    declarations = [s for s in program.statements if not isinstance(s, syntax.Query)]
    types: dict[str, EventType] = {}
    for declaration in declarations:
        if isinstance(declaration, syntax.EventDeclaration):
            _refuse_twice(declaration.name, types, "event type", findings)
            types[declaration.name.text] = _event_type(declaration, findings)
    streams: dict[str, Stream] = {}
    for declaration in declarations:
        if isinstance(declaration, syntax.CreateStream | syntax.DeclareStream):
            _refuse_twice(declaration.name, streams, "stream", findings)
            streams[declaration.name.text] = _stream(declaration, types, findings)
        elif isinstance(declaration, syntax.Quarantine):
            findings.warning(
                "quarantine-ignored",
                "CREATE QUARANTINE has no effect here",
                declaration.span,
                "events are put into stream order before a query sees them",
            )
    return Catalog(tuple(streams.values()), tuple(types.values()))


def given_catalog(schema: Schema | None) -> Catalog:
    """The catalog of a schema given beside the program; kinds are those of declarations."""
    if schema is None:
        return Catalog()
    if isinstance(schema, Catalog):
        return schema
    types = []
    for type_name, attributes in schema.items():
        unknown = [f"{name}: {kind}" for name, kind in attributes.items() if str(kind).lower() not in KINDS]
        if unknown:
            raise UsageError(f"schema: {type_name} has kinds that do not exist: {', '.join(unknown)}; use {_kinds()}")
        types.append(EventType(type_name, tuple((name, KINDS[kind.lower()]) for name, kind in attributes.items())))
    return Catalog(types=tuple(types))


def _stream(
    declaration: syntax.CreateStream | syntax.DeclareStream, types: dict[str, EventType], findings: Findings
) -> Stream:
    carried: dict[str, EventType] = {}
    if isinstance(declaration, syntax.CreateStream):
        for event in declaration.events:
            _refuse_twice(event.name, carried, "event type", findings)
            carried[event.name.text] = _event_type(event, findings)
    else:
        for name in declaration.types:
            if name.text not in types:
                message = f"stream {declaration.name.text!r} carries {name.text!r}, which is not declared"
                hint = did_you_mean(name.text, types) or f"declare it: DECLARE EVENT {name.text}(…)"
                findings.error("unknown-type", message, name.span, hint)
            carried[name.text] = types.get(name.text, EventType(name.text))
    return Stream(declaration.name.text, tuple(carried.values()))


def _event_type(declaration: syntax.EventDeclaration, findings: Findings) -> EventType:
    attributes: dict[str, Kind] = {}
    for attribute in declaration.attributes:
        kind = KINDS.get(attribute.kind.text.lower())
        if kind is None:
            message = f"there is no kind {attribute.kind.text!r}"
            near = did_you_mean(attribute.kind.text.lower(), KINDS) or ""
            hint = near if near.startswith("did") else f"kinds are {_kinds()}"
            findings.error("unknown-kind", message, attribute.kind.span, hint)
        _refuse_twice(attribute.name, attributes, "attribute", findings)
        attributes[attribute.name.text] = kind or Kind.TEXT
    return EventType(declaration.name.text, tuple(attributes.items()))


def _refuse_twice(name: syntax.Name, known: Mapping[str, object], what: str, findings: Findings) -> None:
    if name.text in known:
        findings.error("declared-twice", f"{what} {name.text!r} is declared twice", name.span, "remove one of the two")


def _kinds() -> str:
    return "int, double, string, boolean or primary_time"
