"""`python:module.function?name=value`: a function gives the events, or takes each match; options are its arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa

from weft.connectors.adapters.registry import Adapter, Incoming, Role
from weft.connectors.uris import TYPE, Uri
from weft.connectors.writers import Writer
from weft.errors import InputError, UsageError
from weft.runtime.writing.match_rows import rows_to_matches


def _lacks(uri: Uri, role: Role) -> str | None:
    try:
        function_of(uri)
    except UsageError as problem:
        return str(problem)
    return None


def function_of(uri: Uri) -> Callable[..., Any]:
    """The function that a URI names; modules of the current folder are found, too."""
    module, _, name = uri.place.rpartition(".")
    if not module or not name:
        raise UsageError("write python:MODULE.FUNCTION")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as problem:
        raise UsageError(f"the module {module!r} cannot be imported: {problem}") from None
    except Exception as problem:
        raise UsageError(f"the module {module!r} fails: {type(problem).__name__}: {problem}") from problem
    if not callable(found):
        raise UsageError(f"the module {module!r} has no function {name!r}")
    function: Callable[..., Any] = found
    return function


def _arguments(uri: Uri) -> dict[str, str]:
    return {name: value for name, value in uri.options.items() if name != TYPE}


def _called(uri: Uri) -> Any:
    try:
        return function_of(uri)(**_arguments(uri))
    except TypeError as problem:
        raise InputError(f"{uri}: {problem}") from problem


def _items(uri: Uri, given: Iterable[Any]) -> Iterator[Any]:
    """Yield the items that the function returns; errors it raises name the place."""
    try:
        yield from given
    except (InputError, UsageError):
        raise
    except Exception as problem:
        raise InputError(f"{uri}: {type(problem).__name__}: {problem}") from problem


def _source(uri: Uri) -> Incoming:
    given = _called(uri)
    if isinstance(given, pa.Table | pa.RecordBatch) or hasattr(given, "__arrow_c_stream__"):
        return Incoming(items=[given], is_live=False)
    if not isinstance(given, Iterable):
        raise InputError(f"{uri} returns a {type(given).__name__}: a source returns an iterable of events")
    return Incoming(items=_items(uri, given), is_live=isinstance(given, Iterator))


class MatchCallback:
    """Calls a function with each match."""

    def __init__(self, uri: Uri) -> None:
        self._uri = uri
        self._function, self._arguments = function_of(uri), _arguments(uri)

    def write(self, rows: pa.RecordBatch) -> None:
        """MatchCall it with rows of MATCH_SCHEMA, one by one, as `weft.Match`es."""
        for match in rows_to_matches(rows):
            try:
                self._function(match, **self._arguments)
            except Exception as problem:
                raise InputError(f"{self._uri}: {type(problem).__name__}: {problem}") from problem

    def close(self) -> None:
        """Nothing is missing."""


def _sink(uri: Uri) -> Writer:
    return MatchCallback(uri)


PYTHON = Adapter(
    "python",
    "a function that gives events or takes matches: python:MODULE.FUNCTION?name=value",
    _source,
    _sink,
    passes_options=True,
    lacks=_lacks,
)
