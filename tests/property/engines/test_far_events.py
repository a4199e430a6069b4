"""Events at extreme distances in time: every context and operator with a time span returns what the definition does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from tests.driving import event_batches
from tests.property.engines.test_engines_equal_meaning import EventDict, row_of, rows_of

import weft
from weft.algebra.meaning import matches, partitions
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.operators.situations import memory
from weft.runtime.reading.times import FARTHEST

YEAR_9999 = 253_370_764_800_000
FIRST, LAST = 1 - FARTHEST, FARTHEST - 1


def _at(type_: str, start: int, end: int | None = None, key: int = 1, value: int = 0) -> EventDict:
    return {"type": type_, "start": start, "end": start if end is None else end, "k": key, "x": value}


STREAMS: dict[str, list[EventDict]] = {
    "one far": [_at("A", 0), _at("B", 5), _at("B", YEAR_9999), _at("C", YEAR_9999 + 1)],
    "two keys": [_at("A", 0), _at("B", 1, key=2), _at("B", 2**61), _at("C", 2**61 + 5, key=2), _at("C", 2**61 + 6)],
    "ends of time": [
        _at("A", FIRST),
        _at("B", FIRST + 1),
        _at("A", 0),
        _at("B", 1),
        _at("B", LAST, key=2),
        _at("C", LAST),
    ],
    "long": [_at("A", 0), _at("B", 0, 2**61), _at("A", 2**61 + 1), _at("C", FIRST, 2**61 + 2), _at("B", 2**61 + 9)],
    "values": [_at("A", 0, value=-(2**63)), _at("B", 1, value=2**63 - 1), _at("B", 2), _at("C", LAST, value=1)],
}
BY = ("", " by k")
SPANS = ("fixed 1", "fixed 10", "fixed 1 min", "sliding 10 every 3", "sliding 3 every 7", "sliding 1 day every 1 hours")
CONTEXTS = [
    "",
    "by k",
    *(span + by for span in SPANS for by in BY),
    *(f"{span} by k forget {time}" for span in SPANS for time in ("15", "100 days", "9000000000000000000")),
    *(
        bounds + by
        for bounds in ("from A until C", "from C until C", "from A for 10", "from A for 60 days")
        for by in BY
    ),
]
CANDIDATES = ("sequence(A a, B b)", "all(A a, B b)", "any(A a, B b)", "sequence(A a, B b, C c)")
POLICIES = ("", "policies evaluation deferred, repeated last, consumption consume", "policies repeated override")
PATTERNS = [
    "absence(A a)",
    "absence(A a, C c)",
    *(f"{found} {chosen}" for found, chosen in product(CANDIDATES, POLICIES)),
]

STEP_HEAD = 'topology "T"\n' + "".join(f'external {type_}(x: int, k: int) < "{type_}" [1.0]\n' for type_ in "ABC")
STEP_PATTERNS = ("A ; B", "A ;?[dur < 60000] B", "A ; !B ; C", "A ;?[dur > 10] C", "A , C", "B +?[prev(B.x) < B.x]")
SPAN_TEXTS = {
    "ceql": [
        f"SELECT * FROM S WHERE {pattern}{by} WITHIN {span}"
        for pattern in ("A ; B", "A ; (B OR C)+", "A : B")
        for by in ("", " PARTITION BY [k]")
        for span in ("1 MINUTE", "9000 DAYS", "2 EVENTS", "10 [x]", "10 [x] JUMP ANY")
    ],
    "eql": [
        "SELECT * FROM A a ; B b WHERE (a, b) OCCURS WITHIN 10 min",
        "SELECT * FROM A a ; B b ; C c WHERE (a, c) OCCURS WITHIN 9000 days",
        "SELECT * FROM (A a @ 5 msec) \\ B b",
        "SELECT * FROM (A a @ 9000 days) \\ C c",
        "SELECT * FROM A a @ 1 day",
        "SELECT * FROM (A a ; B b) \\ C c WHERE (a, b) OCCURS WITHIN 1 day",
    ],
    "step": [
        STEP_HEAD + f'Q(*): {pattern} > "Sink"\n'
        for pattern in STEP_PATTERNS
    ],
    "tesla": [
        f"define R() from B() and {found}"
        for found in (
            "each A() within 5 min from B",
            "last A() within 90000 days from B",
            "each A() within 5 min from B and not C() between A and B",
            "not A() within 5 min from B",
            "Sum(A().x within 90000 days from B) > 0",
        )
    ],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _short_runs() -> Iterator[None]:
    """Runs of windows are long already with four, so that the definition is quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "TOLD_SINGLY", 3)
        patch.setattr(partitions, "TOLD_SINGLY", 3)
        yield


def _require_meaning(text: str, language: str) -> None:
    """Push the events of each stream one by one, and compare with what is meant."""
    program, _ = compile_text(text, language=language)
    chosen = plan(program)
    for name, events in STREAMS.items():
        matcher = Matcher(chosen)
        found = [
            found for batch in event_batches([[event] for event in events], chosen) for found in matcher.push(batch)
        ]
        found += matcher.finish()
        expected = sorted(row_of(match) for match in matches(program, events))
        spans = [row[1:3] for row in rows_of(found)]
        assert spans == [row[1:3] for row in expected], name


@pytest.mark.parametrize("context", CONTEXTS)
def test_every_context_returns_from_far_events(context: str) -> None:
    for pattern in PATTERNS if "forget" not in context else PATTERNS[:2]:
        _require_meaning(f"pattern P {pattern}" + (f" context {context}" if context else ""), "epn")


@pytest.mark.parametrize(
    ("language", "text"), [(language, text) for language, texts in SPAN_TEXTS.items() for text in texts]
)
def test_every_span_returns_from_far_events(language: str, text: str) -> None:
    _require_meaning(text, language)


@pytest.mark.parametrize("engine", ["meaning", "local"])
def test_what_no_engine_can_read_is_rejected_by_all(engine: str) -> None:
    floats = [{"type": "A", "ts": 1, "x": 1.5}, {"type": "B", "ts": 2, "x": 2}, {"type": "A", "ts": 3, "x": 2.0}]
    found = weft.detect(
        [*floats, {"type": "B", "ts": 4, "x": 7}], STEP_HEAD + 'Q(*): A ; B > "Sink"\n', language="step", engine=engine
    )
    assert [(match.start, match.end) for match in found] == [(3, 4)]
    times = [{"type": "A", "ts": 0}, {"type": "A", "ts": FARTHEST}, {"type": "A", "ts": 2**63 - 1}]
    found = weft.detect(times, "SELECT * FROM (A a @ 5 msec) \\ C c", language="eql", engine=engine)
    assert [(match.start, match.end) for match in found] == [(0, 5)]
