"""Ids of matches, which depend only on the query and on the identities of the events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.matches.identify import MatchParts, identify, write_hex
from weft.runtime.data.buffers import fixed, room, strings
from weft.runtime.data.matches import Int32s, Int64s, MatchBatch, Origin
from weft.runtime.identity.chunks import Attributes

UInt64s = npt.NDArray[np.uint64]
Lookup = Callable[[Int64s, Attributes], tuple[UInt64s, UInt64s]]
NOTHING = Attributes((), ())
_DENSE = 8  # positions per one that is asked for, up to which they are marked rather than sorted
_NO_NUMBERS, _NO_WORDS = fixed(np.empty(0, np.int64)), fixed(np.empty(0, np.uint64))


class Identify(Protocol):
    """Protocol that adds ids to matches; `tells_ends`: they have the positions of the input at which they end."""

    def __call__(self, found: MatchBatch, *, tells_ends: bool) -> MatchBatch:
        """Return the matches with their ids."""


def unidentified(found: MatchBatch, *, tells_ends: bool) -> MatchBatch:
    """Return the matches without ids, for layers whose ids are not needed."""
    return found


class LabelTable(NamedTuple):
    """Label l has the names `names[codes[offsets[l]:offsets[l+1]]]`, and a word for ids computed from them."""

    words: UInt64s
    offsets: Int64s
    codes: Int32s
    names: pa.Array
    most: int  # names of a label


@lru_cache(maxsize=256)
def label_table(labels: tuple[tuple[str, ...], ...]) -> LabelTable:
    """Build the table of the labels of positions."""
    codes: dict[str, int] = {}
    numbers = [codes.setdefault(name, len(codes)) for names in labels for name in names]
    return LabelTable(
        np.array([_word(*sorted(names))[0] for names in labels] or [0], np.uint64),
        np.cumsum([0, *map(len, labels)], dtype=np.int64),
        np.array(numbers, np.int32),
        pa.array(list(codes), pa.string()),
        max(map(len, labels), default=0),
    )


def _present(found: MatchBatch) -> list[int]:
    """Return the codes of the queries that have matches here: of thousands of deployed queries, few match an event."""
    codes: list[int] = np.flatnonzero(np.bincount(found.query_codes)).tolist()
    return codes


def _seeds(found: MatchBatch) -> UInt64s:
    """Return two words for each query that has matches here."""
    seeds, present = np.zeros((len(found.query_origins), 2), np.uint64), _present(found)
    seeds[present] = [_word(*found.query_origins[code]) for code in present]
    return seeds.ravel()


@lru_cache(maxsize=1 << 16)
def _word(*parts: str | int) -> tuple[int, int]:
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def identified(
    found: MatchBatch, lookup: Lookup, attributes: Mapping[Origin, Attributes], *, tells_ends: bool = True
) -> MatchBatch:
    """Return the matches with ids; `attributes` are those of each query, `lookup` returns the identities of events.

    `tells_ends`: `lasts` are positions of the input, which distinguish matches with the same events.
    """
    if found.ids is not None or not len(found):
        return found
    present = _present(found)
    by_query = [attributes.get(found.query_origins[code], NOTHING) for code in present]
    numbers = {own: number for number, own in enumerate(dict.fromkeys(by_query))}
    if len(numbers) == 1:
        return replace(found, ids=_ids(found, lookup, by_query[0], tells_ends))
    high, low = room(len(found), np.uint64), room(len(found), np.uint64)
    group_of = np.zeros(len(found.query_origins), np.int64)
    group_of[present] = [numbers[own] for own in by_query]
    groups = group_of[found.query_codes]
    for own, number in numbers.items():
        rows = np.flatnonzero(groups == number)
        if len(rows):
            high[rows], low[rows] = _ids(found.take(rows), lookup, own, tells_ends)
    return replace(found, ids=(high, low))


def _ids(found: MatchBatch, lookup: Lookup, attributes: Attributes, tells_ends: bool) -> tuple[UInt64s, UInt64s]:
    """Return the two halves of each id."""
    high, low = room(len(found), np.uint64), room(len(found), np.uint64)
    lasts = found.lasts if tells_ends and found.keys is None else None
    events, places = _distinct([found.positions] if lasts is None else [found.positions, lasts])
    event_high, event_low = lookup(events, attributes)
    matches = MatchParts(
        fixed(found.query_codes),
        fixed(found.starts),
        fixed(found.ends),
        fixed(found.offsets),
        fixed(places[0]),
        fixed(found.labels.astype(np.int32, copy=False)),
        _NO_NUMBERS if lasts is None else fixed(places[1]),
        _NO_WORDS if found.keys is None else fixed(found.keys),
    )
    words = label_table(found.names).words
    identify(_seeds(found), matches, words, fixed(event_high), fixed(event_low), high, low)
    return high, low


def _distinct(parts: list[Int64s]) -> tuple[Int64s, list[Int64s]]:
    """Return the distinct positions in some arrays, ascending, and the place of each among them."""
    sizes = [len(part) for part in parts]
    if not sum(sizes):
        return np.empty(0, np.int64), parts
    least = min(int(part.min()) for part in parts if len(part))
    span = max(int(part.max()) for part in parts if len(part)) - least + 1
    if span > _DENSE * sum(sizes) + 1024:
        events, whole = np.unique(np.concatenate(parts), return_inverse=True)
        return events, np.split(whole.astype(np.int64), np.cumsum(sizes)[:-1])
    marked = np.zeros(span, bool)
    for part in parts:
        marked[part - least] = True
    places = np.cumsum(marked) - 1
    return np.flatnonzero(marked) + least, [places[part - least] for part in parts]


def as_text(high: UInt64s, low: UInt64s) -> pa.Array:
    """Format ids as 32 hexadecimal digits each."""
    text = room(16 * len(high), np.uint16)
    write_hex(fixed(high), fixed(low), text)
    offsets = np.arange(0, 32 * len(high) + 1, 32, dtype=np.int32)
    return strings(offsets, text, 32 * len(high))
