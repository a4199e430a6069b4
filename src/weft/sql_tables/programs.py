"""Programs of the other languages in SQL: what the table function `weft_match` does for a table of events."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft import engines
from weft.algebra.query import Program
from weft.api import compile
from weft.described import described
from weft.runtime.options import EventColumns, Options
from weft.runtime.reading.order import Reading
from weft.runtime.results.shaping import shape_of

if TYPE_CHECKING:
    from weft.runtime.spark.table_function import MatchCall


@described()
def register(spark: Any, /) -> None:
    """Make `weft_match` known in a session's SQL, for programs of any language. Needs Spark 4.0 or newer.

        weft.register(spark)
        spark.sql("SELECT * FROM weft_match(TABLE(events), 'SELECT * WHERE A ; B WITHIN 1 HOUR')")

    Further arguments by name: `time_column => 'ts'`, `type_column => 'type'`, `language => 'ceql'`. Rows come together
    in one task, or with `partition_column => 'key'` by key, for matches inside one key.
    """
    from weft.runtime.spark.table_function import register_table_function  # Spark takes seconds to load

    register_table_function(spark, result_schema, matches_in)


def result_schema(call: MatchCall, columns: pa.Schema) -> pa.Schema:
    """The columns of the matches of a program in events with these columns."""
    program = _program(call)
    return shape_of(program.queries, columns, Reading(call.time, call.type, time_unit=program.time_unit)).schema


def matches_in(call: MatchCall, events: pa.Table) -> Iterator[pa.RecordBatch]:
    """The matches in a table of events."""
    options = Options(EventColumns(call.time, call.type))
    run = engines.start(events, _program(call), "local", options, showing=True)
    return run.results()


def _program(call: MatchCall) -> Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nobody sees them where this runs; `weft check` tells
        return compile(call.program, language=call.language)
