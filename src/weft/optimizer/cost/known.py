"""Merge the statistics of a program: those that users give, those it declares, and those that follow from both."""

from __future__ import annotations

from dataclasses import replace

from weft.algebra.analysis.feeding import depths
from weft.algebra.composites import CompositeQuery
from weft.algebra.query import Program
from weft.optimizer.cost.model import profile_of
from weft.statistics import TICKS_PER_SECOND, Statistics


def resolve_statistics(program: Program, given: Statistics | None = None) -> Statistics:
    """Given numbers before declared ones; the events that queries define come as often as their matches."""
    ticks = TICKS_PER_SECOND.get(program.time_unit, 1000.0)
    rates = {source.type: source.rate for source in program.inputs if source.rate is not None}
    known = Statistics(rates=rates, ticks_per_second=ticks)
    if given is not None:
        known = replace(given.over(known), ticks_per_second=ticks)
    return _with_derived(program, known)


def _with_derived(program: Program, known: Statistics) -> Statistics:
    """Add the rates of derived events that queries read, in the order in which queries feed each other."""
    read = {type_ for query in program.queries for type_ in query.reads}
    in_order = sorted(zip(depths(program.queries), program.queries, strict=True), key=lambda pair: pair[0])
    rates, derived = dict(known.rates), dict[str, float]()
    so_far = replace(known, rates=rates)  # it knows what is added below: a value for each query would cost their square
    for _, query in in_order:
        if query.defines not in read or query.defines in rates:
            continue
        if isinstance(query, CompositeQuery):
            rate = profile_of(query.pattern, so_far).rate
        else:  # no more often than the rarest of what it is made of
            rate = min((so_far.rate(type_).value for type_ in query.reads if type_ != query.defines), default=1.0)
        rates[query.defines] = derived[query.defines] = rate
    return Statistics(derived, origin="derived", ticks_per_second=known.ticks_per_second).over(known)
