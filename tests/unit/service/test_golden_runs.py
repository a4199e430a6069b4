"""Saved state of the lanes of runs is read again; and what makes a saved query the same."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipeline import PageDict, Stream, matches_in
from tests.unit.service.test_changes import EVENTS, GOLDEN, golden_program

import weft
from weft.algebra.meaning import matches
from weft.optimizer.pipeline import optimize
from weft.plan.changes import changed
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.generations import first_generation, generation_from_plain
from weft.runtime.spark.jobs.job import Job, job_of, successive_job
from weft.stored import canonical_text

SEEN = 6  # events before the state was kept


def golden_job() -> tuple[weft.Program, Job]:
    program = weft.api.merge_programs(golden_program())
    chosen = plan(optimize(program), strategy="auto", lanes=2)
    return program, job_of(chosen, Reading(time_unit=program.time_unit), 2, streaming=True)


def save(place: Path) -> None:
    """Keep the lanes of a run after its first events, as its checkpoint has them."""
    program, job = golden_job()
    stream = Stream(job, delay=0)
    stream.trigger([EVENTS[:SEEN]])
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
        begun = first_generation(program.queries, job.plan, job.lanes)
        file.writestr("generations.json", json.dumps([begun.to_plain()]))
        for lane, pages in stream.pages.items():
            for name, page in pages.items():
                file.writestr(f"{lane}/{name}", page)


@pytest.mark.filterwarnings("ignore::weft.ProgramWarning")
@pytest.mark.parametrize("place", sorted(GOLDEN.glob("run-*.zip")), ids=lambda path: path.stem)
def test_runs_of_the_first_release_go_on(place: Path) -> None:
    """Until there is a release, the file is made anew when the layout changes. The plan is the one that was saved."""
    program, job = golden_job()
    with zipfile.ZipFile(place) as file:
        generations = tuple(map(generation_from_plain, json.loads(file.read("generations.json"))))
        stream = Stream(successive_job(job, optimize(program), generations, None), delay=0)
        for name in file.namelist():
            lane, _, page = name.partition("/")
            if page:
                stream.pages.setdefault(int(lane), PageDict())[page] = file.read(name)
    stream.forget()
    stream.trigger([EVENTS[SEEN:]])
    stream.end()
    told = {told_as(match): match for match in matches_in(stream.table())}
    whole = {told_as(match): match for match in matches(program, EVENTS)}
    found = told.keys()
    assert found <= whole.keys()
    assert all(told[key].id == whole[key].id for key in found)
    assert {key for key, match in whole.items() if max(match.positions) >= SEEN} <= found
    assert any(min(whole[key].positions) < SEEN for key in found)


def told_as(match: Any) -> tuple[object, ...]:
    return (
        match.query,
        tuple(match.positions),
        repr(sorted((n, tuple(own)) for n, own in match.bindings.items() if own)),
    )


SPELLINGS = {
    "ceql": (
        "SELECT * WHERE A AS a ; B AS b FILTER a[x] > 3 WITHIN 5 EVENTS",
        "-- a remark\nSELECT  *\nWHERE A AS a;B AS b\n  FILTER (a[x]>3) WITHIN 5 EVENTS",
        "SELECT * WHERE A AS a ; B AS b FILTER a[x] > 4 WITHIN 5 EVENTS",
    ),
    "eql": (
        "SELECT a.x FROM A a ; B b WHERE FILTER(a.k = b.k), (a, b) OCCURS WITHIN 9 msec",
        "SELECT a.x\nFROM A a  ;  B b\nWHERE FILTER( a.k=b.k ),(a, b) OCCURS WITHIN 9 msec",
        "SELECT a.x FROM A a ; B b WHERE FILTER(a.k = b.k), (a, b) OCCURS WITHIN 8 msec",
    ),
    "tesla": (
        "define X(v: int) from B() and each A(k > 1) within 8 from B where v = A.x",
        "define X(v: int)\nfrom B() and each A(k>1) within 8 from B\nwhere v = A.x",
        "define X(v: int) from B() and each A(k > 2) within 8 from B where v = A.x",
    ),
    "epn": (
        "pattern p sequence(A a, B b) where a.k = b.k context sliding 9 every 3",
        "pattern p\n  sequence(A a, B b)\n  where a.k=b.k\n  context sliding 9 every 3",
        "pattern p sequence(A a, B b) where a.k = b.k context sliding 9 every 2",
    ),
}


@pytest.mark.parametrize("language", SPELLINGS)
def test_a_query_is_known_by_what_it_says(language: str) -> None:
    """Remarks and white space do not matter; a constant does."""
    one, same, other = (weft.compile(text, language) for text in SPELLINGS[language])
    assert changed(one.queries, same.queries).is_none
    assert not changed(one.queries, other.queries).is_none
    prints = [Matcher(plan(optimize(program))).fingerprint for program in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]
    assert canonical_text(one.queries) == canonical_text(same.queries) != canonical_text(other.queries)


def test_a_field_with_its_default_is_no_part_of_what_a_query_says() -> None:
    """So that a version which knows more of queries reads the state of those before it."""
    (query,) = weft.compile(SPELLINGS["ceql"][0]).queries
    assert "skip" not in canonical_text(query)
    assert canonical_text(replace(query, name="other")) != canonical_text(query)


if __name__ == "__main__":
    import sys

    save(GOLDEN / f"run-{sys.argv[1]}.zip")
