"""Frozen values (queries, plans) as plain data that JSON can hold, and back: only our own classes are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

from weft.errors import UsageError
from weft.tree import deep

Plain = Any  # what `json` reads and writes
Classes = Mapping[str, type]
_CLASS, _SET, _ONE, _MAP, _DECIMAL = "is", "set", "one", "map", "decimal"


def classes_in(modules: Iterable[ModuleType]) -> dict[str, type]:
    """The frozen classes and enumerations that modules define, by the names under which they are stored."""
    return {
        _name(found): found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__
        if is_dataclass(found) or issubclass(found, Enum) or _is_named_tuple(found)
    }


@cache
def _name(kind: type) -> str:
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


@deep
def to_plain(value: object) -> Plain:
    """Convert a value to plain data. Tuples become lists and keys of dicts texts; a class is identified by module and
    name.
    """
    return _plain(value)


def _plain(value: object) -> Plain:
    if value is None or type(value) in (str, int, bool, float):
        return value
    if isinstance(value, Enum):
        return {_ONE: _name(type(value)), "name": value.name}
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    if isinstance(value, tuple) and _is_named_tuple(type(value)):
        named = zip(type(value)._fields, value, strict=True)  # type: ignore[attr-defined] # its fields
        return {_CLASS: _name(type(value)), **{name: _plain(part) for name, part in named}}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset):
        return {_SET: sorted((_plain(item) for item in value), key=repr)}
    if isinstance(value, dict):
        return {_MAP: {name: _plain(part) for name, part in value.items()}}
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"a {type(value).__name__} cannot be stored")
    stored = (field.name for field in _given_fields(type(value)) if field.metadata.get("stored", True))
    parts = {name: _plain(getattr(value, name)) for name in stored}
    return {_CLASS: _name(type(value)), **parts}


@deep
def from_plain(plain: Plain, classes: Classes) -> Any:
    """The value that was made into plain data. A field that is not there has its default."""
    return _value(plain, classes)


def _value(plain: Plain, classes: Classes) -> Any:
    if isinstance(plain, list):
        return tuple(_value(item, classes) for item in plain)
    if not isinstance(plain, dict):
        return plain
    if _DECIMAL in plain:
        return Decimal(plain[_DECIMAL])
    if _SET in plain:
        return frozenset(_value(item, classes) for item in plain[_SET])
    if plain.keys() == {_MAP}:
        return {name: _value(part, classes) for name, part in plain[_MAP].items()}
    kind = classes.get(plain.get(_ONE) or plain.get(_CLASS, ""))
    try:
        if kind is not None and _ONE in plain:
            return kind[plain["name"]]  # type: ignore[index] # an enumeration
        if kind is not None:
            return kind(**{name: _value(part, classes) for name, part in plain.items() if name != _CLASS})
    except (TypeError, ValueError, KeyError):
        pass
    raise UsageError("a saved query cannot be read by this version of weft: it was made by a newer one, or is damaged")


@deep
def canonical_text(value: object) -> str:
    """A text that is the same for equal values, in every version that knows them: a field that has its default is left
    out, so that a field which a later version adds changes nothing."""
    return _text(value)


def _text(value: object) -> str:
    if value is None or type(value) in (str, int, bool, float):
        return repr(value)
    match value:
        case Enum():
            return f"{_name(type(value))}.{value.name}"
        case frozenset():
            return f"set{sorted(map(_text, value))}"
        case dict():
            return f"map{sorted((str(name), _text(part)) for name, part in value.items())}"
        case tuple() | list():
            return f"[{', '.join(map(_text, value))}]"
    if is_dataclass(value) and not isinstance(value, type):
        given = ((field.name, getattr(value, field.name)) for field in _given_fields(type(value)) if field.compare)
        defaults = _defaults(type(value))
        parts = [f"{name}={_text(own)}" for name, own in given if not _is_default(own, name, defaults)]
        return f"{_name(type(value))}({', '.join(parts)})"
    return repr(value)


@cache
def _given_fields(kind: type) -> tuple[Field[Any], ...]:
    """The fields with which a value of a class is made."""
    return tuple(field for field in fields(kind) if field.init)


@cache
def _defaults(kind: type) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for field in fields(kind):
        if field.default is not MISSING:
            found[field.name] = field.default
        elif field.default_factory is not MISSING:
            found[field.name] = field.default_factory()
    return found


def _is_default(own: object, name: str, defaults: Mapping[str, object]) -> bool:
    return name in defaults and type(own) is type(defaults[name]) and own == defaults[name]
