"""Patterns of the builder, sessions and the best of spans in lanes, batch and stream with restarts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.languages.test_flinkcep_vectors import CASES, as_case
from tests.spark.pipeline import Stream, cut, in_batch, job_for, local, matches_in, without_positions
from tests.spark.test_chains import EVENTS, PROGRAMS

import weft
from weft.algebra.query import Program


def check(program: Program, events: list[dict[str, Any]], lanes: int, seed: int) -> None:
    """Cut anywhere, and in the stream with restarts between the triggers."""
    rng = random.Random(seed)
    parts = cut(events, (rng.randint(0, len(events)) for _ in range(3)))
    expected = local(program, events)
    assert matches_in(in_batch(parts, job_for(program, lanes))) == expected
    stream = Stream(job_for(program, lanes, streaming=True, positions=False), delay=0)
    for part in parts:
        stream.trigger([part])
        stream.forget()
    stream.end()
    assert without_positions(matches_in(stream.table())) == without_positions(expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_over_whole_inputs_and_streams(name: str) -> None:
    given = PROGRAMS[name]
    program = weft.compile(given) if isinstance(given, str) else given.program()
    for lanes in (1, 2):
        check(program, EVENTS, lanes, seed=lanes)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cases_of_flinkcep(case: dict[str, Any]) -> None:
    pattern, events = as_case(case)
    check(pattern.program(), events, 1, seed=len(events))
