"""What a row pattern over a stream needs: what is refused, and what grows or waits."""

from __future__ import annotations

from collections.abc import Iterator

from weft.algebra.row_patterns import (
    Alternation,
    Concatenation,
    Exclusion,
    Permutation,
    Quantifier,
    RowAnchor,
    RowPattern,
    RowRegex,
    RowVariable,
)
from weft.plan.row_patterns.conditions import reach_of


def stream_refusals(query: RowPattern, event_time: str | None) -> Iterator[str]:
    """Why a query cannot run over a stream; `event_time` is the column with the watermark."""
    if event_time is None:
        yield "streaming needs a watermark: frame.withWatermark('ts', '10 seconds') on the column that ORDER BY names"
    elif not query.order or query.order[0].column != event_time or query.order[0].descending:
        yield f"streaming needs ORDER BY {event_time} ASC first: the column with the watermark is the event time"
    if any(isinstance(node, RowAnchor) and node.end for node in query.pattern.walk()):
        yield "$ is the end of a partition, and a stream has none: leave it out"
    if query.rows == "unmatched" and query.within is None:
        yield "WITH UNMATCHED ROWS needs WITHIN on a stream: without it a row may be in a match for ever"


def stream_warnings(query: RowPattern) -> Iterator[str]:
    """Return warnings about state that grows without bound, single lanes, and waiting for rows."""
    if not query.partition:
        yield "MATCH_RECOGNIZE without PARTITION BY: all rows of the stream are matched in one task"
    if query.within is None:
        for part in _endless(query.pattern):
            yield f"{_named(part)} may grow without end: add WITHIN, or end it with a variable"
    after = reach_of(query)[1]
    if after:
        yield f"NEXT waits for {after} more row{'s' * (after > 1)} of a key before a match is emitted"


def _endless(regex: RowRegex) -> list[Quantifier]:
    """The greedy quantifiers without a bound that a match may end with."""
    match regex:
        case Quantifier(pattern, _, most, greedy):
            own = [regex] if most is None and greedy and _takes_rows(pattern) else []
            return own or _endless(pattern)
        case Concatenation(parts):
            found: list[Quantifier] = []
            for part in reversed(parts):
                found += _endless(part)
                if not _may_be_empty(part):
                    break
            return found
        case Alternation(parts) | Permutation(parts):
            return [item for part in parts for item in _endless(part)]
        case Exclusion(pattern):
            return _endless(pattern)
    return []


def _takes_rows(regex: RowRegex) -> bool:
    return any(isinstance(node, RowVariable) for node in regex.walk())


def _may_be_empty(regex: RowRegex) -> bool:
    match regex:
        case RowVariable():
            return False
        case Quantifier(pattern, least):
            return least == 0 or _may_be_empty(pattern)
        case Concatenation(parts) | Permutation(parts):
            return all(map(_may_be_empty, parts))
        case Alternation(parts):
            return any(map(_may_be_empty, parts))
        case Exclusion(pattern):
            return _may_be_empty(pattern)
    return True


def _named(quantifier: Quantifier) -> str:
    names = [node.name for node in quantifier.pattern.walk() if isinstance(node, RowVariable)]
    sign = "+" if quantifier.least == 1 else "*" if quantifier.least == 0 else f"{{{quantifier.least},}}"
    return f"{names[0]}{sign}" if isinstance(quantifier.pattern, RowVariable) else f"({' '.join(names)}){sign}"
