"""compile_text: which language, names of queries, schemas, time units, and refusals without a stack trace."""

from __future__ import annotations

import pytest

from weft.algebra.patterns import Sequence
from weft.algebra.query import Query, Window
from weft.algebra.text.program import to_text
from weft.errors import ProgramError, UsageError
from weft.languages import compile_text, language_of, parse_syntax
from weft.languages.ceql import syntax
from weft.schema import Catalog, EventType, Kind, Stream


def only_query(text: str, **options: object) -> Query:
    program, _ = compile_text(text, **options)  # type: ignore[arg-type]
    (query,) = program.queries
    return query


def codes(text: str, **options: object) -> list[str]:
    with pytest.raises(ProgramError) as raised:
        compile_text(text, **options)  # type: ignore[arg-type]
    return [diagnostic.code for diagnostic in raised.value.diagnostics]


def test_language_by_name_by_ending_and_by_first_word() -> None:
    assert language_of("", language="CEQL").name == "ceql"
    assert language_of("", name="rules/fire.ceql").name == "ceql"
    for text in ("SELECT *", "-- comment\n select", "/* SELECT */ Query q", "CREATE STREAM", "declare event"):
        assert language_of(text).name == "ceql"


def test_unknown_language_is_refused() -> None:
    with pytest.raises(UsageError, match="known: ceql"):
        compile_text("SELECT * WHERE A", language="cobol")


def test_syntax_alone() -> None:
    tree = parse_syntax("SELECT * WHERE unknown FILTER nothing[x > 1]")
    assert isinstance(tree, syntax.Program)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * WHERE A", ["fire"]),
        ("SELECT * WHERE A SELECT * WHERE B", ["fire_1", "fire_2"]),
        ("QUERY x AS SELECT * WHERE A SELECT * WHERE B", ["x", "fire"]),
        ("SELECT * WHERE A QUERY x AS SELECT * WHERE A SELECT * WHERE B", ["fire_1", "x", "fire_2"]),
        ("QUERY `my query` AS SELECT * WHERE A", ["my query"]),
    ],
)
def test_names_of_queries(text: str, names: list[str]) -> None:
    program, _ = compile_text(text, stem="fire")
    assert [query.name for query in program.queries] == names


@pytest.mark.parametrize(
    ("unit", "amount"), [("ns", 90_500_000_000), ("us", 90_500_000), ("ms", 90_500), ("s", 90), ("min", 1)]
)
def test_time_spans_become_ticks(unit: str, amount: int) -> None:
    query = only_query("SELECT * WHERE A WITHIN 1 MINUTE 30.5 SECONDS", time_unit=unit)
    assert query.window == Window("time", amount)


def test_window_below_a_tick_is_warned_about() -> None:
    program, warnings = compile_text("SELECT * WHERE A WITHIN 20 MILLISECONDS", time_unit="s")
    assert program.queries[0].window == Window("time", 0)
    assert [warning.code for warning in warnings] == ["window-below-tick"]


def test_unknown_time_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="ns, us, ms"):
        compile_text("SELECT * WHERE A", time_unit="weeks")


SCHEMA = {"A": {"x": "int", "name": "string"}, "B": {"x": "double"}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM S WHERE C WITHIN 1 EVENTS", ["unknown-type"]),
        ("SELECT * FROM S WHERE A FILTER A[y = 1] WITHIN 1 EVENTS", ["unknown-attribute"]),
        ("SELECT * FROM S WHERE A FILTER A[name = 1] WITHIN 1 EVENTS", ["type-mismatch"]),
        ("SELECT * WHERE A ; B FILTER A[name] = B[x] WITHIN 1 EVENTS", ["type-mismatch"]),
        ("SELECT * WHERE A PARTITION BY [z] WITHIN 1 [name]", ["unknown-attribute", "type-mismatch"]),
    ],
)
def test_schema_serves_checks(text: str, expected: list[str]) -> None:
    assert codes(text, schema=SCHEMA) == expected


def test_schema_does_not_restrict_what_exists() -> None:
    program, _ = compile_text("SELECT * FROM S WHERE A : B WITHIN 9 EVENTS", schema=SCHEMA)
    assert program.queries[0].universe is None
    assert program.catalog == Catalog()


def test_declarations_go_before_the_schema() -> None:
    text = "CREATE STREAM S { EVENT C { z:int } } SELECT * WHERE C FILTER C[z > 1] WITHIN 1 EVENTS"
    program, _ = compile_text(text, schema=SCHEMA)
    assert program.queries[0].universe == (("S", "C"),)
    assert program.catalog == Catalog((Stream("S", (EventType("C", (("z", Kind.INT),)),)),))


def test_schema_may_be_a_catalog() -> None:
    catalog = Catalog((Stream("S", (EventType("A", (("x", Kind.INT),)),)),))
    assert codes("SELECT * FROM T WHERE A WITHIN 1 EVENTS", schema=catalog) == ["unknown-stream"]
    assert only_query("SELECT * FROM S WHERE A WITHIN 1 EVENTS", schema=catalog).universe is None


def test_schema_with_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="x: date"):
        compile_text("SELECT * WHERE A", schema={"A": {"x": "date"}})


def test_attributes_of_the_input_format_need_no_declaration() -> None:
    text = "CREATE STREAM S { EVENT A { x:int } } SELECT * WHERE A AS a ; A AS b FILTER a[ts] < b[ts] WITHIN 9 [ts]"
    assert only_query(text).window == Window("attribute", 9, "ts")


def test_all_findings_are_reported_in_the_order_of_the_text() -> None:
    text = "SELECT z WHERE A FILTER y[a > 1] WITHIN 3 apples LIMIT -1"
    assert codes(text) == ["unknown-variable", "unknown-variable", "unknown-unit", "bad-limit"]


def test_a_long_sequence_compiles() -> None:
    query = only_query("SELECT * WHERE " + " ; ".join(f"A AS v{n}" for n in range(150)) + " WITHIN 999 EVENTS")
    assert isinstance(query.pattern, Sequence)
    assert to_text(query).count("bind v") == 150


def test_deep_nesting_is_refused_with_a_message() -> None:
    assert codes("SELECT * WHERE " + " ; ".join(["A"] * 20_000)) == ["too-large"]


def test_thousands_of_queries_compile_together() -> None:
    text = "SELECT * WHERE A AS a ; B AS b FILTER a[x > 1] AND a[id] = b[id] WITHIN 10 EVENTS\n"
    program, warnings = compile_text(text * 2000)
    assert len(program.queries) == 2000
    assert program.queries[-1].name == "q_2000"
    assert warnings == ()
