"""Ctrl-C in Python: long searches in kernels return regularly, in all languages."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

import weft
from weft.kernels.joins import chain, iterate, overlap
from weft.runtime.execution import threaded_matcher as crew
from weft.runtime.operators.joins import chains, joining
from weft.runtime.operators.operator import EARLIEST
from weft.runtime.threads import Threads
from weft.runtime.writing import match_rows

Waiting = Callable[[Threads, Callable[[int], None]], object]

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


def interrupted(work: Callable[[], object]) -> None:
    """Work until the clock rings: again and again, as Python drops what is raised while it collects garbage."""
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize("language", SLOW)
def test_kernels_let_interrupts_through(language: str, counting: bool, alarm: None) -> None:
    program = weft.compile(SLOW[language], language)
    run = weft.count if counting else lambda *given: list(weft.detect(*given))
    for few in (2, 40 if counting else 3):
        run(stream(few), program)  # compiled before the clock ticks
    events = stream(MANY)
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: run(events, program))


@pytest.mark.parametrize(
    "waiting",
    [
        lambda threads, work: threads.each(work, range(4)),
        lambda threads, work: threads.begin(work, range(4))(),
        lambda threads, work: list(threads.in_turn(work, range(4))),
    ],
    ids=["each", "begin", "in_turn"],
)
def test_threads_end_with_those_that_wait_for_them(waiting: Waiting, alarm: None) -> None:
    """Python waits for its threads before it ends: those at work must hear of Ctrl-C, too."""
    ended, begun = list[int](), list[int]()

    def work(number: int) -> None:
        begun.append(number)
        try:
            while True:
                time.sleep(0.001)
        except KeyboardInterrupt:
            ended.append(number)
            raise

    def wait() -> None:
        with Threads(2) as threads:
            waiting(threads, work)

    with pytest.raises(KeyboardInterrupt):
        interrupted(wait)
    assert all_end(lambda: len(ended) == 2)
    assert sorted(begun) == sorted(ended) == [0, 1]


def test_what_threads_begin_after_ctrl_c_ends() -> None:
    threads, begun = Threads(2), list[int]()
    with pytest.raises(KeyboardInterrupt), threads:
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        threads.each(begun.append, range(2))
    assert not begun


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ctrl_c_while_rows_are_made_ends_rows_and_lanes(monkeypatch: pytest.MonkeyPatch, alarm: None) -> None:
    """Lanes look for the next matches while rows of the last ones are made: whoever is waited for, both end."""
    events = [{"type": "AB"[at % 2], "ts": at, "k": at % 8 // 2} for at in range(4000)]
    program = weft.compile("SELECT * FROM A a ; B b WHERE FILTER(a.k = b.k)", "eql")
    weft.count(events, program, threads=2)  # compiled before the clock ticks
    ended = Counter[str]()

    def slow(name: str) -> Callable[..., object]:
        def work(*_: object) -> object:
            try:
                while True:
                    time.sleep(0.001)
            except KeyboardInterrupt:
                ended[name] += 1
                raise

        return work

    pull = crew.Flow.pull
    monkeypatch.setattr(crew, "WAVE", 1)
    monkeypatch.setattr(crew, "PUSHED", 1000)
    monkeypatch.setattr(crew.Flow, "pull", lambda flow: (pull if flow.end == EARLIEST else slow("lanes"))(flow))
    monkeypatch.setattr(match_rows, "_rows", slow("rows"))
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: list(weft.detect(events, program, threads=2)))
    assert all_end(lambda: bool(ended["lanes"] and ended["rows"]))


def all_end(is_so: Callable[[], bool]) -> bool:
    """Whether something is so before long: threads hear of an end when they are at work next."""
    for _ in range(1000):
        if is_so():
            return True
        time.sleep(0.01)
    return False


STEP = """
topology "t"
external A(x: int) < "a.jsonl" [1.0]
external B(x: int) < "b.jsonl" [1.0]
"""


@pytest.mark.parametrize(
    ("module", "kernel", "query", "matches"),
    [
        (chain, "follow_keys", "SELECT * FROM A a ; B b", 70),
        (overlap, "overlap", STEP + "q(*): A ,[A.x + B.x = 0] B", 100),
        (overlap, "without", STEP + "q(*): !A[A.x + B.x = 100] ; B", 70),
        (iterate, "sequences", STEP + "q(*): A+?[A.x > prev(A.x) + 5]", 70 + 55),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kernels_that_join_pause(
    module: ModuleType, kernel: str, query: str, matches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come back after so many partners, and go on where they stood."""
    program, calls, called = weft.compile(query, "step" if STEP in query else "eql"), [0], getattr(module, kernel)

    def counted(*given: object) -> object:
        calls[0] += 1
        return called(*given)

    monkeypatch.setattr(module, kernel, counted)
    at_once = kernel == "overlap"
    events = [{"type": "AB"[at % 2], "ts": 0 if at_once else at, "x": at % 7} for at in range(140)]
    assert weft.count(events, program) == {"q": matches}
    whole, calls[0] = calls[0], 0
    for runtime in (chains, joining):
        monkeypatch.setattr(runtime, "INTERRUPT_CHECK_EVERY", 5)
    assert weft.count(events, program) == {"q": matches}
    assert calls[0] > whole
