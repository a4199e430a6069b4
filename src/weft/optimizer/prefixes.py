"""Choose which sequences share the evaluation of a common prefix, by rates.

To evaluate a prefix costs some work for each event that may end one, and each sequence repeats that work. Shared, it is
done once; but the events of the prefix are stored once more, and every sequence reads which of them end one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from weft.algebra.analysis.beginnings import beginning
from weft.algebra.analysis.dependencies import dependencies
from weft.algebra.situations import Situation, SituationQuery
from weft.optimizer.chains import Refusal
from weft.optimizer.cost.model import Costs as Known
from weft.optimizer.invariants import check_query
from weft.optimizer.rules.share_prefix import prefixes_of, share_prefix
from weft.optimizer.splits import LOOKS, SHARE, looks_in
from weft.optimizer.trace import Inequality, QueryTrace, Rewrite
from weft.statistics import Statistics

READ = 0.1  # of a look: to read whether an event ends a beginning
WORTH = 1.5  # how many times as much it must cost to find a beginning in each sequence


class PrefixCosts(NamedTuple):
    """Events a second that are looked at for one of the sequences: each by itself, or all together."""

    alone: float
    together: float


def share_prefixes(traced: Sequence[QueryTrace], statistics: Statistics) -> list[QueryTrace]:
    """The queries, of which those share what they begin with that then cost less; a split that is written stays."""
    found = list(traced)
    for count, group in _groups(traced):
        free = [number for number in group if not _situation(found[number]).shared]
        if len(free) < 2:
            continue
        first = _situation(found[free[0]])
        costs = prefix_costs(first, count, len(free), statistics)
        against = _against(first, count, costs, statistics)
        inequalities = _inequalities(first, count, len(free), statistics, shared=against is None)
        for number in free:
            one = found[number] = replace(found[number], inequalities=(*found[number].inequalities, *inequalities))
            if against is None:
                found[number] = _shared(one, count, costs)
            elif not any(refusal.reason.startswith(_BEGINS) for refusal in one.refusals):
                others = ", ".join(found[other].query.name for other in free if other != number)
                parts = _situation(one).participants[:count]
                refusal = Refusal(f"{_BEGINS} {others} ({count} participants), {against}", parts=parts)
                found[number] = replace(one, refusals=(*one.refusals, refusal))
    return found


_BEGINS = "it begins as"


def prefix_costs(situation: Situation, count: int, users: int, statistics: Statistics) -> PrefixCosts:
    """Return the cost of the first slots for one of the sequences that share them as a prefix."""
    rates = [statistics.rate(slot.type).value for slot in situation.participants[:count]]
    blocks = [block for block in dependencies(situation).blocks if block[-1] < count]
    alone = rates[-1] * looks_in(situation, blocks, statistics)
    return PrefixCosts(alone, (alone + sum(rates)) / users + READ * rates[-1])


def _against(situation: Situation, count: int, costs: PrefixCosts, statistics: Statistics) -> str | None:
    """Why a beginning is not shared, or None if it is."""
    if any(statistics.rate(slot.type).origin == "default" for slot in situation.participants[:count]):
        return "which is not found once for all, since the rates of its types are not known"
    if costs.alone > SHARE * LOOKS:
        return "which is not found once for all, since its events come too often to work ahead"
    if costs.alone < WORTH * costs.together:
        return "which is not found once for all, since that would save too little"
    return None


def _inequalities(
    situation: Situation, count: int, users: int, statistics: Statistics, *, shared: bool
) -> tuple[Inequality, ...]:
    """What the choice rests on: that finding a beginning once pays and is little enough, or that it is not so."""

    def alone(costs: Known) -> float:
        return prefix_costs(situation, count, users, costs.statistics).alone

    def worth(costs: Known) -> float:
        return WORTH * prefix_costs(situation, count, users, costs.statistics).together

    def most(_: Known) -> float:
        return SHARE * LOOKS

    rule = share_prefix.__name__
    if shared:
        return Inequality(rule, worth, alone), Inequality(rule, alone, most)
    too_often = prefix_costs(situation, count, users, statistics).alone > SHARE * LOOKS
    return (Inequality(rule, most, alone) if too_often else Inequality(rule, alone, worth),)


def _groups(traced: Sequence[QueryTrace]) -> Iterator[tuple[int, list[int]]]:
    """With how many slots queries that see the same events begin alike, most first, and the numbers of the queries."""
    groups: dict[tuple[int, Situation, frozenset[str]], list[int]] = {}
    defined = frozenset(one.query.defines for one in traced)
    for number, one in enumerate(traced):
        query = one.written
        if isinstance(query, SituationQuery) and not query.situation.split:
            for count in prefixes_of(query.situation):
                fed_by = defined.intersection(query.reads)
                groups.setdefault((count, beginning(query.situation, count), fed_by), []).append(number)
    for (count, _, _), group in sorted(groups.items(), key=lambda item: -item[0][0]):
        yield count, group


def _situation(one: QueryTrace) -> Situation:
    assert isinstance(one.query, SituationQuery)
    return one.query.situation


def _shared(one: QueryTrace, count: int, costs: PrefixCosts) -> QueryTrace:
    assert isinstance(one.query, SituationQuery)
    before = one.query.situation
    query = replace(one.query, situation=share_prefix(before, count))
    check_query(one.query, query, share_prefix.__name__)
    rewrite = Rewrite(share_prefix.__name__, before, query.situation, *costs)
    return replace(one, query=query, rewrites=(*one.rewrites, rewrite))
