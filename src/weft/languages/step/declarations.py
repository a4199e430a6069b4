"""Step's topology, externals and sinks, checked: what is declared, where events come from, where matches go."""

from __future__ import annotations

from weft.algebra.endpoints import Input, Output
from weft.errors import did_you_mean
from weft.languages.findings import Findings
from weft.languages.step import syntax
from weft.schema import Catalog, EventType, Kind
from weft.source import Span

KINDS = {
    "int": Kind.INT,
    "integer": Kind.INT,
    "real": Kind.FLOAT,
    "string": Kind.TEXT,
    "bool": Kind.BOOL,
    "boolean": Kind.BOOL,
}


def declared_catalog(program: syntax.Program, findings: Findings) -> Catalog:
    """The event types of the externals; names used twice and unknown kinds are reported."""
    if program.topology is None:
        hint = 'begin with its name: topology "Stock quotes"'
        findings.error("no-topology", "a Step program begins with its topology", _beginning(program), hint)
    types: dict[str, EventType] = {}
    for external in program.externals:
        if external.type.text in types:
            hint = "an external is declared once; a pattern may use it several times, with an alias for each"
            findings.error("duplicate-name", f"a second external {external.type.text!r}", external.type.span, hint)
        types[external.type.text] = EventType(external.type.text, _fields(external, findings))
    _check_queries(program, types, findings)
    return Catalog(types=tuple(types.values()))


def inputs_of(program: syntax.Program, findings: Findings) -> tuple[Input, ...]:
    """Return the sources of the externals, in order; each external needs exactly one, with a rate."""
    users: dict[str, str] = {}
    for external in program.externals:
        name = external.type.text
        if external.uri is None:
            hint = f'say where its events come from: external {name}(…) < "{name.lower()}.jsonl" [100.0]'
            findings.error("no-source", f"external {name!r} has no source", external.span, hint)
        elif not external.uri.strip():
            findings.error("no-source", f"the source of {name!r} is empty", external.span)
        elif external.uri in users:
            message = f"{name!r} has the same source as {users[external.uri]!r}"
            hint = f"use {users[external.uri]} under two names in the pattern: {users[external.uri]}/{name}"
            findings.error("shared-source", message, external.span, hint)
        users.setdefault(external.uri or "", name)
        if external.uri is not None and external.rate is None:
            hint = "write the expected events per second behind it, as in [100.0]"
            findings.error("no-rate", f"external {name!r} has no rate", external.span, hint)
        elif external.rate is not None and external.rate < 0:
            findings.error("bad-rate", "a rate cannot be negative", external.span)
    return tuple(
        Input(external.type.text, external.uri, None if external.rate is None else float(external.rate))
        for external in program.externals
    )


def outputs_of(program: syntax.Program, findings: Findings) -> tuple[Output, ...]:
    """The sinks of the queries that have one."""
    outputs = []
    for query in program.queries:
        if query.sink is not None and not query.sink.strip():
            findings.error("no-sink", f"the sink of {query.name.text!r} is empty", query.span, "leave it out")
        elif query.sink is not None:
            outputs.append(Output(query.name.text, query.sink))
    return tuple(outputs)


def _fields(external: syntax.External, findings: Findings) -> tuple[tuple[str, Kind], ...]:
    fields: dict[str, Kind] = {}
    for field in external.fields:
        kind = KINDS.get(field.kind.text)
        if kind is None:
            near = did_you_mean(field.kind.text.lower(), KINDS) or ""
            hint = near if near.startswith("did") else "kinds are int, real, string and bool"
            findings.error("unknown-kind", f"there is no kind {field.kind.text!r}", field.kind.span, hint)
        if field.name.text in fields:
            message = f"{external.type.text!r} has a second field {field.name.text!r}"
            findings.error("duplicate-name", message, field.name.span)
        fields[field.name.text] = kind or Kind.TEXT
    return tuple(fields.items())


def _check_queries(program: syntax.Program, types: dict[str, EventType], findings: Findings) -> None:
    if not program.queries:
        hint = 'a query looks like this: Pairs(*): A/A1 ;[A1.id = A2.id] A/A2 > "pairs.jsonl"'
        findings.error("no-query", "there is no query in this text", _beginning(program), hint)
    taken: set[str] = set()
    for query in program.queries:
        name = query.name.text
        if name in types:
            findings.error("duplicate-name", f"{name!r} is an external already", query.name.span, "rename the query")
        elif name in taken:
            findings.error("duplicate-name", f"two queries are called {name!r}", query.name.span, "rename one of them")
        taken.add(name)


def _beginning(program: syntax.Program) -> Span:
    return Span(program.span.start, program.span.start)
