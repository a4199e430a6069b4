"""The network that a program's situations form: who feeds whom, and the picture of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.algebra.situations import Situation, SituationQuery
from weft.algebra.text.program import expression_text
from weft.algebra.text.situations import context_text


@dataclass(frozen=True)
class NetworkLink:
    """Events of a type go from a situation (None: from the input) to another; `number` is its place in the program."""

    source: int | None
    type: str
    target: int


def links(queries: Sequence[SituationQuery]) -> tuple[NetworkLink, ...]:
    """The links of a network, by target and type. A situation receives what is derived before it in the program."""
    found: list[NetworkLink] = []
    for target, query in enumerate(queries):
        for type_ in sorted(query.situation.types):
            makers = [number for number, maker in enumerate(queries[:target]) if maker.name == type_]
            sources: Sequence[int | None] = makers or [None]
            found += [NetworkLink(source, type_, target) for source in sources]
    return tuple(found)


def network_lines(queries: Sequence[SituationQuery]) -> Iterator[str]:
    """Yield the network as nodes and edges for Graphviz: input types, situations, and the types passed between them."""
    linked = links(queries)
    for type_ in sorted({link.type for link in linked if link.source is None}):
        yield f"  {quoted('input ' + type_)} [label={quoted(type_)}, shape=plaintext]"
    for number, query in enumerate(queries):
        yield f"  s{number} [shape=box, label={quoted(_label(query))}]"
    for link in linked:
        source = quoted("input " + link.type) if link.source is None else f"s{link.source}"
        yield f"  {source} -> s{link.target}{_edge(link, queries[link.target].situation)}"


def _label(query: SituationQuery) -> str:
    situation = query.situation
    slots = ", ".join(f"{slot.type} {slot.variable}" for slot in situation.participants)
    policies = f"{situation.evaluation.value}, {situation.cardinality.value}"
    return f"{query.name}\n{situation.kind}({slots})\n{policies}\n{context_text(situation.context)}"


def _edge(link: NetworkLink, target: Situation) -> str:
    """An edge with the filter it passes through, dashed for events that only open or close partitions."""
    slots = [slot for slot in target.participants if slot.type == link.type]
    filters = " | ".join(" AND ".join(map(expression_text, slot.where)) for slot in slots if slot.where)
    if filters:
        return f" [label={quoted(filters)}]"
    return "" if slots else " [style=dashed]"


def quoted(text: str) -> str:
    """A text as Graphviz takes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
