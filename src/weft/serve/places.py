"""The sources and sinks that programs of the command line name: events from there are published, matches go there."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from weft.algebra.query import Program
from weft.client.encoding import ARROW as ARROW_KIND
from weft.client.encoding import NDJSON as NDJSON_KIND
from weft.client.encoding import as_stream, bodies_of_place
from weft.connectors.adapters.registry import adapter_for
from weft.connectors.uris import Uri, as_uri
from weft.errors import UsageError, WeftError
from weft.runtime.live.subscriptions import Subscription
from weft.serve.engine import Busy, Request, Stopped
from weft.serve.program import ARROW, NDJSON, Publication
from weft.serve.service import Service

FORMS = {NDJSON_KIND: NDJSON, ARROW_KIND: ARROW}
LOG = logging.getLogger("weft.serve")


class PlaceConnections:
    """Reads all sources, each in a thread, and writes all sinks, while the server runs."""

    def __init__(self, service: Service, program: Program | None, programs: Sequence[str], *, allow_all: bool) -> None:
        self._service = service
        self._inputs = [(one.type, one.uri) for one in program.inputs if one.uri] if program is not None else []
        self._outputs = [(one.query, one.uri) for one in program.outputs] if program is not None else []
        self._sinks: list[Subscription] = []
        self._ended = False
        for name, uri in self._outputs:
            if not allow_all and not _is_beside(uri, programs):
                raise UsageError(f"{name} writes to {uri}: give --allow-sinks if that is meant")
        for name, uri in self._inputs:
            if not allow_all and uri.startswith("python:"):
                raise UsageError(f"the source {name} calls {uri}: give --allow-sinks if that is meant")

    def __enter__(self) -> Self:
        running = self._service.engine.program.running
        self._sinks = [running.subscribe(query, uri) for query, uri in self._outputs]
        for name, uri in self._inputs:
            parsed = as_uri(uri) or Uri(uri, "file", uri)
            adapter_for(parsed, "source")
            threading.Thread(target=self._read, args=[name, parsed], name=f"weft source {name}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        for sink in self._sinks:
            sink.cancel()

    def _read(self, name: str, uri: Uri) -> None:
        """Publish the events of a source; write errors to the log."""
        try:
            for body in bodies_of_place(uri.text):
                sent = body if body.table is None else as_stream([body.table])
                self._publish(sent.content, FORMS[sent.kind], sent.rows, name, uri.type or name)
                if self._ended:
                    return
        except Stopped:
            pass
        except WeftError as problem:
            LOG.error("the source %s has ended: %s", name, problem)

    def _publish(self, body: bytes, form: str, lines: int, name: str, type_: str) -> None:
        about = {"op": "events", "form": form, "type": type_}
        while not self._ended:
            try:
                answer = self._service.engine.submit(Request(about, body, Publication(lines))).result()
            except Busy:
                time.sleep(0.05)
                continue
            for rejected in answer["rejected"][:10]:
                LOG.warning("the source %s: %s", name, rejected["reason"])
            return


def _is_beside(uri: str, programs: Sequence[str]) -> bool:
    """Whether a sink is a file below the current folder, or below that of a program."""
    parsed = as_uri(uri)
    if parsed is not None and parsed.scheme != "file":
        return False
    folders = [Path.cwd().resolve(), *(Path(path).resolve().parent for path in programs)]
    path = Path(uri if parsed is None else parsed.place).resolve()
    return any(path.is_relative_to(folder) for folder in folders)
