"""Ids made of a key column: the same without irrelevant events, in other orders and pieces, on every engine."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.pipeline import Stream, cut, in_batch, job_for, matches_in
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.errors import InputError, UsageError
from weft.plan.planner import plan
from weft.runtime.data.matches import Match
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.job import Job, job_of
from weft.runtime.store.pages import FOREIGN

Event = dict[str, object]

# Programs whose matches do not depend on events of other types.
PROGRAMS = [
    "SELECT * WHERE A AS a ; B AS b FILTER a[x] < b[x] WITHIN 30 MILLISECONDS",
    "SELECT b WHERE A AS a ; B+ AS b PARTITION BY [k] WITHIN 15 MILLISECONDS",
    "pattern Both all(A a, B b) context fixed 20",
    "define Pair(x: int) from B(k = $k) and each A(k = $k) within 20 from B where x = B.x",
]
LANGUAGES = ["ceql", "ceql", "epn", "tesla"]


def events(count: int = 60) -> list[Event]:
    kinds = "ABCDCDB"
    return [
        {"type": kinds[i * 5 % 7], "ts": 2 * i, "k": "uv"[i % 2], "x": i * 3 % 8, "event_id": f"e{i * 7919 % 1000}"}
        for i in range(count)
    ]


def relevant(given: Sequence[Event]) -> list[Event]:
    return [event for event in given if event["type"] in ("A", "B")]


def by_key(found: Sequence[Match], given: Sequence[Event]) -> set[tuple[object, ...]]:
    """Matches by their ids, with the keys of their events."""
    ordered = sorted(given, key=lambda event: event["ts"])  # type: ignore[arg-type, return-value]
    return {
        (m.query, m.id, m.start, m.end, frozenset(ordered[position]["event_id"] for position in m.positions))
        for m in found
    }


def keyed_job(program: weft.Program, lanes: int, *, streaming: bool = False) -> Job:
    reading = Reading(time_unit=program.time_unit, key=("event_id",))
    return job_of(plan(program), reading, lanes, streaming=streaming)


@pytest.mark.parametrize(("text", "language"), list(zip(PROGRAMS, LANGUAGES, strict=True)))
def test_irrelevant_events_do_not_change_ids(text: str, language: str) -> None:
    program, all_of_them = weft.compile(text, language=language), events()
    few = relevant(all_of_them)
    whole = by_key(list(weft.detect(all_of_them, program, key="event_id")), all_of_them)
    assert len({id_ for _, id_, *_ in whole}) == len(whole) > 3
    assert by_key(list(weft.detect(few, program, key="event_id")), few) == whole
    assert by_key(list(weft.detect(few, program)), few) != whole


@pytest.mark.parametrize(("text", "language"), list(zip(PROGRAMS, LANGUAGES, strict=True)))
def test_engines_and_lanes_agree(text: str, language: str) -> None:
    program, given = weft.compile(text, language=language), events()
    wanted = by_key(list(weft.detect(given, program, key="event_id")), given)
    for engine in ("local", "meaning"):
        found = weft.detect(given, program, engine, key="event_id")
        for _ in range(2):  # asked again, it gives the same
            assert by_key(list(found), given) == wanted
        assert {row["id"] for row in found.to_arrow().to_pylist()} == {id_ for _, id_, *_ in wanted}
    live = weft.detect({"one": iter(given)}, program, key="event_id")
    assert by_key(list(live), given) == wanted
    shuffled = list(given)
    random.Random(1).shuffle(shuffled)
    for lanes in (1, 3):
        parts = cut(shuffled, [10, 11, 35])
        assert by_key(matches_in(in_batch(parts, keyed_job(program, lanes))), given) == wanted
        stream = Stream(keyed_job(program, lanes, streaming=True), delay=0)
        for part in cut(given, [9, 20, 21, 40]):
            stream.trigger([part])
            stream.forget()
        stream.end()
        assert by_key(matches_in(stream.table()), given) == wanted


def test_a_key_is_a_value_however_it_is_stored() -> None:
    program = weft.compile("SELECT * WHERE A ; B")
    ids = [
        [match.id for match in weft.detect(given, program, key=["event_id", "part"])]
        for given in (
            [{"type": kind, "ts": ts, "event_id": ts, "part": "p"} for ts, kind in enumerate("AB")],
            pa.table({"type": ["A", "B"], "ts": [0, 1], "event_id": [0.0, 1.0], "part": ["p", "p"]}),
            pa.table({
                "type": ["A", "B"],
                "ts": [0, 1],
                "event_id": pa.array([Decimal(0), Decimal(1)], pa.decimal128(12, 2)),
                "part": pa.array(["p", "p"]).dictionary_encode(),
            }),
        )
    ]  # fmt: skip
    assert len(ids[0]) == 1
    assert ids[0] == ids[1] == ids[2]


def test_the_order_of_equal_times_does_not_matter() -> None:
    program = weft.compile("pattern Both all(A a, B b)", language="epn")
    one: list[Event] = [{"type": kind, "ts": 0, "event_id": kind} for kind in "AB"]
    ids = [[match.id for match in weft.detect(given, program, key="event_id")] for given in (one, one[::-1])]
    assert len(ids[0]) == 1
    assert ids[0] == ids[1]


def test_which_variable_has_which_event_matters() -> None:
    texts = ["SELECT * WHERE A AS a ; A AS b", "SELECT * WHERE A AS b ; A AS a"]
    given: list[Event] = [{"type": "A", "ts": ts, "event_id": ts} for ts in range(2)]
    ids = {match.id for text in texts for match in weft.detect(given, text, key="event_id")}
    assert len(ids) == 2


def test_what_has_no_events_is_told_apart_by_its_fields() -> None:
    text = "pattern Gone absence(A a) context from B for 10 by k derive k = k"
    program = weft.compile(text, language="epn")
    given: list[Event] = [
        {"type": kind, "ts": ts, "k": k, "event_id": number}
        for number, (kind, ts, k) in enumerate([("C", 0, 0), ("B", 1, 1), ("B", 1, 2), ("C", 5, 1), ("C", 40, 9)])
    ]
    ids = [
        {match.event["k"]: match.id for match in weft.detect(some, program, engine, key="event_id")}
        for some in (given, [event for event in given if event["ts"] != 5])
        for engine in ("local", "meaning")
    ]
    assert len(set(ids[0].values())) == 2
    assert all(found == ids[0] for found in ids)


def test_events_without_the_key_are_rejected() -> None:
    given = [*events(6), {"type": "B", "ts": 99, "x": 9}, {"type": "B", "ts": 99, "x": 9, "event_id": [1]}]
    rejects: list[weft.Rejected] = []
    list(weft.detect(given, PROGRAMS[0], key="event_id", rejects=rejects))
    assert [str(reject) for reject in rejects] == [
        f"row {row}: no key: no number, text or Boolean in 'event_id'" for row in (6, 7)
    ]
    counts = [
        weft.count(given, PROGRAMS[0], key="event_id", rejects=[], engine=engine) for engine in ("local", "meaning")
    ]
    assert counts[0] == counts[1]
    with pytest.raises(InputError, match="no column 'id' to make ids of"):
        list(weft.detect(pa.Table.from_pylist(events(6)), PROGRAMS[0], key="id"))


def test_keys_are_given_up_with_what_they_are_for() -> None:
    many = events(40_000)
    program = weft.compile("SELECT * WHERE A AS a ; B AS b WITHIN 20 MILLISECONDS")
    table, few = pa.Table.from_pylist(many), pa.Table.from_pylist(relevant(many))
    ids = [weft.detect(given, program, key=["x", "event_id"]).to_arrow()["id"] for given in (table, few)]
    assert len(ids[0]) > 10_000
    assert ids[0] == ids[1]


def test_state_with_another_key_is_refused() -> None:
    program = weft.compile(PROGRAMS[0])
    stream = Stream(keyed_job(program, 1, streaming=True), delay=0)
    stream.trigger([events(5)])
    stream.job = job_for(program, 1, streaming=True)
    with pytest.raises(UsageError, match=FOREIGN):
        stream.end()


def test_weft_match_takes_a_key(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in events()))
    done = CliRunner().invoke(app, ["match", "-q", PROGRAMS[0], "--events", str(file), "--key", "event_id"])
    assert done.exit_code == 0, done.output
    ids = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert ids == [match.id for match in weft.detect(events(), PROGRAMS[0], key="event_id")]
