"""Matches as columns, tables, objects and lines: ids, order and text, compared with plain Python."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.kernels.matches.order import is_ordered, match_order, merged_order
from weft.runtime.data.matches import MatchBatch, PlainMatch, to_batch
from weft.runtime.data.shape import MATCH_SCHEMA
from weft.runtime.threads import Threads
from weft.runtime.writing import match_rows
from weft.runtime.writing.match_lines import json_lines
from weft.runtime.writing.match_rows import to_arrow, to_matches, to_record_batches

NAMES = st.sets(st.sampled_from(["a", "b", "größe", 'quote"d']), min_size=1)


@st.composite
def plain_matches(draw: st.DrawFn) -> list[PlainMatch]:
    found = []
    for _ in range(draw(st.integers(0, 12))):
        first, last = sorted(draw(st.tuples(st.integers(0, 8), st.integers(0, 8))))
        positions = tuple(sorted(draw(st.sets(st.integers(first, last)))))
        bindings: dict[str, list[int]] = {}
        for position in positions:
            for name in sorted(draw(NAMES)):
                bindings.setdefault(name, []).append(position)
        event = draw(st.dictionaries(st.sampled_from(["x", "y"]), st.none() | st.integers() | st.text(max_size=3)))
        found.append(PlainMatch(first // 3, last // 3, first, last, positions, bindings, event))
    return sorted(found, key=lambda match: match.last)


def one(query: str = "q", positions: tuple[int, ...] = (1, 3), name: str = "x") -> MatchBatch:
    return to_batch(query, [PlainMatch(0, 9, positions[0], positions[-1], positions, {name: positions}, {})])


@settings(max_examples=30, deadline=None)
@given(plain_matches(), plain_matches())
def test_objects_have_what_the_columns_have_in_match_order(first: list[PlainMatch], second: list[PlainMatch]) -> None:
    batches = [to_batch("one", first), to_batch("two", second)]
    found = list(to_matches(batches))
    expected = [("one", match) for match in first] + [("two", match) for match in second]
    assert sorted(repr((m.query, m.start, m.end, m.positions, m.bindings, m.event)) for m in found) == sorted(
        repr((query, m.start, m.end, m.positions, {n: tuple(p) for n, p in m.bindings.items()}, dict(m.event)))
        for query, m in expected
    )
    order = [(m.end, m.start, m.positions, m.query, m.id) for m in found]
    assert order == sorted(order)


@settings(max_examples=30, deadline=None)
@given(plain_matches(), st.integers(0, 12), st.integers(0, 12))
def test_lines_are_what_json_would_write(matches: list[PlainMatch], begin: int, length: int) -> None:
    table = to_arrow([to_batch('a "query"', matches)])
    table.validate(full=True)
    objects = [json.dumps(match.to_json(), ensure_ascii=False) for match in to_matches(to_batch('a "query"', matches))]
    for rows in table.slice(begin, length).combine_chunks().to_batches():
        lines = bytes(json_lines(rows)).splitlines()  # a text may have other ends of lines than bytes have
        assert [line.decode() for line in lines] == objects[begin : begin + length]
        bare = bytes(json_lines(rows.drop_columns(["positions", "bindings"]))).splitlines()
        wanted = [{k: v for k, v in json.loads(line).items() if k not in ("positions", "bindings")} for line in lines]
        assert [json.loads(line) for line in bare] == wanted


@pytest.mark.parametrize("number", [0, 9, 10, -1, 99, 100, 2**63 - 1, -(2**63)])
def test_lines_write_every_number(number: int) -> None:
    batch = to_batch("q", [PlainMatch(number, number, 0, 0, (0,), {"x": (0,)}, {})])
    (rows,) = to_record_batches([batch])
    assert json.loads(bytes(json_lines(rows)))["start"] == number


def test_queries_come_in_the_given_order_when_all_else_is_equal() -> None:
    table = to_arrow([one("a"), one("b"), one("c")], query_order=["c", "a", "b"])
    assert table.column("query").to_pylist() == ["c", "a", "b"]


def mixed() -> MatchBatch:
    """Matches of several queries, two of which have one name."""
    return MatchBatch(
        query="",
        names=(("x",), (), ("x", "y")),
        starts=np.arange(6),
        ends=np.arange(6),
        offsets=np.array([0, 2, 2, 3, 5, 6, 8]),
        positions=np.array([0, 1, 3, 4, 5, 6, 7, 8]),
        labels=np.array([0, 2, 1, 2, 0, 0, 2, 2]),
        fields={"n": pa.array(range(6))},
        queries=("a", "b", "a"),
        codes=np.array([2, 1, 0, 2, 1, 0], np.int32),
    )


def test_queries_of_one_name_are_one_query() -> None:
    batch = mixed()
    assert batch.counts == {"a": 4, "b": 2}
    chosen = [(match.query, match.event["n"], match.positions, match.bindings) for match in to_matches(batch.of("a"))]
    assert chosen == [
        ("a", 0, (0, 1), {"x": (0, 1), "y": (1,)}),
        ("a", 2, (3,), {}),
        ("a", 3, (4, 5), {"x": (4, 5), "y": (4,)}),
        ("a", 5, (7, 8), {"x": (7, 8), "y": (7, 8)}),
    ]
    assert len(batch.of("c")) == 0


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(6)))
def test_rows_do_not_depend_on_the_order_in_which_matches_come(order: list[int]) -> None:
    batch = mixed()
    parts = [batch.take(np.array(order[:4])), batch.take(np.array(order[4:]))]
    assert to_arrow(parts, ["a", "b"]).to_pylist() == to_arrow([batch]).to_pylist()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=20), max_size=4), st.integers(1, 9), st.integers(1, 3))
def test_rows_of_any_time_are_made_in_any_thread(lanes: list[list[int]], rows: int, threads: int) -> None:
    plain = [
        [
            PlainMatch(0, end, number, number, (number, 99 - lane), {"x": (number,)}, {})
            for number, end in enumerate(ends)
        ]
        for lane, ends in enumerate(map(sorted, lanes))
    ]
    parts = [to_batch(f"q{lane % 2}", own) for lane, own in enumerate(plain)]
    together = to_arrow(parts).to_pylist()
    with patch.object(match_rows, "ROWS", rows), patch.object(match_rows, "SAMPLED", 1):
        made = list(to_record_batches(parts, threads=Threads(threads)))
    assert pa.Table.from_batches(made, MATCH_SCHEMA).to_pylist() == together
    assert max(map(len, made), default=0) <= rows


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 9)), max_size=100), st.booleans())
def test_order_is_by_end_start_and_positions(times: list[tuple[int, int, int]], by_end: bool) -> None:
    if by_end:
        times.sort(key=lambda time: time[0])
    ends, starts, positions = np.array(times, np.int64).reshape(-1, 3).T.copy()
    words, ranks = np.arange(len(times), dtype=np.uint64), np.zeros(len(times), np.int32)
    columns = ends, starts, np.arange(len(times) + 1), positions, ranks, words, words
    expected = sorted(range(len(times)), key=times.__getitem__)

    def ordered(begin: int, end: int) -> npt.NDArray[np.int64]:
        order, moved = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
        match_order(begin, order, moved, *columns)
        return order

    assert ordered(0, len(times)).tolist() == expected
    merged = np.empty(len(times), np.int64)
    merged_order(ordered(0, len(times) // 2), ordered(len(times) // 2, len(times)), merged, *columns)
    assert merged.tolist() == expected
    assert is_ordered(*columns) == (times == sorted(times))


def test_slices_keep_offsets_and_fields() -> None:
    plain = [PlainMatch(n, n, n, n, (n,), {"x": (n,)}, {"n": n}) for n in range(5)]
    part = to_batch("q", plain).slice(2, 4)
    assert [match.positions for match in to_matches(part)] == [(2,), (3,)]
    assert [match.event for match in to_matches(part)] == [{"n": 2}, {"n": 3}]


def test_fields_of_every_kind_become_json() -> None:
    batch = MatchBatch(
        query="q",
        names=(("x",),),
        starts=np.array([0, 1], np.int64),
        ends=np.array([0, 1], np.int64),
        offsets=np.array([0, 1, 2], np.int64),
        positions=np.array([0, 1], np.int64),
        labels=np.zeros(2, np.int32),
        fields={
            "i": pa.array([1, None]),
            "f": pa.array([2.0, None]),
            "t": pa.array(['"', None]),
            "b": pa.array([True, None]),
            "d": pa.array(["u", None]).dictionary_encode(),
            "l": pa.array([[1, None], []]),
            "n": pa.nulls(2),
        },
    )
    first, second = (match.event for match in to_matches(batch))
    assert first == {"i": 1, "f": 2.0, "t": '"', "b": True, "d": "u", "l": [1, None], "n": None}
    assert second == {"i": None, "f": None, "t": None, "b": None, "d": None, "l": [], "n": None}


@pytest.mark.parametrize("number", [float("inf"), -float("inf")])
def test_infinity_is_written_as_json_can_have_it(number: float) -> None:
    plain = to_batch("q", [PlainMatch(0, 1, 0, 0, (0,), {"x": (0,)}, {"größe": number})])
    columns = replace(plain, events=None, fields={"größe": pa.array([number])})
    for batch in (plain, columns):
        assert "Infinity" not in to_arrow([batch]).column("event")[0].as_py()
        assert [match.event for match in to_matches(batch)] == [{"größe": number}]


def test_no_matches_give_an_empty_table() -> None:
    assert to_arrow([]).num_rows == 0
    assert list(to_matches([])) == []
