"""Type checks for the arguments of the public functions, with a message about the first wrong one.

Names mean the same in all functions, so one table serves all of them. Wrong values of the right type (an unknown
strategy, a number below 1) are reported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import NamedTuple, SupportsIndex, TypeGuard

from weft.errors import UsageError
from weft.runtime.limits.budgets import Budget
from weft.runtime.limits.shedding import Shed
from weft.schema import Catalog
from weft.statistics import Statistics

SHOWN = 60  # characters of what was given
MOST = 100_000  # lanes, threads or machines: more of them would only take memory


class ArgumentKind(NamedTuple):
    """Whether a value is of the kind, and what that is called."""

    holds: Callable[[object], bool]
    expected: str


def _of(*types: type, expected: str) -> ArgumentKind:
    return ArgumentKind(lambda given: isinstance(given, types), expected)


def _is_whole(given: object) -> TypeGuard[SupportsIndex]:
    return isinstance(given, SupportsIndex) and not isinstance(given, bool)


def _is_sample(given: object) -> bool:
    return given is None or (_is_whole(given) and int(given) > 0)


def _is_auto(given: object) -> bool:
    return isinstance(given, str) and given == "auto"


def _is_number(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool)


def _are_names(given: object) -> bool:
    if not isinstance(given, Collection) or isinstance(given, bytes | Mapping):
        return False
    return all(isinstance(name, str) for name in given)


def _is_schema(given: object) -> bool:
    if isinstance(given, Mapping):
        return all(isinstance(attributes, Mapping) for attributes in given.values())
    return isinstance(given, Catalog | None)


_COLUMN = _of(str, expected="the name of a column, as in 'ts'")
_COLUMNS = ArgumentKind(_are_names, "the name of a column, or a list of such")
_NAME = _of(str, type(None), expected="a name")
_WHOLE = ArgumentKind(lambda given: given is None or _is_whole(given), "a whole number")
_COUNT = ArgumentKind(lambda given: given is None or (_is_whole(given) and int(given) <= MOST), "a number")
FLAG = _of(bool, expected="True or False")

KINDS: Mapping[str, ArgumentKind] = {
    "language": _of(str, type(None), expected="the name of a language, as in 'ceql'"),
    "time_unit": _of(str, expected="a unit of time: 'ns', 'us', 'ms', 's', 'min', 'h' or 'd'"),
    "schema": ArgumentKind(_is_schema, "what is known of event types, as in {'A': {'x': 'int'}}"),
    "name": _NAME,
    "engine": _of(str, type(None), expected="the name of an engine: 'local', 'spark' or 'meaning'"),
    "time": _COLUMN,
    "type": _COLUMN,
    "order": _COLUMNS,
    "key": _COLUMNS,
    "rejects": _of(list, type(None), expected="a list, to which is appended what cannot be read"),
    "delay": ArgumentKind(_WHOLE.holds, "a whole number of ticks"),
    "idle_after": ArgumentKind(
        lambda given: given in (None, "rate") or _is_number(given), "a number of seconds, 'rate' or None"
    ),
    "max_jump": ArgumentKind(lambda given: given is None or _is_number(given), "a number of seconds, or None"),
    "strategy": _of(str, type(None), expected="the name of a strategy, as in 'key'"),
    "lanes": ArgumentKind(lambda given: _is_auto(given) or _COUNT.holds(given), "a number of lanes, or 'auto'"),
    "threads": ArgumentKind(_COUNT.holds, "a number of threads"),
    "statistics": _of(Statistics, str, Path, type(None), expected="a weft.Statistics, or a file of them"),
    "budget": _of(
        Budget, Sequence, Mapping, type(None), expected="a weft.Budget, several, or such by the names of queries"
    ),
    "shed": _of(Shed, type(None), expected="a weft.Shed"),
    "sample": ArgumentKind(_is_sample, "a number of events, at least 1"),
    "stage": _of(str, expected="the name of a stage, as in 'plan'"),
    "format": _of(str, expected="'text', 'json' or 'dot'"),
    "model": _NAME,
    "nodes": ArgumentKind(_COUNT.holds, "a number of machines"),
    "checkpoint": _of(str, Path, type(None), expected="the folder of a checkpoint"),
    "scan": _of(str, expected="'auto' or 'spark'"),
    "state": _of(str, expected="'auto', 'files' or 'spark'"),
    "queue": ArgumentKind(_WHOLE.holds, "a number of events that may wait"),
}


def check(given: Mapping[str, object], **instead: ArgumentKind | None) -> None:
    """Refuse the first of these arguments that is of another kind than its name says.

    `instead`: what names mean in this function alone; None: anything.
    """
    for name, value in given.items():
        kind = instead[name] if name in instead else KINDS.get(name)
        if kind is not None and not kind.holds(value):
            raise UsageError(f"{name} is {kind.expected}, not {_shown(value)}")


def _shown(value: object) -> str:
    """Return a plain value as written, or only the type of a value that may be large."""
    if isinstance(value, str | bytes | int | float | None) or (isinstance(value, list | tuple) and len(value) < SHOWN):
        text = repr(value)
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return f"a {type(value).__name__}"
