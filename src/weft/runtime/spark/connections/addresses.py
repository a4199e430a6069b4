"""Addresses of topics and tables, as users write them: `kafka://HOST:PORT/TOPIC?format=json`, `delta:PATH`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from weft.errors import UsageError, did_you_mean

KAFKA, DELTA = "kafka", "delta"
FORMATS = ("json", "avro")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SOURCE_OPTIONS = {KAFKA: ("format", "schema", "starting", "type"), DELTA: ("starting", "type")}
_SINK_OPTIONS: dict[str, tuple[str, ...]] = {KAFKA: ("key",), DELTA: ()}
_KEY = re.compile(r"id|query|event\.[^.\[\]'\"$*]+")


@dataclass(frozen=True)
class KafkaAddress:
    """A topic; `servers` are HOST:PORT, several with commas between them."""

    servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def format(self) -> str:
        """How payloads are written: json or avro."""
        return self.options.get("format", "json")

    @property
    def schema(self) -> str | None:
        """The columns of payloads as text: the option itself, or the content of the file that it names."""
        given = self.options.get("schema")
        if given is None:
            return None
        try:
            return Path(given).read_text(encoding="utf-8") if Path(given).is_file() else given
        except OSError:  # too long for a path
            return given

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"


@dataclass(frozen=True)
class DeltaAddress:
    """A Delta table, by its path."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"delta:{self.path}"


Address = KafkaAddress | DeltaAddress


def scheme_of(uri: str) -> str | None:
    """The scheme of a URI (`kafka`, `delta`, `file`, …); None for a plain path."""
    if uri.lower().startswith(f"{DELTA}:"):
        return DELTA
    found = re.match(r"([a-z][a-z0-9+.-]*)://", uri, re.IGNORECASE)
    return found[1].lower() if found else None


def is_connection(uri: str) -> bool:
    """Whether a URI names a topic or a table instead of files."""
    return scheme_of(uri) in (KAFKA, DELTA)


def folder_of(uri: str) -> tuple[str, str | None]:
    """The path of `PATH`, `file:PATH` or `folder:PATH`, and the type that `?type=NAME` gives to events without one."""
    path = re.sub(r"^(?:file|folder):(?://)?", "", uri)
    place, _, query = path.partition("?")
    if not query or Path(path).exists():
        return path, None
    return place, _options(query, uri, ("type",)).get("type")


def source_address(uri: str, what: str) -> Address:
    """The topic or table that events are read from; `what` it is for, in messages."""
    found = _parsed(uri, what, _SOURCE_OPTIONS)
    if isinstance(found, KafkaAddress):
        if found.format not in FORMATS:
            raise UsageError(f"{what}: format={found.format} is not known; payloads are {' or '.join(FORMATS)}")
        if found.format == "avro" and found.schema is None:
            raise UsageError(f"{what}: Avro needs its schema: format=avro&schema=FILE.avsc")
    return found


def sink_address(uri: str, what: str = "the sink") -> Address:
    """The topic or table that matches are written to."""
    found = _parsed(uri, what, _SINK_OPTIONS)
    key = found.options.get("key")
    if key is not None and not _KEY.fullmatch(key):
        raise UsageError(f"{what}: key={key} is not known: the key of a record is id, query or event.FIELD")
    return found


def _parsed(uri: str, what: str, known: Mapping[str, Collection[str]]) -> Address:
    scheme = scheme_of(uri)
    if scheme not in known:
        raise UsageError(f"{what}: {uri} is not an address of {' or '.join(known)}")
    if scheme == DELTA:
        place, _, query = uri[len(DELTA) + 1 :].removeprefix("//").partition("?")
        if not place:
            raise UsageError(f"{what}: {uri} names no table: write delta:PATH")
        return DeltaAddress(_absolute(place), _options(query, what, known[DELTA]))
    parts = urlsplit(uri)
    topic = parts.path.strip("/")
    if not parts.netloc or not _TOPIC.fullmatch(topic) or "@" in parts.netloc:
        raise UsageError(f"{what}: {uri} is not kafka://HOST:PORT/TOPIC")
    servers = ",".join(server if ":" in server else f"{server}:9092" for server in parts.netloc.split(","))
    return KafkaAddress(servers, topic, _options(parts.query, what, known[KAFKA]))


def _absolute(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())


def _options(query: str, what: str, known: Collection[str]) -> dict[str, str]:
    found = dict(parse_qsl(query, keep_blank_values=True))
    for name in found:
        if name not in known:
            hint = did_you_mean(name, known) or f"known are {', '.join(known) or 'none'}"
            raise UsageError(f"{what}: there is no option {name!r}; {hint}")
    return found
