"""What a kernel is compiled for, as its annotations say: so it can be compiled before anybody calls it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import numpy as np
from numba import types

from weft.kernels.numba_internals import from_dtype

T = TypeVar("T")
READ = "read"
Read = Annotated[T, READ]  # an array that a kernel only reads: it may be a column of Arrow, which nobody may write
# An array of several kinds of numbers names them: `Annotated[NDArray[Any], np.int64, np.float64]`.
PLAIN = {int: types.int64, bool: types.boolean, float: types.float64}


def signatures_of(function: Callable[..., object]) -> list[tuple[Any, ...]]:
    """The types of a kernel's arguments, once for each kind of numbers that its arrays may be of; none if not said."""
    hints = typing.get_type_hints(function, include_extras=True)
    wanted = [hints[name] for name in inspect.signature(function).parameters]
    found = [tuple(_type_of(hint, form) for hint in wanted) for form in range(max(map(_forms_of, wanted), default=1))]
    return [types_ for types_ in found if None not in types_]


def _forms_of(hint: Any) -> int:
    """How many kinds of numbers an annotation names."""
    return len(_kinds_of(hint)) or 1


def _kinds_of(hint: Any) -> list[type[np.generic]]:
    return [kind for kind in getattr(hint, "__metadata__", ()) if isinstance(kind, type)]


def _type_of(hint: Any, form: int) -> Any:
    """Numba's type of an annotation; None for what has no single one."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        kinds = _kinds_of(hint) or list(typing.get_args(typing.get_args(parts[0])[1]))
        return _array_of(kinds[min(form, len(kinds) - 1)], is_read=READ in parts)
    if origin is np.ndarray:
        return _array_of(*typing.get_args(parts[1]))
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        fields = typing.get_type_hints(hint, include_extras=True)
        return _tuple_of([_type_of(fields[name], form) for name in hint._fields], hint)
    if origin is tuple and Ellipsis not in parts:
        return _tuple_of([_type_of(part, form) for part in parts], None)
    return PLAIN.get(hint)


def _array_of(kind: Any, *, is_read: bool = False) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, np.generic)):
        return None
    return types.Array(from_dtype(np.dtype(kind)), 1, "C", readonly=is_read)


def _tuple_of(members: list[Any], made_by: type | None) -> Any:
    if None in members:
        return None
    alike = len(set(members)) == 1
    if made_by is None:
        return types.UniTuple(members[0], len(members)) if alike else types.Tuple(members)
    return types.NamedUniTuple(members[0], len(members), made_by) if alike else types.NamedTuple(members, made_by)
