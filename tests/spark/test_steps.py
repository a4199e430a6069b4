"""Runs that count how far partial matches come: the same numbers as `weft.funnel` gives over all events."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.test_run import EVENTS, options, write, written

from weft import api
from weft.algebra.prefixes import funnels_of, step_names, with_steps
from weft.connectors.files import ENDINGS, READERS
from weft.optimizer.pipeline import optimize
from weft.reasons import funnel
from weft.runtime.spark.runs.run import ContinuousRun
from weft.runtime.watching.triggers import Trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXTS = {
    "keyed": ("ceql", "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a[x] < b[x] PARTITION BY [k] WITHIN 30 EVENTS"),
    "crossing": ("ceql", "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a[k] = c[k] AND b[k] = c[k] WITHIN 9 EVENTS"),
    "joined": ("eql", "SELECT a.x FROM A a ; B b ; C c WHERE a.k = b.k AND b.k = c.k AND (a, c) OCCURS WITHIN 40 ms"),
    "rule": ("tesla", "define Late(x: int) from C() and last B() within 30 ms from C and each A() within 30 ms from B "
                      "where x = A.x"),
    "situation": ("epn", "pattern Trio\n  sequence(A a, B b, C c)\n  policies cardinality single\n"
                         "  context fixed 50 ms by k\n"),
}  # fmt: skip


def test_steps_are_counted_over_all_events_in_all_lanes(spark: SparkSession, tmp_path: Path) -> None:
    compiled = [api.compile_with_findings(text, language, stem=name)[0] for name, (language, text) in TEXTS.items()]
    program = replace(api.merge_programs([one for one in compiled if one is not None]), inputs=())
    for number in range(3):
        write(tmp_path / "in", number, EVENTS[40 * number : 40 * number + 40])
    widened, steps = with_steps(program)
    assert len(step_names(steps)) == 2 * len(TEXTS)
    given = options(tmp_path, until="complete", counted=step_names(steps))
    run = ContinuousRun(optimize(widened), [("in", str(tmp_path / "in"))], given, ENDINGS, READERS, widened)
    triggers: list[Trigger] = []
    run.watch(triggers.append)
    run.start(spark)
    assert run.wait(300)
    counts: Counter[str] = Counter()
    for trigger in triggers:
        counts.update(trigger.steps)
        counts.update(trigger.matches)
    expected = funnel(EVENTS, program)
    assert funnels_of(steps, counts) == expected
    assert {row["query"] for row in written(tmp_path)} <= set(program.names)  # partial matches are not written
    assert len(written(tmp_path)) == sum(own[-1][1] for own in expected.values())
    assert min(count for own in expected.values() for _, count in own) > 0
