"""A program that takes another's place, and programs that are saved: what is kept of them, and what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.harness import as_record

import weft
from weft.algebra.meaning import matches
from weft.algebra.stored import program_from_plain, program_to_plain
from weft.api import compile_with_findings
from weft.errors import InputError, UsageError
from weft.plan.changes import changed

PAIR = "SELECT * FROM S WHERE (A AS a ; B AS b) FILTER a[x > {}] WITHIN 100 EVENTS"
PROGRAMS = {
    "pair.ceql": "SELECT * FROM S WHERE (A AS a ; B AS b) FILTER a[x > 0] WITHIN 100 EVENTS",
    "next.eql": "SELECT a.x FROM A a ; B b WHERE FILTER(a.x = b.x), (a, b) OCCURS WITHIN 1 min",
    "spike.step": 'topology "T"\nexternal A(x: int) < "a.jsonl" [1.0]\nexternal B(x: int) < "b.jsonl" [1.0]\n'
    "Spike(*): A/a ;?[dur < 100] B/b",
    "near.tesla": "define Near(x: int)\nfrom B() and last A(x = $x) within 1 min from B\nwhere x = A.x",
    "broker.epn": "pattern Broker sequence(A a, B b) policies evaluation immediate, repeated every, consumption reuse",
}
GOLDEN = Path(__file__).parents[2] / "golden" / "state"


def named(name: str, text: str) -> weft.Program:
    return compile_with_findings(text, stem=name)[0]


def event(type_: str, ts: int, x: int = 1) -> dict[str, object]:
    return {"type": type_, "ts": ts, "x": x}


def test_what_is_the_same_stays_and_what_differs_begins_anew() -> None:
    old = [named("one", PAIR.format(0)), named("two", PAIR.format(1)), named("three", PAIR.format(2))]
    new = [named("two", PAIR.format(1)), named("one", PAIR.format(9)), named("four", PAIR.format(5))]
    change = changed([p.queries[0] for p in old], [p.queries[0] for p in new])
    assert change.stays == ((1, 0),)
    assert dict(change.reasons) == {1: "it has changed", 2: "it is new"}
    assert str(change).splitlines() == [
        "two: keeps its state",
        "one: begins anew, it has changed",
        "four: begins anew, it is new",
        "three: ends",
    ]


def test_a_query_with_another_name_keeps_its_state() -> None:
    running = weft.live(named("one", PAIR.format(0)))
    running.push([event("A", 1)])
    change = running.change(named("two", PAIR.format(0)))
    assert change.renamed == {"one": "two"}
    found = list(running.push([event("B", 2)]))
    assert [(match.query, match.positions) for match in found] == [("two", (0, 1))]
    (expected,) = matches(named("two", PAIR.format(0)), [event("A", 1), event("B", 2)])
    assert found[0].id == expected.id


def test_what_reads_a_changed_query_begins_anew() -> None:
    reader = "SELECT * FROM S WHERE (one AS p ; C AS c) WITHIN 100 EVENTS"
    old = weft.api.merge_programs([named("one", PAIR.format(0)), named("reads", reader)])
    new = weft.api.merge_programs([named("one", PAIR.format(1)), named("reads", reader)])
    change = changed(old.queries, new.queries)
    assert change.stays == ()
    assert dict(change.reasons)[1] == "since it reads 'one', which does not stay"


def test_a_change_that_cannot_be_leaves_all_as_it_was() -> None:
    running = weft.live(named("one", PAIR.format(0)))
    running.push([event("A", 1)])
    with pytest.raises(UsageError, match="different units"):
        running.change(weft.compile("SELECT * FROM S WHERE A WITHIN 5 EVENTS", time_unit="s"))
    assert len(running.push([event("B", 2)])) == 1


def test_the_order_of_matches_is_that_of_the_new_program() -> None:
    running = weft.live([named("one", PAIR.format(0)), named("two", PAIR.format(-1))])
    running.change([named("two", PAIR.format(-1)), named("one", PAIR.format(0))])
    found = running.push([event("A", 1), event("B", 2)])
    assert [match.query for match in found] == ["two", "one"]
    running.remove("two")
    assert running.program.names == ("one",)


def test_a_saved_program_goes_on_with_counts_columns_and_lateness(tmp_path: Path) -> None:
    running = weft.live(named("one", PAIR.format(0)), time="at", type="kind", key="x")
    running.push([{"kind": "A", "at": 5, "x": 1}])
    running.save(tmp_path / "saved")
    running.push([{"kind": "A", "at": 6, "x": 2}])
    running.save(tmp_path / "saved")
    rejects: list[weft.Rejected] = []
    again = weft.LiveProgram.load(tmp_path / "saved", rejects=rejects)
    expected = [as_record(match) for match in running.push([{"kind": "B", "at": 7, "x": 3}])]
    assert [as_record(match) for match in again.push([{"kind": "B", "at": 7, "x": 3}])] == expected != []
    again.push([{"kind": "B", "at": 1, "x": 3}])
    assert (again.events, again.rejected, len(rejects)) == (3, 1, 1)


def test_a_loaded_program_takes_and_loses_queries(tmp_path: Path) -> None:
    running = weft.live([named("one", PAIR.format(0)), named("two", PAIR.format(-1))])
    running.push([event("A", 1)])
    running.save(tmp_path / "saved")
    again = weft.live.load(tmp_path / "saved", [named("one", PAIR.format(0)), named("new", PAIR.format(-5))])
    assert [match.query for match in again.push([event("B", 2)])] == ["one"]
    again.deploy(named("more", PAIR.format(3)))
    assert again.program.names == ("one", "new", "more")


@pytest.mark.parametrize("damage", ["empty", "cut", "no json", "no pages", "foreign"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "saved"
    weft.live(named("one", PAIR.format(0))).save(place)
    if damage == "empty":
        place.write_bytes(b"")
    elif damage == "cut":
        place.write_bytes(place.read_bytes()[:-30])
    else:
        about = {"no json": "[", "no pages": zipfile.ZipFile(place).read("weft.json").decode(), "foreign": "{}"}[damage]
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("weft.json", about)
    with pytest.raises((InputError, UsageError)) as raised:
        weft.LiveProgram.load(place)
    assert len(str(raised.value).splitlines()) == 1


def test_a_file_cannot_make_anything_but_queries(tmp_path: Path) -> None:
    plain = json.loads(json.dumps(program_to_plain(named("one", PAIR.format(0)))))
    assert program_from_plain(plain) == named("one", PAIR.format(0))
    plain["queries"][0]["is"] = "os.system"
    with pytest.raises(UsageError, match="cannot be read by this version"):
        program_from_plain(plain)


EVENTS = [event("AB"[n % 3 == 2], n, n % 2) for n in range(12)]


@pytest.mark.parametrize("place", sorted(GOLDEN.glob("live-?.?.?.saved")), ids=lambda place: place.stem)
def test_state_of_the_first_release_is_restored(place: Path) -> None:
    """Until there is a release, the file is made anew when the layout changes; afterwards files are only added."""
    running = weft.LiveProgram.load(place)
    whole = {made_of(match) for match in matches(running.program, EVENTS)}
    before = {made_of(match) for match in weft.live(running.program).push(EVENTS[: running.events])}
    found = {made_of(match) for match in [*running.push(EVENTS[running.events :]), *running.finish()]}
    assert found == whole - before
    assert found & {made_of(match) for match in matches(running.program, EVENTS) if min(match.positions) < 6}


def made_of(match: Any) -> tuple[object, ...]:
    """A match without its id: versions before identities kept nothing that identifies an event."""
    return match.query, match.start, match.end, match.positions, repr(sorted(match.bindings.items()))


def golden_program() -> list[weft.Program]:
    """What golden files hold; make them anew with `python -m tests.unit.service.test_changes VERSION`."""
    return [
        compile_with_findings(text, Path(name).suffix[1:], stem=Path(name).stem)[0] for name, text in PROGRAMS.items()
    ]


if __name__ == "__main__":
    import sys

    made = weft.live(golden_program())
    made.push(EVENTS[:6])
    made.save(GOLDEN / f"live-{sys.argv[1]}.saved")
