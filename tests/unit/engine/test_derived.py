"""Fields of matches as attributes of derived events, for all kinds of values."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from tests.harness import event, run_program

from weft.api import merge_programs
from weft.runtime.execution.derived import column_of_field

HUGE = 2**53 + 1
MADE, READ = (
    "QUERY D AS SELECT a[x] WHERE A AS a WITHIN 1 EVENTS",
    "QUERY R AS SELECT d[x] WHERE D AS d WITHIN 1 EVENTS",
)


@pytest.mark.parametrize(
    "values",
    [[1, 2.5], [HUGE, 0.5, None], ["a", 1, True], [True, None], [HUGE, 2**63 - 1], ["a", "b"], [1.5, "t", HUGE, False]],
)
def test_a_derived_event_has_the_values_of_its_match(values: list[object]) -> None:
    events = [event("A", ts, x=value) for ts, value in enumerate(values)]
    for engine in ("meaning", "local"):
        found = run_program(engine, merge_programs([MADE, READ]), events)
        shown = [record["event"]["x"] for record in found if record["query"] == "R"]  # type: ignore[index]
        assert [(type(value), value) for value in shown] == [(type(value), value) for value in values]


def test_decimals_keep_their_digits() -> None:
    column = column_of_field(pa.array([Decimal("12345678901234567890.5"), None]))
    assert [column.value(row) for row in range(2)] == [Decimal("12345678901234567890.5"), None]
