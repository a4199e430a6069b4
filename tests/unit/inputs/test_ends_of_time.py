"""Times at the ends of what 64 bits hold: windows are exact as far as times go, and times beyond are rejected."""

from __future__ import annotations

import pytest

import weft

LAST = 2**62 - 1
FIRST = -LAST
STEP = 'topology "t"\nexternal A(x: int) < "a.jsonl" [1.0]\nexternal B(x: int) < "b.jsonl" [1.0]\nQ(*): '
PROGRAMS = {
    "ceql": "SELECT * WHERE A ; B WITHIN 10 MILLISECONDS",
    "ceql without a window": "SELECT * WHERE A ; B",
    "ceql session": "SELECT * WHERE A ; B SESSION 10 MILLISECONDS",
    "ceql long": "SELECT * WHERE A ; B WITHIN 4611686018427387904 MILLISECONDS",
    "eql": "SELECT * FROM A a ; B b WHERE (a, b) OCCURS WITHIN 10 msec",
    "eql long": "SELECT * FROM A a ; B b WHERE (a, b) OCCURS WITHIN 4611686018427387904",
    "eql @": "SELECT * FROM A a @ 10",
    "eql \\": "SELECT * FROM (A a @ 10) \\ B b",
    "step ;?": STEP + "A ;?[dur < 10] B",
    "step ,": STEP + "A ,[dur < 10] B",
    "tesla each": "define X() from B() and each A() within 10 from B",
    "tesla not": "define X() from B() and not A() within 10 from B",
    "tesla long": "define X() from B() and each A() within 4611686018427387904 from B",
}
STREAMS = {
    "late": [("A", LAST - 5), ("B", LAST - 2)],
    "latest": [("A", LAST - 1), ("B", LAST)],
    "earliest": [("A", FIRST), ("B", FIRST + 3)],
    "early": [("A", FIRST + 1), ("B", FIRST + 5)],
    "both ends": [("A", FIRST), ("B", LAST)],
    "three": [("A", FIRST + 2), ("A", LAST - 3), ("B", LAST - 1)],
}


def found(stream: list[tuple[str, int]], program: weft.Program, engine: str) -> list[object]:
    events = [{"type": type_, "ts": time, "x": 1} for type_, time in stream]
    return sorted((match.start, match.end, match.positions) for match in weft.detect(events, program, engine))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_do_not_wrap_around(name: str) -> None:
    program = weft.compile(PROGRAMS[name], name.split()[0])
    for stream in STREAMS.values():
        assert found(stream, program, "local") == found(stream, program, "meaning"), stream


@pytest.mark.filterwarnings("ignore::weft.ProgramWarning")
@pytest.mark.parametrize("time", [2**62, 2**63 - 1, -(2**62), -(2**63)])
def test_times_beyond_are_rejected_with_the_reason(time: int) -> None:
    rejects: list[object] = []
    lasting = {"type": "B", "start": min(-5, time), "end": max(-5, time)}
    events = [{"type": "A", "ts": 0}, {"type": "B", "ts": time}, lasting, {"type": "B", "ts": 1}]
    assert weft.count(events, "SELECT * WHERE A ; B", rejects=rejects) == {"q": 1}
    assert len(rejects) == 2
    assert "beyond 2^62 ticks" in str(rejects[0])
