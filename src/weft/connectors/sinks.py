"""Matches to where a user wants them: a file, standard output, or a place that an adapter writes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from weft.connectors.adapters.registry import open_sink
from weft.connectors.places import opened
from weft.connectors.uris import as_uri
from weft.connectors.writers import (
    JsonLines,
    MatchFile,
    Rows,
    Writer,
    batches_of,
    writer_of,
    writer_of_ending,
)


def write_matches(matches: Rows, path: str | Path, format: str = "jsonl") -> int:
    """Write matches (dicts, or rows of MATCH_SCHEMA) to a file (`-`: standard output) or a URI; returns how many."""
    count = 0
    with _whole(path, format) as writer:
        for rows in batches_of(matches):
            writer.write(rows)
            count += len(rows)
    return count


def write_to_sinks(matches: Iterable[pa.RecordBatch], sinks: Mapping[str, Sequence[str]]) -> int:
    """Write each query's matches to its files, by their endings; those of queries without one to standard output."""
    count = 0
    with ExitStack() as stack:
        paths = dict.fromkeys(path for places in sinks.values() for path in places)
        files = {path: stack.enter_context(_whole(path)) for path in paths}
        shown = stack.enter_context(closing(JsonLines(stack.enter_context(opened("-")))))
        for rows in matches:
            count += len(rows)
            for query in rows["query"].unique().to_pylist():
                own = rows.filter(pc.equal(rows["query"], query))
                targets: list[Writer] = [files[path] for path in sinks.get(query, ())]
                for target in targets or [shown]:
                    target.write(own)
    return count


@contextmanager
def _whole(path: str | Path, format: str | None = None) -> Iterator[Writer]:
    """A file of matches (by its ending unless the format is given), which is there when all are; or another place."""
    uri = as_uri(path)
    if uri is not None:
        with closing(open_sink(uri)) as writer:
            yield writer
        return
    make = writer_of_ending(path) if format is None else writer_of(format)
    with opened(path) as sink, closing(make(sink)) as writer:
        yield writer


def growing_sink(path: str | Path) -> Writer:
    """A place that matches are added to as they are found: a file by its ending, or a URI."""
    uri = as_uri(path)
    return MatchFile(path) if uri is None else open_sink(uri)
