"""Descriptions of plans: as text, as a drawing (DOT), and as the tables of the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from weft.algebra.composites import CompositeEvent
from weft.algebra.query import Consume, Query, Strategy
from weft.algebra.situations import SituationQuery
from weft.algebra.text.network import network_lines, quoted
from weft.algebra.text.program import to_text
from weft.errors import plural
from weft.plan.atoms import IsStream, IsType
from weft.plan.automaton.cea import Atom
from weft.plan.automaton.conditions import compile_conditions
from weft.plan.automaton.determinize import INITIAL, NOWHERE, UNMARKED, Determinizer
from weft.plan.keyed import KeyedSequence
from weft.plan.operators import AutomatonOp, JoinOp, Layer, PhysicalOp, Plan, RuleOp, SituationOp
from weft.plan.properties import ALL_FIELDS
from weft.plan.search import SituationSearch
from weft.plan.text.graph import graph_dot, graph_lines
from weft.plan.text.rules import rule_set_dot, rule_set_lines
from weft.plan.text.situations import stage_lines
from weft.tree import Node

MOST_STATES = 200  # shown by `tables_text`; the engine itself has no limit
MOST_VARIED = 8  # predicates whose truths are varied one by one


def plan_text(plan: Plan, shared: Iterable[str] = ()) -> str:
    """What runs, from the events read to the matches reported; `shared` are lines on how work is shared out."""
    kinds = "every event" if plan.relevant_types is None else f"types {', '.join(sorted(plan.relevant_types))}"
    lines = [
        "plan",
        f"  read      {_attributes(plan.columns)}",
        f"  keep      {kinds}",
        f"  classify  by {plural(len(_predicates(plan)), 'predicate')}, each evaluated once",
    ]
    lines += shared
    for layer in plan.layers:
        channels = _channels(layer)
        over = f"what comes through {channels}" if channels else "the input"
        lines.append(f"  layer     over {over}{_feeders_text(plan, layer)}")
        for operator in layer.operators:
            lines += (f"    {line}" for line in _operator_lines(plan, operator))
    return "\n".join(lines)


def _channels(layer: Layer) -> str:
    """The numbers of the channels that a layer reads instead of the input."""
    joins = [op.graph for op in layer.operators if isinstance(op, JoinOp)]
    found = {node.received for graph in joins for node in graph.nodes if node.received is not None}
    return f"channel{'s' * (len(found) > 1)} {', '.join(map(str, sorted(found)))}" if found else ""


def _feeders_text(plan: Plan, layer: Layer) -> str:
    names = dict.fromkeys(definer.type for definer in layer.feeders)
    order = ", in stream order" if layer.network else ""
    return f" and what is defined by {', '.join(names)}{order}" if names else ""


def _predicates(plan: Plan) -> set[Node]:
    """What events are classified by."""
    found: set[Node] = set()
    for operator in plan.operators:
        match operator:
            case AutomatonOp():
                found.update(Determinizer(operator.query, operator.automaton).predicates[1:])
            case JoinOp():
                nodes = operator.graph.nodes
                found.update(node.pattern for node in nodes if isinstance(node.pattern, CompositeEvent))
                found.update(part for node in nodes if node.chain is not None for part in node.chain.predicates)
            case SituationOp(way=KeyedSequence(guards=guards)):
                found.update(guards)
            case SituationOp(way=SituationSearch(fills=fills)):
                found.update(fills)
    return found


def _operator_lines(plan: Plan, operator: PhysicalOp) -> Iterator[str]:
    match operator:
        case AutomatonOp(_, query, automaton):
            yield from _query_lines(query, Determinizer(query, automaton))
        case JoinOp(_, graph):
            yield from graph_lines(graph)
        case SituationOp():
            yield from stage_lines(operator, [query.name for query in plan.queries])
        case RuleOp(_, rules):
            yield from rule_set_lines(rules)


def _query_lines(query: Query, automaton: Determinizer) -> Iterator[str]:
    yield f"automaton {query.name}"
    for number, atom in enumerate(automaton.automaton.atoms):
        yield f"  {number}: {atom_text(atom)}{_follow_text(automaton, number)}"
    for number, condition in enumerate(automaton.automaton.conditions):
        when = "for each instance" if condition.scoped else "while enumerating"
        yield f"  condition {number}: {to_text(condition.predicate).strip()}  ({when})"
    if query.strategy not in (Strategy.ALL, Strategy.STRICT):
        yield f"  keep {query.strategy.value} of the matches that end at one event"
    if query.strategy is Strategy.STRICT:
        yield "  only contiguous marks (part of the automaton)"
    if query.limit is not None:
        yield f"  limit {query.limit} per completing event"
    if query.consume is not Consume.NONE:
        whose = "all partitions" if query.consume is Consume.ANY else "the partition"
        yield f"  after a match drop partial runs of {whose}"
    yield f"  state {state_text(query)}"


def state_text(query: Query) -> str:
    """What bounds the state of a query."""
    window = query.window
    if window is None:
        return "grows with the stream: there is no WITHIN"
    unit = {"events": "events", "time": "ticks"}.get(window.unit, f"of [{window.attribute}]")
    return f"bounded by the window of {window.amount} {unit}"


def atom_text(atom: Atom) -> str:
    """An event to be read: the names it is bound to, and what it must satisfy."""
    guard = " and ".join(_predicate_text(part) for part in atom.guard)
    names = ", ".join(sorted(atom.aliases) or atom.own[:1]) or "unmarked"
    return f"{names} <- {guard}"


def _predicate_text(predicate: Node) -> str:
    if isinstance(predicate, IsType):
        return predicate.type
    if isinstance(predicate, IsStream):
        return f"from {predicate.stream}"
    parts = list(predicate.children())
    if any(isinstance(node, IsType) for node in predicate.walk()):
        inner = " and ".join(text for text in map(_predicate_text, parts) if text != "true")
        return f"not ({inner})" if type(predicate).__name__ == "Not" else inner
    return to_text(predicate).strip()


def _follow_text(automaton: Determinizer, number: int) -> str:
    near, far = automaton.automaton.near[number], automaton.automaton.far[number]
    marks = []
    if number in automaton.automaton.first:
        marks.append("starts")
    if near:
        marks.append(f"then at once {', '.join(map(str, sorted(near)))}")
    if far:
        marks.append(f"then {', '.join(map(str, sorted(far)))}")
    if number in automaton.automaton.last:
        marks.append("ends")
    return f"   ({'; '.join(marks)})"


def plan_dot(plan: Plan) -> str:
    """The automata as a drawing: dashed edges may skip events, solid ones may not."""
    lines = ["digraph plan {", "  rankdir=LR", '  node [shape=box, style=rounded, fontname="monospace"]']
    situations = [query for query in plan.queries if isinstance(query, SituationQuery)]
    for operator in plan.operators:
        match operator:
            case AutomatonOp(number, query, automaton):
                lines += _automaton_dot(Determinizer(query, automaton), number)
            case JoinOp(_, graph):
                lines += graph_dot(graph)
            case RuleOp(_, rules):
                lines += rule_set_dot(rules)
    lines += network_lines(situations)
    return "\n".join([*lines, "}"])


def _automaton_dot(automaton: Determinizer, number: int) -> Iterator[str]:
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={quoted(automaton.query.name)}"
    yield f'    q{number} [shape=point, label=""]'
    for atom_number, atom in enumerate(automaton.automaton.atoms):
        ends = ", peripheries=2" if atom_number in automaton.automaton.last else ""
        yield f"    q{number}_{atom_number} [label={quoted(atom_text(atom))}{ends}]"
    for atom_number in sorted(automaton.automaton.first):
        yield f"    q{number} -> q{number}_{atom_number}"
    for atom_number in range(len(automaton.automaton.atoms)):
        for style, followers in (("solid", automaton.automaton.near), ("dashed", automaton.automaton.far)):
            for after in sorted(followers[atom_number]):
                yield f"    q{number}_{atom_number} -> q{number}_{after} [style={style}]"
    yield "  }"


def tables_text(plan: Plan) -> str:
    """Predicates, labels, states and edges of every query, as the kernel will meet them."""
    return "\n\n".join("\n".join(_tables_of(plan, operator)) for operator in plan.operators)


def _tables_of(plan: Plan, operator: PhysicalOp) -> Iterator[str]:
    if isinstance(operator, AutomatonOp):
        return _table_lines(Determinizer(operator.query, operator.automaton))
    return _operator_lines(plan, operator)


def _table_lines(automaton: Determinizer) -> Iterator[str]:
    yield f"tables of {automaton.query.name}"
    yield "  predicates"
    for number, predicate in enumerate(automaton.predicates):
        text = "the event exists" if number == 0 else _predicate_text(predicate)
        yield f"    p{number}: {text}"
    compiled = compile_conditions(automaton.automaton, automaton.labels)
    yield "  labels"
    for number, label in enumerate(automaton.labels):
        slots = f"  slots {list(compiled.label_slots[number])}" if compiled.label_slots[number] else ""
        yield f"    l{number}: {', '.join(label.names) or 'hidden'}{slots}"
    for number, condition in enumerate(compiled.conditions):
        sides = f" {condition.operator} ".join(map(to_text, condition.sides))
        yield f"  condition c{number}: {condition.kind} {sides}"
    yield "  classes (which atoms can read the event)"
    for truths in _possible_truths(automaton):
        automaton.class_of(truths)
    for number, readable in enumerate(automaton.classes[1:], start=1):
        atoms = [atom for atom in range(len(automaton.automaton.atoms)) if readable >> atom & 1]
        yield f"    k{number}: {atoms}"
    yield "  edges"
    yield from _edge_lines(automaton)


def _possible_truths(automaton: Determinizer) -> Iterator[tuple[bool, ...]]:
    """Truths that events can have: at most one type; all combinations of the other predicates if they are few."""
    types = [n for n, p in enumerate(automaton.predicates) if isinstance(p, IsType)]
    others = [n for n in range(1, len(automaton.predicates)) if n not in types]
    sizes = range(len(others) + 1) if len(others) <= MOST_VARIED else (0, 1, len(others))
    chosen = [set(group) for size in sizes for group in combinations(others, size)]
    for type_ in [None, *types]:
        for group in chosen:
            yield tuple(n == 0 or n == type_ or n in group for n in range(len(automaton.predicates)))


def _edge_lines(automaton: Determinizer) -> Iterator[str]:
    state = INITIAL
    while state < min(len(automaton.states), MOST_STATES):
        for class_ in range(1, len(automaton.classes)):
            for edge in automaton.edges(state, class_):
                if edge.label == UNMARKED and edge.target == state and not edge.final:
                    continue
                label = "unmarked" if edge.label == UNMARKED else f"l{edge.label}"
                target = "" if edge.target == NOWHERE else f" -> s{edge.target}"
                yield f"    s{state} k{class_} {label}{target}{'  match' if edge.final else ''}"
        state += 1
    if len(automaton.states) > MOST_STATES:
        yield f"    … more than {MOST_STATES} states"


def _attributes(columns: Sequence[str]) -> str:
    named = [name for name in columns if name != ALL_FIELDS]
    if len(named) < len(columns):
        named.append("and all others, which matches show" if named else "all attributes, which matches show")
    return ", ".join(named) or "no attributes"
