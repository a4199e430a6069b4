"""Columns to codes: values of one column that no predicate distinguishes share a small number.

Each coder has the atomic predicates of all queries on its column, and codes batch after batch. After adding a predicate
codes may mean other values; then there are more of them. `truth` returns for every code whether a predicate holds.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from weft.algebra.numbers import Number, worth
from weft.algebra.predicates import Predicate
from weft.kernels.events import columns
from weft.runtime.classify import vectors
from weft.runtime.data import exact
from weft.runtime.data.buffers import bits_of, validity_of, values_of
from weft.runtime.data.events import EventBatch

Codes = columns.Codes
Mask = npt.NDArray[np.bool_]
FEW_CUTS = 16  # up to here comparing with each is faster than a search
Key = TypeVar("Key", bound=Hashable)
INT64 = np.iinfo(np.int64)


class Atoms(Generic[Key]):
    """The distinct predicates on a column, each with its place."""

    def __init__(self) -> None:
        self._places: dict[Key, int] = {}
        self._keys: list[Key] = []

    def add(self, key: Key) -> int:
        """Return the place of a predicate, new or known."""
        place = self._places.setdefault(key, len(self._keys))
        if place == len(self._keys):
            self._keys.append(key)
        return place

    def __getitem__(self, place: int) -> Key:
        return self._keys[place]


class Coder(Protocol):
    """Protocol of the coder of one column."""

    @property
    def count(self) -> int:
        """The number of codes; it may grow with new values."""

    def code(self, batch: EventBatch) -> Codes:
        """Return the code of each event."""

    def truth(self, atom: int) -> Mask:
        """Return for each code whether a predicate holds."""


class TruthCoder:
    """One predicate evaluated directly: code 1 where it is true."""

    count = 2

    def __init__(self, predicate: Predicate) -> None:
        self._predicate = predicate

    def code(self, batch: EventBatch) -> Codes:
        """Return 1 where the predicate holds, else 0."""
        return vectors.holds(self._predicate, batch).astype(np.uint16)

    def truth(self, atom: int) -> Mask:
        """Return False for 0, True for 1."""
        return np.array([False, True])


class BooleanCoder:
    """Booleans: false, true and missing are 0, 1, 2."""

    count = 3

    def __init__(self, name: str) -> None:
        self._name = name
        self._atoms: Atoms[tuple[str, bool]] = Atoms()

    def add(self, symbol: str, value: bool) -> int:
        """Return the place of the predicate `attribute symbol value`."""
        return self._atoms.add((symbol, value))

    def code(self, batch: EventBatch) -> Codes:
        """Return the codes of the events."""
        column = batch.columns.get(self._name)
        flags = None if column is None else column.booleans
        if flags is None:
            return np.full(len(batch), 2, np.uint16)
        codes = np.empty(len(batch), np.uint16)
        columns.codes_of_bits(bits_of(flags), flags.offset, codes)
        if flags.null_count:
            columns.mark_nulls(validity_of(flags), flags.offset, 2, codes)
        return codes

    def truth(self, atom: int) -> Mask:
        """Return for each code whether the predicate holds."""
        symbol, value = self._atoms[atom]
        compare = vectors.COMPARE[symbol]
        return np.array([compare(False, value), compare(True, value), False])


class NumberCoder:
    """Numbers: the code is how many cuts of the number line they reach; missing is the code after the last."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._atoms: Atoms[tuple[tuple[str, int | Decimal], ...]] = Atoms()
        # (what the constant is worth, 0 at it or 1 beyond it) -> place, once sorted
        self._cuts: dict[tuple[int | Decimal, int], int] = {}
        self._arrays: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] | None = None

    def add(self, alternatives: Iterable[tuple[str, Number]]) -> int:
        """Return the place of the predicate that one of the comparisons `attribute symbol constant` holds."""
        key = tuple((symbol, worth(value)) for symbol, value in alternatives)
        cuts = {(value, 0) for symbol, value in key if symbol in ("<", ">=", "=", "<>")}
        cuts |= {(value, 1) for symbol, value in key if symbol in (">", "<=", "=", "<>")}
        if not cuts <= self._cuts.keys():
            self._cuts |= dict.fromkeys(cuts, 0)
            self._arrays = None
        return self._atoms.add(key)

    @property
    def count(self) -> int:
        """The number of cuts plus one, and one for missing."""
        return len(self._cuts) + 2

    def _sorted(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        if self._arrays is None:
            self._cuts = {cut: place for place, cut in enumerate(sorted(self._cuts))}
            wholes = [whole_cut(*cut) for cut in self._cuts]
            floats = [float_cut(*cut) for cut in self._cuts]
            self._arrays = {
                "int64": _layouts(np.array([w for w in wholes if w is not None], np.int64), INT64.max),
                "float64": _layouts(np.array([f for f in floats if f is not None], np.float64), np.inf),
            }
        return self._arrays

    def code(self, batch: EventBatch) -> Codes:
        """Return the codes of the events."""
        column = batch.columns.get(self._name)
        numbers = None if column is None else column.numbers
        kind: Any = np.uint16 if self.count <= 1 << 16 else np.uint32
        if numbers is None:
            return np.full(len(batch), self.count - 1, kind)
        values = values_of(numbers)
        cuts, tree = self._sorted()[values.dtype.name]
        codes = np.zeros(len(batch), kind)
        if 0 < len(cuts) <= FEW_CUTS:
            columns.count_cuts(values, cuts, codes)
        elif len(cuts):
            columns.search_cuts(values, tree, len(cuts), codes)
        if numbers.null_count:
            columns.mark_nulls(validity_of(numbers), numbers.offset, self.count - 1, codes)
        if column is not None and len(rows := exact.unnamed_rows(column)):
            exact_cuts = list(self._cuts)
            codes[rows] = exact.mapped(column, rows, lambda number: bisect_right(exact_cuts, (number, 0)))
        return codes

    def truth(self, atom: int) -> Mask:
        """Return for each code whether the predicate holds."""
        self._sorted()
        truth = np.zeros(self.count, bool)
        for symbol, value in self._atoms[atom]:
            at, beyond = self._cuts.get((value, 0), 0), self._cuts.get((value, 1), 0)
            match symbol:  # a code is above the place of every cut its values reach
                case "<":
                    truth[: at + 1] = True
                case "<=":
                    truth[: beyond + 1] = True
                case ">":
                    truth[beyond + 1 :] = True
                case ">=":
                    truth[at + 1 :] = True
                case "=":
                    truth[at + 1 : beyond + 1] = True
                case "<>":
                    truth[: at + 1] = True
                    truth[beyond + 1 :] = True
        truth[-1] = False
        return truth


def whole_cut(value: Number, side: int) -> int | None:
    """Return the smallest 64-bit integer at (beyond) a constant, or None; the lowest is reached by all below it."""
    if value in (math.inf, -math.inf):
        return None if value > 0 else int(INT64.min)
    cut = math.floor(value) + 1 if side else math.ceil(value)
    return None if cut > INT64.max else max(cut, int(INT64.min))


def float_cut(value: Number, side: int) -> float | None:
    """Return the smallest float at (beyond) a constant, or None."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    if worth(near) < worth(value) or (side and worth(near) == worth(value)):
        return None if near == math.inf else math.nextafter(near, math.inf)
    return near


def _layouts(cuts: npt.NDArray[Any], largest: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return ascending cuts, and the same as a complete search tree (see the kernel)."""
    size = 1 << len(cuts).bit_length()
    padded = np.full(size - 1, largest, cuts.dtype)
    padded[: len(cuts)] = cuts
    tree = np.full(size, largest, cuts.dtype)
    step = size
    while step > 1:  # the nodes of one level are every step-th cut, from the middle of the first step on
        level = padded[step // 2 - 1 :: step]
        tree[len(level) : 2 * len(level)] = level
        step //= 2
    return cuts, tree
