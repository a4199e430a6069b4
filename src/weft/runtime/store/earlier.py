"""Events as the first states of 0.1.0 kept them, chunk by chunk: read here, and written as all others from then on."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from weft.runtime.data.blocks import unpacked_rows
from weft.runtime.data.events import Column, EventBatch


def events_in_chunks(pages: Mapping[str, bytes], name: str) -> list[EventBatch]:
    """The events under a name, oldest first: a page was called by its positions, `history/7`, or `kept/7-9`."""
    own = f"{name}/"
    early = [page for page in pages if page.startswith("history/") or (page.startswith(own) and "-" in page)]
    early.sort(key=lambda page: int(page.rpartition("/")[2].partition("-")[0]))
    return [_chunk(unpacked_rows(pages[page])) for page in early]


def _chunk(rows: pa.RecordBatch) -> EventBatch:
    """The events of one page: whole rows of the input, or some attributes by kind and name."""
    positions = np.asarray(rows.column(0))
    columns: dict[str, Column] = {}
    whole = None
    if rows.schema.names == ["p", "r"]:
        whole = pa.RecordBatch.from_struct_array(rows.column(1))
    else:
        kinds: dict[str, dict[str, pa.Array]] = {}
        for field, values in zip(rows.schema.names[1:], rows.columns[1:], strict=True):
            kind, attribute = json.loads(field)
            kinds.setdefault(attribute, {})[kind] = values
        columns = {attribute: Column(**values) for attribute, values in kinds.items()}
    return EventBatch(pa.nulls(len(positions)), positions, positions, positions, columns, rows=whole)
