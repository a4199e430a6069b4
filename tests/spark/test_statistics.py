"""Plans on Spark rest on the statistics that are given: the form that runs there is the one that runs here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

import weft
from weft import engines
from weft.algebra.composites import Composite
from weft.optimizer.pipeline import Choices
from weft.plan.operators import JoinOp, Plan
from weft.plan.planner import plan
from weft.runtime.spark import frames
from weft.runtime.spark.runs import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = weft.compile("SELECT * FROM A a ; (B b ; C c) WHERE (a, c) OCCURS WITHIN 50", "eql")
KNOWN = weft.Statistics({"A": 10, "B": 2, "C": 1})
EVENTS = [{"type": "AAABBC"[n % 6], "ts": n} for n in range(60)]


def forms(chosen: Plan) -> list[Composite]:
    return [out.query.pattern for op in chosen.operators if isinstance(op, JoinOp) for out in op.graph.outputs]


HERE = forms(plan(Choices(True, KNOWN).applied(PROGRAM), statistics=KNOWN))


@contextmanager
def noted(module: Any) -> Iterator[list[Plan]]:
    """The plans that a module makes."""
    made: list[Plan] = []

    def planning(*given: Any, **named: Any) -> Plan:
        made.append(plan(*given, **named))
        return made[-1]

    with patch.object(module, "plan", planning):
        yield made


def test_the_form_depends_on_the_statistics() -> None:
    assert forms(plan(Choices().applied(PROGRAM))) != HERE


def test_a_run_without_end_is_planned_by_them(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    places = {name: str(tmp_path / name) for name in ("checkpoint", "sink")}
    with noted(run) as made:
        for choices in (Choices(True, KNOWN), Choices()):
            kept = engines.continuous(PROGRAM, [("S", str(tmp_path / "in"))], choices=choices, **places)
            kept._planned(kept._program, 0)
    assert [forms(one) == HERE for one in made] == [True, False]


def frame(spark: SparkSession, folder: Path) -> Any:
    return spark.createDataFrame([(event["ts"], event["type"]) for event in EVENTS], "ts long, type string")


def files(spark: SparkSession, folder: Path) -> Any:
    frame(spark, folder).write.parquet(str(folder / "events"))
    return str(folder / "events")


def stream(spark: SparkSession, folder: Path) -> Any:
    files(spark, folder)
    return spark.readStream.schema("ts long, type string").parquet(str(folder / "events"))


@pytest.mark.spark
@pytest.mark.parametrize("given", [frame, files, stream])
def test_frames_files_and_streams_are_planned_by_them(
    given: Callable[[SparkSession, Path], Any], spark: SparkSession, tmp_path: Path
) -> None:
    events = given(spark, tmp_path)
    with noted(frames) as made:
        matches = weft.match(events, PROGRAM, statistics=KNOWN)
    assert [forms(one) for one in made] == [HERE]
    if given is not stream:
        meant = {match.id for match in weft.detect(EVENTS, PROGRAM, engine="meaning")}
        assert meant
        assert {row.id for row in matches.collect()} == meant


@pytest.mark.spark
def test_what_is_detected_on_spark_is_planned_by_them(spark: SparkSession, tmp_path: Path) -> None:
    with noted(engines) as made:
        found = list(weft.detect(frame(spark, tmp_path), PROGRAM, engine="spark", statistics=KNOWN))
    assert HERE in [forms(one) for one in made]
    assert [match.id for match in found] == [match.id for match in weft.detect(EVENTS, PROGRAM, engine="meaning")]
