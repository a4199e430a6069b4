"""Streams give the matches of a batch: with our watermark or Spark's, one trigger after the other."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
import pytest
from tests.spark.pipeline import local

import weft
from weft import api
from weft.errors import RejectedWarning, UsageError
from weft.runtime.spark.streams.listening import RejectListener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PROGRAMS = "SELECT a, b[x] FROM S WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 50 EVENTS"
SCHEMA = "ts long, type string, k string, x long"
# Out of order by at most 9 ticks.
EVENTS: list[dict[str, object]] = [
    {"type": "ABC"[i * 5 % 7 % 3], "ts": 3 * i + i * 7 % 10, "k": "uvw"[i % 3], "x": i * 3 % 8} for i in range(90)
]
LATE = {"type": "A", "ts": 1, "k": "u", "x": 0}
UNREADABLE = {"type": "A", "k": "u", "x": 0}


def write_files(folder: Path, events: list[dict[str, object]], files: int) -> None:
    """Files that Spark reads one after the other, one in a trigger."""
    size = -(-len(events) // files)
    folder.mkdir()
    for number in range(files):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(e) + "\n" for e in events[number * size : (number + 1) * size]))
        os.utime(path, (1000 + number, 1000 + number))


def read_stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def test_our_watermark(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", [*EVENTS[:60], LATE, UNREADABLE, *EVENTS[60:]], 3)
    frame = api.match(
        read_stream(spark, tmp_path / "in"), api.compile(PROGRAMS), delay=10, lanes=2, rejects=True, positions=True
    )
    found = outcome(frame, tmp_path, availableNow=True)
    passed = max(int(str(e["ts"])) for e in EVENTS) - 10
    wanted = {m.id: m.positions for m in local(api.compile(PROGRAMS), EVENTS) if m.end < passed}
    assert {row.id: tuple(row.positions) for row in found if row.reason is None} == wanted
    assert len(wanted) > 50
    rejected = [(json.loads(row.rejected), row.reason.partition(":")[0]) for row in found if row.reason is not None]
    assert sorted(rejected, key=str) == [(UNREADABLE | {"ts": None}, "no time"), (LATE, "late")]


def test_sparks_watermark(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    write_files(tmp_path / "in", [*EVENTS[:60], LATE, *EVENTS[60:]], 2)
    stream = read_stream(spark, tmp_path / "in").withColumn("ts", F.timestamp_millis("ts"))
    matches = api.match(stream.withWatermark("ts", "10 milliseconds"), api.compile(PROGRAMS), positions=True)
    counted: list[dict[str, int]] = []
    found = outcome(matches, tmp_path, counted)
    passed = max(int(str(e["ts"])) for e in EVENTS) - 10
    # No more events came after the second file: a timer let those go on that waited for its watermark.
    wanted = {m.id: m.positions for m in local(api.compile(PROGRAMS), EVENTS) if m.end < passed}
    assert {row.id: tuple(row.positions) for row in found} == wanted
    # The rows of rejects were not asked for; they are counted all the same.
    totals = {name: sum(numbers[name] for numbers in counted) for name in ("matches", "late", "unreadable")}
    assert totals == {"matches": len(wanted), "late": 1, "unreadable": 0}
    assert sum(numbers["events"] for numbers in counted) == len(EVENTS)
    assert max(numbers["held"] for numbers in counted) > 0
    assert max(numbers["state_bytes"] for numbers in counted) > 0


def test_workers_load_pyspark_as_it_is_installed(spark: SparkSession) -> None:
    """Not from the zip that Spark puts before it, whose modules each process would compile."""

    def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark

        for _ in batches:
            yield pa.record_batch({"place": [pyspark.__file__]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(places, "place string").collect()
    assert row.place == pyspark.__file__


def test_late_events_of_a_users_stream_are_warned_of_with_their_number(spark: SparkSession, tmp_path: Path) -> None:
    late = [{**LATE, "ts": ts} for ts in (1, 2, 3)]
    write_files(tmp_path / "in", [*EVENTS[:57], *late, *EVENTS[57:87], *late], 3)
    program = api.compile(PROGRAMS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome(api.match(read_stream(spark, tmp_path / "in"), program, delay=10), tmp_path / "one", availableNow=True)
        given = api.match(read_stream(spark, tmp_path / "in"), program, delay=10, rejects=True)
        outcome(given, tmp_path / "two", availableNow=True)
        # A query without rejects after them: Spark tells of triggers in their order, after they are over.
        outcome(api.match(read_stream(spark, tmp_path / "in"), program, delay=10), tmp_path / "end", availableNow=True)
        limit = time.monotonic() + 30
        while len(told := [str(one.message) for one in caught if one.category is RejectedWarning]) < 4:
            assert time.monotonic() < limit
            time.sleep(0.05)
    late_ones = [text.partition(" of the stream came late and took no part: ")[0] for text in told]
    assert late_ones == ["3 events", "3 events (6 so far)"] * 2


def test_rejects_of_streams_are_told_of_at_the_end_of_each_trigger() -> None:
    listener = RejectListener()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for late in (0, 1, 5, 3, 1, 900, 0):
            listener.count("run", {"late": late, "unreadable": 0})
        listener.count("other", {"late": 0, "unreadable": 2000})
    told = [str(one.message).partition(" of ")[0] for one in caught]
    assert told == [
        "1 event",
        "5 events (6 so far)",
        "3 events (9 so far)",
        "1 event (10 so far)",
        "900 events (910 so far)",
        "2,000 events",
    ]


WAITING: list[dict[str, object]] = [
    {"type": "A", "ts": 10, "k": "u"},
    {"type": "B", "ts": 20, "k": "u"},
    {"type": "C", "ts": 100, "k": "v"},
]
EQL = "SELECT a.k FROM (A a ; B b) @ 50 WHERE FILTER(a.k = b.k)"
STEP = """topology "T"
external A(k: string, x: int) < "a" [1.0]
external B(k: string, x: int) < "b" [1.0]
Q(a.k, b.x): A/a ;[a.k = b.k] !B/n[n.x > 5] ; B/b"""
EPN = """pattern Gap absence(A a) context fixed 8
pattern Pair sequence(A a, B b) where a.k = b.k and a.x < b.x context sliding 30 every 10"""


def test_programs_that_wait_for_time(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    write_files(tmp_path / "waiting", WAITING, 1)
    write_files(tmp_path / "in", EVENTS, 2)
    programs = {language: api.compile(text, language=language) for text, language in ((STEP, "step"), (EPN, "epn"))}
    frames = {
        language: api.match(read_stream(spark, tmp_path / "in"), program, delay=10, lanes=2, positions=True)
        for language, program in programs.items()
    }
    waiting = read_stream(spark, tmp_path / "waiting").withColumn("ts", F.timestamp_millis("ts"))
    eql = api.compile(EQL, language="eql")
    frames["eql"] = api.match(waiting.withWatermark("ts", "10 milliseconds"), eql, positions=True)
    with ThreadPoolExecutor() as pool:
        running = {name: pool.submit(outcome, frame, tmp_path / name) for name, frame in frames.items()}
    # The watermark comes to 90, between the point in time and the last event, and no more events come.
    shown = [(row.end - row.start, row.positions, row.event.asDict()) for row in running["eql"].result()]
    assert shown == [(timedelta(milliseconds=60), [0, 1], {"a.k": "u"})]
    passed = max(int(str(e["ts"])) for e in EVENTS) - 10
    for language, program in programs.items():
        rows = running[language].result()
        known = [m for m in local(program, EVENTS) if m.end < passed or (m.end == passed and not m.positions)]
        assert {row.id: tuple(row.positions) for row in rows} == {m.id: m.positions for m in known}
        assert {row.query for row in rows} == {query.name for query in program.queries}


def outcome(
    frame: DataFrame, tmp_path: Path, counted: list[dict[str, int]] | None = None, **trigger: object
) -> list[object]:
    """All rows of a stream whose files are there already, and what its progress says of them."""
    rows: list[object] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        **(trigger or {"processingTime": "0 seconds"})
    )
    running = query.start()
    try:
        if trigger:
            running.awaitTermination()
        else:
            running.processAllAvailable()
    finally:
        running.stop()
    if counted is not None:
        counted += [numbers.asDict() for p in running.recentProgress for numbers in p["observedMetrics"].values()]
    return rows


def test_another_program_keeps_the_state_of_what_did_not_change(spark: SparkSession, tmp_path: Path) -> None:
    """By Spark's watermark, twice: a query stays, one ends, one begins, which shows what was not shown before."""
    from pyspark.sql import functions as F

    pairs = "SELECT b[x] FROM S WHERE A AS a ; B AS b FILTER a[x] < b[x] PARTITION BY [k] WITHIN 50 EVENTS"
    ends, late = "SELECT c[x] FROM S WHERE C AS c", "SELECT a[k] FROM S WHERE A AS a ; C AS c WITHIN 9 EVENTS"
    versions = [{"pairs": pairs, "ends": ends}, {"late": late, "pairs": pairs}, {"pairs": pairs}]
    folder, checkpoint = tmp_path / "in", str(tmp_path / "checkpoint")
    folder.mkdir()
    found: list[tuple[str, str, int]] = []
    for number, texts in enumerate(versions):
        (folder / f"{number}.json").write_text("".join(json.dumps(e) + "\n" for e in EVENTS[number * 30 :][:30]))
        stream = read_stream(spark, folder).withColumn("ts", F.timestamp_millis("ts"))
        program = api.merge_programs([api.compile_with_findings(text, stem=name)[0] for name, text in texts.items()])
        unused = api.compile(late)
        api.match(stream.withWatermark("ts", "10 milliseconds"), unused, checkpoint=checkpoint)  # it is never started
        timed = stream.withWatermark("ts", "10 milliseconds")
        frame = api.match(timed, program, checkpoint=checkpoint, positions=True)
        found += [(row.query, row.id, row.positions[0]) for row in outcome(frame, tmp_path)]  # type: ignore[attr-defined]
    passed = max(int(str(e["ts"])) for e in EVENTS) - 10
    whole = api.compile_with_findings(pairs, stem="pairs")[0]
    assert sorted(id_ for name, id_, _ in found if name == "pairs") == sorted(
        match.id for match in local(whole, EVENTS) if match.end < passed
    )
    assert {name for name, _, _ in found} == {"pairs", "ends", "late"}
    assert min(first for name, _, first in found if name == "late") >= 20
    with pytest.raises(UsageError, match="these cannot change"):
        api.match(read_stream(spark, folder), whole, checkpoint=checkpoint, lanes=7)


def test_mistakes_are_explained(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", EVENTS, 1)
    stream = read_stream(spark, tmp_path / "in").selectExpr(
        "*", "timestamp_millis(ts) as at", "timestamp_millis(ts) as t"
    )
    program = api.compile(PROGRAMS)
    with pytest.raises(UsageError, match="the watermark is on 't', but the time of events is in 'at'"):
        api.match(stream.withWatermark("t", "1 second"), program, time="at")
    with pytest.raises(UsageError, match="has a watermark already"):
        api.match(stream.withWatermark("at", "1 second"), program, time="at", delay=3)
    with pytest.raises(UsageError, match="must not be negative"):
        api.match(stream, program, delay=-1)
    with pytest.raises(UsageError, match="at least one lane"):
        api.match(stream, program, lanes=0)
    with pytest.raises(UsageError, match="`delay` is for streams"):
        api.match(spark.createDataFrame([], SCHEMA), program, delay=1)


def test_budgets_of_frames(spark: SparkSession, tmp_path: Path) -> None:
    """Of a stream and of a batch: matches are sampled, and that is counted; a limit that stops says so."""
    write_files(tmp_path / "in", EVENTS, 2)
    program = api.compile(PROGRAMS)
    few = weft.Budget(matches_per_batch=10, action="sample")
    frame = api.match(read_stream(spark, tmp_path / "in"), program, delay=10, lanes=1, budget=few)
    counted: list[dict[str, int]] = []
    assert 0 < len(outcome(frame, tmp_path, counted, availableNow=True)) <= 20
    assert sum(numbers["sampled"] for numbers in counted) > 30
    by_query = [f"sampled out of {name}" for name in program.names]
    assert all(numbers["sampled"] == sum(numbers[name] for name in by_query) for numbers in counted)
    batch = api.match(spark.read.schema(SCHEMA).json(str(tmp_path / "in")), program, lanes=1, budget=few)
    found = len(batch.collect())
    assert 10 <= found <= 20  # there are two pieces of it
    assert batch.counts.get["sampled"] == len(local(program, EVENTS)) - found
    assert sum(batch.counts.get[name] for name in by_query) == batch.counts.get["sampled"]
    shedding = api.match(
        spark.read.schema(SCHEMA).json(str(tmp_path / "in")), program, lanes=1, shed=weft.Shed(above=5)
    )
    shedding.collect()
    shed = {name: count for name, count in shedding.counts.get.items() if name.startswith("shed ")}
    assert sum(shed.values()) > 0
    assert all(name.removeprefix("shed ").partition(".")[0] in program.names for name in shed)
    stopping = api.match(
        spark.read.schema(SCHEMA).json(str(tmp_path / "in")), program, lanes=1, budget=weft.Budget(matches_per_event=1)
    )
    with pytest.raises(Exception, match="completes more than the 1 matches of the budget"):
        stopping.collect()
    with pytest.raises(UsageError, match="must see the same events"):
        api.match(
            spark.read.schema(SCHEMA).json(str(tmp_path / "in")),
            program,
            lanes=2,
            strategy="rank",
            shed=weft.Shed(above=5),
        )
    with pytest.raises(UsageError, match="share out the matches of what each of them keeps"):
        api.match(
            spark.read.schema(SCHEMA).json(str(tmp_path / "in")),
            api.compile("SELECT * FROM S WHERE A AS a ; B AS b WITHIN 9 EVENTS", "ceql"),
            lanes=2,
            strategy="rank",
            budget=weft.Budget(state_bytes=5, action="drop-oldest"),
        )
