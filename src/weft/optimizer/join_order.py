"""The join order of rewritten sequences and unions: the form that these operators execute fastest.

The documents' model, by which other forms are found, counts the occurrences that operators visit. Here the time depends
mostly on what they write: an occurrence of the left operand is stored, and joined, once, however many right ones there
are. A keyed chain writes only matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from weft.algebra.analysis.keyed_chains import chain_parts
from weft.algebra.analysis.renaming import signature
from weft.algebra.composites import (
    Composite,
    CompositeEvent,
    CompositeQuery,
    CompositeSequence,
    CompositeUnion,
    composites_in,
)
from weft.optimizer.chains import Refusal, Shape, chain_of, is_next, leaves_of
from weft.optimizer.chooser import depends_on_order, with_branches
from weft.optimizer.cost import profiles
from weft.optimizer.cost.brackets import MOST_SEARCHED
from weft.optimizer.cost.model import Costs, Operators
from weft.optimizer.cost.profiles import Profile
from weft.optimizer.invariants import check_query
from weft.optimizer.rules.rebracket_next import rebracket_next
from weft.optimizer.rules.reorder_union import branches_of, reorder_union
from weft.optimizer.rules.spread_key import spread_key
from weft.optimizer.trace import Inequality, QueryTrace, Rewrite
from weft.optimizer.written import Written
from weft.tree import Node

WORTH = 1.1  # how many times as much the written form must take for another: the model is not more exact than that
AS_FAST = "the form that costs least takes the operators here as long"
CHOICE = ""  # stands for the choice of events, of which there is one for all operators, among signatures


class Prices(NamedTuple):
    """Nanoseconds, as `weft bench brackets` fits them to what random patterns take."""

    event: float = 6.9  # of an event that passes, whatever runs
    choice: float = 9.6  # of an event that passes, where occurrences are made of single events
    chain: float = 4.0  # of an event that passes a chain
    source: float = 3.4  # of an occurrence of a single event
    union: float = 9.9  # of one that a union gives out
    left: float = 29.0  # of one on the left of a sequence
    passed: float = 6.1  # of one on its right for which nothing waits
    met: float = 39.0  # of another one, if it is no sequence itself
    met_joined: float = 47.0  # and if it is
    begun: float = 8.8  # of an event with which a chain begins
    taken: float = 19.0  # of one with which it goes on
    made: float = 11.4  # of a row of a chain's match


PRICES = Prices()
Amounts = dict[str, float]  # in a second, of what has a price


def choose_join_order(traced: Sequence[QueryTrace], costs: Costs) -> list[QueryTrace]:
    """The queries, of which those that were rewritten have the form that runs fastest.

    Operators that several queries share run anyway, so that no one of these is charged for them.
    """
    shared = _shared_signatures(traced, costs)
    return [_in_order(one, costs, shared) for one in traced]


def _in_order(one: QueryTrace, costs: Costs, shared: frozenset[str]) -> QueryTrace:
    """One query in the form that runs fastest; without rewrites where that is the form in which it was written."""
    written, query = one.written, one.query
    if not isinstance(query, CompositeQuery) or not isinstance(written, CompositeQuery) or not query.order:
        return one

    def choosing(costs: Costs) -> _Choosing:
        return _Choosing(costs, shared, Written(written.pattern))

    def least(costs: Costs) -> float:
        return work_of([choosing(costs).best(query.pattern)], costs, shared)

    chosen = choosing(costs)
    pattern = chosen.best(query.pattern)
    holds = Inequality(choose_join_order.__name__, lambda costs: work_of([pattern], costs, shared), least)
    found = replace(one, inequalities=(*one.inequalities, holds))
    if pattern == written.pattern:
        refusals = (*one.refusals, Refusal(AS_FAST, parts=(written.pattern,)))
        return replace(found, query=written, cost_after=one.cost_before, rewrites=(), refusals=refusals)
    after = replace(query, pattern=pattern)
    check_query(query, after, choose_join_order.__name__)
    return replace(found, query=after, cost_after=costs.total(pattern), rewrites=(*one.rewrites, *chosen.rewrites))


def _shared_signatures(traced: Sequence[QueryTrace], costs: Costs) -> frozenset[str]:
    """The signatures of operators that several queries have, if any of these was rewritten."""
    composite = composites_in([one.query for one in traced])
    if len(composite) < 2 or not any(query.order for query in composite):
        return frozenset()
    uses = Counter(text for query in composite for text in costs.operators([query.pattern]))
    return frozenset({CHOICE, *(text for text, count in uses.items() if count > 1)})


def work_of(patterns: Sequence[Composite], costs: Costs, shared: frozenset[str] = frozenset()) -> float:
    """What the sequences and unions of patterns, and the events that they are made of, take in a second, in
    nanoseconds; what several have in common once."""
    return sum(_priced(amounts_of(patterns, costs), shared).values())


def amounts_of(patterns: Sequence[Composite], costs: Costs) -> dict[str, Amounts]:
    """What operators do, by signature."""
    works = _Works(costs.operators(patterns), _passing(patterns, costs))
    found: dict[str, Amounts] = {}
    for pattern in patterns:
        works.collect(pattern, found)
    return found


def _passing(patterns: Sequence[Composite], costs: Costs) -> float:
    """How many events pass in a second: those of all types whose rate is known, and the patterns' own."""
    parts = (part for pattern in patterns for part in pattern.walk(Composite))
    own = {part.type for part in parts if isinstance(part, CompositeEvent)}
    return sum(map(costs.rate, own.union(costs.statistics.rates)))


class _Works:
    """The work of a pattern's operators for a number of passing events, from known statistics."""

    def __init__(self, operators: Operators, passing: float) -> None:
        self._operators, self._passing = operators, passing

    def collect(self, node: Composite, found: dict[str, Amounts]) -> str:
        """Add the work of the operators below a node, by signature; a chain is one operator. Return the node's
        signature.
        """
        chain = chain_parts(node)
        inside = found if chain is None else {}
        children = [child for child in node.children() if isinstance(child, Composite)]
        below = [self.collect(child, inside) for child in children]
        text = signature(node, below)
        if chain is not None:
            sources = [part for part in node.walk(Composite) if isinstance(part, CompositeEvent)]
            found[text] = _chain([self._profile(signature(part, ())).rate for part in sources], self._passing)
        elif isinstance(node, CompositeEvent):
            found[CHOICE], found[text] = {"choice": self._passing}, {"source": self._profile(text).rate}
        elif isinstance(node, CompositeUnion):
            found[text] = {"union": self._profile(text).rate}
        elif is_next(node):
            left, right = map(self._profile, below)
            found[text] = _join(left, right, _is_joined(node.right), is_keyed=bool(node.among))
        return text

    def _profile(self, text: str) -> Profile:
        return self._operators[text][1]


def _is_joined(operand: Composite) -> bool:
    return any(isinstance(part, CompositeSequence) for part in operand.walk(Composite))


def _join(left: Profile, right: Profile, is_joined: bool, is_keyed: bool = False) -> Amounts:
    """What a sequence does: right ones are passed over while nothing waits, unless it has a key."""
    met = right.rate if is_keyed else min(left.bursts, right.bursts) * right.burst
    return {"left": left.rate, "met_joined" if is_joined else "met": met, "passed": right.rate - met}


def _chain(rates: Sequence[float], passing: float) -> Amounts:
    """Return the work of a chain from the number of events of each step; none is taken while no partial match is
    pending.
    """
    taken = sum(min(rates[: place + 1]) for place in range(1, len(rates)))
    return {"chain": passing, "begun": rates[0], "taken": taken, "made": (2 * len(rates) - 1) * rates[0]}


def _price(amounts: Amounts) -> float:
    return sum(float(getattr(PRICES, name)) * amount for name, amount in amounts.items())


def _priced(found: Mapping[str, Amounts], shared: Collection[str]) -> dict[str, float]:
    """What operators take, but for those that run anyway."""
    return {text: _price(amounts) for text, amounts in found.items() if text not in shared}


def left_deep(count: int, first: int = 0) -> Shape:
    """Return the left-deep shape over operands in order."""
    shape: Shape = first
    for number in range(first + 1, first + count):
        shape = shape, number
    return shape


class _Choosing:
    """One query on its way."""

    def __init__(self, costs: Costs, shared: frozenset[str], written: Written) -> None:
        self._costs, self._shared, self._written = costs, shared, written
        self.rewrites: list[Rewrite] = []

    def best(self, node: Composite) -> Composite:
        """The form that runs fastest, operands first; as it was written, where another one does not gain enough."""
        if depends_on_order(node):
            return node
        if isinstance(node, CompositeUnion):
            return self._union(node)
        if not is_next(node):
            return node.map_children(self._best_child)
        sequence = chain_of(node)
        if len(sequence.operands) == 1:
            return node.map_children(self._best_child)
        operands = tuple(self.best(operand) for operand in sequence.operands)
        sequence = sequence.with_operands(operands)
        given, sequence = rebracket_next(sequence, sequence.shape), spread_key(sequence)
        given = self._noted("spread_key", given, rebracket_next(sequence, sequence.shape))
        if not 2 < len(operands) <= MOST_SEARCHED:
            return given
        shapes = [sequence.shape, left_deep(len(operands)), self._quickest(node, operands)]
        written = self._written.shape(operands)
        if written is not None and sorted(leaves_of(written)) == list(leaves_of(written)):
            shapes.insert(0, written)
        least = self._least([rebracket_next(sequence, shape) for shape in dict.fromkeys(shapes)])
        return self._noted("rebracket_next", given, least)

    def _best_child(self, child: Node) -> Node:
        return self.best(child) if isinstance(child, Composite) else child

    def _union(self, node: CompositeUnion) -> Composite:
        branches = [self.best(branch) for branch in branches_of(node)]
        whole = with_branches(node, iter(branches))
        written = self._written.shape(branches) if len(branches) <= MOST_SEARCHED else None
        if written is None:
            return whole
        least = self._least([cast(Composite, reorder_union(whole, written)), whole])
        return self._noted("reorder_union", whole, least)

    def _noted(self, rule: str, before: Composite, after: Composite) -> Composite:
        """Note what a rule made of a part, if it changed it, and return that."""
        if before != after:
            self.rewrites.append(Rewrite(rule, before, after, self._costs.total(before), self._costs.total(after)))
        return after

    def _least(self, forms: Sequence[Composite]) -> Composite:
        """Of forms the one of least work; the first, unless what the other does instead takes less by enough."""
        works = [_priced(amounts_of([form], self._costs), self._shared) for form in forms]
        totals = [sum(work.values()) for work in works]
        first, best = works[0], works[totals.index(min(totals))]
        instead = sum(work for text, work in first.items() if text not in best)
        by = sum(work for text, work in best.items() if text not in first)
        return forms[0] if instead <= WORTH * by else forms[totals.index(min(totals))]

    def _quickest(self, node: Composite, operands: Sequence[Composite]) -> Shape:
        """The brackets of least work, if nothing but the operands counts."""
        events = _passing([node], self._costs)
        is_source, is_joined = (
            [isinstance(operand, CompositeEvent) for operand in operands],
            [*map(_is_joined, operands)],
        )
        best: dict[tuple[int, int], tuple[float, Shape, Profile]] = {}
        for place, operand in enumerate(operands):
            profile = self._costs.profile(operand)
            work = _price({"source": profile.rate}) if is_source[place] else 0.0
            best[place, place] = work, place, profile
        for length in range(1, len(operands)):
            for first in range(len(operands) - length):
                last = first + length
                forms: list[tuple[float, Shape, Profile]] = []
                for cut in range(first, last):
                    (one, left, before), (other, right, after) = best[first, cut], best[cut + 1, last]
                    join = _join(before, after, cut + 1 < last or is_joined[last])
                    forms.append((one + other + _price(join), (left, right), profiles.follow(before, after)))
                if all(is_source[first : last + 1]):
                    rates = [best[place, place][2].rate for place in range(first, last + 1)]
                    work = _price(_chain(rates, events))
                    forms.append((work, left_deep(length + 1, first), forms[-1][2]))
                best[first, last] = min(forms, key=lambda form: form[0])
        return best[0, len(operands) - 1][1]
