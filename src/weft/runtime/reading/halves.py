"""Texts that are not valid Unicode: Python's may contain unpaired surrogates, which no other format can represent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

NOT_UNICODE = "not Unicode: half of a pair of surrogates"
_HOLDING = (str, Mapping, list, tuple, set, frozenset)  # what texts may be in
_HALF = re.compile("[\ud800-\udfff]")


def halved(values: Sequence[object]) -> list[int]:
    """Return the places of values with an unpaired surrogate. Values of one kind are checked quickly."""
    try:
        if "".join(values).isascii():  # type: ignore[arg-type] # that is to be seen
            return []
    except TypeError:
        if not any(issubclass(kind, _HOLDING) for kind in set(map(type, values))):
            return []
    return [place for place, value in enumerate(values) if has_half(value)]


def has_half(value: object) -> bool:
    """Whether a value, or a value nested in it, has an unpaired surrogate."""
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
