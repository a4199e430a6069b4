"""Prepare the nodes of a graph for execution: views of conditions, the order of occurrences, keys from equalities."""

from __future__ import annotations

from collections.abc import Iterable

from weft.algebra.analysis.binding import always_bound
from weft.algebra.composites import After, Composite, CompositeFilter, CompositeRepeat, CompositeSequence, Without
from weft.algebra.predicates import Attribute, Comparison, Expression, Predicate
from weft.algebra.terms import Previous, conjuncts
from weft.plan.graph import Graph, GraphNode, links_members
from weft.runtime.operators.joins.code import Compiler, View


def operands_of(pattern: Composite) -> tuple[Composite, ...]:
    """Return the operands of a pattern."""
    return tuple(child for child in pattern.children() if isinstance(child, Composite))


def view_of(number: int, node: GraphNode) -> View:
    """Return the view of a node's conditions on its operands, or for a source on itself."""
    inputs = node.inputs or (number,)
    variables = tuple(operand.variables for operand in operands_of(node.pattern) or (node.pattern,))
    kind = "run" if isinstance(node.pattern, CompositeRepeat) else "pair" if len(inputs) == 2 else "alone"
    operands = operands_of(node.pattern)
    return View(kind, inputs, variables, always_bound(operands[0]) if operands else frozenset())  # type: ignore[arg-type]


def start_view(view: View) -> View:
    """Return the view of conditions on the first member of a run."""
    return View("start", view.nodes, view.variables, view.bound)


def order_matters(graph: Graph) -> list[bool]:
    """Return for each node whether the order of its occurrences that end at the same time matters.

    It does for the first of right operands, for longest runs, and for runs of runs, of which only the first with equal
    bindings is reported. Other operators only compare ends, and matches are sorted when they are reported.
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
    """Return the equalities between the two sides, each as (left slot, left column, right slot, right column)."""
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
    """Return the attribute that is read, also from a predecessor that the left operand always binds, or None."""
    match expression:
        case Attribute():
            return expression
        case Previous(attribute) if attribute.variable in always_bound(left):
            return attribute
    return None
