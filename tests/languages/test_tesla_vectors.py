"""TESLA rules with known answers: cases from elsewhere, T-Rex's own among them, and ours."""

from __future__ import annotations

import pytest
from tests.harness import SPARK_SAMPLE, Case, Record, difference, load_own_vectors, load_vectors, run_engine

ENGINES = ("meaning", "local")
NOT_OURS = {
    "tesla-040": "T-Rex takes a late event in as it arrives; here events are put into stream order first",
}
ELSEWHERE = [*load_vectors("tesla"), *load_vectors("tesla_trex")]
OWN = load_own_vectors("tesla")


def case_id(case: Case) -> str:
    return str(case["id"])


def known_gap(case: Case) -> list[pytest.MarkDecorator]:
    reason = NOT_OURS.get(case_id(case))
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


def without_nulls(matches: list[Record]) -> list[Record]:
    """The matches without the null fields of their events, which the cases from elsewhere mostly leave out."""
    kept = []
    for match in matches:
        event = match.get("event")
        assert isinstance(event, dict)
        kept.append({**match, "event": {key: value for key, value in event.items() if value is not None}})
    return kept


def run(case: Case, engine: str) -> list[Record]:
    events = case["events"]
    assert isinstance(events, list)
    return run_engine(engine, str(case["program"]), events, "tesla")


def test_cases_are_found() -> None:
    assert len(OWN) >= 50
    if not ELSEWHERE:
        pytest.skip("no folder of cases: set WEFT_VECTORS, or put them in tests/vectors")
    assert len(ELSEWHERE) >= 100


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", [pytest.param(c, id=case_id(c), marks=known_gap(c)) for c in ELSEWHERE])
def test_vector(case: Case, engine: str) -> None:
    expected = case["expected"]
    assert isinstance(expected, list)
    comparable = {**case, "expected": without_nulls(expected)}
    assert difference(comparable, without_nulls(run(case, engine))) == "", f"{case['program']}\n{case['note']}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", OWN, ids=case_id)
def test_own_vector(case: Case, engine: str) -> None:
    assert difference(case, run(case, engine)) == "", f"{case['program']}\n{case['note']}"


@pytest.mark.spark
@pytest.mark.parametrize("case", OWN[::SPARK_SAMPLE], ids=case_id)
def test_own_vector_on_spark(case: Case) -> None:
    test_own_vector(case, "spark")


@pytest.mark.spark
@pytest.mark.parametrize("case", ELSEWHERE[::SPARK_SAMPLE], ids=case_id)
def test_vector_on_spark(case: Case) -> None:
    test_vector(case, "spark")


@pytest.mark.parametrize("case", [*ELSEWHERE, *OWN], ids=case_id)
def test_matches_come_in_match_order(case: Case) -> None:
    found = [(m["end"], m["start"], m["positions"]) for m in run(case, "meaning")]
    assert found == sorted(found)
