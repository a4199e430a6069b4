"""Index of the constants of all rules: finds the rules that may start at an event.

A rule is found by one attribute of its terminator: by a key if the attribute equals a constant, else by intervals of
numbers. The cuts between intervals are the leaves of a tree, and a rule is stored at the few nodes that cover its
interval; the rules that an event satisfies are on the path from its leaf to the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from weft.algebra.numbers import Number
from weft.algebra.predicates import Predicate, Value
from weft.kernels.machine.tagged import BOOLEAN, INTEGER, TEXT
from weft.kernels.rules import tables as t
from weft.kernels.rules.index import enter_places
from weft.runtime.classify.codes import float_cut, whole_cut
from weft.runtime.data.events import Int64s
from weft.runtime.machine.values import Tagged

SPARSE = 6  # words for each value; with more, a hash table is smaller
GAP = 64  # least distance of words that are not in one dense range
_BASES = slice(t.A_MEMBERS, t.A_PLACES + 1)
_BOUNDS = ("=", "<", "<=", ">", ">=")
Cut = tuple[Number, int]
Interval = tuple[Cut | None, Cut | None]  # the cut that values must reach, and the one they must not reach


@dataclass(frozen=True)
class Guard:
    """A comparison of a terminator's column with a constant that the index can answer."""

    column: int
    operator: str
    value: Value
    condition: Predicate


Way = tuple[str, int, list[Guard]]  # kind of access, its column, and the guards that it answers


@dataclass
class _Ways:
    """The accesses to the rules that start at one type."""

    always: list[int] = field(default_factory=list)
    by_key: dict[int, dict[Tagged, list[int]]] = field(default_factory=dict)
    by_cuts: dict[int, dict[int, Interval]] = field(default_factory=dict)


class _Part:
    """The tables of the index for one type, with offsets that begin at 0."""

    def __init__(self) -> None:
        self.access = np.empty((0, t.ACCESS), np.int64)
        self.wholes, self.cuts, self.nodes, self.places = (np.empty(0, np.int64) for _ in range(4))
        self.floats = np.empty(0, np.float64)
        self.members = np.empty(0, np.int32)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The used sizes of the tables, which are the offsets of the next access."""
        return len(self.members), len(self.wholes), len(self.nodes), len(self.places) // t.PLACE

    def add(self, head: Mapping[int, int], **tables: npt.NDArray[np.generic]) -> None:
        """Add an access, and its content of other tables."""
        line = np.zeros((1, t.ACCESS), np.int64)
        line[0, list(head)] = list(head.values())
        line[0, _BASES] = self.sizes
        self.access = np.concatenate([self.access, line])
        for name, own in tables.items():
            setattr(self, name, np.concatenate([getattr(self, name), own]))


def choose(guards: Sequence[Guard]) -> Way:
    """Choose how a rule is found: `key`, `cuts` or `always`, by which column, and the guards that this answers."""
    guards = [guard for guard in guards if _is_exact(guard.value)]
    for guard in guards:
        if guard.operator == "=":
            return "key", guard.column, [guard]
    columns: dict[int, list[Guard]] = {}
    for guard in guards:
        if guard.operator in _BOUNDS and not isinstance(guard.value, bool | str):
            columns.setdefault(guard.column, []).append(guard)
    if not columns:
        return "always", -1, []

    best = max(columns, key=lambda column: len({guard.operator[0] for guard in columns[column]}))
    return "cuts", best, columns[best]


def _is_exact(value: Value) -> bool:
    """Whether a constant is stored exactly: false for decimals and integers of more than 64 bits."""
    return not isinstance(value, int | Decimal) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def _key(value: Value) -> Value:
    """Normalise a constant for the lookup, so that equal numbers are one key."""
    return int(value) if isinstance(value, float) and value.is_integer() and _is_exact(int(value)) else value


def interval_of(guards: Iterable[Guard]) -> Interval:
    """Return the cut that numbers must reach, and the one that they must not reach."""
    low: Cut | None = None
    high: Cut | None = None
    for guard in guards:
        assert not isinstance(guard.value, str)
        if guard.operator in ("=", ">=", ">"):
            cut = (guard.value, int(guard.operator == ">"))
            low = cut if low is None else max(low, cut)
        if guard.operator in ("=", "<=", "<"):
            cut = (guard.value, int(guard.operator != "<"))
            high = cut if high is None else min(high, cut)
    return low, high


class IndexBuilder:
    """Collects the accesses of rules, and builds the index; the part of a type is cached until its rules change."""

    def __init__(self, tag: Callable[[Value], Tagged]) -> None:
        self._tag = tag
        self._ways: dict[int, _Ways] = {}
        self._parts: dict[int, _Part] = {}

    def add(self, rule: int, type_: int, way: Way) -> None:
        """Add a rule that starts at events of a type."""
        ways = self._ways.setdefault(type_, _Ways())
        how, column, guards = way
        if how == "key":
            groups = ways.by_key.setdefault(column, {})
            groups.setdefault(self._tag(_key(guards[0].value)), []).append(rule)
        elif how == "cuts":
            ways.by_cuts.setdefault(column, {})[rule] = interval_of(guards)
        else:
            ways.always.append(rule)
        self._parts.pop(type_, None)

    def remove(self, rule: int, type_: int, way: Way) -> None:
        """Remove a rule."""
        ways = self._ways[type_]
        how, column, guards = way
        if how == "key":
            groups, key = ways.by_key[column], self._tag(_key(guards[0].value))
            groups[key].remove(rule)
            if not groups[key]:
                del groups[key]
        elif how == "cuts":
            del ways.by_cuts[column][rule]
        else:
            ways.always.remove(rule)
        self._parts.pop(type_, None)

    def build(self, types: Int64s) -> t.Index:
        """Build the index, and write the range of each type's accesses into the table of types."""
        table = types.reshape(-1, t.KIND_OF_EVENT)
        parts = [self._part(type_) for type_ in self._ways]
        sizes = np.array([part.sizes for part in parts], np.int64).reshape(-1, 4)
        counts = np.array([len(part.access) for part in parts], np.int64)
        ends = np.cumsum(counts)
        table[:, t.ACCESS_AT] = table[:, t.ACCESS_END] = 0
        table[list(self._ways), t.ACCESS_AT], table[list(self._ways), t.ACCESS_END] = ends - counts, ends
        access = np.concatenate([np.empty((0, t.ACCESS), np.int64), *(part.access for part in parts)])
        access[:, _BASES] += np.repeat(np.cumsum(sizes, axis=0) - sizes, counts, axis=0)
        return t.Index(
            access.ravel(),
            np.concatenate([np.empty(0, np.int64), *(part.wholes for part in parts)]),
            np.concatenate([np.empty(0, np.float64), *(part.floats for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.cuts for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.nodes for part in parts)]),
            np.concatenate([np.empty(0, np.int32), *(part.members for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.places for part in parts)]),
        )

    def _part(self, type_: int) -> _Part:
        if type_ not in self._parts:
            self._parts[type_] = _build_part(self._ways[type_], self._tag)
        return self._parts[type_]


def _build_part(ways: _Ways, tag: Callable[[Value], Tagged]) -> _Part:
    """Build the tables of a type."""
    part = _Part()
    if ways.always:
        part.add({t.A_KIND: t.ALWAYS, t.A_SIZE: len(ways.always)}, members=np.array(ways.always, np.int32))
    for column, groups in ways.by_key.items():
        _add_keys(part, column, groups)
    for column, found in ways.by_cuts.items():
        if found:
            _add_cuts(part, column, found, tag)
    return part


def _add_keys(part: _Part, column: int, groups: Mapping[Tagged, Sequence[int]]) -> None:
    """Add groups of rules by value: as a table by word where words are dense, else by hash."""
    keys = np.array(list(groups), np.int64).reshape(-1, 2)
    rules = list(groups.values())
    hashed = np.ones(len(keys), bool)
    for kind in (INTEGER, TEXT, BOOLEAN):
        chosen, low, size = _dense_keys(keys, kind)
        if len(chosen):
            hashed[chosen] = False
            codes, members = _coded([rules[k] for k in chosen.tolist()], size)
            members[keys[chosen, 1] - low] = codes
            head = {t.A_KIND: t.BY_RANGE, t.A_COLUMN: column, t.A_SIZE: size, t.A_LOW: low, t.A_TAG: kind}
            part.add(head, members=members)
    others = np.flatnonzero(hashed)
    if len(others):
        codes, members = _coded([rules[k] for k in others.tolist()], 0)
        size = 2 * len(others)
        places = np.zeros(size * t.PLACE, np.int64)
        kinds, words = keys[others].T.copy()
        enter_places(kinds, words, codes, places)
        part.add({t.A_KIND: t.BY_KEY, t.A_COLUMN: column, t.A_SIZE: size}, members=members, places=places)


def _dense_keys(keys: Int64s, kind: int) -> tuple[Int64s, int, int]:
    """Return the keys of a kind in a dense range that has most of them, their least word, and their span."""
    own = np.flatnonzero(keys[:, 0] == kind)
    if not len(own):
        return own, 0, 0
    own = own[np.argsort(keys[own, 1])]
    words = keys[own, 1].view(np.uint64)  # unsigned, so that differences do not overflow
    runs = np.split(own, np.flatnonzero(np.diff(words) > GAP) + 1)
    run = max(runs, key=len)
    if 2 * len(run) < len(own):
        return run[:0], 0, 0
    low, high = (int(keys[end, 1]) for end in (run[0], run[-1]))
    size = high - low + 1
    return (run, low, size) if size <= SPARSE * len(run) else (run[:0], 0, 0)


def _coded(groups: Sequence[Sequence[int]], begin: int) -> tuple[Int64s, npt.NDArray[np.int32]]:
    """Return the codes of groups of rules, and their members, with `begin` free places at the front."""
    sizes = np.fromiter(map(len, groups), np.int64, len(groups))
    codes = np.fromiter((group[0] for group in groups), np.int64, len(groups)) + 1
    members: list[int] = []
    for k in np.flatnonzero(sizes > 1).tolist():
        codes[k] = ~(begin + len(members))
        members += (len(groups[k]), *groups[k])
    return codes, np.concatenate([np.zeros(begin, np.int32), np.array(members, np.int32)])


def _add_cuts(part: _Part, column: int, found: Mapping[int, Interval], tag: Callable[[Value], Tagged]) -> None:
    """Add rules by intervals of numbers."""
    cuts = sorted({cut for interval in found.values() for cut in interval if cut is not None})
    place = {cut: number for number, cut in enumerate(cuts)}
    wholes = [value for value in (whole_cut(*cut) for cut in cuts) if value is not None]
    floats = [value for value in (float_cut(*cut) for cut in cuts) if value is not None]
    leaves = 1 << len(cuts).bit_length()
    low = np.array([0 if a is None else place[a] + 1 for a, _ in found.values()], np.int64)
    high = np.array([len(cuts) if b is None else place[b] for _, b in found.values()], np.int64)
    nodes, members = _cover(low, high, np.array(list(found), np.int32), leaves)
    head = {t.A_KIND: t.BY_CUTS, t.A_COLUMN: column, t.A_LEAVES: leaves}
    # All lists have an item for each cut, so that they share their offsets.
    part.add(
        {**head, t.A_WHOLES: len(wholes), t.A_FLOATS: len(floats)},
        wholes=np.array(wholes + [0] * (len(cuts) - len(wholes)), np.int64),
        floats=np.array(floats + [0.0] * (len(cuts) - len(floats)), np.float64),
        cuts=np.array([tag(value) for value, _ in cuts], np.int64).ravel(),
        nodes=nodes,
        members=members,
    )


def _cover(low: Int64s, high: Int64s, rows: npt.NDArray[np.int32], leaves: int) -> tuple[Int64s, npt.NDArray[np.int32]]:
    """Return the tree nodes that cover each interval of leaves (both ends included), as members by node, ascending."""
    left, right = low + leaves, high + leaves + 1
    nodes: list[Int64s] = []
    members: list[npt.NDArray[np.int32]] = []
    while True:
        open_ = left < right
        if not open_.any():
            break
        at_left = open_ & (left & 1 == 1)
        nodes.append(left[at_left])
        members.append(rows[at_left])
        left = left + at_left
        at_right = open_ & (right & 1 == 1) & (left < right)
        right = right - at_right
        nodes.append(right[at_right])
        members.append(rows[at_right])
        left, right = left >> 1, right >> 1
    flat = np.concatenate([np.empty(0, np.int64), *nodes])
    who = np.concatenate([np.empty(0, np.int32), *members])
    order = np.lexsort((who, flat))
    bounds = np.searchsorted(flat[order], np.arange(2 * leaves + 1))
    return bounds.astype(np.int64), who[order]
