"""weft.sql, weft.row_pattern and the commands for SQL: what they take, what they give, what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.sql_tables import duck
from weft.sql_tables.types import arrow_type, sql_type

ROWS = [
    {"symbol": "A", "ts": ts, "price": price} for ts, price in enumerate([10.0, 9.0, 8.0, 11.0, 12.0, 7.0, 13.0])
] + [{"symbol": "B", "ts": ts, "price": float(ts)} for ts in range(3)]
CLAUSE = """PARTITION BY symbol ORDER BY ts
  MEASURES FIRST(price) AS top, LAST(DOWN.price) AS bottom, COUNT(DOWN.*) AS n
  PATTERN (STRT DOWN+ UP+) DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)"""
QUERY = f"SELECT * FROM ticks MATCH_RECOGNIZE ({CLAUSE})"
FOUND = [
    {"symbol": "A", "top": 10.0, "bottom": 8.0, "n": 2},
]


@pytest.fixture(params=["local", "meaning"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def no_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "is_installed", lambda: False)


class TestTables:
    @pytest.mark.parametrize(
        "make",
        [
            lambda rows: rows,
            pa.Table.from_pylist,
            lambda rows: pa.Table.from_pylist(rows).to_batches()[0],
            lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
            pd.DataFrame,
            pl.DataFrame,
            lambda rows: pa.Table.from_pylist(rows).to_reader(),
        ],
        ids=["dicts", "arrow", "batch", "columns", "pandas", "polars", "reader"],
    )
    def test_whatever_is_a_table(self, make: Any, engine: str) -> None:
        assert weft.sql(QUERY, ticks=make(ROWS), engine=engine).to_pylist() == FOUND

    @pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
    def test_files(self, form: str, tmp_path: Path) -> None:
        path = written(tmp_path, form)
        assert weft.sql(QUERY, ticks=path).to_pylist() == FOUND
        assert weft.sql(QUERY, ticks=[str(path)]).to_pylist() == FOUND

    def test_names_that_are_none_of_python(self) -> None:
        query = QUERY.replace("FROM ticks", 'FROM "all ticks"')
        assert weft.sql(query, tables={"all ticks": ROWS}).to_pylist() == FOUND

    def test_case_of_names_does_not_matter(self) -> None:
        assert weft.sql(QUERY.replace("ticks", "Ticks"), TICKS=ROWS).to_pylist() == FOUND

    def test_what_is_no_table(self) -> None:
        with pytest.raises(weft.UsageError, match="the table 'ticks' is a int: give an Arrow table"):
            weft.sql(QUERY, ticks=3)
        with pytest.raises(weft.InputError, match="no such file"):
            weft.sql(QUERY, ticks="nowhere.parquet")

    def test_an_unknown_table_has_a_caret(self) -> None:
        with pytest.raises(
            weft.ProgramError, match=r"there is no table 'ticks'[^^]*\^{5}\n  hint: did you mean 'tick'"
        ):
            weft.sql(QUERY, tick=ROWS)

    def test_variables_of_the_caller_are_no_tables(self) -> None:
        others = pa.Table.from_pylist(ROWS)
        assert others.num_rows
        with pytest.raises(weft.InputError, match="others"):
            weft.sql(f"SELECT * FROM (SELECT * FROM others) MATCH_RECOGNIZE ({CLAUSE})", ticks=ROWS)

    def test_a_query_reads_no_files(self, tmp_path: Path) -> None:
        path = written(tmp_path, "csv")
        with pytest.raises(weft.InputError, match="cannot be evaluated"):
            weft.sql(f"SELECT * FROM (SELECT * FROM read_csv('{path}')) MATCH_RECOGNIZE ({CLAUSE})")

    @pytest.mark.parametrize(
        "kind", [pa.int32(), pa.float64(), pa.decimal128(10, 2), pa.list_(pa.int64()), pa.timestamp("us"), pa.date32()]
    )
    def test_types_have_names(self, kind: pa.DataType) -> None:
        assert arrow_type(sql_type(kind)) == kind


class TestAround:
    def test_duckdb_evaluates_the_rest(self, engine: str) -> None:
        query = f"""WITH recent AS (SELECT * FROM ticks WHERE ts < 5)
            SELECT symbol, round(top - bottom) AS fall FROM recent MATCH_RECOGNIZE ({CLAUSE}) AS m WHERE m.n > 1"""
        assert weft.sql(query, ticks=ROWS, engine=engine).to_pylist() == [{"symbol": "A", "fall": 2.0}]

    def test_no_clause_is_plain_sql(self) -> None:
        assert weft.sql("SELECT count(*) AS n FROM ticks", ticks=ROWS).to_pylist() == [{"n": 10}]

    def test_functions_of_duckdb(self) -> None:
        query = (
            "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x MEASURES sin(LAST(x)) AS s PATTERN (A) DEFINE A AS cos(x) > 0)"
        )
        assert weft.sql(query, t=[{"x": 0.0}, {"x": 3.0}]).to_pylist() == [{"s": 0.0}]

    def test_a_wrong_rest_says_so(self) -> None:
        with pytest.raises(weft.InputError, match=r"the SQL around MATCH_RECOGNIZE cannot be evaluated: .*topp"):
            weft.sql(QUERY.replace("SELECT *", "SELECT topp"), ticks=ROWS)

    @pytest.mark.usefixtures("no_duckdb")
    def test_without_duckdb_columns_order_and_limit(self) -> None:
        clause = CLAUSE.replace("UP+", "UP")
        query = f"SELECT m.top AS high, n FROM ticks MATCH_RECOGNIZE ({clause}) AS m ORDER BY m.top DESC, n LIMIT 1;"
        assert weft.sql(query, ticks=ROWS).to_pylist() == [{"high": 12.0, "n": 1}]
        assert weft.sql(QUERY, ticks=ROWS).to_pylist() == FOUND

    @pytest.mark.usefixtures("no_duckdb")
    @pytest.mark.parametrize(
        ("query", "message"),
        [
            (f"{QUERY} WHERE n > 1", r"without DuckDB[^\n]*\n.*WHERE n > 1"),
            (f"SELECT count(*) FROM ticks MATCH_RECOGNIZE ({CLAUSE})", "without DuckDB"),
            (f"SELECT * FROM (SELECT * FROM ticks) MATCH_RECOGNIZE ({CLAUSE})", "follows the name of a table"),
            (f"SELECT oops FROM ticks MATCH_RECOGNIZE ({CLAUSE})", "the result has no column 'oops'"),
        ],
    )
    def test_without_duckdb_more_is_refused(self, query: str, message: str) -> None:
        with pytest.raises(weft.ProgramError, match=message):
            weft.sql(query, ticks=ROWS)


class TestRowPattern:
    def test_a_bare_clause(self, engine: str) -> None:
        assert weft.row_pattern(pd.DataFrame(ROWS), CLAUSE, engine=engine).to_pylist() == FOUND
        assert weft.row_pattern(ROWS, f"MATCH_RECOGNIZE ({CLAUSE})", engine=engine).to_pylist() == FOUND

    def test_findings_are_warnings(self) -> None:
        clause = "ORDER BY ts MEASURES 1 AS one PATTERN (A) DEFINE A AS price = NULL"
        with pytest.warns(weft.ProgramWarning, match="always null"):
            assert weft.row_pattern(ROWS, clause).num_rows == 0

    def test_an_unknown_engine(self) -> None:
        with pytest.raises(weft.UsageError, match="no engine 'flink' for SQL here; known: local, meaning"):
            weft.row_pattern(ROWS, CLAUSE, engine="flink")

    def test_events_are_no_tables(self) -> None:
        with pytest.raises(weft.UsageError, match=r"run it with weft\.sql"):
            weft.detect([], QUERY)


class TestCommands:
    def test_match(self, tmp_path: Path) -> None:
        query, table = tmp_path / "falls.sql", written(tmp_path, "parquet")
        query.write_text(QUERY)
        result = CliRunner().invoke(app, ["match", str(query), "--events", f"ticks={table}"])
        assert [json.loads(line) for line in result.stdout.splitlines()] == FOUND
        result = CliRunner().invoke(app, ["match", str(query), "-e", str(table), "--count", "--engine", "meaning"])
        assert json.loads(result.stdout) == {"query": "falls", "count": 1}
        for form in ("parquet", "csv", "jsonl"):
            out = tmp_path / f"found.{form}"
            result = CliRunner().invoke(app, ["match", str(query), "-e", f"ticks={table}", "--out", str(out)])
            assert result.exit_code == 0, result.output
            assert weft.sql("SELECT * FROM found", found=out).to_pylist() == FOUND

    def test_match_says_which_table_is_missing(self, tmp_path: Path) -> None:
        result = CliRunner().invoke(app, ["match", "-q", QUERY])
        assert "give --events NAME=FILE" in result.output
        two = QUERY + f" JOIN other MATCH_RECOGNIZE ({CLAUSE}) USING (symbol)"
        result = CliRunner().invoke(app, ["match", "-q", two, "-e", str(written(tmp_path, "csv"))])
        assert "say which table each file is" in result.output

    def test_check_and_explain(self, tmp_path: Path) -> None:
        query = tmp_path / "falls.sql"
        query.write_text(QUERY.replace("LAST(DOWN.price)", "LAST(PREV(price))"))
        result = CliRunner().invoke(app, ["check", str(query)])
        assert result.exit_code == 1
        assert "PREV cannot stand inside LAST" in result.output
        query.write_text(QUERY.replace("UP AS price", "UP AS SUM(DOWN.price) > 3 AND price"))
        assert CliRunner().invoke(app, ["check", str(query)]).exit_code == 0
        shown = CliRunner().invoke(app, ["explain", str(query)]).stdout
        assert "UP: class a, row by row: price > PREV(price)" in shown
        assert "UP: class b, by the match so far: sum(DOWN.price) > 3" in shown
        plan = json.loads(CliRunner().invoke(app, ["explain", str(query), "--json"]).stdout)
        assert [part["class"] for part in plan[0]["conditions"]] == ["a", "a", "b"]
        for stage in ("syntax", "algebra", "optimized"):
            for form in ("text", "json", "dot"):
                result = CliRunner().invoke(app, ["explain", str(query), "--stage", stage, "--format", form])
                assert result.exit_code == 0, result.output


def written(folder: Path, form: str) -> Path:
    path = folder / f"ticks.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif form == "csv":
        pd.DataFrame(ROWS).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path
