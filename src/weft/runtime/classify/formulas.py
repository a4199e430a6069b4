"""Split predicates into Boolean formulas over atomic predicates on columns, each evaluated once for all queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.numbers import worth
from weft.algebra.predicates import (
    Always,
    And,
    Attribute,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    RegexMatch,
    Value,
)
from weft.plan.atoms import IsStream, IsType
from weft.runtime.classify import vectors
from weft.runtime.classify.codes import BooleanCoder, Coder, NumberCoder, TruthCoder
from weft.runtime.classify.functions import text_test
from weft.runtime.classify.text_codes import TextCoder
from weft.runtime.data.events import EventBatch

Mask = npt.NDArray[np.bool_]
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
C = TypeVar("C", bound=Coder)


@dataclass(frozen=True)
class Leaf:
    """An atomic predicate: its column, and its place among the predicates on it."""

    column: int
    atom: int


@dataclass(frozen=True)
class Compound:
    """A connective: all of the parts hold, or (`any`) one of them, or (`none`) none."""

    connective: str
    parts: tuple[Formula, ...]


Formula = bool | Leaf | Compound


def leaves_of(formula: Formula) -> set[Leaf]:
    """Return the atomic predicates of a formula."""
    if isinstance(formula, Leaf):
        return {formula}
    return set() if isinstance(formula, bool) else {leaf for part in formula.parts for leaf in leaves_of(part)}


def truth_of(formula: Formula, truths: Callable[[Leaf], Mask], length: int) -> Mask:
    """Return where a formula holds, given where its atoms do."""
    if isinstance(formula, bool):
        return np.full(length, formula)
    if isinstance(formula, Leaf):
        return truths(formula)
    parts = [truth_of(part, truths, length) for part in formula.parts]
    found: Mask = np.logical_and.reduce(parts) if formula.connective == "all" else np.logical_or.reduce(parts)
    return ~found if formula.connective == "none" else found


class Atomizer:
    """Splits predicates; `coders` are the columns of their atoms."""

    def __init__(self) -> None:
        self.coders: list[Coder] = []
        self._places: dict[tuple[str, ...], int] = {}

    def formula(self, predicate: Predicate) -> Formula:
        """Convert a predicate to a formula over atoms."""
        match predicate:
            case Always():
                return True
            case And(operands):
                return _compound("all", [self.formula(operand) for operand in operands])
            case Or(operands):
                return _compound("any", [self.formula(operand) for operand in operands])
            case Not(operand):
                return _compound("none", [self.formula(operand)])
            case IsType(name):
                column, types = self._coder(("types",), lambda: TextCoder(lambda batch: batch.types))
                return Leaf(column, types.add_members([name]))
            case IsStream(name):
                column, streams = self._coder(("streams",), lambda: TextCoder(lambda batch: batch.streams))
                return Leaf(column, streams.add_members([name], missing=True))
            case Comparison(symbol, left, right):
                return self._comparison(symbol, left, right, predicate)
            case In(operand, values):
                return self._member(operand, values, predicate)
            case IsNull(operand):
                known, constant = vectors.constant_of(operand)
                return constant is None if known else self._evaluated(predicate)
            case Like() | RegexMatch():
                return self._test(predicate)
        raise TypeError(f"not a predicate over the event at hand: {predicate!r}")

    def _comparison(self, symbol: str, left: Expression, right: Expression, predicate: Predicate) -> Formula:
        left_known, left_value = vectors.constant_of(left)
        right_known, right_value = vectors.constant_of(right)
        if left_known and right_known:
            return _compare(symbol, left_value, right_value)
        if left_known:
            return self._comparison(FLIPPED[symbol], right, left, predicate)
        if right_known and right_value is None:
            return False
        if right_value is not None and isinstance(left, Attribute):
            return self._simple(_name(left), symbol, right_value)
        return self._evaluated(predicate)

    def _simple(self, name: str, symbol: str, value: Value) -> Formula:
        """Convert `attribute symbol constant`."""
        if isinstance(value, bool):
            column, flags = self._coder(("boolean", name), lambda: BooleanCoder(name))
            return Leaf(column, flags.add(symbol, value))
        if not isinstance(value, str):
            column, numbers = self._coder(("number", name), lambda: NumberCoder(name))
            return Leaf(column, numbers.add([(symbol, value)]))
        column, texts = self._texts(name)
        if symbol == "=":
            return Leaf(column, texts.add_members([value]))
        if symbol == "<>":
            return Leaf(column, texts.add_unequal(value))
        return Leaf(column, texts.add_test(symbol, value, partial(_ordered, vectors.COMPARE[symbol], value)))

    def _member(self, operand: Expression, values: Sequence[Value], predicate: Predicate) -> Formula:
        known, constant = vectors.constant_of(operand)
        if known:
            return any(_compare("=", constant, value) for value in values)
        if not isinstance(operand, Attribute):
            return self._evaluated(predicate)
        name = _name(operand)
        parts: list[Formula] = [self._simple(name, "=", value) for value in values if isinstance(value, bool)]
        numbers = sorted({v for v in values if not isinstance(v, bool | str)}, key=worth)
        if numbers:
            column, coder = self._coder(("number", name), lambda: NumberCoder(name))
            parts.append(Leaf(column, coder.add([("=", number) for number in numbers])))
        texts = [value for value in values if isinstance(value, str)]
        if texts:
            place, text_coder = self._texts(name)
            parts.append(Leaf(place, text_coder.add_members(texts)))
        return _compound("any", parts)

    def _test(self, predicate: Like | RegexMatch) -> Formula:
        known, constant = vectors.constant_of(predicate.operand)
        test = text_test(predicate)
        if known:
            return isinstance(constant, str) and test(constant)
        if not isinstance(predicate.operand, Attribute):
            return self._evaluated(predicate)
        column, texts = self._texts(_name(predicate.operand))
        return Leaf(column, texts.add_test(type(predicate).__name__, predicate.pattern, test))

    def _evaluated(self, predicate: Predicate) -> Formula:
        # By its text: as values True, 1 and 1.0 are equal, as predicates they are not.
        column, _ = self._coder(("evaluated", repr(predicate)), lambda: TruthCoder(predicate))
        return Leaf(column, 0)

    def _texts(self, name: str) -> tuple[int, TextCoder]:
        return self._coder(("text", name), lambda: TextCoder(partial(_texts_of, name)))

    def _coder(self, key: tuple[str, ...], make: Callable[[], C]) -> tuple[int, C]:
        place = self._places.setdefault(key, len(self.coders))
        if place == len(self.coders):
            self.coders.append(make())
        return place, cast(C, self.coders[place])


def _compound(connective: str, parts: list[Formula]) -> Formula:
    """Build a formula, simplified to have no constants inside."""
    decisive = connective != "all"  # one such part settles it
    if any(part is decisive for part in parts):
        return connective == "any"
    kept = tuple(part for part in parts if not isinstance(part, bool))
    if not kept:
        return connective != "any"
    return kept[0] if len(kept) == 1 and connective != "none" else Compound(connective, kept)


def _name(attribute: Attribute) -> str:
    if attribute.variable is not None:
        raise TypeError(f"not about the event at hand: {attribute!r}")
    return attribute.name


def _texts_of(name: str, batch: EventBatch) -> pa.Array | None:
    column = batch.columns.get(name)
    return None if column is None else column.texts


def _family(value: Value) -> str:
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _compare(symbol: str, left: Value | None, right: Value | None) -> bool:
    if left is None or right is None or _family(left) != _family(right):
        return False
    if not isinstance(left, bool | str) and not isinstance(right, bool | str):
        left, right = worth(left), worth(right)
    return bool(vectors.COMPARE[symbol](left, right))


def _ordered(compare: Callable[[Any, Any], Any], constant: str, text: str) -> bool:
    return bool(compare(text, constant))
