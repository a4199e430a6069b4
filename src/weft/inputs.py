"""What a user gives as events, as the engines take it: data in memory, files, and named sources of either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from weft.algebra.query import Program
from weft.connectors.adapters import registry as adapters
from weft.connectors.adapters.registry import Incoming
from weft.connectors.files import READERS, file_chunks, find_files, format_of, open_files
from weft.connectors.uris import Uri, as_uri
from weft.errors import UsageError
from weft.runtime.local import Events
from weft.runtime.options import Arrival
from weft.runtime.reading.arrivals import LiveEvents
from weft.runtime.reading.chunks import chunks_of
from weft.runtime.reading.idleness import idle_seconds
from weft.runtime.reading.order import EventSource, Given, Reading, reading_of, source_of
from weft.runtime.reading.sources import NamedSource, defaults_of, whole_source

if TYPE_CHECKING:
    from weft.runtime.spark.files.batches import Files


WHOLE = "events"  # the name of a source that is the only one
FILES = frozenset({"file", "folder"})  # schemes whose places are paths


def open_input(events: Any, program: Program, *, arrival: Arrival | None = None, **given: Unpack[Given]) -> Events:
    """Events in stream order from data in memory, from files, or from named sources; the rest as for `read_events`."""
    reading = _reading(program, **given)
    events = placed(events)
    if isinstance(events, Placed):
        events = {WHOLE: events}
    if isinstance(events, Mapping) and not is_event(events, reading.time, reading.type):
        return _merged(events, reading, program, arrival or Arrival())
    if arrival is not None and arrival.is_asked_for:
        raise UsageError(
            "`delay`, `idle_after` and `max_jump` are for live sources: give each a name, as in {'quotes': quotes}"
        )
    return _opened(events, reading)


def open_source(events: Any, program: Program, **given: Unpack[Given]) -> EventSource:
    """Events in stream order from data in memory, from files, or from a place that is read to its end."""
    reading = _reading(program, **given)
    events = placed(events)
    if isinstance(events, Placed):
        return whole_source([_placed_source(WHOLE, events, {}, reading, is_live=False)], reading)
    return _opened(events, reading)


def _opened(events: Any, reading: Reading) -> EventSource:
    paths = paths_of(events)
    return source_of(events, reading) if paths is None else open_files(paths, reading)


def spark_input(events: Any, program: Program, *, time: str, type: str) -> Any:
    """Events as the Spark engine takes them: files are found here, and read in Spark's tasks."""
    events = placed(events)
    if isinstance(events, Placed):
        events = {WHOLE: events}
    if isinstance(events, Mapping) and not is_event(events, time, type):
        sources = named_sources(events, _reading(program, time=time, type=type), program)
        live = [source.name for source in sources if source.items is not None]
        if live:
            raise UsageError(
                f"the source {live[0]!r} is an iterator, whose events are matched as they come: "
                "that is for engine='local'; for engine='spark' make it a list"
            )
        places = [
            (paths, source.defaults) for source in sources if (paths := files_of(events[source.name])) is not None
        ]
        return _files(places) if len(places) == len(sources) else sources
    paths = paths_of(events)
    return events if paths is None else _files([(paths, {})])


def _files(places: Iterable[tuple[list[str], Mapping[str, str]]]) -> Files:
    """Files, with what the events in them do not say themselves."""
    from weft.runtime.spark.files.batches import Files

    found = [(path, defaults) for paths, defaults in places for path in find_files(paths)]
    return Files(tuple((path, format_of(path), defaults) for path, defaults in found), READERS)


def declared_input(program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sources of a program: those given, and otherwise the files that the program declares."""
    missing = [source for source in program.inputs if source.type not in given]
    for source in missing:
        if source.uri is None:
            raise UsageError(
                f"the program does not say where the events of {source.type!r} come from: "
                f"write it there, or give --events {source.type}=FILE"
            )
    return {**{source.type: path_of(source.uri or "") for source in missing}, **given}


def path_of(uri: str) -> str:
    """The path that a URI in a program means, or the URI of another place."""
    given = placed(uri)
    return given.uri.text if isinstance(given, Placed) else str(given)


def named_sources(events: Mapping[str, Any], reading: Reading, program: Program) -> tuple[NamedSource, ...]:
    """Sources by their names, those that the program declares in its order."""
    if not events or not all(isinstance(name, str) and name for name in events):
        raise UsageError("sources are given by name, as in {'quotes': quotes, 'news': 'news.jsonl'}")
    declared = [source.type for source in program.inputs]
    sources = []
    for name in sorted(events, key=lambda name: declared.index(name) if name in declared else len(declared)):
        defaults = defaults_of(name, len(events), program, reading.type)
        data = placed(events[name])
        if isinstance(data, Placed):
            sources.append(_placed_source(name, data, defaults, reading))
            continue
        if isinstance(data, Iterator):
            sources.append(NamedSource(name, items=data, defaults=defaults))
            continue
        paths = paths_of(data)
        if paths is None:
            chunks = partial(chunks_of, data, reading.batch_size, reading.time_unit)
        else:
            files = [(path, format_of(path)) for path in find_files(paths)]
            chunks = partial(file_chunks, files, reading)
        sources.append(NamedSource(name, chunks, defaults=defaults))
    return tuple(sources)


def _placed_source(
    name: str, place: Placed, defaults: Mapping[str, str], reading: Reading, *, is_live: bool = True
) -> NamedSource:
    """A place that is read through its adapter, with the type that its URI says."""
    defaults = {**defaults, **({} if place.uri.type is None else {reading.type: place.uri.type})}
    paths, items, arriving = place.opened()
    if paths is not None:
        files = [(path, format_of(path)) for path in find_files(paths)]
        return NamedSource(name, partial(file_chunks, files, reading), defaults=defaults)
    if arriving and is_live:
        return NamedSource(name, items=iter(items or ()), defaults=defaults)
    return NamedSource(name, partial(chunks_of, items, reading.batch_size, reading.time_unit), defaults=defaults)


def _merged(events: Mapping[str, Any], reading: Reading, program: Program, arrival: Arrival) -> Events:
    sources = named_sources(events, reading, program)
    if any(source.items is not None for source in sources):
        if reading.order:
            raise UsageError(
                "`order` is for inputs that are read as a whole: events of iterators are matched as they come"
            )
        idle = idle_seconds(arrival.idle_after, events, program.inputs)
        return LiveEvents(sources, reading, delay=arrival.delay, idle_after=idle, max_jump=arrival.max_jump)
    return whole_source(sources, reading)


def _reading(program: Program, **given: Unpack[Given]) -> Reading:
    sources = tuple(source.type for source in program.inputs)
    return replace(reading_of(**given), catalog=program.catalog, time_unit=program.time_unit, sources=sources)


def is_event(events: Mapping[Any, Any], time: str, type: str) -> bool:
    """Whether this is one event rather than sources by name."""
    return type in events or time in events


def reads_once(events: Any) -> bool:
    """Whether these events are gone when they have been read: iterators, and files that are none, as pipes are."""
    if isinstance(placed(events), Placed):
        return files_of(events) is None
    paths = paths_of(events)
    if paths is not None:
        return any(Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()) for path in paths)
    named = events.values() if isinstance(events, Mapping) else ()
    return isinstance(events, Iterator) or any(map(reads_once, named))


@dataclass(frozen=True)
class Placed:
    """A place that is read through its adapter: it is opened when its events are needed."""

    uri: Uri

    def opened(self) -> Incoming:
        """Its events."""
        return adapters.open_source(self.uri)


def placed(events: Any) -> Any:
    """What is given, a URI of files as their path, and another as a `Placed`."""
    if isinstance(events, list | tuple) and any(isinstance(item, str) and as_uri(item) for item in events):
        found = [placed(item) for item in events]
        if not any(isinstance(item, Placed) for item in found):
            return found
        if len(found) > 1:
            raise UsageError("several places are sources of their own: give each a name, as in quotes=tcp://…")
        return found[0]
    uri = as_uri(events) if isinstance(events, str) else None
    if uri is None:
        return events
    if uri.scheme in FILES and not uri.options:
        adapters.adapter_for(uri, "source")
        return uri.place
    return Placed(uri)


def paths_of(events: Any) -> list[str] | None:
    """The files that are meant, None for data in memory and for places that say more than that."""
    events = placed(events)
    if isinstance(events, str | Path):
        return [str(events)]
    if isinstance(events, list | tuple) and events and all(isinstance(item, str | Path) for item in events):
        return [str(path) for path in events]
    return None


def files_of(events: Any) -> list[str] | None:
    """The same, also where a URI says more of the files."""
    given = placed(events)
    if isinstance(given, Placed):
        return [given.uri.place] if given.uri.scheme in FILES else None
    return paths_of(given)
