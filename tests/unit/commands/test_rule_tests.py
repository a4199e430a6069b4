"""Rule tests: reading cases, comparing matches, what is shown, and mistakes with their places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weft.cli.main import app
from weft.errors import ProgramError
from weft.rule_tests import case_lines, run_file
from weft.rule_tests.compare import difference
from weft.rule_tests.lines import Expected, Notation, read_events, read_expected
from weft.rule_tests.places import TestText
from weft.rule_tests.run import FileResult
from weft.runtime.data.matches import Match
from weft.source import SourceText, Span

ROOT = Path(__file__).parents[3]
OWN = [*sorted((ROOT / "examples").rglob("*.test.toml")), *sorted((ROOT / "tests" / "rules").glob("*.test.toml"))]
PROGRAM = """\
program = '''
SELECT a[x], b
WHERE A AS a; B AS b
WITHIN 10 EVENTS
'''
"""
VARIABLES = {"q": frozenset({"a", "b"})}


def weft(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def written(text: str) -> TestText:
    return TestText(text, SourceText(text), Span(0, len(text)))


def events(text: str, **notation: str) -> list[dict[str, object]]:
    return [event for _, event in read_events(written(text), Notation(**notation))]


def expected(line: str) -> Expected:
    return read_expected(written(line), VARIABLES, "q")


def found(a: int, *b: int, x: object = 1) -> Match:
    return Match("q", "id", 0, 1, (a, *b), {"a": (a,), "b": b}, {"x": x})


def run(tmp_path: Path, text: str, engine: str = "meaning") -> FileResult:
    path = tmp_path / "some.test.toml"
    path.write_text(PROGRAM + text, encoding="utf-8")
    return run_file(path, engine)


# ---------------------------------------------------------------- our own


@pytest.mark.parametrize("engine", ["meaning", "local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem.removesuffix(".test"))
def test_our_own_pass_on_every_engine(path: Path, engine: str) -> None:
    result = run_file(path, engine)
    if any("on the engine 'meaning' only" in finding.message for finding in result.findings):
        pytest.skip(result.findings[0].message)
    assert [finding.render() for finding in result.findings] == []
    assert result.outcomes
    assert [line for outcome in result.outcomes if not outcome.passed for line in case_lines(outcome)] == []


# ---------------------------------------------------------------- notation


class TestEvents:
    def test_a_line_is_a_time_a_type_and_attributes(self) -> None:
        text = 'id=1 f=4.5 yes=true word=blue text="two words" none=null list=[1, 2]'
        assert events(f"12 T {text}") == [
            {"type": "T", "ts": 12, "id": 1, "f": 4.5, "yes": True, "word": "blue", "text": "two words"}
            | {"none": None, "list": [1, 2]}
        ]

    def test_a_plus_counts_from_the_time_before_it(self) -> None:
        read = events("+5 A\n+5 B\n20..30 C\n+1..+2 D\n-3 E\n+1 F")
        assert [event.get("ts", (event.get("start"), event.get("end"))) for event in read] == [
            *(5, 10, (20, 30), (31, 33), -3, -2)
        ]

    def test_times_may_have_units(self) -> None:
        assert [event["ts"] for event in events("1s A\n+2min B\n+0.5s C")] == [1_000, 121_000, 121_500]
        assert [event["at"] for event in events("5 A\n+2min B", time="at", time_unit="s")] == [5, 125]

    def test_json_lines_move_the_clock_too(self) -> None:
        assert events('{"type": "A", "ts": 7, "x": " # "}\n+1 B')[1]["ts"] == 8

    def test_remarks_and_empty_lines_are_left_out(self) -> None:
        assert events('# first\n\n1 A x="a # b" # an A\n') == [{"type": "A", "ts": 1, "x": "a # b"}]

    @pytest.mark.parametrize(
        ("line", "message", "column"),
        [
            ("12", "needs a time and a type", 1),
            ("12 id=1", "needs a time and a type", 1),
            ("noon A", "'noon' is not a time", 1),
            ("5..3 A", "ends before it starts", 1),
            ("1..x A", "'x' is not a time", 4),
            ("1 A x", "'x' is not `name=value`", 5),
            ("1 A x=1 x=2", "'x' is written twice", 9),
            ("1 A ts=2", "'ts' is written twice", 1),
            ("+2mins A", "no unit 'mins'", 1),
            ("0.5 A", "not a whole number of ticks", 1),
            ('{"type": }', "not JSON", 10),
        ],
    )
    def test_a_wrong_line_is_shown_where_it_is_wrong(self, line: str, message: str, column: int) -> None:
        with pytest.raises(ProgramError, match=message) as raised:
            events(f"1 A\n{line}")
        (finding,) = raised.value.diagnostics
        assert (finding.line, finding.column) == (2, column)


class TestExpected:
    @pytest.mark.parametrize(
        ("line", "agrees"),
        [
            ("q: a@0 b@1,2", True),
            ("a@0 b@1 b@2 -> x=1", True),
            ("q: 0 1 2", True),
            ("q: 2 0 1", True),
            ("b@1,2", True),
            ("q:", True),
            ("0 ...", True),
            ("b@1", False),
            ("0 1", False),
            ("0 1 b@2", False),  # b is bound to 1 too
            ("-> x=1", True),
            ("-> x=2", False),
            ("-> x=true", False),
            ("-> y=null", True),
        ],
    )
    def test_a_line_states_as_much_as_it_likes(self, line: str, agrees: bool) -> None:
        missing, extra = difference([expected(line)], [found(0, 1, 2)])
        assert (not missing, not extra) == (agrees, agrees)

    def test_order_does_not_matter_and_each_match_is_expected_once(self) -> None:
        matches = [found(0, 1), found(0, 2), found(0, 3)]
        assert difference([expected("0 3"), expected("0 1"), expected("0 2")], matches) == ([], [])
        missing, extra = difference([expected("0 3"), expected("0 3")], matches[2:])
        assert (len(missing), extra) == (1, [])

    def test_a_vague_line_leaves_the_match_that_a_precise_one_needs(self) -> None:
        assert difference([expected("a@0"), expected("0 1")], [found(0, 1), found(0, 2)]) == ([], [])

    @pytest.mark.parametrize(
        ("line", "message", "hint"),
        [
            ("p: a@0", "no query 'p'", "known here: q"),
            ("q: aa@0", "no variable 'aa'", "did you mean 'a'?"),
            ("q: a0", "neither a position nor a variable@position", "a match is written"),
        ],
    )
    def test_mistakes_have_hints(self, line: str, message: str, hint: str) -> None:
        with pytest.raises(ProgramError, match=message) as raised:
            expected(line)
        assert hint in str(raised.value)

    def test_a_query_is_named_where_there_are_several(self) -> None:
        with pytest.raises(ProgramError, match="of which query"):
            read_expected(written("a@0"), {**VARIABLES, "p": frozenset()}, None)


# ---------------------------------------------------------------- files


FAILING = """
[[case]]
name = "too early"
events = '''
1  A x=1
+2 B
+2 B y="some text"
'''
expected = '''
q: 0 1
q: a@0 b@2 -> x=2
'''
"""


class TestFiles:
    def test_the_difference_has_each_match_with_its_events(self, tmp_path: Path) -> None:
        path = tmp_path / "some.test.toml"
        path.write_text(PROGRAM + FAILING, encoding="utf-8")
        result = weft("test", str(path))
        assert result.exit_code == 1
        assert result.stdout.splitlines() == [
            str(path),
            "  FAILED  too early (line 7)",
            "    missing  q: a@0 b@2 -> x=2  (line 16)",
            "             a    0: 1 A x=1",
            '             b    2: 5 B y="some text"',
            "    extra    q: a@0 b@2 -> x=1",
            "             a    0: 1 A x=1",
            '             b    2: 5 B y="some text"',
            "1 case: 0 passed, 1 failed",
        ]

    def test_json_has_one_object_per_case_and_mistake(self, tmp_path: Path) -> None:
        path = tmp_path / "some.test.toml"
        path.write_text(PROGRAM + FAILING + "[[case]]\nevents = '1'\nexpected = 'none'\n", encoding="utf-8")
        result = weft("test", str(tmp_path), "--json")
        assert result.exit_code == 1
        case, mistake = [json.loads(line) for line in result.stdout.splitlines()]
        assert (case["case"], case["passed"], case["line"]) == ("too early", False, 7)
        assert case["missing"] == [
            {"line": 16, "query": "q", "positions": [0, 2], "bindings": {"a": [0], "b": [2]}, "event": {"x": 2}}
        ]
        assert [match["positions"] for match in case["extra"]] == [[0, 2]]
        assert (mistake["code"], mistake["line"]) == ("not-an-event", 19)

    @pytest.mark.parametrize(
        ("count", "passes"), [("2", True), ("{ q = 2 }", True), ("1", False), ("{ q = 3 }", False)]
    )
    def test_matches_may_only_be_counted(self, tmp_path: Path, count: str, passes: bool) -> None:
        case = f"[[case]]\nevents = '''\n1 A\n2 B\n3 B\n'''\nexpected_count = {count}\n"
        result = run(tmp_path, case)
        assert result.findings == []
        assert result.passed == passes

    def test_events_are_placed_in_order_of_time(self, tmp_path: Path) -> None:
        result = run(tmp_path, "[[case]]\nevents = '''\n9 B\n1 A x=1\n'''\nexpected = 'a@0 b@1'\n")
        assert result.passed

    def test_other_queries_can_be_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "two.test.toml").write_text(
            "program = '''\nQUERY p AS SELECT * WHERE A; B\nQUERY q AS SELECT * WHERE A\n'''\n"
            "[[case]]\nquery = 'q'\nevents = '''\n1 A\n2 B\n'''\nexpected = '0'\n"
        )
        result = run_file(tmp_path / "two.test.toml", "meaning")
        assert [finding.render() for finding in result.findings] == []
        assert result.passed

    @pytest.mark.parametrize(
        ("case", "code", "line"),
        [
            ("events = '1 A'\n", "missing-key", 6),
            ("expected = 'none'\n", "missing-key", 6),
            ("event = '1 A'\nexpected = 'none'\n", "unknown-key", 7),
            ("events = '1 A'\nexpected = 'a@0'\n[case.sub]\n", "unknown-key", 9),
            ("events = '1 A'\nexpected = 'A@0'\n", "unknown-variable", 8),
            ("events = 5\nexpected = 'none'\n", "wrong-kind", 7),
            ("events = '1 A'\nexpected = ''\n", "missing-key", 8),
            ("events = '1 A'\nexpected = 'a@1'\n", "unknown-position", 8),
            ("events = '1 A'\nexpected_count = -1\n", "wrong-kind", 8),
            ("events = '1 A'\nexpected_count = { p = 1 }\n", "unknown-query", 8),
            ("query = 'p'\nevents = '1 A'\nexpected_count = 1\n", "unknown-query", 7),
            ("events = '''\n1 A\n{\"type\": \"B\"}\n'''\nexpected = 'none'\n", "unreadable-event", 9),
            ("events_file = 'nowhere.jsonl'\nexpected = 'none'\n", "cannot-run", 6),
            ("events = '1 A\nexpected = 'none'\n", "not-toml", 7),
        ],
    )
    def test_a_mistake_has_its_line(self, tmp_path: Path, case: str, code: str, line: int) -> None:
        result = run(tmp_path, "[[case]]\n" + case)
        assert [(finding.code, finding.line) for finding in result.findings] == [(code, line)]
        assert not result.passed

    def test_a_wrong_case_leaves_the_others_alone(self, tmp_path: Path) -> None:
        result = run(tmp_path, "[[case]]\n[[case]]\nevents = '1 A'\nexpected = 'none'\n")
        assert len(result.findings) == 1
        assert [outcome.passed for outcome in result.outcomes] == [True]

    def test_a_program_in_the_file_is_wrong_at_its_place_there(self, tmp_path: Path) -> None:
        path = tmp_path / "some.test.toml"
        path.write_text("program = '''\nSELECT *\nWHERE A AS x\nFILTER z[v > 1]\n'''\n[[case]]\n")
        (finding,) = run_file(path, "meaning").findings
        assert (finding.code, finding.line, finding.column) == ("unknown-variable", 4, 8)
        assert "FILTER z[v > 1]" in finding.render()

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("", "missing-key"),
            ("program = 'SELECT * WHERE A'\n", "missing-key"),
            ("program = 'nowhere.ceql'\n[[case]]\n", "no-program"),
            ("program = 'SELECT * WHERE A'\nlanguage = 'cobol'\n[[case]]\n", "no-program"),
            ("program = 'SELECT * WHERE A'\ntime_unit = 'mins'\n[[case]]\n", "unknown-unit"),
            ("program = 'SELECT * WHERE A'\n[case]\n", "wrong-kind"),
            ("program = 'SELECT * WHERE A'\n[[case]]\n[other]\n", "unknown-key"),
        ],
    )
    def test_a_wrong_file_is_one_finding(self, tmp_path: Path, text: str, code: str) -> None:
        path = tmp_path / "some.test.toml"
        path.write_text(text)
        assert [finding.code for finding in run_file(path, "meaning").findings] == [code]


class TestCommand:
    def test_folders_are_searched(self) -> None:
        result = weft("test", str(ROOT / "examples"), "--engine", "meaning")
        assert result.exit_code == 0
        assert "fire.test.toml" in result.stdout
        assert "fraud.test.toml" in result.stdout
        assert "0 failed" in result.stdout

    def test_places_without_tests_are_one_message(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "nowhere.test.toml"):
            result = weft("test", str(path))
            assert result.exit_code == 1
            assert str(path) in result.stderr
            assert "Traceback" not in result.stderr

    def test_wrong_usage_is_exit_code_two(self) -> None:
        assert weft("test").exit_code == 2
        assert weft("test", str(ROOT / "examples"), "--engine", "fast").exit_code == 2
