"""What conditions read of events, as pairs of floats, and their tables as arrays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.automaton import conditions as kernel
from weft.plan.automaton.conditions import CompiledCondition, CompiledConditions
from weft.runtime.events import Column, EventBatch

Floats = npt.NDArray[np.float64]

_OPERATORS = {"<": 0, "<=": 1, ">": 2, ">=": 3, "=": 4, "<>": 5}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_OPERATIONS = {
    "constant": kernel.CONSTANT,
    "attribute": kernel.ATTRIBUTE,
    "+": kernel.ADD,
    "-": kernel.SUBTRACT,
    "*": kernel.MULTIPLY,
    "/": kernel.DIVIDE,
    "%": kernel.REMAINDER,
    "negate": kernel.NEGATE,
    "COUNT": kernel.COUNT,
    "SUM": kernel.SUM,
    "AVG": kernel.AVERAGE,
    "MIN": kernel.LEAST,
    "MAX": kernel.GREATEST,
    "FIRST": kernel.FIRST,
    "LAST": kernel.LAST,
}


class TextCodes:
    """Texts as numbers: equal texts equal numbers and, if `ordered`, greater texts greater numbers."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._codes: dict[str, float] = {}
        self._texts: list[str] = []  # sorted, if ordered
        self._next = 0.0

    def __len__(self) -> int:
        return len(self._codes)

    def of(self, texts: Sequence[str]) -> list[float]:
        """The codes of texts; ArithmeticError when there is no room between two codes (then `renumber`)."""
        return [self._codes[text] if text in self._codes else self._add(text) for text in texts]

    def _add(self, text: str) -> float:
        if not self._ordered:
            code, self._next = self._next, self._next + 1
        else:
            place = bisect_left(self._texts, text)
            below = self._codes[self._texts[place - 1]] if place else None
            above = self._codes[self._texts[place]] if place < len(self._texts) else None
            code = _between(below, above)
            self._texts.insert(place, text)
        self._codes[text] = code
        return code

    def renumber(self, keep: Iterable[float] | None = None) -> tuple[Floats, Floats]:
        """Forget all but the codes to keep and spread the others out; old codes, ascending, and their new ones."""
        kept = self._codes if keep is None else {t: c for t, c in self._codes.items() if c in set(keep)}
        old = sorted((code, text) for text, code in kept.items())
        self._texts = [text for _, text in old]
        self._codes = {text: float(number) for number, text in enumerate(self._texts)}
        self._next = float(len(old))
        return np.array([code for code, _ in old]), np.arange(len(old), dtype=np.float64)

    def snapshot(self) -> list[tuple[str, float]]:
        """All texts and their codes."""
        return list(self._codes.items())

    def restore(self, kept: Iterable[tuple[str, float]]) -> None:
        """Go on from a snapshot."""
        self._codes = dict(kept)
        self._texts = sorted(self._codes)
        self._next = max(self._codes.values(), default=-1.0) + 1


def _between(below: float | None, above: float | None) -> float:
    if below is None:
        return 0.0 if above is None else above - 1.0
    if above is None:
        return below + 1.0
    code = below + (above - below) / 2
    if not below < code < above:
        raise ArithmeticError("no room between two codes")
    return code


class ConditionTables:
    """The conditions of one query and the payload of its events."""

    def __init__(self, compiled: CompiledConditions) -> None:
        self.compiled = compiled
        self.texts = TextCodes(ordered=compiled.orders_text)
        self.width = 2 * len(compiled.attributes)
        self.arrays = _arrays(compiled)
        self._set_constants()

    def __bool__(self) -> bool:
        return bool(self.compiled.conditions)

    def payload(self, batch: EventBatch, stored: Floats) -> Floats:
        """What conditions read of each event, flat. Codes in `stored` change when texts must be renumbered."""
        if not self.width:
            return np.empty(0, np.float64)
        try:
            return self._encode(batch)
        except ArithmeticError:
            self.renumber(stored)
            return self._encode(batch)

    def _encode(self, batch: EventBatch) -> Floats:
        values = np.empty((len(batch), self.width), np.float64)
        for number, name in enumerate(self.compiled.attributes):
            value, rest = self._encode_column(batch.columns.get(name, Column()), len(batch))
            values[:, 2 * number], values[:, 2 * number + 1] = value, rest
        return values.ravel()

    def _encode_column(self, column: Column, count: int) -> tuple[Floats, Floats]:
        value, rest = np.full(count, np.nan), np.zeros(count)
        if column.numbers is not None:
            known = np.asarray(column.numbers.is_valid())
            numbers = np.asarray(column.numbers.fill_null(0))
            value = np.where(known, numbers.astype(np.float64), value)
            if numbers.dtype == np.int64 and (np.abs(numbers.astype(np.float64)) > 2**53).any():
                whole = numbers.astype(np.float64).clip(-(2.0**63), 2.0**63 - 1024)
                value = np.where(known, whole, np.nan)
                rest = np.where(known, (numbers - whole.astype(np.int64)).astype(np.float64), 0.0)
        if column.booleans is not None:
            known = np.asarray(column.booleans.is_valid())
            value = np.where(known, np.asarray(column.booleans.fill_null(False)).astype(np.float64), value)
            rest = np.where(known, kernel.BOOLEAN, rest)
        if column.texts is not None:
            encoded = column.texts
            if not pa.types.is_dictionary(encoded.type):
                encoded = encoded.dictionary_encode()
            known = np.asarray(encoded.is_valid())
            codes = np.array([*self.texts.of(encoded.dictionary.to_pylist()), np.nan])
            indices = np.asarray(encoded.indices.fill_null(len(codes) - 1))
            value = np.where(known, codes[indices], value)
            rest = np.where(known, kernel.TEXT, rest)
        return value, rest

    def renumber(self, stored: Floats, keep: npt.NDArray[np.bool_] | None = None) -> None:
        """Give texts new codes, also in stored payload; with `keep` (by stored row) forget those no longer stored."""
        pairs = stored.reshape(-1, len(self.compiled.attributes), 2)
        is_text = pairs[:, :, 1] == kernel.TEXT
        live = None
        if keep is not None:
            constants = [text for text in self.compiled.constants if isinstance(text, str)]
            live = {*np.unique(pairs[:, :, 0][is_text & keep[:, None]]).tolist(), *self.texts.of(constants)}
        old, new = self.texts.renumber(live)
        if len(old):
            places = np.minimum(np.searchsorted(old, pairs[:, :, 0][is_text]), len(old) - 1)
            pairs[:, :, 0][is_text] = new[places]
        self._set_constants()

    def restore_texts(self, kept: Iterable[tuple[str, float]]) -> None:
        """Take the codes of texts from a snapshot."""
        self.texts.restore(kept)
        self._set_constants()

    def _set_constants(self) -> None:
        for number, constant in enumerate(self.compiled.constants):
            if isinstance(constant, bool):
                pair = (float(constant), kernel.BOOLEAN)
            elif isinstance(constant, str):
                pair = (self.texts.of([constant])[0], kernel.TEXT)
            elif isinstance(constant, int):
                pair = (float(constant), float(constant - int(float(constant))))
            else:
                pair = (constant, 0.0)
            self.arrays.constants[2 * number : 2 * number + 2] = pair


def _offsets(groups: Sequence[Sequence[object]]) -> npt.NDArray[np.int32]:
    return np.cumsum([0, *map(len, groups)]).astype(np.int32)


def _flat(groups: Iterable[Iterable[int]]) -> npt.NDArray[np.int32]:
    return np.array([item for group in groups for item in group], np.int32)


def _arrays(compiled: CompiledConditions) -> kernel.Conditions:
    items: tuple[CompiledCondition, ...] = compiled.conditions
    tests = [[test for slot in own for item in items for test in _tests(item, slot)] for own in compiled.label_slots]
    general = [
        [
            (number, slot)
            for slot in own
            for number, item in enumerate(items)
            if item.kind == "general" and slot in item.slots
        ]
        for own in compiled.label_slots
    ]
    sides = [side for item in items for side in (item.left, item.right)]
    code = [[_OPERATIONS[name], operand, column] for side in sides for name, operand, column in side]
    return kernel.Conditions(
        slot_count=len(compiled.slots),
        label_slots_at=_offsets(compiled.label_slots),
        label_slots=_flat(compiled.label_slots),
        label_tests_at=_offsets(tests),
        label_tests=_flat(test for group in tests for test in group),
        label_general_at=_offsets(general),
        label_general=_flat(pair for group in general for pair in group),
        label_enters_at=_offsets(compiled.label_enters),
        label_enters=_flat(compiled.label_enters),
        slow=np.array([bool(a or b) for a, b in zip(general, compiled.label_enters, strict=True)], bool),
        last_tests=_flat([[n for n, item in enumerate(items) if item.kind == "whole" and not item.scoped]]),
        whole=np.array([item.kind == "whole" for item in items], bool),
        own_slots_at=_offsets([item.slots for item in items]),
        own_slots=_flat(item.slots for item in items),
        operators=np.array([_OPERATORS[item.operator] for item in items], np.int32),
        singles_at=_offsets([item.singles for item in items]),
        singles=_flat(item.singles for item in items),
        wholes_at=_offsets([item.wholes for item in items]),
        wholes=_flat(item.wholes for item in items),
        code_at=_offsets(sides),
        code=_flat(code),
        constants=np.zeros(2 * len(compiled.constants), np.float64),
    )


def _tests(item: CompiledCondition, slot: int) -> Iterable[tuple[int, int, int, int]]:
    """The quick tests of a condition when a slot is filled."""
    if item.kind in ("rising", "same") and slot in item.slots:
        yield _OPERATORS[item.operator], item.left[0][2], slot, -1
    elif item.kind == "pair":
        (_, left, left_column), (_, right, right_column) = item.left[0], item.right[0]
        if slot == left:
            yield _OPERATORS[item.operator], left_column, right, right_column
        if slot == right:
            yield _OPERATORS[_MIRRORED[item.operator]], right_column, left, left_column
