"""The index of the constants of all rules: which rules may start at an event.

A rule is found by one attribute of its terminator: by a key where that equals a constant, else by the cut of the line
of numbers that its value falls into. Cuts are the leaves of a tree, and a rule stands at the few nodes that cover its
interval; what an event satisfies stands on the way from its leaf to the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from weft.algebra.predicates import Value
from weft.kernels import rule_tables as t
from weft.kernels.rule_index import enter_places
from weft.runtime.codes import float_cut, whole_cut
from weft.runtime.events import Int64s

Tagged = tuple[int, int]  # kind and word
_BOUNDS = ("=", "<", "<=", ">", ">=")
Interval = tuple[tuple[int | float, int] | None, tuple[int | float, int] | None]  # cuts to be reached, and not


@dataclass(frozen=True)
class Guard:
    """A comparison of a terminator's column with a constant, which the index may answer."""

    column: int
    operator: str
    value: Value
    test: tuple[int, ...]


Way = tuple[str, int, list[Guard]]  # how, by which column, and the guards that this answers


@dataclass
class _Ways:
    """How the rules that start at one type are found."""

    always: list[int] = field(default_factory=list)
    by_key: dict[int, dict[Tagged, list[int]]] = field(default_factory=dict)
    by_cuts: dict[int, list[tuple[int, Interval]]] = field(default_factory=dict)


def choose(guards: Sequence[Guard]) -> Way:
    """How a rule is found: `key` or `cuts`, by which column, and the guards that this answers."""
    for guard in guards:
        if guard.operator == "=" and _is_exact(guard.value):
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
    """Whether a constant is tagged without rounding, as all are but whole numbers of more than 64 bits."""
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _key(value: Value) -> Value:
    """A constant as it is looked up: equal numbers are one."""
    return int(value) if isinstance(value, float) and value.is_integer() and _is_exact(int(value)) else value


def interval_of(guards: Iterable[Guard]) -> Interval:
    """The cut that numbers must reach, and the one that they must not."""
    low: tuple[int | float, int] | None = None
    high: tuple[int | float, int] | None = None
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
    """Collects how rules are found, and lays the index out."""

    def __init__(self, tag: Callable[[Value], Tagged]) -> None:
        self._tag = tag
        self._ways: dict[int, _Ways] = {}
        self._access: list[int] = []
        self._cuts: tuple[list[int], list[float]] = ([], [])
        self._nodes: list[Int64s] = []
        self._members: list[npt.NDArray[np.int32]] = []
        self._node_count = 0
        self._member_count = 0
        self._keyed: list[tuple[int, int, int, int, int]] = []  # access, key, members

    def add(self, row: int, type_: int, how: Way) -> None:
        """Add a rule that starts at events of a type."""
        ways = self._ways.setdefault(type_, _Ways())
        kind, column, guards = how
        if kind == "key":
            ways.by_key.setdefault(column, {}).setdefault(self._tag(_key(guards[0].value)), []).append(row)
        elif kind == "cuts":
            ways.by_cuts.setdefault(column, []).append((row, interval_of(guards)))
        else:
            ways.always.append(row)

    def build(self, types: Int64s) -> t.Index:
        """The index; where a type's accesses are is written into the table of types."""
        table = types.reshape(-1, t.KIND_OF_EVENT)
        for type_ in range(len(table)):
            table[type_, t.ACCESS_AT] = len(self._access) // t.ACCESS
            self._lay_type(self._ways.get(type_, _Ways()))
            table[type_, t.ACCESS_END] = len(self._access) // t.ACCESS
        return t.Index(
            np.array(self._access, np.int64),
            np.array(self._cuts[0], np.int64),
            np.array(self._cuts[1], np.float64),
            np.concatenate([np.empty(0, np.int64), *self._nodes]),
            np.concatenate([np.empty(0, np.int32), *self._members]),
            self._places(),
        )

    def _lay_type(self, ways: _Ways) -> None:
        if ways.always:
            begin = self._put(np.array(ways.always, np.int32))
            self._access += [t.ALWAYS, 0, begin, begin + len(ways.always), 0, 0, 0, 0, 0]
        for column, groups in ways.by_key.items():
            access = len(self._access)
            self._access += [t.BY_KEY, column, 0, 0, 0, 0, 0, 0, 0]
            for key, rows in groups.items():
                begin = self._put(np.array(rows, np.int32))
                self._keyed.append((access, *key, begin, begin + len(rows)))
        for column, found in ways.by_cuts.items():
            self._lay_cuts(column, found)

    def _put(self, rows: npt.NDArray[np.int32]) -> int:
        begin = self._member_count
        self._members.append(rows)
        self._member_count += len(rows)
        return begin

    def _lay_cuts(self, column: int, found: Sequence[tuple[int, Interval]]) -> None:
        cuts = sorted({cut for _, interval in found for cut in interval if cut is not None})
        place = {cut: number for number, cut in enumerate(cuts)}
        wholes = [value for value in (whole_cut(*cut) for cut in cuts) if value is not None]
        floats = [value for value in (float_cut(*cut) for cut in cuts) if value is not None]
        at = len(self._cuts[0])
        # Both lists keep one place for each cut, so that one offset serves both.
        self._cuts[0].extend(wholes + [0] * (len(cuts) - len(wholes)))
        self._cuts[1].extend(floats + [0.0] * (len(cuts) - len(floats)))
        leaves = 1 << len(cuts).bit_length()
        low = np.array([0 if a is None else place[a] + 1 for _, (a, _) in found], np.int64)
        high = np.array([len(cuts) if b is None else place[b] for _, (_, b) in found], np.int64)
        rows = np.array([row for row, _ in found], np.int32)
        bounds, members = _cover(low, high, rows, leaves)
        nodes = self._node_count
        self._nodes.append(bounds + self._put(members))
        self._node_count += len(bounds)
        self._access += [t.BY_CUTS, column, 0, 0, at, len(wholes), len(floats), leaves, nodes]

    def _places(self) -> Int64s:
        size = 8
        while size < 2 * (len(self._keyed) + 1):
            size *= 2
        places = np.zeros(size * t.PLACE, np.int64)
        columns = np.array(self._keyed, np.int64).reshape(-1, 5).T.copy()
        enter_places(columns[0], columns[1], columns[2], columns[3], columns[4], places)
        return places


def _cover(low: Int64s, high: Int64s, rows: npt.NDArray[np.int32], leaves: int) -> tuple[Int64s, npt.NDArray[np.int32]]:
    """The nodes of a tree that cover each interval of leaves (both ends included): members by node, ascending."""
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
