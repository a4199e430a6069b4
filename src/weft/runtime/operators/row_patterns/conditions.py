"""Compile conditions that depend on the match so far for the kernel; Python evaluates those it cannot represent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.row_patterns import (
    At,
    Constant,
    MatchNumber,
    RowAggregate,
    RowCall,
    RowExpression,
    RowLabel,
)
from weft.kernels.row_patterns import conditions as k
from weft.plan.row_patterns.conditions import RowConditions
from weft.plan.row_patterns.program import RowProgram
from weft.runtime.operators.row_patterns.evaluation import RowScope, broadcast, evaluate
from weft.runtime.operators.row_patterns.layout import Int64s
from weft.runtime.operators.row_patterns.ordering import EXACT, has_nan, largest_of
from weft.runtime.operators.row_patterns.sql_types import constant

INTEGER, REAL, TEXT, TIME, SPAN, TRUTH, NOTHING = "integer", "real", "text", "time", "span", "truth", "nothing"
Kind = str | tuple[str, int]  # decimals with their scale
_ORDERS = {
    "<": k.BELOW,
    "<=": k.BELOW | k.EQUAL,
    "=": k.EQUAL,
    "<>": k.BELOW | k.ABOVE,
    ">": k.ABOVE,
    ">=": k.ABOVE | k.EQUAL,
}
_SUMS = {"+": (k.ADD, k.ADD_REALS), "-": (k.SUBTRACT, k.SUBTRACT_REALS), "*": (k.MULTIPLY, k.MULTIPLY_REALS)}
_AGGREGATES = {"sum": k.ADD_UP, "avg": k.ADD_UP, "mean": k.ADD_UP, "min": k.LEAST, "max": k.GREATEST}


class _NotCompilable(Exception):
    """Raised for an expression that the kernel cannot evaluate."""


@dataclass
class _Interned:
    """Numbers for objects, in the order of their first use."""

    things: dict[object, int] = field(default_factory=dict)

    def __call__(self, thing: object) -> int:
        return self.things.setdefault(thing, len(self.things))


@dataclass
class ConditionCompiler:
    """Compiles the conditions of one query over one layout."""

    program: RowProgram
    scope: RowScope
    code: list[tuple[int, int, int]] = field(default_factory=list)
    reals: list[float] = field(default_factory=list)
    sets: _Interned = field(default_factory=_Interned)
    navigations: _Interned = field(default_factory=_Interned)
    aggregates: _Interned = field(default_factory=_Interned)
    columns: list[pa.Array] = field(default_factory=list)
    real_columns: list[pa.Array] = field(default_factory=list)
    known: dict[RowExpression, tuple[Kind, int]] = field(default_factory=dict)
    texts: Int64s | None = None
    _dictionary: pa.Array | None = None

    def compiled(self, conditions: RowConditions) -> k.ConditionCode:
        """Return the code of all conditions."""
        begins, asked = [0], []
        self._dictionary = self._all_texts(conditions)
        for name in self.program.variables:
            kept = len(self.code)
            try:
                self._conjunction(conditions.others[name])
                asked.append(0)
            except _NotCompilable:
                del self.code[kept:]
                asked.append(1)
            begins.append(len(self.code))
        return self._packed(begins, asked, conditions)

    def _conjunction(self, parts: tuple[RowExpression, ...]) -> None:
        for number, part in enumerate(parts):
            self._truth(part)
            if number:
                self._emit(k.AND)

    # ------------------------------------------------------------ expressions

    def _emit(self, operation: int, x: int = 0, y: int = 0) -> None:
        self.code.append((operation, x, y))

    def _truth(self, node: RowExpression) -> None:
        if self._value(node) not in (TRUTH, NOTHING):
            raise _NotCompilable

    def _value(self, node: RowExpression) -> Kind:
        """Add code that pushes a value, and return its kind."""
        match node:
            case Constant():
                return self._constant(constant(node))
            case At():
                return self._at(node)
            case RowAggregate():
                return self._aggregate(node)
            case MatchNumber():
                self._emit(k.NUMBER_OF_MATCH)
                return INTEGER
            case RowCall(function, arguments):
                return self._call(function, arguments)
        raise _NotCompilable

    def _call(self, function: str, arguments: tuple[RowExpression, ...]) -> Kind:
        if function in _ORDERS:
            return self._compared(_ORDERS[function], *arguments)
        if function in _SUMS:
            return self._calculated(function, *arguments)
        if function in ("and", "or"):
            for number, part in enumerate(arguments):
                self._truth(part)
                if number:
                    self._emit(k.AND if function == "and" else k.OR)
            return TRUTH
        if function == "not":
            self._truth(arguments[0])
            self._emit(k.NOT)
            return TRUTH
        if function == "is null":
            self._value(arguments[0])
            self._emit(k.IS_MISSING)
            return TRUTH
        if function == "in":
            for number, item in enumerate(arguments[1:]):
                self._compared(k.EQUAL, arguments[0], item)
                if number:
                    self._emit(k.OR)
            return TRUTH
        if function == "/":
            for part in arguments:
                self._real(part, self._value(part))
            self._emit(k.DIVIDE_REALS)
            return REAL
        if function == "%":
            if [self._value(part) for part in arguments] != [INTEGER, INTEGER]:
                raise _NotCompilable
            self._emit(k.REMAINDER)
            return INTEGER
        raise _NotCompilable

    def _real(self, part: RowExpression, kind: Kind) -> None:
        """Convert the value on the stack, of an expression `part`, to a float."""
        if kind == INTEGER:
            self._require_below(part, EXACT)
            self._emit(k.TO_REAL)
        elif kind not in (REAL, NOTHING):
            raise _NotCompilable

    def _pair(self, left: RowExpression, right: RowExpression) -> Kind:
        """Add code that pushes two values of one kind, and return the kind."""
        one = self._value(left)
        between = len(self.code)
        two = self._value(right)
        if {one, two} == {INTEGER, REAL}:
            self._require_below(left if one == INTEGER else right, EXACT)
            if one == INTEGER:
                self.code.insert(between, (k.TO_REAL, 0, 0))
            else:
                self._emit(k.TO_REAL)
            return REAL
        if isinstance(one, tuple) or isinstance(two, tuple):
            return self._scaled(one, two, between)
        if one != two and NOTHING not in (one, two):
            raise _NotCompilable
        return two if one == NOTHING else one

    def _scaled(self, one: Kind, two: Kind, between: int) -> Kind:
        """Bring two decimals, or a decimal and an integer, to one scale."""
        scales = [kind[1] if isinstance(kind, tuple) else 0 for kind in (one, two)]
        if any(kind != INTEGER and not isinstance(kind, tuple) for kind in (one, two)) or max(scales) > 9:
            raise _NotCompilable
        scale = max(scales)
        self.code[between:between] = [(k.INTEGER, 10 ** (scale - scales[0]), 0), (k.MULTIPLY, 0, 0)]
        self.code += [(k.INTEGER, 10 ** (scale - scales[1]), 0), (k.MULTIPLY, 0, 0)]
        return ("decimal", scale)

    def _compared(self, orders: int, left: RowExpression, right: RowExpression) -> Kind:
        kind = self._pair(left, right)
        self._emit(k.COMPARE_REALS if kind == REAL else k.COMPARE, orders)
        return TRUTH

    def _calculated(self, function: str, left: RowExpression, right: RowExpression) -> Kind:
        kept = len(self.code)
        one = self._value(left)
        two = self._value(right)
        if {one, two} <= {TIME, SPAN} and function in "+-" and TEXT not in (one, two):
            self._emit(_SUMS[function][0])
            return SPAN if one == two else TIME
        del self.code[kept:]
        if function == "*" and (isinstance(one, tuple) or isinstance(two, tuple)):
            raise _NotCompilable
        kind = self._pair(left, right)
        if kind not in (INTEGER, REAL) and not isinstance(kind, tuple):
            raise _NotCompilable
        if kind != REAL:
            self._require_below(RowCall(function, (left, right)), 2**63 - 1)
        self._emit(_SUMS[function][kind == REAL])
        return kind

    def _require_below(self, part: RowExpression, most: int) -> None:
        """Reject integers that may exceed a limit, as the kernel would compute them wrongly."""
        if self._bound(part) > most:
            raise _NotCompilable

    def _bound(self, node: RowExpression) -> int:
        """Return an upper bound of the values of an expression over integers, whose columns must be known."""
        match node:
            case Constant():
                value = constant(node).as_py()
                return abs(value) if isinstance(value, int) else 0
            case At(argument=argument):
                return self._bound_of_column(argument)
            case RowAggregate(function="sum", arguments=(argument,)):
                return self._bound_of_column(argument) * self.scope.size
            case RowAggregate(function="min" | "max", arguments=(argument,)):
                return self._bound_of_column(argument)
            case RowCall("*", (left, right)):
                return self._bound(left) * self._bound(right)
            case RowCall("+" | "-", (left, right)):
                return self._bound(left) + self._bound(right)
            case RowCall("%", (left, _)):
                return self._bound(left)
        return EXACT if isinstance(node, RowCall) else self.scope.size

    def _bound_of_column(self, argument: RowExpression) -> int:
        kind, column = self.known.get(argument, (NOTHING, 0))
        return largest_of(self.columns[column]) if kind == INTEGER else 0

    # ------------------------------------------------------------ operands

    def _constant(self, value: pa.Scalar) -> Kind:
        if not value.is_valid:
            self._emit(k.MISSING)
            return NOTHING
        if pa.types.is_floating(value.type):
            self._emit(k.REAL, len(self.reals))
            self.reals.append(float(value.as_py()))
            return REAL
        kind, numbers = self._as_numbers(pa.array([value.as_py()], value.type))
        self._emit(k.INTEGER, int(numbers[0].as_py()))
        return kind

    def _at(self, node: At) -> Kind:
        if node.final:
            raise _NotCompilable
        place = self.navigations((self.sets(node.variables), node.first, node.offset, node.shift))
        if isinstance(node.argument, RowLabel):
            self._emit(k.LABEL, 0, place)
            return TEXT
        kind, column = self._column(node.argument)
        self._emit(k.REALS if kind == REAL else k.COLUMN, column, place)
        return kind

    def _column(self, argument: RowExpression) -> tuple[Kind, int]:
        """Return the kind and number of a column with the values of an expression for each row."""
        if any(isinstance(node, RowLabel | MatchNumber) for node in argument.walk()):
            raise _NotCompilable
        if argument not in self.known:
            values = broadcast(evaluate(argument, self.scope), self.scope.size)
            if pa.types.is_floating(values.type):
                if has_nan(values):
                    raise _NotCompilable
                self.known[argument] = REAL, len(self.real_columns)
                self.real_columns.append(values.cast(pa.float64()))
            else:
                kind, numbers = self._as_numbers(values)
                self.known[argument] = kind, len(self.columns)
                self.columns.append(numbers)
        return self.known[argument]

    def _as_numbers(self, values: pa.Array) -> tuple[Kind, pa.Array]:
        """Convert values to integers that compare and add up in the same way."""
        kind = values.type
        if pa.types.is_integer(kind):
            return INTEGER, values.cast(pa.int64())
        if pa.types.is_boolean(kind):
            return TRUTH, values.cast(pa.int64())
        if pa.types.is_timestamp(kind):
            return TIME, values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        if pa.types.is_duration(kind):
            return SPAN, values.cast(pa.duration("us")).cast(pa.int64())
        if pa.types.is_string(kind):
            return TEXT, pc.index_in(values, self._dictionary).cast(pa.int64())
        if pa.types.is_decimal(kind) and kind.precision <= 18:
            return ("decimal", kind.scale), _unscaled(values)
        raise _NotCompilable

    def _all_texts(self, conditions: RowConditions) -> pa.Array:
        """Return all texts that conditions compare, sorted, so that their places compare as the texts do."""
        found = [pa.array(self.program.variables, pa.string())]
        for part in (part for parts in conditions.others.values() for part in parts):
            for node in part.walk():
                if isinstance(node, Constant) and isinstance(node.value, str) and not node.kind:
                    found.append(pa.array([node.value]))
                if isinstance(node, At | RowAggregate):
                    found += self._texts_of(node)
        texts = pc.unique(pa.concat_arrays(found)).drop_null()
        return texts.take(pc.sort_indices(texts))

    def _texts_of(self, node: At | RowAggregate) -> list[pa.Array]:
        arguments = (node.argument,) if isinstance(node, At) else node.arguments
        found = []
        for argument in arguments:
            if not any(isinstance(part, RowLabel | MatchNumber) for part in argument.walk()):
                values = broadcast(evaluate(argument, self.scope), self.scope.size)
                found += [pc.unique(values)] if pa.types.is_string(values.type) else []
        return found

    def _aggregate(self, node: RowAggregate) -> Kind:
        if node.distinct or node.final or len(node.arguments) > 1:
            raise _NotCompilable
        of = self.sets(node.variables)
        if node.function == "count":
            if not node.arguments:
                self._emit(k.COUNT, self.aggregates((k.COUNT_ROWS, 0, False, of)))
                return INTEGER
            kind, column = self._column(node.arguments[0])
            self._emit(k.COUNT, self.aggregates((k.COUNT_VALUES, column, kind == REAL, of)))
            return INTEGER
        if node.function not in _AGGREGATES or not node.arguments:
            raise _NotCompilable
        kind, column = self._column(node.arguments[0])
        place = self.aggregates((_AGGREGATES[node.function], column, kind == REAL, of))
        adds_decimals = node.function == "sum" and isinstance(kind, tuple)
        if node.function in ("sum", "avg", "mean") and kind not in (INTEGER, REAL) and not adds_decimals:
            raise _NotCompilable
        if node.function == "sum":
            self._require_below(node, 2**63 - 1)
        self._emit(k.REAL_SUM if kind == REAL else k.SUM, place)
        if node.function in ("avg", "mean"):
            self._real(RowAggregate("sum", node.arguments), kind)
            self._emit(k.COUNT, place)
            self._emit(k.TO_REAL)
            self._emit(k.DIVIDE_REALS)  # over no rows the sum is missing, and so is the quotient
            return REAL
        return kind

    # ------------------------------------------------------------ tables

    def _packed(self, begins: list[int], asked: list[int], conditions: RowConditions) -> k.ConditionCode:
        sets = list(self.sets.things) or [None]
        names = self.program.variables
        members = [variables is None or name in variables for variables in sets for name in names]  # type: ignore[operator]
        arrays = [*self.columns, *self.real_columns]
        missing = [np.asarray(column.is_null()).astype(np.uint8) for column in arrays]
        label_codes = pc.index_in(pa.array(names, pa.string()), self._dictionary).to_numpy()
        return k.ConditionCode(
            np.array(begins, np.int64),
            np.array(asked, np.uint8),
            np.array(self.code, np.int64).reshape(-1),
            np.array(self.reals, np.float64),
            np.array([[int(x) for x in place] for place in self.navigations.things], np.int64).reshape(-1),  # type: ignore[attr-defined]
            np.array([[int(x) for x in place] for place in self.aggregates.things], np.int64).reshape(-1),  # type: ignore[attr-defined]
            np.array(members, np.uint8),
            len(sets),
            len(names),
            np.array([label_codes[v] for v in self.program.variable_of], np.int64),
            np.array(conditions.told_apart(names), np.int64),
            _flat([column.fill_null(0).to_numpy(zero_copy_only=False) for column in self.columns], np.int64),
            _flat([column.fill_null(0.0).to_numpy(zero_copy_only=False) for column in self.real_columns], np.float64),
            _flat(missing, np.uint8),
            self.scope.size,
        )


def _unscaled(values: pa.Array) -> pa.Array:
    """Convert decimals of at most 18 digits to integers: the lower halves of their words."""
    if not pa.types.is_decimal128(values.type):
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset :: 2][: len(values)]
    return pa.array(words, mask=np.asarray(values.is_null()))


def _flat(columns: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(columns).astype(kind) if columns else np.empty(0, kind)
