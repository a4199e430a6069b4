"""`file:` and `folder:` URIs: files of events by path, pattern or folder, and files of matches by their endings."""

from __future__ import annotations

from pathlib import Path

from weft.connectors.adapters.registry import Adapter, Incoming, Role
from weft.connectors.uris import Uri
from weft.connectors.writers import MatchFile, Writer


def _source(uri: Uri) -> Incoming:
    return Incoming(paths=[uri.place])


def _sink(uri: Uri) -> Writer:
    return MatchFile(uri.place)


def _no_folder(uri: Uri, role: Role) -> str | None:
    if role == "source" and not Path(uri.place).is_dir():
        return f"no such folder: {uri.place}"
    return None


def _no_path(uri: Uri, role: Role) -> str | None:
    return None if uri.place else "it names no file: write file:PATH"


FILE = Adapter(
    "file",
    "files of events or matches (.jsonl, .csv, .parquet): file:PATH",
    _source,
    _sink,
    spark_roles=frozenset({"source", "sink"}),
    lacks=_no_path,
)
FOLDER = Adapter(
    "folder",
    "a folder of files of events: folder:PATH",
    _source,
    spark_roles=frozenset({"source", "sink"}),
    lacks=_no_folder,
)
