"""Texts that are not Unicode: those of Python may have half of a pair of surrogates, which nothing else can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

NOT_UNICODE = "not Unicode: half of a pair of surrogates"
_HOLDING = (str, Mapping, list, tuple, set, frozenset)  # what texts may be in
_HALF = re.compile("[\ud800-\udfff]")


def halved(values: Sequence[object]) -> list[int]:
    """The places of values that have half of a pair. Values of one kind take little time."""
    try:
        if "".join(values).isascii():  # type: ignore[arg-type] # that is to be seen
            return []
    except TypeError:
        if not any(issubclass(kind, _HOLDING) for kind in set(map(type, values))):
            return []
    return [place for place, value in enumerate(values) if has_half(value)]


def has_half(value: object) -> bool:
    """Whether a value has half of a pair, or something that is in it."""
    waiting, seen = [value], set[int]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            if not part.isascii() and _HALF.search(part):
                return True
        elif isinstance(part, _HOLDING) and id(part) not in seen:
            seen.add(id(part))  # it may be in itself
            waiting += [*part.keys(), *part.values()] if isinstance(part, Mapping) else part
    return False
