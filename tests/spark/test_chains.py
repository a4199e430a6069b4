"""Patterns of the builder, sessions and the best of spans on Spark: the matches of the local engine."""

from __future__ import annotations

from typing import Any

import pytest
from tests.strategies_chain import TYPES

import weft
from weft import AfterMatch, Pattern, e

pytestmark = pytest.mark.spark

EVENTS: list[dict[str, Any]] = [
    {"type": TYPES[(7 * n) % 3], "ts": 3 * n + (n % 4 == 0), "k": "pq"[n % 2], "x": (5 * n) % 4} for n in range(60)
]
PROGRAMS = {
    "skip": Pattern.begin("a")
    .where(e.x > 0)
    .one_or_more()
    .followed_by("b")
    .subtype("B")
    .by("k")
    .within(40)
    .after_match(AfterMatch.skip_past_last_event()),
    "absent": Pattern.begin("a").subtype("A").not_followed_by("b").subtype("B").where(e.x > 1).by("k").within(9),
    "groups": Pattern.begin("a")
    .subtype("A")
    .followed_by(Pattern.begin("b").next("c").where(e.x < 3))
    .times(2)
    .within(30),
    "sessions": "SELECT COUNT(a) AS n, MAX(a[x]) AS m WHERE (A OR B):+ AS a PARTITION BY [k] SESSION 6 MILLISECONDS",
    "best": "SELECT a[x] WHERE A AS a ; B? ; C ORDER BY a[x] DESC LIMIT 2 EVERY 20 MILLISECONDS WITHIN 9 MILLISECONDS",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_spark_gives_the_matches_of_the_local_engine(name: str) -> None:
    program = PROGRAMS[name]
    local = [(m.id, m.positions, m.event) for m in weft.detect(EVENTS, program)]
    assert local
    assert [(m.id, m.positions, m.event) for m in weft.detect(EVENTS, program, "spark")] == local
