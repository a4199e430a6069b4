"""Choose the cheapest form of a composite pattern: rules generate other forms, whose costs are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from weft.algebra.analysis.renaming import canonical
from weft.algebra.composites import Composite, CompositeRepeat, CompositeSequence, CompositeUnion, Overlap, Without
from weft.algebra.terms import mentioned
from weft.optimizer.chains import OperandChain, Refusal, Shape, chain_of, is_next
from weft.optimizer.cost.brackets import MOST_SEARCHED, best_brackets
from weft.optimizer.cost.branches import best_union, best_union_in_order
from weft.optimizer.cost.joins import best_joins
from weft.optimizer.cost.model import Costs
from weft.optimizer.cost.selectivity import Selectivity
from weft.optimizer.invariants import check_unchanged
from weft.optimizer.joins import joins_of
from weft.optimizer.keys import key_name
from weft.optimizer.rules.lift_plain_conditions import lift_plain_conditions
from weft.optimizer.rules.order_overlap import order_overlap
from weft.optimizer.rules.rebracket_each import rebracket_each
from weft.optimizer.rules.rebracket_next import rebracket_next
from weft.optimizer.rules.reorder_union import branches_of, reorder_union
from weft.optimizer.rules.spread_key import spread_key
from weft.optimizer.trace import Inequality, Rewrite
from weft.tree import Node

SAME = 1 + 1e-9  # costs that differ by less are equal


@dataclass(frozen=True)
class Choice:
    """The chosen form, the steps to it, the refusals, and the comparisons it rests on."""

    pattern: Composite
    rewrites: tuple[Rewrite, ...]
    refusals: tuple[Refusal, ...]
    inequalities: tuple[Inequality, ...]


def choose(pattern: Composite, costs: Costs) -> Choice:
    """The cheapest form of a pattern that can be reached by rules."""
    choosing = _Choosing(costs)
    best = choosing.best(pattern, ordered=False)
    check_unchanged(pattern, best, "the optimiser")  # what is put together without a rule, too
    refusals = tuple(dict.fromkeys(choosing.refusals))
    return Choice(best, tuple(choosing.rewrites), refusals, tuple(choosing.inequalities))


class _Choosing:
    """One pattern on its way. `ordered`: someone above tells equal times apart by the order of occurrences."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.rewrites: list[Rewrite] = []
        self.refusals: list[Refusal] = []
        self.inequalities: list[Inequality] = []

    def best(self, node: Composite, ordered: bool) -> Composite:
        """The best form of a pattern, operands first."""
        if is_next(node):
            return self._next(node, ordered)
        if isinstance(node, CompositeUnion):
            return self._union(node, ordered)
        if isinstance(node, Overlap):
            return self._overlap(node, ordered)
        if isinstance(node, CompositeSequence) and node.pick == "each":
            return self._each(node, ordered)
        if isinstance(node, CompositeSequence) and any(
            isinstance(side, CompositeSequence) for side in (node.left, node.right)
        ):
            reason = "Step's ; takes the first in processing order, which brackets would change"
            self.refusals.append(Refusal(reason, parts=(node,)))
        return self._operands(node, ordered)

    def _operands(self, node: Composite, ordered: bool) -> Composite:
        inside = ordered or depends_on_order(node)

        def better(child: Node) -> Node:
            unwanted = isinstance(node, Without) and child is node.unwanted  # only whether there is one matters
            return self.best(child, inside and not unwanted) if isinstance(child, Composite) else child

        return node.map_children(better)

    # ---------------------------------------------------------------- next

    def _next(self, node: CompositeSequence, ordered: bool) -> Composite:
        chain = chain_of(node)
        if is_next(node.left) or is_next(node.right):
            self.refusals += chain.refusals
        if len(chain.operands) < 3 or ordered:
            return self._operands(node, ordered)
        operands = tuple(self.best(operand, ordered) for operand in chain.operands)
        before, chain = chain, chain.with_operands(operands)
        if len(operands) > MOST_SEARCHED:
            return rebracket_next(chain, chain.shape)
        spread = spread_key(chain)
        shape = _best_next(spread, self._costs)
        is_same = all(one is other for one, other in zip(operands, before.operands, strict=True))
        written = node if is_same else rebracket_next(chain, chain.shape)
        steps: list[tuple[str, Composite]] = []
        tied = rebracket_next(spread, chain.shape)
        if set(spread.among) != set(chain.among):
            steps.append(("spread_key", tied))
        if shape != chain.shape:
            lifted = lift_plain_conditions(spread)
            if lifted != tied:
                steps.append(("lift_plain_conditions", lifted))
            steps.append(("rebracket_next", rebracket_next(spread, shape)))
        now = self._taken(written, steps)
        return self._compared("rebracket_next", now, lambda costs: rebracket_next(spread, _best_next(spread, costs)))

    # ---------------------------------------------------------------- unions and joins

    def _union(self, node: CompositeUnion, ordered: bool) -> Composite:
        branches = [self.best(branch, ordered) for branch in branches_of(node)]
        whole = with_branches(node, iter(branches))
        texts = [] if ordered else [repr(canonical(branch)[0]) for branch in branches]

        def best(costs: Costs) -> Composite:
            rates = [costs.profile(branch).rate for branch in branches]
            shape = best_union_in_order(rates) if ordered else best_union(rates, texts)
            return cast(Composite, reorder_union(whole, shape, ordered))

        return self._compared("reorder_union", self._taken(whole, [("reorder_union", best(self._costs))]), best)

    def _overlap(self, node: Overlap, ordered: bool) -> Composite:
        """The rarer operand first, then by text: so those written either way are the same. Both cost the same."""
        if isinstance(node.left, Overlap) or isinstance(node.right, Overlap):
            reason = "`,` is not associative: of three, the third need not meet the first"
            self.refusals.append(Refusal(reason, parts=(node,)))
        whole = self._operands(node, ordered)
        assert isinstance(whole, Overlap)
        left, right = ((self._costs.profile(one).rate, repr(canonical(one)[0])) for one in (whole.left, whole.right))
        if ordered or left <= right:
            return whole
        return self._taken(whole, [("order_overlap", cast(Composite, order_overlap(whole)))])

    def _each(self, node: CompositeSequence, ordered: bool) -> Composite:
        joins = joins_of(node)
        if len(joins.operands) < 3 or ordered:
            return self._operands(node, ordered)
        operands = tuple(self.best(operand, ordered) for operand in joins.operands)
        joins = joins.with_operands(operands)

        def best(costs: Costs) -> Composite:
            return rebracket_each(joins, best_joins(joins, costs))

        now = self._taken(rebracket_each(joins, joins.shape), [("rebracket_each", best(self._costs))])
        return self._compared("rebracket_each", now, best)

    def _taken(self, before: Composite, steps: Iterable[tuple[str, Composite]]) -> Composite:
        """What the steps lead to if that costs no more, else the pattern as it was."""
        now, cost = before, self._costs.total(before)
        first = cost
        made: list[Rewrite] = []
        for rule, after in steps:
            if after == now:
                continue
            check_unchanged(now, after, rule)
            made.append(Rewrite(rule, now, after, cost, cost := self._costs.total(after)))
            now = after
        if cost > first * SAME:
            now, made = before, []
        self.rewrites += made
        return now

    def _compared(self, rule: str, now: Composite, best: Callable[[Costs], Composite]) -> Composite:
        """Note that a part, as it is now, costs no more than the best that a rule can make of it."""

        def least(costs: Costs) -> float:
            found = best(costs)
            return costs.total(now if found == now else found)  # `now` has been counted already

        self.inequalities.append(Inequality(rule, lambda costs: costs.total(now), least))
        return now


def _best_next(chain: OperandChain, costs: Costs) -> Shape:
    """The cheapest brackets of a chain whose key is spread."""
    ties = []  # how many values tie each operand to the next one
    for one, other in zip(chain.operands, chain.operands[1:], strict=False):
        both = {*one.variables, *other.variables}
        pair = CompositeSequence(one, other, "next")
        tests = [test for test in chain.among if key_name(test) in chain.keys and mentioned(test) <= both]
        ties.append(Selectivity(pair, costs.statistics).keys(tests))
    return best_brackets([costs.profile(operand) for operand in chain.operands], ties)


def depends_on_order(node: Composite) -> bool:
    """Whether an operator tells occurrences with equal times and events apart by their order."""
    match node:
        case CompositeSequence(pick="first") | CompositeRepeat(pick="longest" | "each"):
            return True
        case CompositeRepeat(pattern):
            return any(isinstance(part, CompositeRepeat) for part in pattern.walk(Composite))
    return False


def with_branches(node: Composite, branches: Iterator[Composite]) -> Composite:
    """A union as it was written, of other branches."""
    if not isinstance(node, CompositeUnion):
        return next(branches)
    return CompositeUnion(with_branches(node.left, branches), with_branches(node.right, branches))
