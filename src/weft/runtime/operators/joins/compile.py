"""From a graph to operators: every condition as code, every equality as a key, every bound of time as a limit."""

from __future__ import annotations

from collections.abc import Iterable

from weft.algebra.analysis.binding import always_bound
from weft.algebra.composites import After, Composite, CompositeFilter, CompositeRepeat, CompositeSequence, Without
from weft.algebra.predicates import Attribute, Comparison, Expression, Predicate
from weft.algebra.terms import Previous, conjuncts
from weft.plan.graph import Graph, GraphNode, links_members
from weft.runtime.operators.joins.code import Compiler, View


def operands_of(pattern: Composite) -> tuple[Composite, ...]:
    """The operands of a pattern, with the names it calls their variables."""
    return tuple(child for child in pattern.children() if isinstance(child, Composite))


def view_of(number: int, node: GraphNode) -> View:
    """What the conditions of a node see of its operands (for a source: of itself)."""
    inputs = node.inputs or (number,)
    variables = tuple(operand.variables for operand in operands_of(node.pattern) or (node.pattern,))
    kind = "run" if isinstance(node.pattern, CompositeRepeat) else "pair" if len(inputs) == 2 else "alone"
    operands = operands_of(node.pattern)
    return View(kind, inputs, variables, always_bound(operands[0]) if operands else frozenset())  # type: ignore[arg-type]


def start_view(view: View) -> View:
    """What the conditions see of the first member of a run."""
    return View("start", view.nodes, view.variables, view.bound)


def order_matters(graph: Graph) -> list[bool]:
    """For each node whether someone depends on the order of occurrences that end at the same time.

    The first of right operands and the longest runs do; so do runs of runs, of which only the first of equal
    bindings is reported. Others look at ends only, and matches are sorted when they are reported.
    """
    matters = [False] * len(graph.nodes)
    for output in graph.outputs:
        matters[output.node] |= any(isinstance(node, CompositeRepeat) for node in output.query.pattern.walk())
    for number in reversed(range(len(graph.nodes))):
        pattern, inputs = graph.nodes[number].pattern, graph.nodes[number].inputs
        if graph.nodes[number].received is not None:
            continue
        if graph.nodes[number].since is not None:
            matters[inputs[0]] |= matters[number]
        elif isinstance(pattern, CompositeSequence) and pattern.pick == "first":
            matters[inputs[1]] = True
        elif isinstance(pattern, CompositeRepeat):
            matters[inputs[0]] |= pattern.pick == "longest" or matters[number]
        elif inputs and isinstance(pattern, CompositeFilter | After | Without):
            matters[inputs[0]] |= matters[number]
    return matters


# ---------------------------------------------------------------- keys


def key_columns(
    pattern: Composite, tests: Iterable[Predicate], operands: tuple[Composite, ...], view: View, compiler: Compiler
) -> list[int]:
    """Equalities between the two sides, as (left slot, left column, right slot, right column) each."""
    key: list[int] = []
    for test in conjuncts(tests):
        pair = (
            links_members(test, always_bound(operands[0]))
            if isinstance(pattern, CompositeRepeat)
            else _equated(test, operands)
        )
        if pair is not None:
            left, right = pair
            key += (*compiler.operand(left, view), *compiler.operand(right, view))
    return key


def _equated(test: Predicate, operands: tuple[Composite, ...]) -> tuple[Attribute, Attribute] | None:
    left, right = operands
    match test:
        case Comparison("=", one, other):
            first, second = _plain(one, left), _plain(other, left)
            if first and first.variable in left.variables and second and second.variable in right.variables:
                return first, second
            if second and second.variable in left.variables and first and first.variable in right.variables:
                return second, first
    return None


def _plain(expression: Expression, left: Composite) -> Attribute | None:
    """The attribute that is read; that of what came before is the left one's, if it always has it."""
    match expression:
        case Attribute():
            return expression
        case Previous(attribute) if attribute.variable in always_bound(left):
            return attribute
    return None
