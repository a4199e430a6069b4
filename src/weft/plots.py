"""`weft.plot`: matches and events as a timeline that can be zoomed, in a notebook or in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from weft import engines
from weft.algebra.query import Program
from weft.described import described
from weft.detection import Detection
from weft.drawing.plot import Plot, PlotData
from weft.errors import UsageError
from weft.runtime.options import EventColumns, Options

__all__ = ["Plot", "plot"]

MOST_MATCHES = 2_000
MOST_EVENTS = 20_000
Rows = Iterable[Mapping[str, Any]]


@described(
    matches="What `detect` returns, or a table of matches with the `variables` column (Arrow, pandas, Polars, Spark).",
    events="Events to show besides, as `detect` takes them, or a Spark frame.",
    key="The attribute that puts events into rows, as an account or a device; without it each type has a row.",
    time="The column with an event's time; if not given, that of `detect`, or `ts`.",
    type="The column with an event's type; if not given, that of `detect`, or `type`.",
)
def plot(
    matches: Any, events: Any = None, *, key: str | None = None, time: str | None = None, type: str | None = None
) -> Plot:
    """Return a zoomable timeline of matches: one HTML page that needs no network.

    The first 2,000 matches and 20,000 events are shown. A notebook shows the plot; `plot(…).save("timeline.html")`
    writes it.
    """
    own_time, own_type = matches.time_and_type if isinstance(matches, Detection) else ("ts", "type")
    time, type = time or own_time, type or own_type
    rows, total = _match_rows(matches)
    data = PlotData(key or type, time, type)
    for match in rows:
        data.add_match(match)
    for event in islice(_event_rows(events, time, type), MOST_EVENTS):
        data.add_event(event)
    return data.page(total)


def _match_rows(matches: Any) -> tuple[Rows, int]:
    if engines.is_spark_frame(matches):
        if matches.isStreaming:
            raise UsageError("a stream has no first matches to plot: plot those that it has written")
        return (row.asDict(recursive=True) for row in matches.limit(MOST_MATCHES).toLocalIterator()), matches.count()
    if isinstance(matches, Detection) or hasattr(matches, "to_arrow"):
        matches = matches.to_arrow()
    if hasattr(matches, "iloc"):  # of pandas
        matches = pa.Table.from_pandas(matches, preserve_index=False)
    if isinstance(matches, pa.Table | pa.RecordBatch) and "variables" in matches.schema.names:
        return matches.slice(0, MOST_MATCHES).to_pylist(), len(matches)
    raise UsageError(
        "weft.plot draws what weft.detect(…) returns, or a table of matches with the column `variables`: "
        "weft.detect(…).to_arrow(), or weft.match(…) on Spark"
    )


def _event_rows(events: Any, time: str, type: str) -> Iterator[Mapping[str, Any]]:
    if events is None:
        return
    if engines.is_spark_frame(events):
        yield from (row.asDict(recursive=True) for row in events.limit(MOST_EVENTS).toLocalIterator())
        return
    source = engines.events_here(events, Program("plot", ()), Options(EventColumns(time, type)))
    for batch in () if source is None else source:
        yield from () if batch.rows is None else batch.rows.to_pylist()
