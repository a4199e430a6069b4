"""Evaluator of conditions on several events: their code, the texts that are compared, and scratch arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.kernels.machine.machine import Machine
from weft.kernels.machine.tagged import VALUE
from weft.runtime.classify.functions import text_test
from weft.runtime.classify.texts import TextTable
from weft.runtime.data.events import Int64s
from weft.runtime.machine.code import Code
from weft.runtime.machine.values import tag


class Evaluator:
    """Provides the arguments of the condition machine; constants and values share one table of texts."""

    def __init__(self, code: Code) -> None:
        self.texts = TextTable()
        self.read(code)

    def read(self, code: Code) -> None:
        """Allocate the scratch arrays of the conditions; call it again when conditions were added."""
        self._source = code
        self._patterns = [text_test(pattern) for pattern in code.patterns]
        self._stack = code.stack()
        self._chosen = np.zeros(code.slots, np.int64)
        self._results = np.zeros(VALUE * code.results, np.int64)
        self._lists = np.zeros(3 * code.slots + 16, np.int64)
        self.use_texts(self.texts)

    def use_texts(self, texts: TextTable) -> None:
        """Replace the texts, and build the code with their ids."""
        self.texts = texts
        self._found_by_regex = np.empty((0, len(self._patterns)), bool)  # by text and pattern, as far as tested
        self._code: Int64s = self._source.array(lambda value: tag(value, texts))

    def restore_texts(self, texts: Sequence[str]) -> None:
        """Restore the texts of a snapshot."""
        self.use_texts(TextTable(texts))

    def machine_on(self, values: Int64s, width: int) -> Machine:
        """Return the machine for events that have `width` of these values each."""
        return Machine(
            self._code,
            self._stack,
            values,
            width,
            self._chosen,
            1,
            self._results,
            self._lists,
            *self.texts.buffers,
            self._regex_results(),
            len(self._patterns),
        )

    def _regex_results(self) -> npt.NDArray[np.bool_]:
        """Return for each text and each regular expression whether it matches; each is tested once."""
        if self._patterns and len(self._found_by_regex) < len(self.texts):
            new = self.texts.texts(len(self._found_by_regex))
            found = np.array([[test(text) for test in self._patterns] for text in new], bool)
            self._found_by_regex = np.concatenate([self._found_by_regex, found])
        return self._found_by_regex.reshape(-1)
