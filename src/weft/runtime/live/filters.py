"""Evaluate many conditions over a batch of events: which events satisfy each.

A condition that requires a constant is evaluated only for events with that constant, the others together, over whole
columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.predicates import And, Attribute, Comparison, In, Literal, Predicate, Value
from weft.runtime.classify.classifier import Classifier, Letters
from weft.runtime.data import blocks, exact
from weft.runtime.data.events import Column, EventBatch, Int64s

Constant = tuple[bool, Value | Decimal]  # whether it is a truth, which equals no number


class Filters:
    """Conditions by number."""

    def __init__(self, conditions: Sequence[Predicate]) -> None:
        self._by_constant: dict[str, dict[Constant, list[int]]] = {}  # by attribute
        self._rest: dict[int, And] = {}  # what else those ask for that ask for a constant
        self._classifiers: dict[int, Classifier] = {}  # of what was asked for so far
        self._others: list[int] = []
        for number, condition in enumerate(conditions):
            parts = condition.operands if isinstance(condition, And) else (condition,)
            asked = [_constants_of(part) for part in parts]
            key = next((place for place, (_, constants) in enumerate(asked) if constants), None)
            if key is None:
                self._others.append(number)
                continue
            name, constants = asked[key]
            for constant in dict.fromkeys(constants):
                self._by_constant.setdefault(name, {}).setdefault(constant, []).append(number)
            if len(parts) > 1:
                self._rest[number] = And((*parts[:key], *parts[key + 1 :]))
        self._classifier = Classifier([[conditions[number]] for number in self._others])

    def satisfied(self, batch: EventBatch) -> dict[int, Int64s]:
        """Return for each condition that events satisfy the places of these events, ascending."""
        found: dict[int, list[Int64s]] = {}
        for name, conditions in self._by_constant.items():
            column = batch.columns.get(name)
            for constant, rows in _rows_by_constant(column) if column is not None else ():
                for number in conditions.get(constant, ()):
                    found.setdefault(number, []).append(self._narrowed(number, batch, rows))
        satisfied = {number: np.sort(np.concatenate(parts)) for number, parts in found.items()}
        if self._others:
            letters = self._classifier.letters(batch)
            for place, number in enumerate(self._others):
                satisfied[number] = _where(self._classifier, place, letters[place])
        return {number: rows for number, rows in satisfied.items() if len(rows)}

    def _narrowed(self, number: int, batch: EventBatch, rows: Int64s) -> Int64s:
        """Return those of the events with the constant that satisfy the rest of a condition."""
        if number not in self._rest:
            return rows
        if number not in self._classifiers:
            self._classifiers[number] = Classifier([[self._rest[number]]])
        classifier = self._classifiers[number]
        (letters,) = classifier.letters(blocks.take(batch, rows))
        return rows[_where(classifier, 0, letters)]


def _where(classifier: Classifier, number: int, letters: Letters) -> Int64s:
    """Return the places where the only predicate of a query is true."""
    truths = [classifier.truths(number, letter)[0] for letter in range(classifier.letter_count(number))]
    return np.flatnonzero(np.array(truths, bool)[letters])


def _constants_of(condition: Predicate) -> tuple[str, list[Constant]]:
    """Return the attribute that must equal one of some constants, or nothing for other conditions."""
    match condition:
        case Comparison("=", Attribute(name, None), Literal(value)) | Comparison(
            "=", Literal(value), Attribute(name, None)
        ):
            return name, [_constant(value)]
        case In(Attribute(name, None), values):
            return name, [_constant(value) for value in values]
    return "", []


def _constant(value: Value) -> Constant:
    return isinstance(value, bool), value


def _rows_by_constant(column: Column) -> Iterator[tuple[Constant, Int64s]]:
    """Return the places of each value of a column."""
    numbers, unnamed = column.numbers, exact.unnamed_rows(column)
    for row, number in zip(unnamed.tolist(), exact.digits_at(column, unnamed), strict=True):
        yield (False, number), np.array([row])
    if numbers is not None and len(unnamed):
        named = np.ones(len(numbers), bool)
        named[unnamed] = False
        numbers = pc.if_else(pa.array(named), numbers, None)
    for array in (numbers, column.texts, column.booleans):
        if array is None:
            continue
        coded = array if hasattr(array, "dictionary") else array.dictionary_encode()
        codes = np.asarray(coded.indices.fill_null(-1))
        order = np.argsort(codes, kind="stable")
        present, begins = np.unique(codes[order], return_index=True)
        groups = np.split(order, begins[1:])
        for code, rows in zip(present.tolist(), groups, strict=True):
            if code >= 0:
                yield _constant(coded.dictionary[code].as_py()), rows
