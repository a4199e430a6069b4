"""Programs with known answers, on every engine: cases from elsewhere, and our own."""

from __future__ import annotations

import pytest
from tests.harness import ENGINES, Case, difference, load_own_vectors, load_vectors, require_engine, run_engine

CASES = [pytest.param(case, id=str(case["id"])) for case in [*load_vectors("ceql"), *load_own_vectors("ceql")]] or [
    pytest.param(None, marks=pytest.mark.skip(reason="no cases found"))
]


def test_own_cases_are_found() -> None:
    assert len(load_own_vectors("ceql")) >= 40


def test_cases_from_elsewhere_are_found() -> None:
    if not load_vectors("ceql"):
        pytest.skip("no folder of cases: set WEFT_VECTORS, or put them in tests/vectors")
    assert all("expected" in case for case in load_vectors("ceql"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_vector(case: Case, engine: str) -> None:
    require_engine(engine)
    events = case["events"]
    assert isinstance(events, list)
    records = run_engine(engine, str(case["program"]), events)
    assert difference(case, records) == "", f"{case['program']}\n{case['note']}"
