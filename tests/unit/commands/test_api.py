"""The public functions: what they take, what they give, and what they say when it cannot work."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import weft
from weft import engines
from weft.plan.planner import plan

EXAMPLES = Path(__file__).parents[3] / "examples"
FIRE = EXAMPLES / "fire" / "fire.ceql"
SENSORS = EXAMPLES / "fire" / "sensors.jsonl"
ANSWER = [(1, 3, 8), (1, 6, 8)]
PAIR = "SELECT * WHERE A AS x; B AS y WITHIN 10 EVENTS"


@pytest.fixture
def sensors() -> list[dict[str, object]]:
    return [json.loads(line) for line in SENSORS.read_text().splitlines()]


@pytest.fixture(params=["local", "meaning", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def positions(matches: Iterator[weft.Match]) -> list[tuple[int, ...]]:
    return [match.positions for match in matches]


class TestCompile:
    def test_a_path_and_its_name_and_the_text_give_the_same_queries(self) -> None:
        by_path, by_name = weft.compile(FIRE), weft.compile(str(FIRE))
        assert by_path == by_name
        assert by_path.queries[0].name == "fire"
        assert weft.compile(FIRE.read_text()).queries[0].name == "q"

    def test_a_file_that_is_not_there_is_named(self) -> None:
        with pytest.raises(weft.InputError, match=r"no such program file: nowhere\.ceql"):
            weft.compile("nowhere.ceql")
        with pytest.raises(weft.InputError, match="no such program file"):
            weft.compile(Path("nowhere"))

    def test_a_wrong_program_says_where(self) -> None:
        with pytest.raises(weft.ProgramError, match=r"<text>:1:\d+: error"):
            weft.compile("SELECT * WHERE ;")

    def test_long_text_in_one_line_is_text(self) -> None:
        chain = " ; ".join(["A"] * 150)
        assert weft.compile(f"SELECT * WHERE {chain} WITHIN 5 EVENTS").queries

    def test_a_missing_window_is_warned_about(self) -> None:
        with pytest.warns(weft.ProgramWarning):
            weft.compile("SELECT * WHERE A; B")

    def test_the_unit_of_time_counts_in_windows_and_in_events(self) -> None:
        program = weft.compile("SELECT * WHERE A; B WITHIN 1 MINUTE", time_unit="s")
        assert program.queries[0].window is not None
        assert program.queries[0].window.amount == 60
        days = [{"type": "A", "ts": "2024-01-01T00:00:00"}, {"type": "B", "ts": "2024-01-01T00:01:00"}]
        assert weft.count(days, program) == {"q": 1}


class TestDetect:
    def test_finds_the_fire(self, sensors: list[dict[str, object]], engine: str) -> None:
        found = list(weft.detect(sensors, weft.compile(FIRE), engine=engine))
        assert [match.positions for match in found] == ANSWER
        assert found[0].bindings == {"t1": (1,), "h1": (3,), "t2": (8,)}
        assert (found[0].query, found[0].start, found[0].end, found[0].event) == ("fire", 1, 8, {"id": 1})

    def test_engines_agree_on_everything(self, sensors: list[dict[str, object]]) -> None:
        programs = [weft.compile(FIRE), weft.compile(EXAMPLES / "fire" / "heating.ceql")]
        assert list(weft.detect(sensors, programs, "local")) == list(weft.detect(sensors, programs, "meaning"))

    def test_takes_every_kind_of_input(self, sensors: list[dict[str, object]], engine: str) -> None:
        table = pa.Table.from_pylist(sensors)
        inputs = [
            iter(sensors),
            table,
            iter(table.to_batches(max_chunksize=2)),
            pd.DataFrame(sensors),
            pl.DataFrame(sensors),
            SENSORS,
            str(SENSORS),
            [SENSORS],
        ]
        program = weft.compile(FIRE)
        assert [positions(weft.detect(events, program, engine=engine)) for events in inputs] == [ANSWER] * len(inputs)

    def test_takes_other_names_for_time_and_type(self, engine: str) -> None:
        events = [{"kind": "A", "at": 5}, {"kind": "B", "at": 7}]
        (found,) = weft.detect(events, weft.compile(PAIR), engine, time="at", type="kind")
        assert (found.start, found.end) == (5, 7)

    def test_takes_interval_events(self, engine: str) -> None:
        events = [{"type": "A", "start": 1, "end": 4}, {"type": "B", "start": 2, "end": 9}]
        (found,) = weft.detect(events, weft.compile(PAIR), engine)
        assert (found.start, found.end, found.positions) == (1, 9, (0, 1))

    def test_collects_what_cannot_be_read(self, engine: str) -> None:
        events = [{"type": "A", "ts": 1}, {"type": "A"}, {"type": "B", "ts": 2}]
        rejects: list[weft.Rejected] = []
        assert positions(weft.detect(events, weft.compile(PAIR), engine, rejects=rejects)) == [(0, 1)]
        assert [reject.row for reject in rejects] == [1]
        assert "ts" in rejects[0].reason

    def test_warns_about_what_cannot_be_read(self) -> None:
        with pytest.warns(weft.RejectedWarning, match="1 event"):
            list(weft.detect([{"type": "A"}], weft.compile(PAIR)))

    def test_no_events_give_no_matches_and_no_warning(self, engine: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert list(weft.detect([], weft.compile(PAIR), engine)) == []

    def test_an_unknown_engine_is_refused(self) -> None:
        with pytest.raises(weft.UsageError, match="did you mean 'local'"):
            weft.detect([], weft.compile(PAIR), engine="locl")

    def test_a_text_is_compiled_where_a_program_is_expected(self) -> None:
        events = [{"type": "A", "ts": 1}, {"type": "B", "ts": 2}]
        (match,) = weft.detect(events, "SELECT * WHERE A ; B WITHIN 5 EVENTS")
        assert match.positions == (0, 1)

    def test_what_is_no_program_is_refused(self) -> None:
        with pytest.raises(weft.UsageError, match=r"weft\.compile"):
            weft.detect([], [7])  # type: ignore[list-item]

    def test_programs_whose_queries_share_a_name_are_refused(self) -> None:
        with pytest.raises(weft.UsageError, match="two programs have a query called 'q'"):
            weft.detect([], [weft.compile(PAIR), weft.compile(PAIR)])


def test_count_counts_each_query(sensors: list[dict[str, object]], engine: str) -> None:
    programs = [weft.compile(FIRE), weft.compile(PAIR)]
    assert weft.count(sensors, programs, engine) == {"fire": 2, "q": 0}


def test_match_refuses_what_is_not_a_spark_frame() -> None:
    with pytest.raises(weft.UsageError, match=r"weft\.detect"):
        weft.match([], weft.compile(PAIR))  # type: ignore[arg-type]


@pytest.mark.spark
def test_match_reads_frames_and_files_and_shows_rejects(tmp_path: Path) -> None:
    from weft.runtime.spark.session import spark_session

    events = tmp_path / "events.jsonl"
    events.write_text('{"type": "A", "ts": 1}\n{"type": "A"}\n{"type": "B", "ts": 2}\n')
    program = weft.compile(PAIR)
    frame = spark_session().createDataFrame([("A", 1), ("B", 2)], "type string, ts bigint")
    assert [list(row["positions"]) for row in weft.match(frame, program, positions=True).collect()] == [[0, 1]]
    assert [list(row["positions"]) for row in weft.match(str(events), program, lanes=3, positions=True).collect()] == [
        [0, 1]
    ]
    rows = weft.match([events], program, rejects=True).collect()
    assert [row["reason"] is None for row in rows if row["query"] is not None] == [True]
    assert ["ts" in row["reason"] for row in rows if row["query"] is None] == [True]


class TestExplain:
    @pytest.mark.parametrize("stage", ["syntax", "algebra", "optimized", "plan", "tables"])
    def test_every_stage_is_text(self, stage: str) -> None:
        assert weft.explain(weft.compile(FIRE), stage=stage).strip()

    @pytest.mark.parametrize("stage", ["syntax", "algebra", "optimized", "plan"])
    def test_trees_are_json_and_dot(self, stage: str) -> None:
        program = weft.compile(FIRE)
        assert json.loads(weft.explain(program, stage, format="json"))
        assert weft.explain(program, stage, format="dot").startswith("digraph")

    @pytest.mark.parametrize("stage", ["syntax", "algebra", "optimized", "plan"])
    def test_several_programs_are_one_document(self, stage: str) -> None:
        programs = [weft.compile(FIRE), weft.compile("define X() from A()")]
        assert len(json.loads(weft.explain(programs, stage, format="json"))) >= 2
        assert weft.explain(programs, stage, format="dot").count("digraph") == 1

    def test_optimized_names_the_rules(self) -> None:
        assert "fire: push_where_into_events" in weft.explain(weft.compile(FIRE), "optimized")

    def test_an_unknown_stage_or_format_is_refused(self) -> None:
        with pytest.raises(weft.UsageError, match="did you mean 'algebra'"):
            weft.explain(weft.compile(FIRE), stage="algebr")
        with pytest.raises(weft.UsageError, match="unknown format"):
            weft.explain(weft.compile(FIRE), format="png")


def test_a_program_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "fire.tesla"
    path.write_text("define X() from A()\n", encoding="utf-8-sig")
    assert [match.positions for match in weft.detect([{"type": "A", "ts": 1}], path)] == [(0,)]


def test_a_pattern_is_given_before_or_after_those_that_look_at_it() -> None:
    made, looking = "pattern P any(A a)", "pattern Q any(P p)"
    assert weft.count([{"type": "A", "ts": 1}], [made, looking]) == {"P": 1, "Q": 1}
    assert weft.count([{"type": "A", "ts": 1}], [looking, made], engine="meaning") == {"P": 1, "Q": 1}


def test_programs_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(weft.UsageError, match="wait for each other: P <- Q <- P"):
        weft.count([], ["pattern P any(Q q)", "QUERY Q AS SELECT * WHERE P WITHIN 1 EVENTS"])


def test_a_text_is_never_opened_as_a_file_unless_it_ends_like_a_program(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0")
    with pytest.raises(weft.ProgramError) as error:
        weft.compile(str(secret))
    assert "x:0:0" not in str(error.value)


def test_a_program_is_planned_once_for_all_that_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[object] = []
    monkeypatch.setattr(engines, "_PLANS", {})
    monkeypatch.setattr(engines, "plan", lambda program, **how: planned.append(how) or plan(program, **how))
    events = [{"type": name, "ts": at, "x": at} for at, name in enumerate("ABAB")]
    programs = [weft.compile(f"SELECT * FROM S WHERE A ; B FILTER A[x > {least}] WITHIN 9 EVENTS") for least in (-1, 0)]
    for _ in range(2):
        assert [weft.count(events, program)["q"] for program in programs] == [3, 1]
    assert len(planned) == 2
    weft.count(events, programs[0], statistics=weft.Statistics({"A": 2.0}))
    weft.count(events, programs[0], optimize=False)
    weft.count(events, programs[0], strategy="one", lanes=2)
    assert len(planned) == 5
