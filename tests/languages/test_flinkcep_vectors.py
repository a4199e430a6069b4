"""FlinkCEP's own cases through the builder, on the definition of meaning and on the engine."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.harness import load_own_vectors, load_vectors

import weft
from weft import AfterMatch, Pattern

CASES = [*load_vectors("flinkcep"), *load_own_vectors("flinkcep")]


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_matches_are_those_of_flinkcep(case: dict[str, Any], engine: str) -> None:
    pattern, events = as_case(case)
    assert eval(repr(pattern), {name: getattr(weft, name) for name in weft.__all__}) == pattern
    found = [[event_of(case, position) for position in m.positions] for m in weft.detect(events, pattern, engine)]
    expected = [[event_of(case, position) for position in match] for match in case["expected"]]
    assert sorted(found) == sorted(expected)


def as_case(case: dict[str, Any]) -> tuple[Pattern, list[dict[str, Any]]]:
    """The pattern, and the events as weft reads them."""
    pattern = built(case["pattern"])
    timed = pattern.duration is not None
    events = [
        {**event, "type": "SubEvent" if event["sub"] else "Event", "ts": event["ts"] if timed else n}
        for n, event in enumerate(case["events"])
    ]
    return pattern, events


def event_of(case: dict[str, Any], position: int) -> str:
    """The cases do not tell equal events apart."""
    return json.dumps(case["events"][position], sort_keys=True)


def built(calls: list[list[Any]]) -> Pattern:
    pattern: Any = Pattern
    for call, argument in calls:
        method = getattr(pattern, re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), call))
        pattern = method(*arguments(call, argument))
    return pattern


def arguments(call: str, argument: str) -> list[Any]:
    if argument == "":
        return []
    if call in ("times", "timesOrMore", "within"):
        return [int(part) for part in str(argument).split(",")]
    if call == "afterMatch":
        name, _, variable = argument.partition(" ")
        return [getattr(AfterMatch, name)(*([variable] if variable else []))]
    return [argument]
