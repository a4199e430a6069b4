"""Numbers of matches that are too large to enumerate, and the warnings and errors about them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

import weft
from weft.runtime.operators.automaton import counts

pytestmark = pytest.mark.filterwarnings("ignore::weft.ProgramWarning")
MANY = "SELECT * FROM S WHERE A+ ; B WITHIN 1 DAY"
# Nothing but listing can tell how many matches satisfy this, and none does.
SLOW = "SELECT * FROM S WHERE A+ AS a ; B AS b FILTER SUM(a[x]) + COUNT(a) < b[x] WITHIN 1 DAY"


def stream(types: str) -> list[dict[str, object]]:
    return [{"type": name, "ts": at, "x": 0} for at, name in enumerate(types)]


@pytest.mark.parametrize("number", [5, 62, 63, 64, 70, 127, 128, 129, 1000])
def test_as_many_as_there_are(number: int) -> None:
    assert weft.count(stream("A" * number + "B"), MANY) == {"q": 2**number - 1}


def test_many_events_end_matches() -> None:
    types = "AAB" * 300
    found = sum(2 ** types[: at + 1].count("A") - 1 for at, name in enumerate(types) if name == "B")
    assert weft.count(stream(types), MANY) == {"q": found}


def in_window(types: str, window: int) -> int:
    """The matches of A+ ; B that span so many events at most, start by start."""
    total = 0
    for first, name in enumerate(types):
        if name == "A":
            between = 0
            for last in range(first + 1, min(first + window + 1, len(types))):
                if types[last] == "B":
                    total += 2**between
                else:
                    between += types[last] == "A"
    return total


@pytest.mark.parametrize("window", [3, 40, 90, 200])
def test_windows_cut(window: int) -> None:
    types = "AAAXABAAAXAAAB" * 30
    query = f"SELECT * FROM S WHERE A+ ; B WITHIN {window} EVENTS"
    assert weft.count(stream(types), query) == {"q": in_window(types, window)}


def test_partitions_and_consumption() -> None:
    events = [{**event, "k": at % 2} for at, event in enumerate(stream("A" * 140 + "BB" + "A" * 20 + "BB"))]
    query = "SELECT * FROM S WHERE A+ ; B PARTITION BY [k] WITHIN 1 DAY CONSUME BY PARTITION"
    assert weft.count(events, query) == {"q": 2 * (2**70 - 1) + 2 * (2**10 - 1)}


def test_conditions_on_aggregates() -> None:
    from math import comb

    query = "SELECT * FROM S WHERE A+ AS a ; B FILTER COUNT(a) >= 4 AND COUNT(a) <= 50 WITHIN 1 DAY"
    assert weft.count(stream("A" * 90 + "B"), query) == {"q": sum(comb(90, k) for k in range(4, 51))}


def test_too_many_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MOST_BYTES", 1 << 16)
    with pytest.raises(weft.InputError, match=r"too many matches to count.*WITHIN"):
        weft.count(stream("A" * 500 + "B"), MANY)


def test_who_lists_very_many_is_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "LISTED", 1000)
    warnings.simplefilter("error", weft.ManyMatchesWarning)
    with pytest.raises(weft.ManyMatchesWarning, match=r"1,180,591,620,717,411,303,423 combin.*position 70.*WITHIN"):
        list(weft.detect(stream("A" * 70 + "B"), MANY))


@pytest.mark.parametrize("listing", [False, True])
def test_compiled_code_lets_interrupts_through(listing: bool) -> None:
    def ring(*_: object) -> None:
        raise KeyboardInterrupt

    weft.count(stream("AB"), SLOW)  # compiled before the clock ticks
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(weft.detect(stream("A" * 70 + "B"), SLOW)) if listing else weft.count(stream("A" * 70 + "B"), SLOW)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@cache
def lines() -> str:
    return "".join(f'{{"type": "{e["type"]}", "ts": {e["ts"]}, "x": 0}}\n' for e in stream("A" * 70 + "B"))


@pytest.mark.parametrize(("engine", "counting"), [("local", ["--count"]), ("local", []), ("meaning", ["--count"])])
def test_ctrl_c_ends_the_command(engine: str, counting: list[str], tmp_path: Path) -> None:
    pipe = tmp_path / "events.jsonl"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "weft", "match", "-q", SLOW, "--events", str(pipe), "--engine", engine, *counting]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with pipe.open("w") as events:  # it is there, and reads
            events.write(lines())
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told
