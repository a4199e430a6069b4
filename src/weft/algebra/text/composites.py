"""Composite patterns as indented text: one operator per line, its conditions behind it, operands below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.algebra import composites, terms
from weft.algebra.predicates import Predicate
from weft.tree import Node

INDENT = "  "
Show = Callable[[Node], str]  # an expression or predicate in one line


def query_lines(query: composites.CompositeQuery, show: Show) -> Iterator[str]:
    """A query: its name, its fields, its pattern."""
    yield f"query {query.name}"
    if query.fields:
        yield f"{INDENT}fields " + ", ".join(f"{field.name} = {show(field.value)}" for field in query.fields)
    if query.all_fields:
        yield f"{INDENT}fields of all events"
    yield f"{INDENT}pattern"
    yield from (2 * INDENT + line for line in pattern_lines(query.pattern, show))


def pattern_lines(pattern: composites.Composite, show: Show) -> Iterator[str]:
    """A pattern and those below it."""
    yield _head(pattern, show)
    for child in pattern.children():
        if isinstance(child, composites.Composite):
            yield from (INDENT + line for line in pattern_lines(child, show))


def _head(pattern: composites.Composite, show: Show) -> str:
    match pattern:
        case composites.CompositeEvent(type_, variable, where):
            return f"event {type_} {variable}{_conditions('where', where, show)}"
        case composites.CompositeUnion():
            return "union"
        case composites.CompositeFilter(_, where):
            return f"filter{_conditions('where', where, show)}"
        case composites.CompositeSequence(_, _, pick, where, among):
            return f"sequence {pick}{_conditions('among', among, show)}{_conditions('where', where, show)}"
        case composites.Overlap(_, _, where):
            return f"overlap{_conditions('where', where, show)}"
        case composites.CompositeRepeat(_, pick, where, among, lengths):
            shown = _conditions("among", among, show) + _conditions("where", where, show)
            return f"repeat {pick}{_lengths(lengths)}{shown}"
        case composites.Without(_, _, when, where):
            return f"without {when}{_conditions('where', where, show)}"
        case composites.After(_, ticks):
            return f"after {ticks} ticks"
    return type(pattern).__name__.lower()


def _conditions(word: str, conditions: tuple[Predicate, ...], show: Show) -> str:
    return f" {word} [{'; '.join(map(show, conditions))}]" if conditions else ""


def _lengths(lengths: composites.Lengths) -> str:
    if lengths == composites.Lengths():
        return ""
    most = "any" if lengths.high is None else lengths.high
    but = f" but not {', '.join(map(str, sorted(lengths.excluded)))}" if lengths.excluded else ""
    return f" length {lengths.low} to {most}{but}"


def term_text(node: object, show: Show) -> str:
    """A value or condition of `weft.algebra.terms`; anything else as Python writes it."""
    match node:
        case terms.Previous(attribute):
            return f"PREVIOUS({show(attribute)})"
        case terms.Every(attribute):
            return f"EVERY({show(attribute)})"
        case terms.Elapsed(None, None):
            return "ELAPSED()"
        case terms.Elapsed(first, last):
            return f"ELAPSED({first}, {last})"
        case terms.Contains(operand, part):
            return f"CONTAINS({show(operand)}, {show(part)})"
    return repr(node)


# ---------------------------------------------------------------- in one line

_BETWEEN = {"each": ";?", "first": ";", "next": ";"}


def in_one_line(pattern: composites.Composite, show: Show) -> str:
    """A pattern with all its brackets, as in `((A a ; B b)[FILTER(a[k] = b[k])] | C c)`."""
    below = [in_one_line(part, show) for part in pattern.children() if isinstance(part, composites.Composite)]
    match pattern:
        case composites.CompositeEvent(type_, variable):
            text = type_ if type_ == variable else f"{type_} {variable}"
        case composites.CompositeUnion():
            text = f"({' | '.join(below)})"
        case composites.CompositeSequence(pick=pick):
            text = f"({f' {_BETWEEN[pick]} '.join(below)})"
        case composites.Overlap():
            text = f"({', '.join(below)})"
        case composites.CompositeRepeat(pick=pick, lengths=lengths):
            text = f"({below[0]})+{'?' * (pick == 'each')}{_lengths(lengths)}"
        case composites.Without(when=when):
            text = f"({below[0]} \\ {below[1]}{'' if when == 'between' else ' ' + when})"
        case composites.After(ticks=ticks):
            text = f"({below[0]} @ {ticks})"
        case _:
            text = below[0]
    among = [f"FILTER({show(test)})" for test in getattr(pattern, "among", ())]
    tests = [*among, *map(show, getattr(pattern, "where", ()))]
    return f"{text}[{', '.join(tests)}]" if tests else text
