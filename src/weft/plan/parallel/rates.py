"""How often things happen at each component of a program (Step, Table 6.1): queries and statistics in, rates out.

Selectivity of conditions is left out, as in the document: only `dur` and `len` count, so rates are the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from weft.algebra.analysis.spans import span_of
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
    composites_in,
)
from weft.algebra.predicates import Comparison
from weft.algebra.query import AnyQuery, Program
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import conjuncts
from weft.optimizer.cost import resolve_statistics
from weft.plan.graph import Graph, build_graph
from weft.statistics import Statistics

Kind = Literal[
    "source",
    "projection",
    "filter",
    "union",
    "exception",
    "conjunction",
    "greedy next",
    "any next",
    "greedy iteration",
    "any iteration",
    "automaton",
    "situation",
    "rules",
]
MOST_MEMBERS = 64  # of a run that nothing bounds


class ComponentStream(NamedTuple):
    """What one component sends another: at which rate, and whether every task of the receiver gets all of it."""

    sender: int
    rate: float
    is_replicated: bool


@dataclass(frozen=True)
class Component:
    """Something that runs in tasks: `rate_in` events come to it in a second, `rate_out` leave it.

    `window` is the greatest duration in ticks that a condition allows, or None.
    """

    kind: Kind
    name: str
    rate_in: float
    rate_out: float
    streams: tuple[ComponentStream, ...] = ()
    window: int | None = None

    @property
    def replicated(self) -> float:
        """The part of the input rate that is sent to every task."""
        return sum(stream.rate for stream in self.streams if stream.is_replicated)


def components_of(program: Program, statistics: Statistics | None = None) -> list[Component]:
    """All components, senders first: a source for each type, the operators, and a projection for each query."""
    known = resolve_statistics(program, statistics)
    made = {query.defines for query in program.queries}
    types = dict.fromkeys(type_ for query in program.queries for type_ in query.reads if type_ not in made)
    found = [Component("source", type_, rate := known.rate(type_).value, rate) for type_ in types]
    places = {type_: place for place, type_ in enumerate(types)}
    composites = composites_in(program.queries)
    if composites:
        found += _graph_components(build_graph(composites), known, places, len(found))
    for query in program.queries:
        if not isinstance(query, CompositeQuery):
            found.append(_whole(query, known, places))
    return found


def _whole(query: AnyQuery, known: Statistics, places: dict[str, int]) -> Component:
    """A query of a language without operators of Step's: one component, whose input is shared out."""
    rates = {type_: known.rate(type_).value for type_ in dict.fromkeys(query.reads)}
    kind: Kind = "automaton"
    if isinstance(query, Rule | SituationQuery):
        kind = "rules" if isinstance(query, Rule) else "situation"
    streams = tuple(ComponentStream(places[type_], rate, False) for type_, rate in rates.items() if type_ in places)
    return Component(kind, query.name, sum(rates.values()), min(rates.values(), default=0.0), streams)


def _graph_components(graph: Graph, known: Statistics, places: dict[str, int], first: int) -> list[Component]:
    found: list[Component] = []
    numbers: list[int] = []  # of the component of each node
    rates: list[float] = []
    for node in graph.nodes:
        if isinstance(node.pattern, CompositeEvent):
            type_ = node.pattern.type
            numbers.append(places.get(type_, -1))
            rates.append(known.rate(type_).value)
            continue
        inputs = [rates[number] for number in node.inputs]
        kind, out = _rate_out(node.pattern, inputs, known)
        copied = _replicated(kind, inputs)
        streams = tuple(
            ComponentStream(numbers[number], rates[number], side in copied)
            for side, number in enumerate(node.inputs)
            if numbers[number] >= 0
        )
        numbers.append(first + len(found))
        rates.append(out)
        name = ", ".join(dict.fromkeys(graph.queries[len(rates) - 1]))
        found.append(Component(kind, name, sum(inputs), out, streams, _window(node.pattern)))
    for output in graph.outputs:
        rate = rates[output.node]
        streams = (ComponentStream(numbers[output.node], rate, False),) if numbers[output.node] >= 0 else ()
        found.append(Component("projection", output.query.name, rate, rate, streams))
    return found


def _rate_out(pattern: Composite, rates: Sequence[float], known: Statistics) -> tuple[Kind, float]:
    """What kind of component an operator is, and the rate of its output by those of its inputs."""
    match pattern:
        case CompositeUnion():
            return "union", sum(rates)
        case Overlap():
            return "conjunction", sum(rates)
        case Without():
            return "exception", rates[0]
        case CompositeSequence(pick="each"):
            window = _window(pattern)
            return "any next", rates[0] * rates[1] * (1.0 if window is None else known.seconds(window))
        case CompositeSequence():
            return "greedy next", rates[0]
        case CompositeRepeat(pick="longest", lengths=lengths):
            # The document divides by what is written after `len >`.
            return "greedy iteration", rates[0] / max(lengths.low - 1, 1)
        case CompositeRepeat(lengths=lengths):
            return "any iteration", rates[0] * (lengths.high or MOST_MEMBERS)
        case CompositeFilter() | After():
            return "filter", rates[0]
    raise TypeError(f"not an operator: {pattern!r}")


def _window(pattern: Composite) -> int | None:
    """The greatest duration as it is written after `dur <` or `dur <=`."""
    if not isinstance(pattern, CompositeSequence | Overlap):
        return None
    among = pattern.among if isinstance(pattern, CompositeSequence) else ()
    tests = [test for test in conjuncts((*pattern.where, *among)) if isinstance(test, Comparison)]
    spans = [(span_of(test, pattern), test.operator in ("<", ">")) for test in tests]
    return min((most + is_below for most, is_below in spans if most is not None), default=None)


def _replicated(kind: Kind, rates: Sequence[float]) -> set[int]:
    """Which of its inputs all tasks of a component get (Step 4.4.1)."""
    match kind:
        case "exception" | "greedy next":
            return {1}
        case "any next" | "conjunction":
            return {0 if rates[0] < rates[1] else 1}
        case "any iteration" | "greedy iteration":
            return {0}
    return set()
