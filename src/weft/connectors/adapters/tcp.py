"""`tcp://HOST:PORT`: JSON lines over a socket, as a client, or with `?listen=1` for all who connect."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from weft.connectors.adapters.registry import Adapter, Incoming, Role
from weft.connectors.json_lines import JsonText
from weft.connectors.uris import Uri
from weft.connectors.writers import Writer
from weft.errors import InputError
from weft.runtime.reading.json_blocks import LONGEST
from weft.runtime.writing.match_lines import json_lines

PIECE = 1 << 16  # bytes taken at a time
ROOM = 64  # pieces of all connections that may wait
CONNECT_TIMEOUT_S = 10.0  # seconds for which a connection is tried
PAUSE = 0.1  # seconds between two tries
OPTIONS = {"listen": "1: wait for connections instead of connecting"}


def _lacks(uri: Uri, role: Role) -> str | None:
    if not uri.host or uri.port is None:
        return "write tcp://HOST:PORT, as in tcp://127.0.0.1:9000"
    if uri.options.get("listen", "0") not in ("0", "1"):
        return "listen is 0 or 1"
    return None


def _listens(uri: Uri) -> bool:
    return uri.options.get("listen") == "1"


def connected(uri: Uri) -> socket.socket:
    """A connection to the place; whoever listens there may need a moment to begin."""
    until = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            made = socket.create_connection((uri.host, uri.port or 0), timeout=CONNECT_TIMEOUT_S)
            made.settimeout(None)
            return made
        except ConnectionRefusedError as problem:
            if time.monotonic() > until:
                raise InputError(f"cannot connect to {uri}: {problem.strerror or problem}") from None
            time.sleep(PAUSE)
        except OSError as problem:
            raise InputError(f"cannot connect to {uri}: {problem.strerror or problem}") from None


def listening(uri: Uri) -> socket.socket:
    """A socket that takes connections at the place."""
    try:
        family = socket.AF_INET6 if ":" in uri.host else socket.AF_INET
        return socket.create_server((uri.host, uri.port or 0), family=family)
    except OSError as problem:
        raise InputError(f"cannot listen at {uri}: {problem.strerror or problem}") from None


def lines_from(connection: socket.socket, place: str) -> Iterator[JsonText]:
    """What comes through a connection, in pieces that end with a line, until the other side closes it."""
    rest, line = b"", 1
    with connection:
        while True:
            try:
                piece = connection.recv(PIECE)
            except OSError as problem:
                raise InputError(f"{place}: the connection broke: {problem.strerror or problem}") from None
            if not piece:
                break
            cut = piece.rfind(b"\n") + 1
            if not cut:
                rest += piece
                if len(rest) > LONGEST:
                    raise InputError(f"{place}: a line of more than {LONGEST >> 20} MiB is no event")
                continue
            whole, rest = rest + piece[:cut], piece[cut:]
            yield JsonText(whole, place, line)
            line += whole.count(b"\n")
    if rest.strip():
        yield JsonText(rest, place, line)


def _accepted(server: socket.socket, place: str) -> Iterator[JsonText]:
    """What comes from all who connect, until this is closed. A connection that breaks ends, and no other."""
    inbox: queue.Queue[JsonText] = queue.Queue(ROOM)

    def read(connection: socket.socket) -> None:
        with suppress(InputError):
            for text in lines_from(connection, place):
                inbox.put(text)

    def accept() -> None:
        with suppress(OSError):  # the server is closed
            while True:
                connection, _ = server.accept()
                threading.Thread(target=read, args=[connection], name="weft tcp", daemon=True).start()

    threading.Thread(target=accept, name="weft tcp", daemon=True).start()
    with server:
        while True:
            yield inbox.get()


def _source(uri: Uri) -> Incoming:
    if _listens(uri):
        return Incoming(items=_accepted(listening(uri), uri.text))
    return Incoming(items=lines_from(connected(uri), uri.text))


class LineSocket:
    """Writes matches as JSON lines to one connection."""

    def __init__(self, uri: Uri) -> None:
        self._uri = uri
        self._connection = connected(uri)

    def write(self, rows: pa.RecordBatch) -> None:
        """Send rows of MATCH_SCHEMA; waits until the other side takes them."""
        try:
            self._connection.sendall(json_lines(rows))
        except OSError as problem:
            raise InputError(f"{self._uri}: the connection broke: {problem.strerror or problem}") from None

    def close(self) -> None:
        """Say that nothing more comes."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        self._connection.close()


class Broadcast:
    """Writes matches as JSON lines to all who are connected; one that does not take them is disconnected."""

    SLOWEST = 5.0  # seconds that one of them may take

    def __init__(self, uri: Uri) -> None:
        self._server = listening(uri)
        self._readers: list[socket.socket] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name="weft tcp", daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                connection.settimeout(self.SLOWEST)
                with self._lock:
                    self._readers.append(connection)

    def write(self, rows: pa.RecordBatch) -> None:
        """Send rows of MATCH_SCHEMA to all who are there."""
        lines = json_lines(rows)
        with self._lock:
            for reader in list(self._readers):
                try:
                    reader.sendall(lines)
                except OSError:
                    self._readers.remove(reader)
                    reader.close()

    def close(self) -> None:
        """Disconnect all."""
        self._server.close()
        with self._lock:
            for reader in self._readers:
                reader.close()


def _sink(uri: Uri) -> Writer:
    return Broadcast(uri) if _listens(uri) else LineSocket(uri)


TCP = Adapter(
    "tcp",
    "JSON lines over a socket: tcp://HOST:PORT",
    _source,
    _sink,
    source_options=OPTIONS,
    sink_options=OPTIONS,
    lacks=_lacks,
)
