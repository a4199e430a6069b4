"""Row patterns as text: the clause line by line, and expressions as SQL has them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from weft.algebra.analysis.row_conditions import split_condition
from weft.algebra.row_patterns import (
    Alternation,
    At,
    Cast,
    Choose,
    Concatenation,
    Constant,
    EmptyRows,
    Exclusion,
    MatchNumber,
    OrderKey,
    Permutation,
    Quantifier,
    RowAggregate,
    RowAnchor,
    RowCall,
    RowExpression,
    RowField,
    RowLabel,
    RowPattern,
    RowRegex,
    RowVariable,
    Variables,
)
from weft.algebra.text.sql import ATOM, BoundText, bounds_text, operation_text, quoted

_ROWS = {
    "one": "one row per match",
    "show": "all rows per match, empty matches shown",
    "omit": "all rows per match, empty matches omitted",
    "unmatched": "all rows per match, with unmatched rows",
}
# ---------------------------------------------------------------- the clause


def row_pattern_lines(query: RowPattern) -> Iterator[str]:
    """A row pattern as indented lines."""
    yield f"row pattern {query.name}" + (f" over {query.input}" if query.input else "")
    if query.partition:
        yield f"  partition by {', '.join(query.partition)}"
    if query.order:
        yield f"  order by {', '.join(map(_order_text, query.order))}"
    for item in query.measures:
        yield f"  measure {item.name} = {row_expression_text(item.value)}" + (f" ({item.type})" if item.type else "")
    yield f"  {_ROWS[query.rows]}"
    to = "" if not query.skip.name else f"the {query.skip.mode} row of {query.skip.name}"
    modes = {"past last": "past the last row", "next": "to the next row"}
    yield f"  after a match, {'skip to ' + to if to else 'skip ' + modes[query.skip.mode]}"
    yield f"  pattern {regex_text(query.pattern)}"
    if query.within is not None:
        yield f"  within {query.within} microseconds"
    yield from (f"  subset {subset.name} = {', '.join(subset.variables)}" for subset in query.subsets)
    yield from (f"  define {define.variable}: {row_expression_text(define.condition)}" for define in query.conditions)


def row_plan(query: RowPattern) -> dict[str, object]:
    """Return how conditions are evaluated: row-local parts (class a) for all rows at once, others while matching (class
    b).
    """
    conditions = []
    for variable in query.variables:
        split = split_condition(query, variable)
        parts = [*(("a", part) for part in split.local), *(("b", part) for part in split.others)]
        conditions += [{"variable": variable, "class": kind, "condition": row_expression_text(p)} for kind, p in parts]
    return {"name": query.name, "pattern": regex_text(query.pattern), "conditions": conditions}


def row_plan_lines(query: RowPattern) -> Iterator[str]:
    """The same as text, a line for each part of a condition."""
    yield f"row pattern {query.name}: {regex_text(query.pattern)}"
    for variable in query.variables:
        split = split_condition(query, variable)
        yield from (f"  {variable}: class a, row by row: {row_expression_text(part)}" for part in split.local)
        yield from (f"  {variable}: class b, by the match so far: {row_expression_text(part)}" for part in split.others)
        if not split.local and not split.others:
            yield f"  {variable}: every row"


def _order_text(key: OrderKey) -> str:
    shown = f"{key.column} descending" if key.descending else key.column
    return shown if key.nulls_first != key.descending else f"{shown} nulls {'first' if key.nulls_first else 'last'}"


# ---------------------------------------------------------------- patterns


def regex_text(node: RowRegex) -> str:
    """A pattern as PATTERN has it."""
    match node:
        case RowVariable(name):
            return variable_text(name)
        case EmptyRows():
            return "()"
        case RowAnchor(end):
            return "$" if end else "^"
        case Concatenation(parts):
            return " ".join(_grouped(part, Alternation) for part in parts)
        case Alternation(parts):
            return " | ".join(map(regex_text, parts))
        case Permutation(parts):
            return f"PERMUTE({', '.join(map(regex_text, parts))})"
        case Exclusion(pattern):
            return f"{{- {regex_text(pattern)} -}}"
        case Quantifier(pattern, least, most, greedy):
            return (
                _grouped(pattern, Alternation, Concatenation, Quantifier)
                + bounds_text(least, most)
                + "?" * (not greedy)
            )
    raise AssertionError(f"not a row pattern: {node!r}")


def _grouped(node: RowRegex, *kinds: type[RowRegex]) -> str:
    return f"({regex_text(node)})" if isinstance(node, kinds) else regex_text(node)


def variable_text(name: str) -> str:
    """A variable as SQL has it: quoted unless it is in capitals."""
    return name if name.isidentifier() and name.upper() == name else quoted(name)


# ---------------------------------------------------------------- expressions


def row_expression_text(node: RowExpression, variables: Variables = None) -> str:
    """An expression in one line, as SQL has it; `variables` are those of the navigation around it."""
    return _text(node, variables)[0]


def _text(node: RowExpression, inside: Variables) -> BoundText:
    match node:
        case Constant(value, kind):
            return _constant(value, kind), ATOM
        case RowField(name):
            column = name if name.isidentifier() else quoted(name)
            return f"{_named(inside)}.{column}" if inside is not None else column, ATOM
        case RowLabel():
            return f"CLASSIFIER({_named(inside) if inside is not None else ''})", ATOM
        case MatchNumber():
            return "MATCH_NUMBER()", ATOM
        case At():
            return _at(node), ATOM
        case RowAggregate(function, arguments, variables, distinct, final):
            listed = ", ".join(_text(argument, variables)[0] for argument in arguments)
            if not arguments:
                listed = "*" if variables is None else f"{_named(variables)}.*"
            return f"{'FINAL ' * final}{function}({'DISTINCT ' * distinct}{listed})", ATOM
        case Cast(argument, type_, tries):
            return f"{'TRY_' * tries}CAST({_text(argument, inside)[0]} AS {type_})", ATOM
        case Choose(branches, otherwise):
            whens = "".join(f" WHEN {_text(b.condition, inside)[0]} THEN {_text(b.value, inside)[0]}" for b in branches)
            default = "" if otherwise == Constant(None) else f" ELSE {_text(otherwise, inside)[0]}"
            return f"CASE{whens}{default} END", ATOM
        case RowCall(function, arguments):
            return _call(function, arguments, inside)
    raise AssertionError(f"not a row expression: {node!r}")


def _at(node: At) -> str:
    text = _text(node.argument, node.variables)[0]
    if node.first or node.offset or node.final:
        offset = f", {node.offset}" if node.offset else ""
        text = f"{'FINAL ' * node.final}{'FIRST' if node.first else 'LAST'}({text}{offset})"
    if node.shift:
        offset = f", {abs(node.shift)}" if abs(node.shift) > 1 else ""
        return f"{'PREV' if node.shift < 0 else 'NEXT'}({text}{offset})"
    plain = isinstance(node.argument, RowField | RowLabel) or node.first or node.offset or node.final
    return text if plain else f"LAST({text})"


def _named(variables: Variables) -> str:
    assert variables is not None
    return variable_text(variables[0]) if len(variables) == 1 else f"({' or '.join(map(variable_text, variables))})"


def _call(function: str, arguments: tuple[RowExpression, ...], inside: Variables) -> BoundText:
    parts = [_text(argument, inside) for argument in arguments]
    operation = operation_text(function, parts, nests=False)
    if operation is not None:
        return operation
    texts = [text for text, _ in parts]
    if function == ".":
        return f"{texts[0]}.{texts[1].strip(chr(39))}", ATOM
    return f"{function}({', '.join(texts)})", ATOM


def _constant(value: object, kind: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if kind == "interval day to second":
        return f"INTERVAL '{Decimal(str(value)).scaleb(-6).normalize():f}' SECOND"
    if kind == "interval year to month":
        return f"INTERVAL '{value}' MONTH"
    if isinstance(value, str):
        text = quoted(value, "'")
        return f"{kind.upper()} {text}" if kind else text
    return repr(value) if isinstance(value, float) else str(value)
