"""The examples: every query compiles, and finds in the example data what it is meant to find."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import weft

EXAMPLES = Path(__file__).parents[3] / "examples"
QUERIES = sorted(path for path in EXAMPLES.glob("*/*.*") if path.suffix == ".ceql" and path.parent.name != "mistakes")


def generator(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"generate_{name}", EXAMPLES / name / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_every_query_compiles_without_a_warning(path: Path, recwarn: pytest.WarningsRecorder) -> None:
    assert weft.compile(path).queries[0].name == path.stem
    assert [str(warning.message) for warning in recwarn] == []


def test_the_fire_is_found() -> None:
    found = weft.detect(EXAMPLES / "fire" / "sensors.jsonl", weft.compile(EXAMPLES / "fire" / "fire.ceql"))
    assert [match.positions for match in found] == [(1, 3, 8), (1, 6, 8)]


@pytest.mark.parametrize("language", ["ceql", "eql", "step", "tesla", "epn"])
def test_orders_that_are_paid_are_found_in_every_language(language: str, recwarn: pytest.WarningsRecorder) -> None:
    found = weft.detect(EXAMPLES / "orders" / "orders.jsonl", weft.compile(EXAMPLES / "orders" / f"paid.{language}"))
    assert [match.positions for match in found] == [(0, 2), (1, 3)]
    assert [str(warning.message) for warning in recwarn] == []


def test_stolen_cards_are_found_by_key_and_by_comparison() -> None:
    payments = list(generator("cards").payments(20_000))
    programs = [weft.compile(EXAMPLES / "cards" / name) for name in ("fraud.ceql", "fraud_pairwise.ceql")]
    found = list(weft.detect(payments, programs))
    by_key = [match.positions for match in found if match.query == "fraud"]
    assert len(by_key) == 12
    assert by_key == [match.positions for match in found if match.query == "fraud_pairwise"]
    for match in found:
        first, second, large = (payments[position] for position in match.positions)
        assert first["card"] == second["card"] == large["card"] == match.event["card"]
        assert large["amount"] == match.event["amount"]


def test_dips_are_dips() -> None:
    trades = list(generator("stocks").trades(20_000))
    found = list(weft.detect(trades, weft.compile(EXAMPLES / "stocks" / "dip.ceql")))
    assert found
    for match in found:
        prices = match.event["dip.price"]
        assert isinstance(prices, list)
        assert prices == sorted(prices, reverse=True)
        assert len(prices) >= 3


def test_generators_write_the_same_every_time(tmp_path: Path) -> None:
    for name, ending in (("cards", ".jsonl"), ("stocks", ".csv")):
        one, other = tmp_path / f"one{ending}", tmp_path / f"other{ending}"
        generator(name).write(one, 500)
        generator(name).write(other, 500)
        assert one.read_bytes() == other.read_bytes()
