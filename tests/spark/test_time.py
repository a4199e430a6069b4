"""Time in a stream: pending matches become final when the watermark passes, whichever source advances it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import compiled, programs
from tests.spark.pipeline import Event, Stream, cut, job_for, matches_in, reasons_in
from tests.strategies_composite import composite_streams, eql_programs
from tests.strategies_epn import Example, examples

from weft.algebra import meaning
from weft.algebra.query import Program
from weft.languages import compile_text
from weft.runtime.data.matches import Match
from weft.runtime.spark.files.log import FileLog, Folder
from weft.runtime.spark.files.source import Bundle, FileStream, FolderReader, Part, Silence

SOME = some(20)
DELAY = 3

Shown = tuple[object, ...]


def shown(matches: Iterable[Match | meaning.Match]) -> list[str]:
    """What must be the same, in an order of its own."""
    return sorted(repr(_shown(match)) for match in matches)


def _shown(match: Match | meaning.Match) -> Shown:
    bound = sorted((name, tuple(positions)) for name, positions in match.bindings.items() if positions)
    event = sorted((name, float(v) if isinstance(v, int) else v) for name, v in match.event.items())
    return match.query, match.start, match.end, tuple(match.positions), bound, event


def arrivals(events: Sequence[Event], rng: random.Random) -> list[list[list[Event]]]:
    """The events out of order by no more than the delay, in triggers of two parts each."""
    mixed = sorted(events, key=lambda event: end_of(event) + rng.randint(0, DELAY))
    triggers = cut(mixed, (rng.randint(0, len(mixed)) for _ in range(3)))
    return [cut(trigger, [rng.randint(0, len(trigger))]) for trigger in triggers]


def end_of(event: Event) -> int:
    return int(event.get("end", event.get("ts")))  # type: ignore[call-overload, no-any-return]


def arrived(triggers: Iterable[Iterable[Sequence[Event]]]) -> list[Event]:
    return [event for trigger in triggers for part in trigger for event in part]


def streamed(program: Program, triggers: Sequence[list[list[Event]]], lanes: int, rng: random.Random) -> Stream:
    """A stream after all triggers; now and then its lanes start again from their pages."""
    stream = Stream(job_for(program, lanes, streaming=True), delay=DELAY)
    for trigger in triggers:
        stream.trigger(trigger)
        if rng.random() < 0.5:
            stream.forget()
    return stream


@SOME
@given(programs, composite_streams(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_composites(program: Program, events: list[Event], lanes: int, rng: random.Random) -> None:
    triggers = arrivals(events, rng)
    stream = streamed(program, triggers, lanes, rng)
    stream.end()
    assert reasons_in(stream.table()) == []
    assert shown(matches_in(stream.table())) == shown(meaning.matches(program, arrived(triggers)))


@SOME
@given(examples(most=3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_situations(example: Example, lanes: int, rng: random.Random) -> None:
    program, _ = compile_text(example.text, language="epn")
    triggers = arrivals(example.events, rng)
    stream = streamed(program, triggers, lanes, rng)
    stream.end()
    assert shown(matches_in(stream.table())) == shown(meaning.matches(program, arrived(triggers)))


@SOME
@given(
    eql_programs().map(lambda text: compiled(text, "eql")).filter(lambda program: program is not None),
    composite_streams(),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_what_ends_before_the_watermark_is_known_and_nothing_else(
    program: Program, events: list[Event], lanes: int, rng: random.Random
) -> None:
    triggers = arrivals(events, rng)
    stream = Stream(job_for(program, lanes, streaming=True), delay=DELAY)
    whole = meaning.matches(program, arrived(triggers))
    for number, trigger in enumerate(triggers):
        stream.trigger(trigger)
        seen = arrived(triggers[: number + 1])
        passed = max(map(end_of, seen)) - DELAY if seen else 0
        assert shown(matches_in(stream.table())) == shown(m for m in whole if seen and m.end < passed)


def in_triggers(text: str, language: str, *triggers: list[Event], lanes: int = 2) -> list[list[tuple[int, int]]]:
    """The times of all matches so far, after each trigger, without a delay."""
    program = replace(compile_text(text, language=language)[0], inputs=())
    stream = Stream(job_for(program, lanes, streaming=True, positions=False), delay=0)
    found = []
    for trigger in triggers:
        stream.trigger([trigger])
        stream.forget()
        found.append(sorted((match.start, match.end) for match in matches_in(stream.table())))
    return found


def test_a_point_in_time_comes_with_events_of_other_keys() -> None:
    text = "SELECT a.k FROM (A a ; B b) @ 10 WHERE FILTER(a.k = b.k)"
    of_one = [{"type": "A", "ts": 1, "k": 1}, {"type": "B", "ts": 2, "k": 1}]
    # At 12 one more event may still come that ends then: time has not passed yet.
    found = in_triggers(text, "eql", of_one, [{"type": "A", "ts": 12, "k": 2}], [{"type": "X", "ts": 13}])
    assert found == [[], [], [(1, 12)]]


def test_a_negation_is_decided_by_events_of_other_keys() -> None:
    externals = 'external A(k: int) < "a" [1.0]\nexternal B(k: int) < "b" [1.0]\n'
    text = f'topology "T"\n{externals}Q(*): A/a ;[a.k = b.k] !B/n ; A/b'
    of_one = [{"type": "A", "ts": 1, "k": 1}, {"type": "A", "ts": 5, "k": 1}]
    assert in_triggers(text, "step", of_one, [{"type": "C", "ts": 6}]) == [[], [(1, 5)]]


def test_an_absence_is_decided_by_events_of_other_keys() -> None:
    text = "pattern N absence(A a) context from Open for 10 by k"
    opened = [{"type": "Open", "ts": 1, "k": 1}]
    # The partition ends with 10: when time has come to 11, no event of it can come.
    found = in_triggers(text, "epn", opened, [{"type": "A", "ts": 10, "k": 2}], [{"type": "X", "ts": 11}])
    assert found == [[], [], [(1, 11)]]


def test_deferred_sets_are_selected_when_time_has_passed() -> None:
    text = "pattern P all(A a, B b) policies evaluation deferred context fixed 10 by k"
    of_one = [{"type": "A", "ts": 1, "k": 1}, {"type": "B", "ts": 2, "k": 1}]
    found = in_triggers(text, "epn", of_one, [{"type": "A", "ts": 9, "k": 2}], [{"type": "A", "ts": 10, "k": 2}])
    assert found == [[], [], [(1, 2)]]


def test_an_idle_source_releases_what_waits_and_moves_time_no_further() -> None:
    program, _ = compile_text("SELECT a.k FROM A a", language="eql")
    stream = Stream(job_for(program, 2, streaming=True, positions=False), delay=0)
    stream.silence()  # before any event there is nothing to release
    stream.trigger([[{"type": "A", "ts": 1, "k": 1}, {"type": "A", "ts": 5, "k": 2}]])
    assert ends_in(stream) == [1]
    for _ in range(3):
        stream.silence()
        stream.forget()
        assert ends_in(stream) == [1, 5]
    stream.trigger([[{"type": "A", "ts": 6, "k": 1}, {"type": "A", "ts": 7, "k": 1}]])
    assert ends_in(stream) == [1, 5, 6]
    assert reasons_in(stream.table()) == []


def test_when_two_sources_pause_what_they_send_next_in_order_is_not_late() -> None:
    program, _ = compile_text("SELECT a.k FROM A a", language="eql")
    stream = Stream(job_for(program, 1, streaming=True, positions=False), delay=DELAY, sources=2)
    for source, time in [(0, 10), (1, 14)]:
        stream.trigger([[{"type": "A", "ts": time, "k": 1}]], source)
    for source in (0, 1, 0, 1):
        stream.silence(source)
    for source, time in [(0, 15), (1, 16)]:
        stream.trigger([[{"type": "A", "ts": time, "k": 1}]], source)
    assert reasons_in(stream.table()) == []
    stream.end()
    assert ends_in(stream) == [10, 14, 15, 16]


def test_a_silence_is_told_once_it_is_long_enough() -> None:
    now = [0]
    silence = Silence(2, lambda: now[0])
    begun = []
    for seconds, heard in [(1, False), (2.5, False), (9, False), (10, True), (11.5, False), (12, False), (13, False)]:
        now[0] = int(seconds * 10**9)
        begun.append(silence.begins(heard=heard))
    assert begun == [False, True, False, False, False, True, False]


def test_a_source_that_has_had_a_longer_pause_is_idle_after_such_a_one() -> None:
    now = [0]
    silence = Silence(1, lambda: now[0], learns=True)
    begun = []
    for seconds, heard in [(1, False), (2, True), (4, False), (5, True), (7, False), (8, False), (9, False)]:
        now[0] = seconds * 10**9
        begun.append(silence.begins(heard=heard))
    assert begun == [True, False, True, False, False, True, False]


def test_offsets_count_how_often_there_were_no_files(tmp_path: Path) -> None:
    folders = (Folder("S", str(tmp_path / "S"), {}), Folder("T", str(tmp_path / "T"), {}))
    stream = FileStream(FileLog(str(tmp_path / "log"), folders, {".csv": "csv"}), b"", idle_after=(1e-9, 1e-9))
    reader = FolderReader(stream)
    begin = reader.initialOffset()
    for folder in ("S", "T"):
        (tmp_path / folder).mkdir()
    (tmp_path / "T" / "a.csv").write_text("")
    latest = reader.latestOffset(begin, ReadAllAvailable())
    assert (latest["files"], latest["idle"]) == (1, [1, 0])
    assert reader.partitions(begin, {**begin, "idle": [0, 2]}) == [Bundle([Part(0, 1, is_silent=True)])]


def ends_in(stream: Stream) -> list[int]:
    return sorted(match.end for match in matches_in(stream.table()))


def test_an_event_waits_until_every_source_has_passed_its_time() -> None:
    program, _ = compile_text("SELECT * FROM A a", language="eql")
    stream = Stream(job_for(program, 1, streaming=True, positions=False), delay=0, sources=2)
    found = []
    for source, time in [(0, 5), (0, 9), (1, 2), (1, 7), (0, 9)]:
        stream.trigger([[{"type": "A", "ts": time}]], source)
        found.append(ends_in(stream))
    assert found == [[], [], [], [2, 5], [2, 5]]
    stream.silence(source=1)  # it is not waited for
    assert ends_in(stream) == [2, 5, 7]
    stream.silence(source=0)
    assert ends_in(stream) == [2, 5, 7, 9, 9]
    assert reasons_in(stream.table()) == []
