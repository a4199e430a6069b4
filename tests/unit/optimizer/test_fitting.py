"""Selectivities in any spelling are found, and numbers that fit nothing in a program are remarked on."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.optimizer.fitting import unused_statistics
from weft.spelling import written

CEQL = (
    "SELECT * FROM S WHERE (A AS a ; B AS b) FILTER a[x > 3 AND `odd name` = 1 AND t LIKE 'u ''%'] AND "
    "b[x + 1 > 3 AND (x = 1 OR y = 2)] AND a[x] < b[x] WITHIN 100 EVENTS"
)
EQL = "SELECT a.x FROM A a ; B b WHERE FILTER(a.x = b.x), (a, b) OCCURS WITHIN 1 min"
STEP = (
    'topology "T"\nexternal A(x: int, s: string) < "a.jsonl" [1.0]\nexternal B(x: int) < "b.jsonl" [1.0]\n'
    'Spike(*): A/a ;?[a.s contains "u" && dur < 100] B/b'
)
EPN = "pattern P sequence(A a, B b) where a.x > 3.0 and a.y = b.y"
TESLA = "define X() from B(x > 3.0) and last A(y < 2) within 1 min from B"
FITS = {
    "number": (CEQL, "A.x > 3.0"),
    "number in the program": (EPN, "A.x > 3"),
    "other number": (TESLA, "B.x > 3e0"),
    "parentheses": (CEQL, "((A.x) > (3))"),
    "spaces": (CEQL, " A.x>3 "),
    "turned": (CEQL, "3 < A.x"),
    "brackets": (CEQL, "A[x > 3]"),
    "variables": (CEQL, "a.x > 3"),
    "back quotes": (CEQL, "`A`.`x` > 3"),
    "odd name": (CEQL, "A.`odd name` == 1.0"),
    "quotes": (CEQL, 'A.t like "u \'%"'),
    "or": (CEQL, "B.x = 1 || B.y == 2"),
    "arithmetic": (CEQL, "B.x + 1.0 > 3"),
    "two events": (EQL, "b.x == a.x"),
    "look-back": (TESLA, "A.y < 2.0"),
    "contains": (STEP, "A.s contains 'u'"),
    "contains called": (STEP, 'contains(a.s, "u")'),
}


@pytest.mark.parametrize(("program", "text"), FITS.values(), ids=FITS)
def test_a_condition_is_known_in_other_spellings(program: str, text: str) -> None:
    compiled = weft.compile(program, "eql" if program == EQL else None)
    assert unused_statistics(compiled, weft.Statistics(selectivity={text: 0.5})) == []


@pytest.mark.parametrize(
    "text", ["A.x > 3.5", "A.x >= 3", "A.y > 3", "C.x > 3", "A.x > '3'", "f(A.x) > 3", "", "(", "`"]
)
def test_another_condition_is_told_with_the_nearest(text: str) -> None:
    (remark,) = unused_statistics(weft.compile(CEQL), weft.Statistics(selectivity={text: 0.5}))
    assert remark.startswith(f"the selectivity of {written(text)!r} is not used")
    assert "'A.x > 3'" in remark


def test_rates_of_other_types_are_told_and_measured_numbers_are_not() -> None:
    given = weft.Statistics(rates={"AA": 5, "A": 1}, selectivity={"A.z > 1": 0.5})
    rate, selectivity = unused_statistics(weft.compile(CEQL), given)
    assert "the rate of 'AA' is not used" in rate
    assert "A.z > 1" in selectivity
    assert (
        unused_statistics(weft.compile(CEQL), weft.Statistics(given.rates, given.selectivity, origin="measured")) == []
    )


def test_python_commands_and_explain_tell_it(tmp_path: Path) -> None:
    known = weft.Statistics(selectivity={"A.x > 4": 0.5})
    program = weft.compile(CEQL)
    for ask in (weft.detect, weft.count):
        with pytest.warns(weft.ProgramWarning, match=r"did you mean 'A.x > 3'\?"):
            ask([], program, statistics=known)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.count([], program, statistics=weft.Statistics(selectivity={"A.x > 3.0": 0.5}))
    shown = json.loads(weft.explain(program, "optimized", "json", statistics=known))
    assert any("did you mean 'A.x > 3'?" in remark for remark in shown["remarks"])
    assert "did you mean 'A.x > 3'?" in weft.explain(program, "optimized", statistics=known)
    known.write(tmp_path / "known.json")
    (tmp_path / "events.jsonl").write_text('{"type": "A", "ts": 1}\n')
    command = ["match", "-q", CEQL, "--events", str(tmp_path / "events.jsonl"), "--statistics"]
    told = CliRunner().invoke(app, [*command, str(tmp_path / "known.json")])
    assert told.exit_code == 0
    assert "did you mean 'A.x > 3'?" in told.stderr
