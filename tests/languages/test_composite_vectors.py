"""EQL and Step programs with known answers: cases from elsewhere, and our own."""

from __future__ import annotations

import pytest
from tests.harness import SPARK_SAMPLE, Case, difference, load_own_vectors, load_vectors, run_engine

LANGUAGES = ("eql", "step")
ENGINES = ("meaning", "local")
CASES = [
    pytest.param(case, language, id=str(case["id"]))
    for language in LANGUAGES
    for case in [*load_vectors(language), *load_own_vectors(language)]
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_cases_are_found(language: str) -> None:
    assert len(load_own_vectors(language)) >= 40
    if not load_vectors(language):
        pytest.skip("no folder of cases: set WEFT_VECTORS, or put them in tests/vectors")
    assert len(load_vectors(language)) >= 100


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("case", "language"), CASES)
def test_vector(case: Case, language: str, engine: str) -> None:
    events = case["events"]
    assert isinstance(events, list)
    records = run_engine(engine, str(case["program"]), events, language)
    assert difference(case, records) == "", f"{case['program']}\n{case['note']}"


@pytest.mark.spark
@pytest.mark.parametrize(("case", "language"), CASES[::SPARK_SAMPLE])
def test_vector_on_spark(case: Case, language: str) -> None:
    test_vector(case, language, "spark")


@pytest.mark.parametrize(("case", "language"), CASES)
def test_matches_come_in_match_order(case: Case, language: str) -> None:
    events = case["events"]
    assert isinstance(events, list)
    found = [
        (m["end"], m["start"], m["positions"]) for m in run_engine("meaning", str(case["program"]), events, language)
    ]
    assert found == sorted(found)
