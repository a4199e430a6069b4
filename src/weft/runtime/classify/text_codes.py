"""Text columns to codes: by a table of the relevant texts, or by the results of predicates on each distinct text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.events import columns
from weft.runtime.classify.codes import Atoms, Codes, Mask
from weft.runtime.classify.texts import TextTable
from weft.runtime.data.buffers import text_buffers, validity_of, values_of
from weft.runtime.data.events import EventBatch

MISSING, OTHER = -2, -1  # what stands for the constant of a missing text and of one that is no constant
MOST_TEXTS, MOST_BYTES = 1 << 20, 1 << 26  # remembered texts, before they are forgotten


class TextCoder:
    """Texts: missing is 0; texts that the predicates do not distinguish share a code.

    When all predicates compare with constants, only the constants are stored. With other tests (LIKE, regular
    expressions, order) each distinct text is tested once and stored.
    """

    def __init__(self, array_of: Callable[[EventBatch], pa.Array | None]) -> None:
        self._array_of = array_of
        self._constants: dict[str, int] = {}
        self._tests: list[Callable[[str], bool]] = []
        self._atoms: Atoms[tuple[str, object]] = Atoms()
        self._test_of: dict[int, int] = {}  # place of the predicate -> place of its test
        self._codes: dict[tuple[int, tuple[bool, ...]], int] = {}
        self._described: tuple[npt.NDArray[np.int64], Mask] | None = None
        self._table: TextTable | None = None
        self._by_id: npt.NDArray[Any] = np.zeros(2, np.uint32)  # code of missing, of unknown, of id 0, 1, …
        self._dictionary: tuple[object, ...] = ()
        self._by_index: npt.NDArray[Any] = self._by_id

    def add_members(self, texts: Iterable[str], *, missing: bool = False) -> int:
        """Return the place of the predicate that the text is one of these, or with `missing` is missing."""
        members = frozenset(texts)
        for text in sorted(members):
            self._add_constant(text)
        return self._atoms.add(("missing or in" if missing else "in", members))

    def add_unequal(self, text: str) -> int:
        """Return the place of the predicate that there is a text, and it differs from this one."""
        self._add_constant(text)
        return self._atoms.add(("unequal", text))

    def _add_constant(self, text: str) -> None:
        if text not in self._constants:
            self._constants[text] = len(self._constants)
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Rebuild the table of codes; codes in use are not reassigned."""
        self._table, self._described, self._dictionary = None, None, ()

    def add_test(self, name: str, argument: str, test: Callable[[str], bool]) -> int:
        """Return the place of the predicate `test`, identified by a name and an argument."""
        place = self._atoms.add((name, argument))
        if place not in self._test_of:
            self._test_of[place] = len(self._tests)
            self._tests.append(test)
            self._begin_anew()
        return place

    @property
    def count(self) -> int:
        """The number of codes so far; those of constants are assigned before the next batch."""
        self._prepare()
        return len(self._codes) + 1

    def _prepare(self) -> TextTable:
        if self._table is None:
            self._table = TextTable(list(self._constants))
            self._by_id = np.zeros(2, np.uint32)
            if not self._tests:
                self._by_id[1] = self._code(OTHER, ())
            self._learn(self._table)
        return self._table

    def _code(self, constant: int, tested: tuple[bool, ...]) -> int:
        return self._codes.setdefault((constant, tested), len(self._codes) + 1)

    def _learn(self, table: TextTable) -> None:
        """Compute the codes of new texts in the table."""
        known = len(self._by_id) - 2
        if known == len(table):
            return
        new = [
            self._code(self._constants.get(text, OTHER), tuple(test(text) for test in self._tests))
            for text in table.texts(known)
        ]
        self._by_id = np.concatenate([self._by_id, np.array(new, np.uint32)])

    def code(self, batch: EventBatch) -> Codes:
        """Return the codes of the events."""
        array = self._array_of(batch)
        if array is None:
            return np.zeros(len(batch), np.uint16)
        return self._code_indices(array) if pa.types.is_dictionary(array.type) else self._code_texts(array)

    def _code_texts(self, array: pa.Array) -> Codes:
        table = self._prepare()
        if self._tests and (len(table) > MOST_TEXTS or table.size > MOST_BYTES):
            self._table = None
            table = self._prepare()
        ids = table.ids(array, add=bool(self._tests))
        self._learn(table)
        by_id = self._narrow(self._by_id)
        codes = np.empty(len(ids), by_id.dtype)
        columns.codes_of_ids(ids, by_id, codes)
        return codes

    def _code_indices(self, array: pa.DictionaryArray) -> Codes:
        """Return the codes of dictionary-encoded texts; most batches of an input share a dictionary, coded once."""
        dictionary, indices = array.dictionary, array.indices
        if not len(dictionary):
            return np.zeros(len(array), np.uint16)
        offsets, data = text_buffers(dictionary)
        identity = (offsets.ctypes.data, len(offsets), data.ctypes.data, len(data))
        if self._dictionary[:4] != identity:
            self._by_index = self._code_texts(dictionary)
            self._dictionary = (*identity, dictionary)  # kept, so that its addresses stay its own
        by_index = self._narrow(self._by_index)
        codes = np.empty(len(array), by_index.dtype)
        columns.codes_of_indices(values_of(indices), by_index, codes)
        if indices.null_count:
            columns.mark_nulls(validity_of(indices), indices.offset, 0, codes)
        return codes

    def _narrow(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return codes.astype(np.uint16 if self.count <= 1 << 16 else np.uint32, copy=False)

    def truth(self, atom: int) -> Mask:
        """Return for each code whether the predicate holds."""
        constants, tested = self._descriptions()
        if atom in self._test_of:
            outcome: Mask = tested[:, self._test_of[atom]]
            return outcome
        kind, argument = self._atoms[atom]
        if kind == "unequal":
            return np.not_equal(constants, self._constants[str(argument)]) & np.not_equal(constants, MISSING)
        assert isinstance(argument, frozenset)
        places = [self._constants[text] for text in argument]
        truth: Mask = constants == places[0] if len(places) == 1 else np.isin(constants, places)
        truth[0] = kind == "missing or in"
        return truth

    def _descriptions(self) -> tuple[npt.NDArray[np.int64], Mask]:
        """Return the meaning of each code: its constant, and the outcome of each test."""
        if self._described is None or len(self._described[0]) != self.count:
            constants = np.array([MISSING, *(constant for constant, _ in self._codes)], np.int64)
            tested = np.zeros((len(constants), len(self._tests)), bool)
            for code, (_, outcomes) in enumerate(self._codes, 1):
                tested[code, : len(outcomes)] = outcomes  # those of before know nothing of later tests
            self._described = constants, tested
        return self._described
