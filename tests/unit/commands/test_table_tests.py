"""Rule tests of SQL: tables as CSV, expected rows, and what is said when they differ or are written wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.rule_tests import case_lines, run_file, to_json

EXAMPLES = Path(__file__).parents[3] / "examples"
HEAD = """program = '''
SELECT * FROM t MATCH_RECOGNIZE (ORDER BY id MEASURES FIRST(id) AS first_id, array_agg(v) AS vs
  PATTERN (A+) DEFINE A AS v > 1)
'''
[[case]]
"""
TABLE = 'tables.t = """\nid,v\n1,2\n2,3\n3,0\n4,9\n"""\n'


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_the_example_passes(engine: str) -> None:
    result = run_file(EXAMPLES / "ticks" / "falls.test.toml", engine)
    assert result.findings == []
    assert [outcome.passed for outcome in result.outcomes] == [True, True, True]


def run(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "some.test.toml"
    path.write_text(HEAD + text)
    result = run_file(path, "local")
    lines = [line for outcome in result.outcomes for line in case_lines(outcome)]
    return lines + [finding.render() for finding in result.findings]


def test_rows_are_compared_by_the_columns_that_are_expected(tmp_path: Path) -> None:
    assert run(tmp_path, TABLE + 'expected = """\nvs\n"[9]"\n"[2, 3]"\n"""') == ["  ok      case 1"]
    assert run(tmp_path, TABLE + 'expected = """\nfirst_id\n1\n5\n"""') == [
        "  FAILED  case 1 (line 5)",
        '    missing  {"first_id": 5}',
        '    extra    {"first_id": 4}',
    ]
    assert run(tmp_path, TABLE + "expected_count = 3") == ["  FAILED  case 1 (line 5)", "    2 rows, expected 3"]


def test_an_outcome_is_json(tmp_path: Path) -> None:
    path = tmp_path / "some.test.toml"
    path.write_text(HEAD + TABLE + 'name = "two"\nexpected = "none"')
    [outcome] = run_file(path, "local").outcomes
    told = to_json(outcome)
    assert (told["case"], told["passed"], told["missing"]) == ("two", False, [])
    assert told["extra"] == ['{"first_id": 1, "vs": [2, 3]}', '{"first_id": 4, "vs": [9]}']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE, "the case expects nothing at all"),
        ("expected_count = 1", "the case has no `tables`"),
        ("tables.t = 3\nexpected_count = 1", "must be a text: CSV, or the name of a file"),
        ('tables.t = "nowhere.csv"\nexpected_count = 1', "no such file"),
        ('tables.u = """\nid,v\n1,2\n"""\nexpected_count = 1', "there is no table 't'"),
        (TABLE + 'expected = """\nfirst\n1\n"""', "the result has no column 'first'"),
        (TABLE + 'events = "1 A"\nexpected_count = 1', "there is no key 'events' here"),
        (TABLE + 'expected = """\nfirst_id\nx\n"""', "this is not a table in CSV"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, text: str, message: str) -> None:
    assert message in "\n".join(run(tmp_path, text))
