"""Counts of values that came in batches say of as many pairs that a comparison holds as there are such pairs."""

from __future__ import annotations

import operator
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some

from weft.runtime.data.events import Column
from weft.runtime.watching import value_counts
from weft.runtime.watching.value_counts import ValueCounts

OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
WHOLES = st.lists(st.one_of(st.none(), st.integers(-2, 3)), max_size=6)
FLOATS = st.lists(st.one_of(st.none(), st.sampled_from([-0.5, 0.0, 1.0, 2.0, 2.5])), max_size=6)
TEXTS = st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b", "é"])), max_size=6)
TRUTHS = st.lists(st.one_of(st.none(), st.booleans()), max_size=6)
BATCHES = st.lists(
    st.one_of(
        st.tuples(st.just("numbers"), st.just(pa.int64()), WHOLES),
        st.tuples(st.just("numbers"), st.just(pa.float64()), FLOATS),
        st.tuples(st.just("texts"), st.just(pa.string()), TEXTS),
        st.tuples(st.just("texts"), st.just(pa.dictionary(pa.int32(), pa.string())), TEXTS),
        st.tuples(st.just("booleans"), st.just(pa.bool_()), TRUTHS),
    ),
    max_size=5,
)
Batches = list[tuple[str, pa.DataType, list[Any]]]


def counted(batches: Batches) -> tuple[ValueCounts, list[tuple[str, Any]]]:
    """The counts of every row but the first of each batch, and these values one by one, with their kinds."""
    counts = ValueCounts()
    for kind, type_, values in batches:
        rows = pa.array([place > 0 for place in range(len(values))], pa.bool_())
        array = pa.array(values, pa.string()).dictionary_encode() if pa.types.is_dictionary(type_) else None
        counts.add(Column(**{kind: pa.array(values, type_) if array is None else array}), rows)
    return counts, [(kind, value) for kind, _, values in batches for value in values[1:] if value is not None]


@some(30)
@given(BATCHES, BATCHES, st.sampled_from(list(OPERATORS)))
def test_as_many_pairs_hold_as_there_are(here: Batches, there: Batches, sign: str) -> None:
    (one, values), (other, others) = counted(here), counted(there)
    holds = OPERATORS[sign]
    pairs = [(a, b) for kind, a in values for other_kind, b in others if kind == other_kind]
    assert one.holding(sign, other) == sum(holds(a, b) for a, b in pairs)
    assert (one.total, other.total) == (len(values), len(others))


@patch.object(value_counts, "MOST_VALUES", 2)
def test_of_many_values_the_first_ones_are_counted() -> None:
    counts, _ = counted([("numbers", pa.int64(), [None, 1, 2]), ("numbers", pa.int64(), [None, 3, 2, 2])])
    assert counts.total == 4
    assert counts.holding("=", counts) == 1 + 9
