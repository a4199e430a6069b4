"""Row patterns over rows that arrive in pieces: the final matches equal those of the whole input."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.engines.test_row_patterns_equal_meaning import SCHEMA, timed
from tests.row_pattern_strategies import clauses, compiled, tables

from weft.errors import InputError
from weft.runtime.operators.row_patterns.engine import match_rows, matcher_of
from weft.runtime.operators.row_patterns.incremental import IncrementalMatcher

FAR = 10**18


def pieces(query: Any, rows: list[dict[str, Any]], cuts: list[int]) -> list[tuple[Any, ...]]:
    """What comes out piece by piece: rows in order of time, the watermark behind each piece."""
    stream = IncrementalMatcher.begun(query, matcher_of(query), SCHEMA)
    found: list[tuple[Any, ...]] = []
    ordered = sorted(rows, key=lambda row: row["ts"])
    edges = [0, *sorted(min(cut, len(ordered)) for cut in cuts), len(ordered)]
    for low, high in pairwise(edges):
        piece = pa.Table.from_pylist(ordered[low:high], SCHEMA)
        assert stream.add(piece) == 0
        rest = ordered[high:]
        mark = int(rest[0]["ts"].timestamp() * 1_000_000) if rest else FAR
        output = stream.advance(mark)
        if output is not None:
            found += [tuple(row.values()) for row in output.to_pylist()]
    return found


@settings(deadline=None, max_examples=50)
@given(clauses(streaming=True), tables(nulls=False), st.lists(st.integers(0, 12), max_size=4))
def test_what_is_decided_does_not_depend_on_the_pieces(text: str, rows: list[dict[str, Any]], cuts: list[int]) -> None:
    query, rows = compiled(text), timed(rows)
    try:
        whole = pieces(query, rows, [])
        found = pieces(query, rows, cuts)
        from_table = match_rows(pa.Table.from_pylist(rows, SCHEMA), query, by_others=True).to_pylist()
    except InputError:
        return  # a run-time error of the query: when it comes depends on what was decided before
    assert sorted(found, key=repr) == sorted(whole, key=repr)
    everything = [repr(tuple(row.values())) for row in from_table]
    for row in map(repr, found):
        assert row in everything
        everything.remove(row)
    if query.within is not None and "NEXT(" not in text:
        assert everything == []
