"""The registry of adapters: by the scheme of a URI, how events are read there and matches are written.

An adapter is a value. Built-in ones are in `BUILT_IN`; other packages add theirs with the entry point group
`weft.adapters`, whose entries are `Adapter`s or functions that return one; a program may call `register`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal, NamedTuple

from weft.connectors.uris import TYPE, Uri
from weft.connectors.writers import Writer
from weft.errors import UsageError, WeftError, did_you_mean

Role = Literal["source", "sink"]
Engine = Literal["local", "spark"]
GROUP = "weft.adapters"
# Loaded when a URI of the scheme is used: a run on Spark needs no sockets, and a socket needs no Spark.
BUILT_IN = {
    "file": "weft.connectors.adapters.files:FILE",
    "folder": "weft.connectors.adapters.files:FOLDER",
    "tcp": "weft.connectors.adapters.tcp:TCP",
    "http": "weft.connectors.adapters.http:HTTP",
    "https": "weft.connectors.adapters.http:HTTPS",
    "python": "weft.connectors.adapters.python:PYTHON",
    "kafka": "weft.connectors.adapters.spark_only:KAFKA",
    "delta": "weft.connectors.adapters.spark_only:DELTA",
}


class Incoming(NamedTuple):
    """Events of a source: files, or items (events, lists of them, Arrow tables, `JsonText`).

    Items are matched as they come; if not `is_live`, they are all there, and are put into stream order first.
    """

    paths: list[str] | None = None
    items: Iterable[Any] | None = None
    is_live: bool = True


@dataclass(frozen=True)
class Adapter:
    """How one kind of place is read and written.

    `source` and `sink` are for programs in this process (`weft match`, `weft.detect`, `weft.live`, `weft serve`);
    `spark_roles` are those in which `weft run` can use it, through Spark. `source_options` and `sink_options` say what
    each option of the URI means; `passes_options`: other options are not ours, and are no mistake.
    `lacks` returns what is missing to use it (a package, a file, an option), in one sentence.
    """

    scheme: str
    about: str
    source: Callable[[Uri], Incoming] | None = None
    sink: Callable[[Uri], Writer] | None = None
    spark_roles: frozenset[Role] = frozenset()
    source_options: Mapping[str, str] = field(default_factory=dict)
    sink_options: Mapping[str, str] = field(default_factory=dict)
    passes_options: bool = False
    lacks: Callable[[Uri, Role], str | None] | None = None

    def can(self, role: Role, engine: Engine) -> bool:
        """Whether it can be used so."""
        return role in self.spark_roles if engine == "spark" else getattr(self, role) is not None

    def problem(self, uri: Uri, role: Role, engine: Engine | None = None) -> str | None:
        """Why a URI cannot be used so, None if it can; `engine` None: on any engine. Opens nothing."""
        engines: tuple[Engine, ...] = ("local", "spark") if engine is None else (engine,)
        if not any(self.can(role, one) for one in engines):
            place = "" if engine is None else " of weft run" if engine == "spark" else " in this process"
            return f"{self.scheme} cannot be a {role}{place}: {self.about}"
        known = {TYPE: "", **self.source_options} if role == "source" else self.sink_options
        unknown = next((name for name in uri.options if name not in known and not self.passes_options), None)
        if unknown is not None:
            hint = did_you_mean(unknown, known) or "it has no options"
            return f"{self.scheme} has no option {unknown!r} as a {role}; {hint}"
        return None if self.lacks is None else self.lacks(uri, role)


_REGISTERED: dict[str, Adapter] = {}


def register(adapter: Adapter) -> None:
    """Let URIs of the adapter's scheme be used in this process; one of the same scheme gives way."""
    _REGISTERED[adapter.scheme] = adapter


def known_adapters() -> list[str]:
    """The schemes that there are adapters for."""
    return sorted({*BUILT_IN, *_REGISTERED, *(entry.name for entry in entry_points(group=GROUP))})


def find_adapter(scheme: str) -> Adapter | None:
    """The adapter for a scheme, or None. One that cannot be loaded says why."""
    if scheme not in _REGISTERED:
        found = next(iter(entry_points(group=GROUP, name=scheme)), None)
        if found is None and scheme not in BUILT_IN:
            return None
        _REGISTERED[scheme] = _built_in(scheme) if found is None else _loaded(found)
    return _REGISTERED[scheme]


def _built_in(scheme: str) -> Adapter:
    module, name = BUILT_IN[scheme].split(":")
    adapter: Adapter = getattr(import_module(module), name)
    return adapter


def _loaded(entry: Any) -> Adapter:
    try:
        given = entry.load()
        made = given if isinstance(given, Adapter) else given()
    except WeftError:
        raise
    except Exception as problem:
        raise UsageError(f"the adapter {entry.name!r} ({entry.value}) cannot be loaded: {problem}") from problem
    if not isinstance(made, Adapter):
        raise UsageError(f"the adapter {entry.name!r} ({entry.value}) is a {type(made).__name__}, not an Adapter")
    return made


def problem_of(uri: Uri, role: Role, engine: Engine | None = None) -> str | None:
    """Why a URI cannot be used so; None if it can. Opens nothing."""
    try:
        adapter = find_adapter(uri.scheme)
    except UsageError as problem:
        return str(problem)
    if adapter is None:
        return f"there is no adapter for {uri.scheme!r}; {did_you_mean(uri.scheme, known_adapters())}"
    return adapter.problem(uri, role, engine)


def adapter_for(uri: Uri, role: Role, engine: Engine = "local") -> Adapter:
    """The adapter that a URI is used with; an error says why it cannot be."""
    problem = problem_of(uri, role, engine)
    adapter = None if problem else find_adapter(uri.scheme)
    if adapter is None:
        raise UsageError(f"{uri}: {problem}")
    return adapter


def open_source(uri: Uri) -> Incoming:
    """The events of a place, for a program in this process."""
    source = adapter_for(uri, "source").source
    assert source is not None  # or there was a problem
    return source(uri)


def open_sink(uri: Uri) -> Writer:
    """What writes matches to a place, for a program in this process."""
    sink = adapter_for(uri, "sink").sink
    assert sink is not None
    return sink(uri)
