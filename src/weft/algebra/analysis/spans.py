"""Bounds on the duration of occurrences, derived from conditions, and on how long partial matches are kept.

A span is the time from the start to the end of an occurrence, in ticks; None means unbounded.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.algebra.predicates import MIRRORED, Comparison, Literal, Predicate
from weft.algebra.terms import Elapsed, conjuncts

Span = int | None


def least(*spans: Span) -> Span:
    """The strictest of some bounds."""
    return min((span for span in spans if span is not None), default=None)


def loosest(spans: Collection[Span]) -> Span:
    """The bound that all of some keep; none, if one has none."""
    return None if None in spans else max(span for span in spans if span is not None)


def span_limit(tests: Iterable[Predicate], pattern: Composite) -> Span:
    """The most ticks from the start to the end of a composite that satisfies the tests."""
    return least(*(most for test in conjuncts(tests) for most in [span_of(test, pattern)]))


def is_implied(test: Predicate, pattern: Composite, limit: Span) -> bool:
    """Whether a test says no more than that the span is at most the limit."""
    most = span_of(test, pattern)
    exact = isinstance(test, Comparison) and test.operator != "="
    return limit is not None and most is not None and exact and limit <= most


def span_of(test: Predicate, pattern: Composite) -> Span:
    """The most ticks from start to end that a test allows, or None if it says nothing of them."""
    term, most = at_most(test)
    whole = term in (Elapsed(), Elapsed(first_variable(pattern), last_variable(pattern)))
    return most if term is not None and whole else None


def at_most(test: Predicate) -> tuple[Elapsed | None, Span]:
    """The term and the number of a test that a time is at most a number of ticks, where it can hold at all."""
    match test:
        case Comparison(symbol, Elapsed() as term, Literal(number)):
            pass
        case Comparison(symbol, Literal(number), Elapsed() as term):
            symbol = MIRRORED[symbol]
        case _:
            return None, None
    if isinstance(number, bool | str) or symbol not in ("<", "<=", "=") or not math.isfinite(number):
        return None, None
    most = math.ceil(number) - 1 if symbol == "<" else math.floor(number)
    return (term, most) if 0 <= most < 1 << 60 else (None, None)


def first_variable(pattern: Composite) -> str | None:
    """The variable whose first event starts when each occurrence does."""
    match pattern:
        case CompositeEvent(variable=variable):
            return variable
        case CompositeSequence(left):
            return first_variable(left)
        case CompositeFilter(inner) | Without(inner) | CompositeRepeat(inner) | After(inner):
            return first_variable(inner)
    return None


def last_variable(pattern: Composite) -> str | None:
    """The variable whose last event ends when each occurrence does."""
    match pattern:
        case CompositeEvent(variable=variable):
            return variable
        case CompositeSequence(_, right):
            return last_variable(right)
        case CompositeFilter(inner) | Without(inner) | CompositeRepeat(inner):
            return last_variable(inner)
    return None


def waiting_limit(
    pattern: CompositeSequence | CompositeRepeat, operands: Sequence[Composite], span: Span
) -> tuple[Span, str | None]:
    """How long a left occurrence can wait for a right one: ticks since its start, or since that of a variable's events.

    `span` is the greatest that a joined one can have.
    """
    if span is not None:
        return span, None
    last = last_variable(operands[-1])
    for test in conjuncts((*pattern.where, *pattern.among)):
        term, most = at_most(test)
        if term is None or term.first is None or term.last is None or term.last != last:
            continue
        if isinstance(pattern, CompositeRepeat) or term.first in operands[0].variables:
            return most, term.first
    return None, None


def kept_for_ever(pattern: Composite, asked: Span = None) -> Iterator[Composite]:
    """Yield the operators whose state grows without bound, because no time bound says when occurrences expire.

    `asked` is the greatest span that operators above can use. An operator whose pending occurrences are decided by the
    next occurrence is not included: they wait for that one only.
    """
    span = least(asked, _greatest(pattern))
    match pattern:
        case CompositeEvent():
            return
        case CompositeSequence(left, right, pick, where, among):
            decided = not (among if pick == "next" else where) and pick != "each"
            if not decided and waiting_limit(pattern, (left, right), span)[0] is None:
                yield pattern
        case CompositeRepeat(inner, "next", where, among, lengths):
            ends = not among and (where or lengths.high is not None)
            if not ends and waiting_limit(pattern, (inner,), span)[0] is None:
                yield pattern
        case CompositeRepeat(pick="each") | Overlap() if span is None:
            yield pattern
        case Without(when="before", where=where) if where:
            yield pattern
        case Without(when="during") if span is None:
            yield pattern
        case Without(when="between", where=where) if where and least(span, _tail(pattern)) is None:
            yield pattern
    for side, operand in enumerate(_operands(pattern)):
        yield from kept_for_ever(operand, asked_of(pattern, side, span))


def asked_of(pattern: Composite, side: int, span: Span) -> Span:
    """The greatest span of an operand that can be part of, or decide about, an occurrence with at most this span.

    A right operand that is too long may end a search; but what the search would find without it ends later still.
    """
    match pattern:
        case CompositeRepeat(pick="longest"):
            return None
        case Without(when="before"):
            return None if side == 1 else span
        case After(ticks=ticks):
            return None if span is None else max(span - ticks, 0)
    return span


def _operands(pattern: Composite) -> Iterator[Composite]:
    return (child for child in pattern.children() if isinstance(child, Composite))


def greatest_span(pattern: Composite, operands: Sequence[Span]) -> Span:
    """The greatest span that occurrences of a pattern can have, by those of its operands."""
    match pattern:
        case CompositeEvent(where=where) | Overlap(where=where):
            return span_limit(where, pattern)
        case CompositeSequence(where=where, among=among):
            return span_limit((*where, *among), pattern)
        case CompositeFilter(where=where):
            return least(span_limit(where, pattern), operands[0])
        case Without():
            return operands[0]
        case After(ticks=ticks):
            return None if operands[0] is None else operands[0] + ticks
        case CompositeUnion():
            return loosest(operands)
    return None


def _greatest(pattern: Composite) -> Span:
    return greatest_span(pattern, [_greatest(operand) for operand in _operands(pattern)])


def greatest_tail(pattern: Composite, operands: Sequence[Span], span: Span) -> Span:
    """The most ticks from the end of an occurrence's first constituent to its own end, by the tails of its operands.

    `span` is the greatest that it can have. An event by itself may be of any length, but nothing comes after it.
    """
    match pattern:
        case CompositeEvent():
            return 0
        case CompositeFilter() | Without():
            return least(operands[0], span)
        case After(ticks=ticks):
            return None if operands[0] is None else operands[0] + ticks
        case CompositeUnion():
            return loosest(operands)
    return span


def _tail(pattern: Composite) -> Span:
    return greatest_tail(pattern, [_tail(operand) for operand in _operands(pattern)], _greatest(pattern))
