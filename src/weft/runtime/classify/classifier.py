"""Classification: the atomic predicates of all queries over a batch, as one small letter per query and event.

Each column is coded once for all queries. A query's letter is then looked up by the codes of the columns it reads: for
each column a small table gives a part of an index, the index gives the letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from weft.algebra.predicates import Predicate
from weft.kernels.events import columns
from weft.runtime.classify.codes import Coder, Codes
from weft.runtime.classify.formulas import Atomizer, Formula, Leaf, leaves_of, truth_of
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch

Letters = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
LARGEST_TABLE = 1 << 16  # combinations of column codes that get a table; more are hashed
LARGEST_INDEX = 1 << 62
LEAST_GONE = 64  # predicates that nobody asks for any more and that are not worth to be forgotten
FEW = 64  # combinations that are all named at once


class Coded(dict[int, Codes]):
    """The columns of a batch as codes, each computed on first access."""

    def __init__(self, batch: EventBatch, coders: Sequence[Coder]) -> None:
        super().__init__()
        self._batch, self._coders = batch, coders

    def __missing__(self, column: int) -> Codes:
        self[column] = self._coders[column].code(self._batch)
        return self[column]


class Predicates:
    """The predicates of all operators on one stream, each evaluated once per batch.

    Operators may be added and removed: alphabets without users are discarded.
    """

    def __init__(self) -> None:
        self._atomizer = Atomizer()
        self._formulas: dict[str, tuple[Formula, frozenset[Leaf]]] = {}
        self._alphabets: WeakValueDictionary[tuple[str, ...], Alphabet] = WeakValueDictionary()
        self._forget_at = LEAST_GONE
        self._batch: EventBatch | None = None
        self._coded = Coded(blocks.empty(), ())
        self._letters: dict[int, Letters] = {}  # by alphabet

    def alphabet(self, predicates: Sequence[Predicate]) -> Alphabet:
        """Return the alphabet of some predicates, shared by all operators with the same predicates."""
        texts = tuple(map(repr, predicates))
        found = self._alphabets.get(texts)
        if found is None:
            self._forget()
            found = self._alphabets[texts] = Alphabet(predicates)
            self._form(found)
        return found

    def groups(self, predicates: Sequence[Predicate]) -> list[list[int]]:
        """Group the places of predicates that may share an alphabet: those on one column have few letters."""
        groups: dict[object, list[int]] = {}
        for place, predicate in enumerate(predicates):
            read = frozenset(leaf.column for leaf in self._formula(predicate)[1])
            groups.setdefault(read if len(read) == 1 else place, []).append(place)
        return list(groups.values())

    def _formula(self, predicate: Predicate) -> tuple[Formula, frozenset[Leaf]]:
        text = repr(predicate)
        if text not in self._formulas:
            self._batch = None  # codes may have other meanings with more predicates
            formula = self._atomizer.formula(predicate)
            self._formulas[text] = formula, frozenset(leaves_of(formula))
        return self._formulas[text]

    def _form(self, alphabet: Alphabet) -> None:
        """Compile the predicates of an alphabet to formulas over atoms."""
        alphabet.form([self._formula(predicate) for predicate in alphabet.predicates], self._atomizer.coders)

    def _forget(self) -> None:
        """Remove unused predicates when they are many."""
        if len(self._formulas) <= self._forget_at:
            return
        alphabets = list(self._alphabets.values())
        if len(self._formulas) > 2 * sum(len(alphabet.predicates) for alphabet in alphabets):
            self._atomizer, self._formulas = Atomizer(), {}
            for alphabet in alphabets:
                self._form(alphabet)
        self._forget_at = max(LEAST_GONE, 2 * len(self._formulas))

    def code(self, batch: EventBatch) -> Coded:
        """Return the columns of a batch as codes."""
        if batch is not self._batch:
            self._batch, self._letters = batch, {}
            self._coded = Coded(batch, self._atomizer.coders)
        return self._coded

    def letters(self, batch: EventBatch, alphabet: Alphabet) -> Letters:
        """Return the letters of a batch's events, as a read-only array."""
        coded = self.code(batch)
        if id(alphabet) not in self._letters:
            self._letters[id(alphabet)] = alphabet.letters(coded, np.empty(len(batch), np.int32))
        return self._letters[id(alphabet)]


class Classifier:
    """Assigns every event a letter per query: equal letters mean equal truth of all the query's predicates.

    With `common`, results are shared between the classifiers of a stream.
    """

    def __init__(self, predicates: Sequence[Sequence[Predicate]], common: Predicates | None = None) -> None:
        self._common = common or Predicates()
        self._alphabets = [self._common.alphabet(query) for query in predicates]

    def letters(self, batch: EventBatch) -> list[Letters]:
        """Return for each query the letter of each event. Queries with the same predicates share one array."""
        return [self._common.letters(batch, alphabet) for alphabet in self._alphabets]

    def code(self, batch: EventBatch) -> Coded:
        """Return the columns of a batch as codes, for `letters_of`."""
        return self._common.code(batch)

    def letters_of(self, query: int, coded: Coded, out: Letters) -> Letters:
        """Write the letters of one query to `out`, so that many queries can reuse its memory."""
        return self._alphabets[query].letters(coded, out)

    def truths(self, query: int, letter: int) -> tuple[bool, ...]:
        """Return the truth of each predicate of the query for that letter."""
        return self._alphabets[query].truths[letter]

    def letter_count(self, query: int) -> int:
        """Return the number of letters of the query so far; it grows with new combinations of values."""
        return len(self._alphabets[query].truths)


class Alphabet:
    """The letters of a query's predicates."""

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        self.predicates = tuple(predicates)
        self.truths: list[tuple[bool, ...]] = []
        self._letters: dict[bytes, int] = {}

    def form(self, formulas: Sequence[tuple[Formula, frozenset[Leaf]]], coders: Sequence[Coder]) -> None:
        """Evaluate the predicates by formulas over the codes of coders; existing letters keep their meaning."""
        self._formulas = [formula for formula, _ in formulas]
        self._coders = coders
        by_column: dict[int, list[Leaf]] = {}
        leaves = {leaf for _, leaves in formulas for leaf in leaves}
        for leaf in sorted(leaves, key=lambda leaf: (leaf.column, leaf.atom)):
            by_column.setdefault(leaf.column, []).append(leaf)
        self._by_column = by_column
        self._columns = list(by_column)
        self._counts: list[int] = []  # codes of each column when the tables were made
        self._shares: list[npt.NDArray[Any]] = []  # per column: code -> share of the index
        self._outcomes: list[Mask] = []  # per column: digit -> truth of each of its atoms
        self._table: Letters = np.empty(0, np.int32)
        self._keys: npt.NDArray[np.uint64] | None = None  # with hashing: the index of each place of the table
        self._used = 0
        self._by_row = False  # so many combinations that the predicates are worked out event by event

    def letters(self, coded: Coded, out: Letters) -> Letters:
        """Return the letters of the events with these codes."""
        if not self._columns:
            out[:] = self._name(np.zeros(1, np.uint64))[0]
            return out
        codes = [coded[column] for column in self._columns]
        counts = [self._coders[column].count for column in self._columns]  # new values may have new codes
        if counts != self._counts:
            self._prepare(counts)
        if self._by_row:
            out[:] = self._name_rows(codes)
            return out
        while self._look_up(codes, out) < 0:
            indices = self._new_indices(codes, out)
            self._enter(indices, self._name(indices))
        return out

    def _new_indices(self, codes: list[Codes], letters: Letters) -> npt.NDArray[np.uint64]:
        """Return the distinct indices of events without a letter."""
        indices = self._indices(codes)
        if self._keys is not None:
            return np.unique(indices[letters < 0])
        seen = np.zeros(len(self._table), np.uint8)
        columns.mark_new(indices, letters, seen)
        return np.flatnonzero(seen).astype(np.uint64)

    def _prepare(self, counts: list[int]) -> None:
        """Rebuild the tables for columns with these numbers of codes."""
        self._counts = counts
        self._outcomes, digits = [], []
        size = 1
        for column in self._columns:
            truths = np.stack([self._coders[column].truth(leaf.atom) for leaf in self._by_column[column]], axis=1)
            outcomes, digit = distinct_rows(truths)
            self._outcomes.append(outcomes)
            digits.append((digit, size))
            size *= len(outcomes)
        hashed = size > LARGEST_TABLE
        self._by_row = size > LARGEST_INDEX
        if self._by_row:
            return
        kind: Any = np.uint64 if hashed or len(self._columns) > 4 or max(counts) > 1 << 16 else np.uint32
        self._shares = [(digit.astype(np.uint64) * np.uint64(stride)).astype(kind) for digit, stride in digits]
        self._keys = np.zeros(1024, np.uint64) if hashed else None
        self._used = 0
        self._table = np.full(1024 if hashed else size, -1, np.int32)
        if len(self._columns) == 1 and not hashed:  # every combination is a value that may come; no need for the index
            self._table = self._name(np.arange(size, dtype=np.uint64))[digits[0][0]]
        elif size <= FEW:
            self._table = self._name(np.arange(size, dtype=np.uint64))

    def _look_up(self, codes: list[Codes], out: Letters) -> int:
        """Write the letters, negative for new combinations; return the smallest."""
        shares, table = self._shares, self._table
        if self._keys is not None:
            return columns.letters_of_keys(self._indices(codes), self._keys, table, out)
        if len(codes) == 1:
            columns.letters_of_one(codes[0], table, out)
            return 0
        if shares[0].dtype == np.uint32 and len(codes) == 2:
            return columns.letters_of_two(codes[0], shares[0], codes[1], shares[1], table, out)
        if shares[0].dtype == np.uint32 and len(codes) == 3:
            return columns.letters_of_three(codes[0], shares[0], codes[1], shares[1], codes[2], shares[2], table, out)
        if shares[0].dtype == np.uint32:
            (a, b, c, d), (e, f, g, h) = codes, shares
            return columns.letters_of_four(a, e, b, f, c, g, d, h, table, out)
        return columns.letters_of_indices(self._indices(codes), table, out)

    def _indices(self, codes: list[Codes]) -> npt.NDArray[np.uint64]:
        indices = np.zeros(len(codes[0]), np.uint64)
        for share, code in zip(self._shares, codes, strict=True):
            columns.add_part(code, share.astype(np.uint64, copy=False), indices)
        return indices

    def _enter(self, indices: npt.NDArray[np.uint64], letters: Letters) -> None:
        if self._keys is None:
            self._table[indices] = letters
            return
        if 2 * (self._used + len(indices)) > len(self._table):
            filled = self._table >= 0
            indices = np.concatenate([self._keys[filled], indices])
            letters = np.concatenate([self._table[filled], letters])
            size = 1 << (4 * len(indices)).bit_length()
            self._keys, self._table, self._used = np.zeros(size, np.uint64), np.full(size, -1, np.int32), 0
        columns.add_keys(indices, letters, self._keys, self._table)
        self._used += len(indices)

    def _name_rows(self, codes: list[Codes]) -> Letters:
        """Return the letters of events from the truth of every atom for every event."""
        truths = {
            leaf: self._coders[column].truth(leaf.atom)[code]
            for column, code in zip(self._columns, codes, strict=True)
            for leaf in self._by_column[column]
        }
        return self._letters_of(self._truth_rows(truths, len(codes[0])))

    def _name(self, indices: npt.NDArray[np.uint64]) -> Letters:
        """Assign letters to combinations, given as indices; new letters for new truths."""
        truths: dict[Leaf, Mask] = {}
        left = indices
        for column, outcomes in zip(self._columns, self._outcomes, strict=True):
            digits = left % np.uint64(len(outcomes))
            left = left // np.uint64(len(outcomes))
            for atom, leaf in enumerate(self._by_column[column]):
                truths[leaf] = outcomes[digits, atom]
        return self._letters_of(self._truth_rows(truths, len(indices)))

    def _truth_rows(self, truths: dict[Leaf, Mask], length: int) -> Mask:
        rows = np.empty((length, len(self._formulas)), bool)
        for place, formula in enumerate(self._formulas):
            rows[:, place] = truth_of(formula, truths.__getitem__, length)
        return rows

    def _letters_of(self, rows: Mask) -> Letters:
        """Return the letters of rows of truths."""
        different, place = distinct_rows(rows)
        letters = np.empty(len(different), np.int32)
        for i, row in enumerate(different):
            letters[i] = self._letters.setdefault(row.tobytes(), len(self.truths))
            if letters[i] == len(self.truths):
                self.truths.append(tuple(row.tolist()))
        found: Letters = letters[place]
        return found


def distinct_rows(truths: Mask) -> tuple[Mask, npt.NDArray[np.int64]]:
    """Return the distinct rows of a matrix, and the number of the distinct row for each row."""
    width = truths.shape[1]
    if width > 62:
        packed = np.ascontiguousarray(np.packbits(truths, axis=1))
        _, first, place = np.unique(
            packed.view(np.dtype((np.void, packed.shape[1])))[:, 0], return_index=True, return_inverse=True
        )
        return truths[first], place.reshape(-1)
    weights = np.left_shift(np.int64(1), np.arange(width, dtype=np.int64))
    keys = truths @ weights
    if width > 8:
        found, place = np.unique(keys, return_inverse=True)
        return (found[:, None] & weights) != 0, place.reshape(-1)
    seen = np.zeros(1 << width, bool)  # few enough possible rows to do without sorting
    seen[keys] = True
    rows: Mask = (np.flatnonzero(seen)[:, None] & weights) != 0
    return rows, np.cumsum(seen)[keys] - 1
