"""SQL texts: where clauses are, the text around them, which language a text is in, and printing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness import load_own_vectors
from tests.languages.golden import DASHES, golden_files

from weft.errors import ProgramError
from weft.languages import language_of, parse_syntax
from weft.languages.sql.clauses import LocatedClause, find_clauses, has_clause, input_query, outer_query
from weft.languages.sql.lower import compile_clause
from weft.languages.sql.printer import to_source
from weft.languages.sql.syntax import SqlText
from weft.source import SourceText

CLAUSE = "MATCH_RECOGNIZE (ORDER BY ts MEASURES 1 AS one PATTERN (A))"


def located(text: str) -> tuple[SourceText, tuple[LocatedClause, ...]]:
    source = SourceText(text)
    return source, find_clauses(source)


def replaced(text: str) -> tuple[list[str], str]:
    """The input queries of all clauses, and the outer query."""
    source, clauses = located(text)
    views: dict[LocatedClause, str] = {}
    inputs = []
    for number, clause in enumerate(clauses, 1):
        inputs.append(input_query(source, clause, views))
        views[clause] = f"v{number}"
    return inputs, outer_query(source, views)


@pytest.mark.parametrize(
    ("text", "inputs", "outer"),
    [
        (f"SELECT * FROM t {CLAUSE}", ["SELECT * FROM t"], "SELECT * FROM v1"),
        (f"select x from db.s.t as u {CLAUSE.lower()} m;", ["SELECT * FROM db.s.t as u"], "select x from v1 m"),
        (
            f"SELECT * FROM a, (SELECT x FROM b) c (y) {CLAUSE} AS m (z) WHERE z > 1",
            ["SELECT * FROM (SELECT x FROM b) c (y)"],
            "SELECT * FROM a, v1 AS m (z) WHERE z > 1",
        ),
        (
            f"SELECT * FROM a {CLAUSE} JOIN b {CLAUSE} USING (one)",
            ["SELECT * FROM a", "SELECT * FROM b"],
            "SELECT * FROM v1 JOIN v2 USING (one)",
        ),
        (
            f"SELECT * FROM (SELECT * FROM a {CLAUSE} m) {CLAUSE}",
            ["SELECT * FROM a", "SELECT * FROM (SELECT * FROM v1 m)"],
            "SELECT * FROM v2",
        ),
        (f"SELECT * FROM a {CLAUSE} {CLAUSE}", ["SELECT * FROM a", "SELECT * FROM v1"], "SELECT * FROM v2"),
        (
            f"WITH a AS (SELECT 1 AS ts), b AS (SELECT * FROM a {CLAUSE}) SELECT * FROM b {CLAUSE}",
            [
                "WITH a AS (SELECT 1 AS ts) SELECT * FROM a",
                "WITH a AS (SELECT 1 AS ts), b AS (SELECT * FROM v1) SELECT * FROM b",
            ],
            "WITH a AS (SELECT 1 AS ts), b AS (SELECT * FROM v1) SELECT * FROM v2",
        ),
        (
            f"SELECT * FROM x WHERE y IN (WITH a AS (SELECT 1) SELECT one FROM a {CLAUSE})",
            ["WITH a AS (SELECT 1) SELECT * FROM a"],
            "SELECT * FROM x WHERE y IN (WITH a AS (SELECT 1) SELECT one FROM v1)",
        ),
        (f"SELECT * FROM ({'t ' + CLAUSE}) m", ["SELECT * FROM t"], "SELECT * FROM (v1) m"),
    ],
)
def test_clauses_are_replaced_inner_first(text: str, inputs: list[str], outer: str) -> None:
    assert replaced(text) == (inputs, outer)


def test_comments_and_strings_are_no_clauses() -> None:
    text = f"""-- FROM t {CLAUSE}
    SELECT 'it''s FROM t {CLAUSE}' /* FROM t {CLAUSE} */ FROM "MATCH_RECOGNIZE" -- (
    {CLAUSE} m"""
    _, [clause] = located(text)
    assert clause.table == "MATCH_RECOGNIZE"
    assert clause.alias == "m"
    assert not has_clause(f"SELECT '{CLAUSE}' -- {CLAUSE}")


def test_a_relation_ends_where_the_clause_begins() -> None:
    _, [clause] = located(f"SELECT * FROM t {CLAUSE} ORDER BY one")
    assert (clause.table, clause.alias) == ("t", "")
    _, [clause] = located(f"SELECT * FROM f(1, 2) {CLAUSE} ORDER BY one")
    assert clause.table == ""


@pytest.mark.parametrize(
    ("text", "name", "language"),
    [
        (f"SELECT * FROM t {CLAUSE}", "<text>", "sql"),
        (f"WITH a AS (SELECT 1) SELECT * FROM a {CLAUSE}", "<text>", "sql"),
        ("SELECT * FROM S WHERE A ; B", "<text>", "ceql"),
        ("SELECT * FROM S WHERE A [name = 'MATCH_RECOGNIZE ()']", "<text>", "ceql"),
        ("anything", "query.sql", "sql"),
        (f"SELECT * FROM t {CLAUSE}", "query.ceql", "ceql"),
    ],
)
def test_the_language_is_told_by_ending_and_clause(text: str, name: str, language: str) -> None:
    assert language_of(text, name=name).name == language


TEXTS = [path.read_text(encoding="utf-8").partition(DASHES)[0] for path in golden_files("lowering/sql")]
TEXTS += [str(case["sql"]) for case in load_own_vectors("match_recognize")]


@pytest.mark.parametrize("text", TEXTS)
def test_printed_syntax_is_read_again(text: str) -> None:
    tree = parse_syntax(text, language="sql")
    assert isinstance(tree, SqlText)
    for clause in tree.clauses:
        printed = to_source(SqlText((clause,)))
        again = parse_syntax(printed, language="sql")
        assert isinstance(again, SqlText)
        [found] = again.clauses[-1:]
        assert to_source(SqlText((found,))) == printed
        assert (found.pattern, found.measures, found.defines) == (clause.pattern, clause.measures, clause.defines)


def test_columns_are_checked_and_spelled_as_in_the_input() -> None:
    source, [clause] = located("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY TS MEASURES a.Price AS p PATTERN (a))")
    query, _ = compile_clause(source, clause, {"ts": "timestamp", "price": "decimal(10,2)"})
    assert query.order[0].column == "ts"
    assert query.measures[0].type == "decimal(10,2)"
    with pytest.raises(ProgramError, match="the input has no column 'Price'"):
        compile_clause(source, clause, {"ts": "timestamp"})
    with pytest.raises(ProgramError, match="several columns are called 'TS'"):
        compile_clause(source, clause, {"ts": "timestamp", "Ts": "timestamp", "price": "int"})


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("SUM(i)", "bigint"),
        ("SUM(d)", "decimal(20,2)"),
        ("AVG(i)", "double"),
        ("AVG(d)", "decimal(14,6)"),
        ("i / i", "double"),
        ("i + 1", "int"),
        ("d * d", "decimal(21,4)"),
        ("d / 3", "decimal(21,13)"),
        ("LAST(ts) - FIRST(ts)", "interval day to second"),
        ("ts + INTERVAL '1' HOUR", "timestamp"),
        ("array_agg(i)", "array<int>"),
        ("CASE WHEN i > 0 THEN i ELSE 1.5 END", "decimal(11,1)"),
        ("COALESCE(f, 0)", "double"),
        ("COUNT(DISTINCT i)", "bigint"),
        ("CAST(i AS varchar(3))", "string"),
        ("CLASSIFIER() || 'x'", "string"),
        ("MATCH_NUMBER()", "bigint"),
        ("i > 0 AND NULL", "boolean"),
    ],
)
def test_types_of_measures_are_sparks(expression: str, type_: str) -> None:
    columns = {"i": "int", "d": "decimal(10,2)", "f": "double", "ts": "timestamp"}
    source, [clause] = located(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES {expression} AS m PATTERN (A))")
    assert compile_clause(source, clause, columns)[0].measures[0].type == type_


def test_within_needs_a_time(tmp_path: Path) -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i MEASURES 1 AS m PATTERN (A) WITHIN INTERVAL '1' HOUR)"
    source, [clause] = located(text)
    with pytest.raises(ProgramError, match="WITHIN measures time along 'i', which is a int"):
        compile_clause(source, clause, {"i": "int"})
