"""The brackets in which rewritten sequences run: those that the operators here take least time for.

The optimiser's model counts what operators look at. What they take here is mostly what they write: an occurrence of the
left operand is stored, and joined, once, however many right ones there are. A chain by key writes matches only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from weft.algebra.analysis.renaming import signature
from weft.algebra.composites import Composite, CompositeQuery, Source
from weft.algebra.query import AnyQuery
from weft.optimizer.chains import Shape, is_next
from weft.optimizer.chains import chain_of as sequence_of
from weft.optimizer.chooser import depends_on_order
from weft.optimizer.cost.brackets import MOST_SEARCHED
from weft.optimizer.cost.model import Costs, Operators
from weft.plan.chains import chain_of
from weft.tree import Node

# Nanoseconds, as they were measured on sequences of 3 and 4 operands in all brackets: for an event that becomes an
# occurrence; for one on the left of a sequence, and on its right (of one event, or joined itself); for an event that a
# chain takes, and for each row of a match that it makes; for each event that passes an operator, and a chain.
SOURCE, LEFT, RIGHT, JOINED_RIGHT, TAKEN, MADE = 5.0, 43.0, 10.0, 50.0, 7.5, 15.0
PASSING, PASSING_CHAIN = 3.0, 14.0
WORTH = 1.1  # how many times as much the optimiser's brackets must take for others that are not one chain


def as_run(query: AnyQuery, costs: Callable[[], Costs], shared: frozenset[str] = frozenset()) -> AnyQuery:
    """A query whose sequences, where rewriting gave them other brackets, have those that run fastest.

    Operators with a signature that is `shared` run anyway, for other queries.
    """
    if not isinstance(query, CompositeQuery) or not query.order:
        return query
    return replace(query, pattern=_Choosing(costs(), shared).best(query.pattern))


def shared_signatures(queries: Sequence[AnyQuery], costs: Callable[[], Costs]) -> frozenset[str]:
    """The signatures of operators that several queries have, if any of these was rewritten."""
    composite = [query for query in queries if isinstance(query, CompositeQuery)]
    if len(composite) < 2 or not any(query.order for query in composite):
        return frozenset()
    uses = Counter(text for query in composite for text in costs().operators([query.pattern]))
    return frozenset(text for text, count in uses.items() if count > 1)


def work_of(pattern: Composite, costs: Costs, shared: frozenset[str] = frozenset()) -> float:
    """What a pattern's sequences, and the events that they are made of, take in a second, in nanoseconds."""
    found: dict[str, float] = {}
    _Works(costs.operators([pattern]), passing(pattern, costs)).collect(pattern, found)
    return sum(work for text, work in found.items() if text not in shared)


def passing(pattern: Composite, costs: Costs) -> float:
    """How many events of a pattern's types come in a second."""
    return sum(map(costs.rate, {part.type for part in pattern.walk(Composite) if isinstance(part, Source)}))


class _Works:
    """What the operators of a pattern take, by what is known of them, while so many events pass."""

    def __init__(self, operators: Operators, passing: float) -> None:
        self._operators, self._passing = operators, passing

    def collect(self, node: Composite, found: dict[str, float]) -> str:
        """Put what operators take, by signature, to what was found; a chain is one operator. The node's signature."""
        chain = chain_of(node)
        inside = found if chain is None else {}
        children = [child for child in node.children() if isinstance(child, Composite)]
        below = [self.collect(child, inside) for child in children]
        text = signature(node, below)
        if chain is not None:
            sources = [part for part in node.walk(Composite) if isinstance(part, Source)]
            found[text] = _chain([self._rate(signature(part, ())) for part in sources], self._passing)
        elif isinstance(node, Source):
            found[text] = _source(self._rate(text), self._passing)
        elif is_next(node):
            left, right = map(self._rate, below)
            found[text] = _join(left, right, is_next(node.right), self._passing)
        return text

    def _rate(self, text: str) -> float:
        return self._operators[text][1].rate


def _source(rate: float, passing: float) -> float:
    """What it takes to make so many occurrences of events."""
    return SOURCE * rate + PASSING * passing


def _join(left: float, right: float, is_joined: bool, passing: float) -> float:
    """What a sequence takes, of so many occurrences on either side."""
    return LEFT * left + (JOINED_RIGHT if is_joined else RIGHT) * right + PASSING * passing


def _chain(rates: Sequence[float], passing: float) -> float:
    """What a chain takes, of so many events for each of its steps."""
    return TAKEN * sum(rates) + MADE * (2 * len(rates) - 1) * rates[0] + PASSING_CHAIN * passing


def left_deep(count: int, first: int = 0) -> Shape:
    """Operands one after the other."""
    shape: Shape = first
    for number in range(first + 1, first + count):
        shape = shape, number
    return shape


class _Choosing:
    """One query on its way."""

    def __init__(self, costs: Costs, shared: frozenset[str]) -> None:
        self._costs, self._shared = costs, shared

    def best(self, node: Composite) -> Composite:
        """The form that runs fastest, operands first."""
        if depends_on_order(node):
            return node
        if not is_next(node):
            return node.map_children(self._best_child)
        sequence = sequence_of(node)
        if len(sequence.operands) == 1:
            return node.map_children(self._best_child)
        operands = tuple(self.best(operand) for operand in sequence.operands)
        sequence = sequence.with_operands(operands).spread()
        if not 2 < len(operands) <= MOST_SEARCHED:
            return sequence.as_written()
        shapes = (sequence.shape, left_deep(len(operands)), self._quickest(node, operands))
        forms = [sequence.bracketed(shape) for shape in dict.fromkeys(shapes)]
        works = [work_of(form, self._costs, self._shared) for form in forms]
        best = forms[works.index(min(works))]
        return forms[0] if works[0] <= (WORTH if chain_of(best) is None else 1.0) * min(works) else best

    def _best_child(self, child: Node) -> Node:
        return self.best(child) if isinstance(child, Composite) else child

    def _quickest(self, node: Composite, operands: Sequence[Composite]) -> Shape:
        """The brackets of least work, if nothing but the operands counts."""
        rates, events = [self._costs.profile(operand).rate for operand in operands], passing(node, self._costs)
        is_source = [isinstance(operand, Source) for operand in operands]
        best: dict[tuple[int, int], tuple[float, Shape]] = {}
        for place, rate in enumerate(rates):
            best[place, place] = (_source(rate, events) if is_source[place] else 0.0), place
        for length in range(1, len(operands)):
            for first in range(len(operands) - length):
                last = first + length
                forms: list[tuple[float, Shape]] = []
                for cut in range(first, last):
                    (one, left), (other, right) = best[first, cut], best[cut + 1, last]
                    join = _join(rates[first], rates[cut + 1], cut + 1 < last, events)
                    forms.append((one + other + join, (left, right)))
                if all(is_source[first : last + 1]):
                    forms.append((_chain(rates[first : last + 1], events), left_deep(length + 1, first)))
                best[first, last] = min(forms, key=lambda form: form[0])
        return best[0, len(operands) - 1][1]
