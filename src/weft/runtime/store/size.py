"""Count the bytes of memory that a matcher uses: its arrays, texts and tables."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.runtime.data.events import Int64s
from weft.tree import Node

# What a program is made of, and code: it does not grow with events.
_NOT_STATE = (Node, type, FunctionType, MethodType, ModuleType)


def older_half(times: Int64s, bytes_of_each: int, limit: int) -> npt.NDArray[np.bool_]:
    """Mark the older half of items that are evicted at a memory limit; none if all take at most half of it."""
    if 2 * len(times) * bytes_of_each <= limit:
        return np.zeros(len(times), bool)
    evicted: npt.NDArray[np.bool_] = times <= int(np.median(times))
    return evicted


def bytes_of(*things: Any, without: tuple[type, ...] = ()) -> int:
    """Return the bytes of objects and of all they refer to, each once; arrays with their spare capacity.

    `without`: types that are not counted, nor what they refer to.
    """
    seen: set[int] = set()
    waiting = list(things)
    total = 0
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (*_NOT_STATE, *without)):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            if thing.base is None or not isinstance(thing.base, np.ndarray):
                total += thing.nbytes
            else:
                waiting.append(thing.base)
        elif isinstance(thing, pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table | pa.Buffer):
            total += thing.size if isinstance(thing, pa.Buffer) else thing.get_total_buffer_size()
        else:
            total += sys.getsizeof(thing, 0)
            waiting += _held(thing)
    return total


def _held(thing: Any) -> Iterable[Any]:
    """Return the objects that an object refers to."""
    if isinstance(thing, Mapping):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset | deque):
        return list(thing)
    own = getattr(thing, "__dict__", None)
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()) if name != "__weakref__"]
    return [*(own.values() if isinstance(own, dict) else ()), *(getattr(thing, name, None) for name in slots)]
