"""The mistakes that `make mutants` makes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "mutants"


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutate", FOLDER / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("a == b", ["a != b"]),
        ("a and b", ["a or b"]),
        ("x = 3", ["x = 4"]),
        ("x - y", ["x + y"]),
        ("not a", ["not not a"]),
        ("f(True)", ["f(False)"]),
        ("if a:\n    b()", ["if False:\n    b()"]),
        ("a if b else c", ["a if True else c"]),
        ("f(a)", []),
    ],
)
def test_each_mutant_has_one_mistake(mutate: ModuleType, text: str, expected: list[str]) -> None:
    assert [mutant.text for mutant in mutate.mutants(text)] == expected


def test_a_mutant_says_where_it_is(mutate: ModuleType) -> None:
    [mutant] = mutate.mutants("f()\nif g() < h():\n    pass\n".replace("if g() < h():\n    pass", "g() < h()"))
    assert (mutant.line, mutant.before, mutant.after) == (2, "g() < h()", "g() <= h()")


def test_every_file_has_tests_near_it() -> None:
    spec = importlib.util.spec_from_file_location("run_mutants", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    for path in run.candidates(""):
        assert run.near(path)
    assert [
        name for tests in run.NEAR.values() for name in tests if not (run.ROOT / name.split("::")[0]).is_file()
    ] == []
