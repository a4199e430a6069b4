"""Patterns with policies and their known answers: cases from elsewhere, and our own."""

from __future__ import annotations

import pytest
from tests.harness import SPARK_SAMPLE, Case, difference, load_own_vectors, load_vectors, run_engine

from weft.errors import ProgramError
from weft.languages import compile_text

ENGINES = ("meaning", "local")
# Two slots of one type under override are refused (semantics.md 6); the case expects an answer without matches.
REFUSED = {"epn-h53": "override-twice"}
CASES = [
    pytest.param(case, id=str(case["id"]))
    for case in [*load_vectors("epn"), *load_own_vectors("epn")]
    if case["id"] not in REFUSED
]
WRONG_CASES = [pytest.param(case, id=str(case["id"])) for case in load_vectors("epn") if case["id"] in REFUSED]


def test_cases_are_found() -> None:
    assert len(load_own_vectors("epn")) >= 80
    if not load_vectors("epn"):
        pytest.skip("no folder of cases: set WEFT_VECTORS, or put them in tests/vectors")
    assert len(load_vectors("epn")) >= 70


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_vector(case: Case, engine: str) -> None:
    events = case["events"]
    assert isinstance(events, list)
    records = run_engine(engine, str(case["program"]), events, "epn")
    assert difference(case, records) == "", f"{case['program']}\n{case['note']}"


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES[::SPARK_SAMPLE])
def test_vector_on_spark(case: Case) -> None:
    test_vector(case, "spark")


@pytest.mark.parametrize("case", CASES)
def test_matches_come_in_match_order(case: Case) -> None:
    events = case["events"]
    assert isinstance(events, list)
    found = [(m["end"], m["start"], m["positions"]) for m in run_engine("meaning", str(case["program"]), events, "epn")]
    assert found == sorted(found)


@pytest.mark.parametrize("case", WRONG_CASES)
def test_programs_that_are_refused(case: Case) -> None:
    with pytest.raises(ProgramError) as raised:
        compile_text(str(case["program"]), language="epn")
    assert [found.code for found in raised.value.diagnostics] == [REFUSED[str(case["id"])]]
    assert case["expected"] == []
