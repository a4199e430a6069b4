"""From the syntax of row patterns back to text that parses to the same syntax."""

from __future__ import annotations

import re

from weft.algebra.text.sql import ATOM, ROWS, BoundText, bounds_text, operation_text, quoted
from weft.languages.sql import syntax
from weft.languages.sql.constants import DAY_TIME, YEAR_MONTH
from weft.languages.sql.expressions import RESERVED

_PLAIN = re.compile(r"[^\W\d]\w*")


def to_source(node: syntax.SqlText) -> str:
    """Print each row pattern of a text as a separate query."""
    return ";\n\n".join(map(clause_text, node.clauses)) + "\n"


def clause_text(node: syntax.MatchRecognize) -> str:
    """One clause as a query: one subclause per line."""
    lines = []
    if node.partition:
        lines.append(f"PARTITION BY {', '.join(map(_name, node.partition))}")
    if node.order:
        lines.append(f"ORDER BY {', '.join(map(_sort, node.order))}")
    if node.measures:
        items = [f"{expression_text(item.value)} AS {_name(item.name)}" for item in node.measures]
        lines.append(f"MEASURES {', '.join(items)}")
    if node.rows is not None:
        lines.append(ROWS[node.rows.mode])
    if node.skip is not None:
        lines.append(f"AFTER MATCH SKIP {_skip(node.skip)}")
    lines.append(f"PATTERN ({pattern_text(node.pattern)})" + _within(node))
    if node.subsets:
        items = [f"{_name(item.name)} = ({', '.join(map(_name, item.members))})" for item in node.subsets]
        lines.append(f"SUBSET {', '.join(items)}")
    if node.defines:
        items = [f"{_name(item.variable)} AS {expression_text(item.condition)}" for item in node.defines]
        lines.append(f"DEFINE {', '.join(items)}")
    alias = f" AS {_name(node.name)}" if node.name is not None else ""
    body = "\n  ".join(lines)
    return f"SELECT * FROM {node.relation or 't'} MATCH_RECOGNIZE (\n  {body}\n){alias}"


def _within(node: syntax.MatchRecognize) -> str:
    return "" if node.within is None else f" WITHIN {expression_text(node.within)}"


def _name(node: syntax.Identifier) -> str:
    is_plain = _PLAIN.fullmatch(node.text) and not node.quoted
    return node.text if is_plain else quoted(node.text)


def _sort(item: syntax.SortItem) -> str:
    nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[item.nulls_first]
    return _name(item.column) + " DESC" * item.descending + nulls


def _skip(item: syntax.SkipItem) -> str:
    if item.variable is None:
        return {"past last": "PAST LAST ROW", "next": "TO NEXT ROW"}[item.mode]
    return f"TO {item.mode.upper()} {_name(item.variable)}"


def pattern_text(node: syntax.PatternTerm) -> str:
    """A pattern as text."""
    match node:
        case syntax.VariableTerm(name):
            return _name(name)
        case syntax.AnchorTerm(end):
            return "$" if end else "^"
        case syntax.SequenceTerm(parts):
            return " ".join(_group(part, syntax.AlternativeTerm, syntax.SequenceTerm) for part in parts)
        case syntax.AlternativeTerm(parts):
            return " | ".join(_group(part, syntax.AlternativeTerm) for part in parts)
        case syntax.PermuteTerm(parts):
            return f"PERMUTE({', '.join(map(pattern_text, parts))})"
        case syntax.ExcludedTerm(part):
            return f"{{- {pattern_text(part)} -}}"
        case syntax.QuantifiedTerm(part, least, most, greedy):
            kinds = syntax.AlternativeTerm, syntax.SequenceTerm, syntax.QuantifiedTerm
            return _group(part, *kinds) + bounds_text(least, most) + "?" * (not greedy)
    return "()"


def _group(node: syntax.PatternTerm, *kinds: type[syntax.PatternTerm]) -> str:
    return f"({pattern_text(node)})" if isinstance(node, kinds) else pattern_text(node)


# ---------------------------------------------------------------- expressions


def expression_text(node: syntax.SqlExpression) -> str:
    """An expression as text, with the parentheses that it needs."""
    return _text(node)[0]


def _text(node: syntax.SqlExpression) -> BoundText:
    match node:
        case syntax.SqlLiteral(value, kind):
            return _literal(value, kind), ATOM
        case syntax.ColumnName(parts):
            return ".".join(map(_column, parts)), ATOM
        case syntax.AllRows(variable):
            return "*" if variable is None else f"{_name(variable)}.*", ATOM
        case syntax.FunctionCall(name, arguments, distinct, mode):
            listed = ", ".join(map(expression_text, arguments))
            return f"{mode + ' ' if mode else ''}{_name(name)}({'DISTINCT ' * distinct}{listed})", ATOM
        case syntax.CaseExpression(operand, branches, otherwise):
            whens = "".join(f" WHEN {_text(b.condition)[0]} THEN {_text(b.value)[0]}" for b in branches)
            head = "" if operand is None else f" {expression_text(operand)}"
            default = "" if otherwise is None else f" ELSE {expression_text(otherwise)}"
            return f"CASE{head}{whens}{default} END", ATOM
        case syntax.CastExpression(argument, type_, tries):
            return f"{'TRY_' * tries}CAST({expression_text(argument)} AS {type_})", ATOM
        case syntax.Operation(operator, operands):
            return _operation(operator, operands)
    raise AssertionError(f"not an expression: {node!r}")


def _column(name: syntax.Identifier) -> str:
    return f'"{name.text}"' if name.text.upper() in RESERVED else _name(name)


def _operation(operator: str, operands: tuple[syntax.SqlExpression, ...]) -> BoundText:
    found = operation_text(operator, list(map(_text, operands)), nests=True)
    assert found is not None, operator
    return found


def _literal(value: object, kind: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if kind == DAY_TIME:
        return f"INTERVAL '{value}' MICROSECOND"
    if kind == YEAR_MONTH:
        return f"INTERVAL '{value}' MONTH"
    if isinstance(value, str):
        text = quoted(value, "'")
        return f"{kind.upper()} {text}" if kind else text
    suffix = {"bigint": "L", "smallint": "S", "tinyint": "Y", "double": "D", "float": "F"}.get(kind, "")
    if isinstance(value, float) and not suffix:
        shown = repr(value)
        return shown if "e" in shown else f"{shown}e0"
    return f"{value}{suffix}"
