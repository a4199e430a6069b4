"""The SQL types of expressions, where the types of the columns are known: as Spark SQL gives them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from weft.algebra.row_patterns import (
    At,
    Cast,
    Choose,
    Constant,
    MatchNumber,
    RowAggregate,
    RowCall,
    RowExpression,
    RowField,
    RowLabel,
)
from weft.languages.sql.words import word_set

NULL = "null"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_CONDITIONS = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null", "is true", "is false", "in", "like", "ilike"}
    | {"rlike", "is distinct from", "startswith", "endswith", "contains", "array_contains"}
)
_TEXTS = word_set(
    """upper lower trim ltrim rtrim substring concat concat_ws replace left right lpad rpad reverse array_join initcap
    repeat"""
)
_INTS = word_set("length year month day hour minute second quarter dayofweek size instr sign_of")
_DOUBLES = word_set("sqrt power exp ln log10 log2 sin cos tan")
_SAME = word_set("abs negate coalesce greatest least nullif")
_COUNTS = word_set("count count_if approx_count_distinct")
_DOUBLE_FOLDS = word_set("stddev_samp stddev_pop var_samp var_pop corr covar_samp covar_pop median")
_SAME_FOLDS = word_set("min max any_value max_by min_by mode")


def type_of(expression: RowExpression, columns: Mapping[str, str]) -> str:
    """The name of an expression's type; empty where it is not known."""
    match expression:
        case Constant(value, kind):
            return kind or _constant(value)
        case RowField(name):
            return columns.get(name, "")
        case RowLabel():
            return "string"
        case MatchNumber():
            return "bigint"
        case At(argument):
            return type_of(argument, columns)
        case Cast(_, type_):
            return type_
        case Choose(branches, otherwise):
            return common([*(type_of(branch.value, columns) for branch in branches), type_of(otherwise, columns)])
        case RowAggregate():
            return _aggregate(expression, [type_of(argument, columns) for argument in expression.arguments])
        case RowCall(function, arguments):
            return _call(function, [type_of(argument, columns) for argument in arguments])
    return ""


def _constant(value: object) -> str:
    match value:
        case None:
            return NULL
        case bool():
            return "boolean"
        case int():
            return "int" if -(2**31) <= value < 2**31 else "bigint"
        case float():
            return "double"
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return f"decimal({max(len(digits), scale)},{scale})"
        case str():
            return "string"
    return ""


def _call(function: str, types: list[str]) -> str:
    if function in _CONDITIONS:
        return "boolean"
    if function in _TEXTS:
        return "string"
    if function in _INTS:
        return "int"
    if function in _DOUBLES:
        return "double"
    if function in _SAME:
        return common(types)
    if function in ("+", "-", "*", "/", "%"):
        return _arithmetic(function, *types)
    if function == "||":
        return types[0] if types[0].startswith("array") else "string" if all(types) else ""
    if function == "array":
        inner = common(types)
        return f"array<{inner}>" if inner else ""
    if function in ("ceil", "floor", "div"):
        return "bigint" if types and not types[0].startswith("decimal") and types[0] else ""
    if function in ("array_max", "array_min", "[]", "element_at") and types and types[0].startswith("array<"):
        return types[0][6:-1]
    if function == "round" and types and not types[0].startswith("decimal"):
        return types[0]
    return ""


def _arithmetic(operator: str, left: str, right: str) -> str:
    if not left or not right:
        return ""
    if NULL in (left, right):
        left = right = left if right == NULL else right
    times = [type_ for type_ in (left, right) if type_.startswith(("timestamp", "date", "interval"))]
    if times:
        return _times(operator, left, right)
    if "double" in (left, right) or "float" in (left, right) or "string" in (left, right):
        return "double" if (left, right) != ("float", "float") else "float"
    if left in _WHOLE and right in _WHOLE:
        return "double" if operator == "/" else max(left, right, key=_WHOLE.index)
    parts = [_digits(left), _digits(right)]
    return "" if None in parts else _decimal(operator, *parts[0], *parts[1])  # type: ignore[misc]


def _times(operator: str, left: str, right: str) -> str:
    if left.startswith("interval") and right.startswith("interval"):
        return left
    if left.startswith("interval") or right.startswith("interval"):
        interval, time = (left, right) if left.startswith("interval") else (right, left)
        if time == "date":
            return "date" if interval == "interval year to month" else "timestamp"
        return time if time.startswith("timestamp") else ""
    return "interval day to second" if operator == "-" else ""


def _digits(type_: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal, or of a whole number as one."""
    if type_ in _WHOLE:
        return _WHOLE_DIGITS[type_], 0
    if not type_.startswith("decimal("):
        return None
    precision, _, scale = type_[8:-1].partition(",")
    return int(precision), int(scale or 0)


def _decimal(operator: str, p1: int, s1: int, p2: int, s2: int) -> str:
    """The type of an operation on decimals, by Spark's rules."""
    if operator in "+-":
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        scale, precision = s1 + s2, p1 + p2 + 1
    elif operator == "%":
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    else:
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    if precision > 38:
        whole = precision - scale
        scale = max(38 - whole, min(scale, 6))
        precision = 38
    return f"decimal({precision},{scale})"


def _aggregate(node: RowAggregate, types: list[str]) -> str:
    name, first = node.function, types[0] if types else ""
    if name in _COUNTS:
        return "bigint"
    if name in ("bool_and", "bool_or"):
        return "boolean"
    if name == "string_agg":
        return "string"
    if name in _DOUBLE_FOLDS:
        return "double"
    if not first:
        return ""
    if name in ("collect_list", "collect_set") or (name in _SAME_FOLDS and len(types) > 1 + name.endswith("_by")):
        return f"array<{first}>"
    if name in _SAME_FOLDS:
        return first
    digits = _digits(first) if first.startswith("decimal") else None
    if name == "sum":
        if digits is not None:
            return f"decimal({min(38, digits[0] + 10)},{digits[1]})"
        return "bigint" if first in _WHOLE else first if first.startswith("interval") else "double"
    if name == "avg":
        if digits is not None:
            return f"decimal({min(38, digits[0] + 4)},{min(38, digits[1] + 4)})"
        return first if first.startswith("interval") else "double"
    return ""


def common(types: list[str]) -> str:
    """The type that values of several types have together; empty where it is not known."""
    left = [type_ for type_ in dict.fromkeys(types) if type_ != NULL]
    if not left:
        return NULL
    if "" in left:
        return ""
    if len(left) == 1:
        return left[0]
    if all(type_ in _WHOLE for type_ in left):
        return max(left, key=_WHOLE.index)
    if all(type_ in (*_WHOLE, "float", "double") or type_.startswith("decimal") for type_ in left):
        if "double" in left or "float" in left:
            return "double"
        digits = [found for found in map(_digits, left) if found is not None]
        scale = max(s for _, s in digits)
        return f"decimal({min(38, max(p - s for p, s in digits) + scale)},{scale})"
    return ""
