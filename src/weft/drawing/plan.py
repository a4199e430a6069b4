"""A plan as boxes and arrows: inputs on the left, operators in between, each once, and queries on the right.

Boxes also show estimates: events per second, the work of operators, and how queries are split among lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from weft.algebra.composites import Composite, CompositeEvent
from weft.algebra.query import AnyQuery, Program
from weft.algebra.situations import SituationQuery
from weft.algebra.text.program import to_text
from weft.algebra.text.situations import context_text
from weft.drawing.layout import Arrow, Box, graph_svg
from weft.drawing.svg import element, escaped, shortened
from weft.optimizer.cost import Costs, resolve_statistics
from weft.plan.operators import AutomatonOp, JoinOp, Plan, RuleOp, SituationOp
from weft.plan.partitioning.choice import AUTO, MANY_LANES
from weft.plan.partitioning.text import strategies
from weft.plan.partitioning.work import operators_of
from weft.plan.text.graph import node_text
from weft.plan.text.plans import atom_text, state_text
from weft.plan.text.rules import shapes_of

MOST_BOXES = 120
EVERY = "every event"
LONGEST = 56  # letters of a line


@dataclass(frozen=True)
class PlanEstimates:
    """What is expected before events come: rates and work, and how each query is shared out, by name."""

    costs: Costs
    shared: Mapping[str, str] = field(default_factory=dict)

    def rate_text(self, type_: str) -> str:
        """Return the rate of a type, or `?` where it is unknown."""
        rate, origin = self.costs.statistics.rate(type_)
        return f"{rate:,.4g}/s" + ("?" if origin == "default" else "")

    def operator_text(self, pattern: Composite) -> str:
        """How often a pattern occurs, and its operator's work."""
        profile = self.costs.profile(pattern)
        return f"{profile.rate:,.4g}/s, work {profile.work:,.4g}/s"

    def query_lines(self, query: AnyQuery) -> list[str]:
        """The work of a query, and its strategy."""
        work = sum(operators_of(query, self.costs).values())
        return [f"work {work:,.4g}/s", *([self.shared[query.name]] if query.name in self.shared else [])]


def expected(program: Program, lanes: int = MANY_LANES) -> PlanEstimates:
    """What is expected of a program as it runs."""
    told = strategies(program, AUTO, lanes)
    return PlanEstimates(
        Costs(resolve_statistics(program)), {program.queries[number].name: text for number, text in told.items()}
    )


def plan_svg(plan: Plan, told: PlanEstimates | None = None) -> str:
    """The plan as SVG; one of very many operators as a sentence."""
    sketch = Sketch(plan, told)
    if not sketch.boxes:
        return ""
    if len(sketch.boxes) > MOST_BOXES:
        text = f"{len(sketch.boxes):,} operators are too many to draw: weft.explain(program) lists them."
        return element("p", escaped(text))
    return graph_svg(sketch.boxes, sketch.arrows, "plan")


class Sketch:
    """The boxes and arrows of a plan."""

    def __init__(self, plan: Plan, told: PlanEstimates | None = None) -> None:
        self._told = told
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self._places: dict[tuple[str, str], int] = {}
        self._defined = {query.defines for query in plan.queries}
        for operator in plan.operators:
            match operator:
                case AutomatonOp():
                    self._draw_automaton(operator)
                case JoinOp():
                    self._draw_graph(operator)
                case SituationOp(_, query):
                    self._draw_situation(query)
                case RuleOp():
                    self._draw_rules(operator)

    def _draw_automaton(self, operator: AutomatonOp) -> None:
        """A box for each event to be read; dashed arrows may skip events."""
        query, automaton = operator.query, operator.automaton
        first = len(self.boxes)
        self.boxes += [_box(_wrapped(atom_text(atom))) for atom in automaton.atoms]
        for source in self._sources(query):
            self.arrows += [Arrow(source, first + number) for number in sorted(automaton.first)]
        for followers, dashed in ((automaton.near, False), (automaton.far, True)):
            for number in range(len(automaton.atoms)):
                self.arrows += [Arrow(first + number, first + after, dashed) for after in sorted(followers[number])]
        conditions = [to_text(condition.predicate).strip() for condition in automaton.conditions]
        target = self._query(query, (*conditions, f"state {state_text(query)}"))
        self.arrows += [Arrow(first + number, target) for number in sorted(automaton.last)]

    def _draw_graph(self, operator: JoinOp) -> None:
        """A box for each operator; those that are shared have two lines."""
        graph = operator.graph
        first = len(self.boxes)
        for number, node in enumerate(graph.nodes):
            kind = "input" if isinstance(node.pattern, CompositeEvent) else "operator"
            lines = [*_wrapped(node_text(graph, number)), *self._expected(node.pattern)]
            self.boxes.append(_box(lines, kind, is_shared=graph.uses[number] > 1))
            self.arrows += [Arrow(first + place, first + number) for place in node.inputs]
        for number, node in enumerate(graph.nodes):
            found = [part for part in node.pattern.walk() if isinstance(part, CompositeEvent)]
            alone = isinstance(
                node.pattern, CompositeEvent
            )  # a box for events of the input; a chain finds its events itself
            types = [part.type for part in found if node.chain is not None or (alone and part.type in self._defined)]
            self.arrows += [Arrow(self._type(type_), first + number) for type_ in dict.fromkeys(types)]
        for output in graph.outputs:
            self.arrows.append(Arrow(first + output.node, self._query(output.query)))

    def _draw_situation(self, query: SituationQuery) -> None:
        situation = query.situation
        slots = ", ".join(f"{slot.type} {slot.variable}" for slot in situation.participants)
        policies = f"{situation.evaluation.value}, {situation.cardinality.value}"
        lines = (*_wrapped(f"{situation.kind}({slots})"), policies, context_text(situation.context))
        number = len(self.boxes)
        self.boxes.append(_box(lines))
        self.arrows += [Arrow(source, number) for source in self._sources(query)]
        self.arrows.append(Arrow(number, self._query(query)))

    def _draw_rules(self, operator: RuleOp) -> None:
        """A box for all rules that differ in constants only."""
        for example, members in shapes_of(operator.rules):
            number = len(self.boxes)
            count = f"{len(members):,} rules" if len(members) > 1 else "rule"
            self.boxes.append(_box((count, f"at {example.terminator.events.type}")))
            for member in members:
                rule = operator.rules[member]
                self.arrows += [Arrow(self._type(type_), number) for type_ in rule.types]
                self.arrows.append(Arrow(number, self._query(rule)))

    def _expected(self, pattern: Composite) -> list[str]:
        if self._told is None:
            return []
        return [
            self._told.rate_text(pattern.type)
            if isinstance(pattern, CompositeEvent)
            else self._told.operator_text(pattern)
        ]

    # -- what is read, and what comes out ---------------------------------------------------------

    def _sources(self, query: AnyQuery) -> Iterator[int]:
        """Where the events of a query come from: the input, as one box, and other queries."""
        types = dict.fromkeys(query.reads)
        own = [type_ for type_ in types if type_ not in self._defined]
        if own or not types:
            yield self._place("input", ", ".join(own) or EVERY, "input")
        yield from (self._type(type_) for type_ in types if type_ in self._defined)

    def _type(self, type_: str) -> int:
        return self._place("query", type_, "output") if type_ in self._defined else self._place("input", type_, "input")

    def _query(self, query: AnyQuery, more: Iterable[str] = ()) -> int:
        number = self._place("query", query.defines, "output")
        told = [] if self._told is None else self._told.query_lines(query)
        lines = (query.defines, *more, *told)
        if len(lines) > 1:
            self.boxes[number] = _box(lines, "output")
        return number

    def _place(self, space: str, name: str, kind: str) -> int:
        if (space, name) not in self._places:
            self._places[space, name] = len(self.boxes)
            rates = [] if self._told is None or kind != "input" else [self._rates(name)]
            self.boxes.append(_box([*_wrapped(name), *rates], kind))
        return self._places[space, name]

    def _rates(self, name: str) -> str:
        assert self._told is not None
        return "" if name == EVERY else ", ".join(self._told.rate_text(type_) for type_ in name.split(", "))


def _box(lines: Iterable[str], kind: str = "operator", *, is_shared: bool = False) -> Box:
    return Box(tuple(shortened(line, LONGEST) for line in lines), kind, is_shared)


def _wrapped(text: str, width: int = 30) -> list[str]:
    """A text in lines that break at spaces; four of them, what is left is in the last."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width and len(lines) < 4:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
