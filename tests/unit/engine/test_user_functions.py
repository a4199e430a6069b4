"""Functions that users declare: the engine against the definition, mistakes in them, and programs that are saved."""

from __future__ import annotations

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import weft
from weft.algebra import functions
from weft.algebra.stored import program_from_plain, program_to_plain
from weft.cli.main import app

POLICIES = ("evaluation immediate", "evaluation deferred, repeated first, consumption consume", "repeated override")
CLAUSES = (
    "dist(a.x, 1) < dist(b.x, b.y)",
    "is_short(a.s) and not is_short(b.s)",
    "label(a.x, a.s) <> label(b.x, b.s)",
    "length(label(a.x, a.s)) > 2 or dist(b.x, 0) = 3",
    "next_one(a.x) = next_one(b.x)",
    "abs(dist(a.x, a.y) - dist(b.x, b.y)) < 1.5",
    "both(a.f, is_short(a.s))",
)
DERIVED = "d = dist(a.x, b.x), l = label(b.y, a.s), n = next_one(a.x), f = both(a.f, b.f), m = max(dist(a.x, 1), b.x)"


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_declared", {})
    weft.function(np.hypot, name="dist", takes=("number", "number"))
    weft.function(lambda texts: [len(text) < 2 for text in texts], name="is_short", takes=["text"], gives="boolean")
    weft.function(label, takes=("integer", "text"), gives="text")
    weft.function(lambda numbers: numbers + 1, name="next_one", takes=("integer",), gives="integer")
    weft.function(np.logical_and, name="both", takes=("boolean", "boolean"), gives="boolean")


def label(numbers: Any, texts: Any) -> list[str | None]:
    """None where the number is 2."""
    return [None if number == 2 else f"{number}{text}" for number, text in zip(numbers, texts, strict=True)]


def generated(seed: int, count: int = 24) -> list[dict[str, Any]]:
    dice = np.random.default_rng(seed)
    numbers: tuple[object, ...] = (-3, -1, 0, 1, 2, 2.0, 2.5, 3, 2**62, 1e300, Decimal("1.25"), True, None, "text")
    texts: tuple[object, ...] = ("a", "A", "Straße", "", None, 4)

    def one(ts: int) -> dict[str, Any]:
        x, y = (numbers[dice.integers(len(numbers))] for _ in "xy")
        s, f = texts[dice.integers(len(texts))], (True, False, None, 1)[dice.integers(4)]
        return {"type": "AB"[dice.integers(2)], "ts": ts, "x": x, "y": y, "s": s, "f": f}

    return [one(ts) for ts in range(count)]


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_engine_finds_what_is_meant(clause: str) -> None:
    found = 0
    for number, policies in enumerate(POLICIES):
        text = f"pattern P sequence(A a, B b) where {clause} policies {policies} context fixed 9 derive {DERIVED}"
        program = weft.compile(text, language="epn")
        for seed in range(4):
            events = generated(4 * number + seed)
            here = list(weft.detect(events, program))
            assert here == list(weft.detect(events, program, "meaning"))
            found += len(here)
    assert found


OF_SEVERAL = (
    "dist(a.x - b.x, 0) < 2",
    "a.s = b.s and (both(a.f, b.f) or dist(a.x, b.y) > 3)",
    "not both(a.f, b.f) and a.x <> b.x",
    "length(label(a.x, b.s)) > 2 and hour(a.x + b.x) = 0",
    "abs(a.x - b.x) + 1 < max(a.x, b.x)",
)


@pytest.mark.parametrize("clause", OF_SEVERAL)
def test_functions_of_several_events_are_tested_on_whole_sets(clause: str) -> None:
    found = 0
    contexts = ("fixed 9", "sliding 8 every 3", "fixed 20 by f", "from A until B")
    for number, context in enumerate(contexts):
        kind, policies = ("sequence", "all")[number % 2], ("evaluation deferred", "evaluation immediate")[number // 2]
        text = f"pattern P {kind}(A a, B b) where {clause} policies {policies} context {context} derive {DERIVED}"
        program = weft.compile(text, language="epn")
        for seed in range(3):
            events = generated(10 * number + seed)
            here = list(weft.detect(events, program))
            assert here == list(weft.detect(events, program, "meaning"))
            assert weft.count(events, program) == {"P": len(here)}
            found += len(here)
    assert found


def test_blocks_splits_and_shared_beginnings_go_with_functions_of_several() -> None:
    own = "dist(a.x - b.x, 1) < 3 and c.k = d.k and dist(c.x, d.x) > 1"
    text = f"""
    pattern P sequence(A a, B b, A c, B d) where {own} policies split 1:1 context fixed 12
    pattern Q sequence(A a, B b, A c) where dist(a.x - b.x, 1) < 3 and b.k <= c.k context fixed 12
    pattern R sequence(A a, B b, B c) where dist(a.x - b.x, 1) < 3 and b.k >= c.k context fixed 12
    """
    events = [{**event, "k": event["ts"] % 3} for event in generated(5, 80)]
    program = weft.compile(text, language="epn")
    meant = list(weft.detect(events, program, "meaning"))
    assert {match.query for match in meant} == {"P", "Q", "R"}
    assert list(weft.detect(events, program)) == meant
    known = weft.Statistics(rates={"A": 100, "B": 50}, selectivity={"dist(A.x - B.x, 1) < 3": 0.001})
    assert list(weft.detect(events, program, statistics=known)) == meant
    assert list(weft.detect(events, program, strategy="slice", lanes=3)) == meant
    assert "test whole sets: DIST" not in weft.explain(program)
    assert "test whole sets: dist(a[x] - b[x], 1) < 3" in weft.explain(program)
    assert weft.measure(events, program).rates.keys() == {"A", "B"}


def test_keyed_lanes_and_networks_use_them() -> None:
    text = """
    pattern P sequence(A a[dist(a.x, 1) < 9], B b) where a.k = b.k context fixed 20 by k
      derive far = dist(a.x, b.x), k = a.k
    pattern Q any(P p[dist(p.far, 0) > 1]) context fixed 20 by k
    """
    events = [{**event, "k": event["ts"] % 3} for event in generated(3, 60)]
    program = weft.compile(text, language="epn")
    found = list(weft.detect(events, program, lanes=3, strategy="key"))
    assert found == list(weft.detect(events, program, "meaning"))
    assert {match.query for match in found} == {"P", "Q"}


@pytest.mark.parametrize(
    ("condition", "code", "hint"),
    [
        ("dits(a.x, a.y) > 1", "unknown-function", "did you mean 'dist'?"),
        ("dist(a.x) < 2", "wrong-operands", "write dist(a.number, a.number)"),
        ("dist(a.x, 'a') < 2", "type-mismatch", None),
        ("dist(a.x, b.x) < 2 policies repeated first", "function-of-several", "sequence and all with the policies"),
        ("both(a.f, b.f) policies a: consumption consume", "function-of-several", "sequence and all with the"),
        ("hour(a.x + b.x) = 2 policies cardinality single", "function-of-several", "sequence and all with the"),
        ("dist(a.x, 1)", "not-a-condition", "compare it with something"),
        ("is_short(a.s) = 3", "type-mismatch", "put quotes"),
    ],
)
def test_mistakes_in_programs_have_a_place(condition: str, code: str, hint: str | None) -> None:
    with pytest.raises(weft.ProgramError) as caught:
        weft.compile(f"pattern P sequence(A a, B b) where {condition} context fixed 9", language="epn")
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.line == 1
    assert (found.hint or "").startswith(hint or "")


@pytest.mark.parametrize(
    ("code", "gives", "message"),
    [
        (lambda x: x[:1], "number", "returns 1 value for 2 events"),
        (lambda x: 3, "number", "returns one value for 2 events"),
        (lambda x: x / len(x.nothing), "number", "fails: AttributeError"),
        (lambda x: x > 1, "number", "declare it with gives='boolean'"),
        (lambda x: ["a", None], "number", "declare it with gives='text'"),
        (lambda x: x + 0.5, "integer", "declare it with gives='number'"),
        (lambda x: [2**70, 1], "integer", "more than 64 bits"),
        (lambda x: [object(), None], "text", "it may return texts only"),
    ],
)
def test_mistakes_in_functions_are_told(code: Any, gives: Any, message: str) -> None:
    weft.function(code, name="own", gives=gives)
    program = weft.compile("pattern P any(A a) derive v = own(a.x)", language="epn")
    events = [{"type": "A", "ts": 1, "x": 3}, {"type": "A", "ts": 2, "x": 2}]
    with pytest.raises(weft.UsageError, match=message):
        list(weft.detect(events, program))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "abs"}, "programs have already"),
        ({"name": "no name"}, "no name for a function"),
        ({"takes": "text"}, "a kind for each operand"),
        ({"takes": ("float",)}, "'float' is no kind of values"),
        ({"takes": ()}, "takes no operands"),
        ({"gives": "texts"}, "did you mean 'text'"),
    ],
)
def test_wrong_declarations_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(weft.UsageError, match=message):
        weft.function(**{"name": "own", **given})(lambda x: x)
    with pytest.raises(weft.UsageError, match="give takes="):
        weft.function(lambda *x: x[0], name="own")
    with pytest.raises(weft.UsageError, match="not a int"):
        weft.function(3)  # type: ignore[type-var] # that is the mistake


def test_saved_programs_find_the_code_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    program = weft.compile("pattern P any(A a[dist(a.x, a.y) > 4])", language="epn")
    saved = program_from_plain(program_to_plain(program))
    events = [{"type": "A", "ts": 1, "x": 3, "y": 4}]
    assert saved == program
    assert list(weft.detect(events, saved)) == list(weft.detect(events, program)) != []
    sent = pickle.dumps(program)
    monkeypatch.setattr(functions, "_known", {})
    with pytest.raises(weft.UsageError, match="not known here or has changed"):
        list(weft.detect(events, saved))
    assert list(weft.detect(events, pickle.loads(sent)))  # brings the code along
    assert list(weft.detect(events, saved))


def test_another_function_of_the_same_name_is_another_condition() -> None:
    text, events = "pattern P any(A a[own(a.x) > 4])", [{"type": "A", "ts": 1, "x": 3}]
    weft.function(lambda x: x, name="own")
    before = weft.compile(text, language="epn")
    weft.function(lambda x: x + 5, name="own")
    after = weft.compile(text, language="epn")
    assert before != after
    assert [len(list(weft.detect(events, program))) for program in (before, after)] == [0, 1]


def test_commands_take_functions_from_files(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import weft\nBY = 2\n\n@weft.function\ndef scaled(x):\n    return BY * x\n", encoding="utf-8"
    )
    (tmp_path / "p.epn").write_text("pattern P any(A a[scaled(a.x) > 4]) derive v = scaled(a.x)", encoding="utf-8")
    (tmp_path / "e.jsonl").write_text('{"type": "A", "ts": 1, "x": 3}\n', encoding="utf-8")
    (tmp_path / "bad.py").write_text("1 / 0", encoding="utf-8")
    program, own = str(tmp_path / "p.epn"), ["--functions", str(tmp_path / "own.py")]
    found = CliRunner().invoke(app, ["match", program, "-e", str(tmp_path / "e.jsonl"), *own])
    assert '"event": {"v": 6.0}' in found.output
    assert "scaled(a[x]) > 4" in CliRunner().invoke(app, ["explain", program, *own]).output
    failed = CliRunner().invoke(app, ["check", program, "--functions", str(tmp_path / "bad.py")])
    assert failed.exit_code == 2
    assert "fails: ZeroDivisionError" in failed.output
