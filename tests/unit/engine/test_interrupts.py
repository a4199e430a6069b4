"""Ctrl-C in Python: kernels that look for long come back between, whatever the language."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

import weft

MANY = 6000  # events of each of three types, of which no three fit together
SLOW = {
    "ceql": "SELECT * WHERE A+ AS a ; B+ AS b ; C AS c FILTER a[x] < c[x]",
    "eql": "SELECT a.x FROM A a ; B b ; C c WHERE FILTER(a.x + b.x = c.x + 100)",
    "tesla": "define X() from C() and each A() within 9000 from C and each B(x + A.x = 100) within 9000 from C",
    "epn": "pattern p all(A a, B b, C c) where a.x + b.x = c.x + 100 policies evaluation deferred",
}


def stream(each: int) -> list[dict[str, object]]:
    return [{"type": "ABC"[at // each], "ts": at, "x": at % 7} for at in range(3 * each)]


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize("language", SLOW)
def test_kernels_let_interrupts_through(language: str, counting: bool, alarm: None) -> None:
    program = weft.compile(SLOW[language], language)
    run = weft.count if counting else lambda *given: list(weft.detect(*given))
    for few in (2, 40 if counting else 3):
        run(stream(few), program)  # compiled before the clock ticks
    events = stream(MANY)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(KeyboardInterrupt):
        run(events, program)
