"""Ids of matches: the same on every engine, and different for different rules and queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness import event

from weft import live
from weft.algebra.meaning import matches
from weft.api import detect, merge_programs
from weft.runtime.data.matches import MatchBatch, Origin
from weft.runtime.identity.chunks import Attributes
from weft.runtime.identity.ids import identified

FIRST = "define D(n: int) from A(x > 0) where n = 1"
SECOND = "define D(n: int) from A(x > 1) where n = 2"
NAMED = "Rule Third define D(n: int) from A(x > 2) where n = 3"
EVENTS = [event("A", 1, x=3), event("A", 2, x=2), event("B", 3)]
OTHERS = [
    "QUERY Q AS SELECT a FROM S WHERE A AS a ; B AS b WITHIN 9 EVENTS",
    "pattern P absence(C c) context fixed 2",
    "SOURCE A(x: int) SOURCE B(y: int) SELECT a.x FROM A a ; B b",
]


def ids(programs: list[str], engine: str) -> list[tuple[str, str]]:
    return [(match.query, match.id) for match in detect(EVENTS, programs, engine=engine)]


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_ids_are_those_of_the_definition(engine: str) -> None:
    programs = [FIRST, SECOND, NAMED, *OTHERS]
    defined = sorted((match.query, match.id) for match in matches(merge_programs(programs), EVENTS))
    assert sorted(ids(programs, engine)) == defined


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_rules_of_one_type_have_ids_of_their_own(engine: str) -> None:
    found = ids([FIRST, SECOND, NAMED], engine)
    assert len(found) == len(set(found)) == 5


def test_the_first_rule_of_a_type_has_the_ids_it_has_alone() -> None:
    assert set(ids([FIRST], "local")) <= set(ids([FIRST, SECOND, NAMED], "local"))


def test_a_named_rule_keeps_its_ids_wherever_it_stands() -> None:
    assert set(ids([NAMED], "local")) <= set(ids([FIRST, SECOND, NAMED], "local"))
    assert set(ids([NAMED], "local")) <= set(ids([NAMED, SECOND], "local"))


def test_a_rule_that_comes_later_takes_no_ids_of_one_that_is_there() -> None:
    with live([FIRST, SECOND.replace("define", "Rule Two define")]) as running:
        running.deploy(SECOND)
        running.remove("Two")
        running.deploy(FIRST)
        found = [match.id for match in running.push(EVENTS[:1])]
    assert len(found) == len(set(found)) == 3


def test_ids_of_few_matches_ask_nothing_of_other_queries() -> None:
    asked: list[Origin] = []

    class Asked(dict[Origin, Attributes]):
        def get(self, origin: Origin, default: Any = None) -> Any:
            asked.append(origin)
            return super().get(origin, default)

    names = tuple(f"q{number}" for number in range(1000))
    ones = np.ones(1, np.int64)
    found = MatchBatch(
        query="", starts=ones, ends=ones, offsets=np.array([0, 1]), positions=ones, labels=np.zeros(1, np.int32),
        names=(("a",),), queries=names, codes=np.array([700], np.int32),
    )  # fmt: skip
    words = np.ones(1, np.uint64)
    told = identified(found, lambda events, attributes: (words, words), Asked())
    assert asked == [found.query_origins[700]]
    assert told.ids is not None
