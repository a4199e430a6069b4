"""The meaning of row patterns: spans are those of Python's regular expressions, and values are SQL's."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.engines.test_row_pattern_spans import regexes

from weft.algebra.meaning.row_patterns import evaluate_rows
from weft.algebra.row_patterns import (
    Alternation,
    At,
    Concatenation,
    Constant,
    Define,
    EmptyRows,
    Quantifier,
    RowAggregate,
    RowCall,
    RowField,
    RowMeasure,
    RowPattern,
    RowRegex,
    RowVariable,
)
from weft.errors import BudgetError, InputError
from weft.languages.sql.clauses import whole_clause
from weft.languages.sql.lower import compile_clause
from weft.source import SourceText


def as_text(node: RowRegex) -> str:
    """The same as Python's regular expression; quantifiers with an upper bound are written out."""
    match node:
        case RowVariable(name):
            return name.lower()
        case EmptyRows():
            return "(?:)"
        case Concatenation(parts):
            return "(?:" + "".join(map(as_text, parts)) + ")"
        case Alternation(parts):
            return "(?:" + "|".join(map(as_text, parts)) + ")"
        case Quantifier(part, least, None, greedy):
            return f"(?:{as_text(part)}){{{least},}}{'' if greedy else '?'}"
        case Quantifier(part, least, most, greedy):
            text = ""
            for _ in range((most or 0) - least):
                text = f"(?:{as_text(part)}{text}){'?' if greedy else '??'}"
            return as_text(part) * least + text
    raise TypeError(node)


@settings(deadline=None, max_examples=200)
@given(regexes(), st.text("abc", max_size=12))
def test_spans_are_those_of_regular_expressions(pattern: RowRegex, text: str) -> None:
    defines = tuple(Define(name.upper(), RowCall("=", (At(RowField("letter")), Constant(name)))) for name in "abc")
    measures = (RowMeasure("rows", RowAggregate("collect_list", (RowField("at"),))),)
    query = RowPattern("q", pattern, defines, measures)
    found = evaluate_rows(query, [{"letter": letter, "at": at} for at, letter in enumerate(text)])
    compiled, at, expected = re.compile(as_text(pattern)), 0, []
    while at < len(text):
        span = compiled.match(text, at)
        if span is not None:
            expected.append((list(range(*span.span())) or None,))
        at = span.end() if span is not None and span.end() > at else at + 1
    assert found == expected


def measured(expression: str, row: dict[str, Any] | None = None) -> Any:
    """The value of a measure over one row."""
    source = SourceText(f"ORDER BY i MEASURES {expression} AS m PATTERN (A)")
    row = {"i": 1, **(row or {})}
    query, _ = compile_clause(source, whole_clause(source), dict.fromkeys(row, ""))
    return evaluate_rows(query, [row])[0][0]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", 3.5),
        ("-7 % 4", -3),
        ("7 div 2", 3),
        ("1.5 + 1", Decimal("2.5")),
        ("0.1 + 1e0", 1.1),
        ("NULL + 1", None),
        ("NULL AND false", False),
        ("NULL OR true", True),
        ("NOT NULL", None),
        ("1 IN (2, NULL)", None),
        ("NULL IS NOT DISTINCT FROM NULL", True),
        ("'abc' LIKE 'a_c'", True),
        ("'a%c' LIKE 'a!%c' ESCAPE '!'", True),
        ("'abc' NOT LIKE '%d%'", True),
        ("CASE WHEN NULL THEN 1 ELSE 2 END", 2),
        ("CASE 3 WHEN 3 THEN 'x' END", "x"),
        ("CAST('12' AS int) + 1", 13),
        ("TRY_CAST('x' AS int)", None),
        ("CAST(1.005 AS decimal(5,2))", Decimal("1.01")),
        ("CAST(true AS string)", "true"),
        ("'1' = 1", True),
        ("DATE '2026-01-31' + INTERVAL '1' MONTH", date(2026, 2, 28)),
        ("TIMESTAMP '2026-01-01 00:00:00' - INTERVAL '90' SECOND", datetime(2025, 12, 31, 23, 58, 30)),
        ("TIMESTAMP '2026-01-02 00:00:00' - TIMESTAMP '2026-01-01 12:00:00'", timedelta(hours=12)),
        ("EXTRACT(HOUR FROM TIMESTAMP '2026-01-01 17:30:00')", 17),
        ("concat_ws('-', 'a', NULL, 'b')", "a-b"),
        ("substring('abcdef', 2, 3)", "bcd"),
        ("greatest(1, NULL, 3)", 3),
        ("nullif(1, 1)", None),
        ("ARRAY[1, NULL][1]", 1),
        ("round(2.5)", Decimal(3)),
        ("upper('a') || lower('B')", "Ab"),
        ("i BETWEEN 0 AND 1", True),
    ],
)
def test_values_are_sqls(expression: str, value: Any) -> None:
    found = measured(expression)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 / 0", "division by zero"),
        ("CAST('x' AS int)", "cannot be cast to int"),
        ("soundex('x')", "no function 'soundex'"),
        ("'a' + 1", "cannot"),
        ("i < ARRAY[1]", "cannot be compared"),
    ],
)
def test_wrong_values_are_errors_of_the_query(expression: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measured(expression)


def test_too_many_steps_name_pattern_partition_and_row() -> None:
    clause = "PARTITION BY k ORDER BY i MEASURES 1 AS m PATTERN ((A | B)* C) DEFINE C AS SUM(A.i) < 0"
    source = SourceText(clause)
    query, _ = compile_clause(source, whole_clause(source), {"k": "string", "i": "int"}, "loops")
    rows = [{"k": "x", "i": number} for number in range(30)]
    with pytest.raises(BudgetError, match=r"row 1 took more than 1,000 steps in the partition k = 'x'.* loops"):
        evaluate_rows(query, rows, most_steps=1_000)
