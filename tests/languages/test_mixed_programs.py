"""Programs of several languages: every language reads what every other defines, and mistakes are told."""

from __future__ import annotations

import warnings
from itertools import permutations, product
from pathlib import Path

import pytest
from tests.harness import as_record, event, run_program

import weft
from weft.api import ProgramWarning, compile_each, merge_programs
from weft.errors import ProgramError, UsageError

STEP = 'topology "t" external A(v: int) < "a" [1.0] external C(u: int) < "c" [1.0] external B(w: int) < "b" [1.0] '
EQL = "SOURCE A(v: int) SOURCE C(u: int) SOURCE B(w: int) "

# An A with v > 1, then a C: what each language calls the derived event and the field that holds v, and its start.
DEFINING = {
    "ceql": ("QUERY D AS SELECT a[v], C WHERE A AS a ; C FILTER a[v > 1] WITHIN 9 EVENTS", "D", "v", 2),
    "eql": (EQL + "SELECT a.v FROM A a ; C c WHERE FILTER(a.v > 1)", "q", "a.v", 2),
    "step": (STEP + "D(A.v): A[A.v > 1] ; C", "D", "A.v", 2),
    "epn": ("pattern D sequence(A a, C c) where a.v > 1 derive v = a.v", "D", "v", 2),
    "tesla": ("define D(v: int) from C() and each A(v > 1) within 9 from C where v = A.v", "D", "v", 4),
}

# Such an event, then a B: what is reported of both.
READING = {
    "ceql": ("QUERY R AS SELECT d[`{v}`], b[w] WHERE {D} AS d ; B AS b WITHIN 9 EVENTS", "R", {"{v}": 5, "w": 7}),
    "eql": (EQL + "SELECT d.`{v}`, b.w FROM {D} d ; B b", "q", {"d.{v}": 5, "b.w": 7}),
    "step": (STEP + "R(d.`{v}`, b.w): {D}/d ; B/b", "R", {"d.{v}": 5, "b.w": 7}),
    "epn": ("pattern R sequence({D} d, B b) derive v = d.`{v}`, w = b.w", "R", {"v": 5, "w": 7}),
    "tesla": (
        "define R(v: int, w: int) from B(w > 0) as b and each {D}() as d within 9 from b where v = d.`{v}`, w = b.w",
        "R",
        {"v": 5, "w": 7},
    ),
}

# Texts of EQL have no names: two of them need files.
PAIRS = [pair for pair in product(DEFINING, READING) if pair != ("eql", "eql")]

# The B at 4 comes before the derived event, which ends at 4 as well.
EVENTS = [event("A", 1, v=1), event("A", 2, v=5), event("C", 4, u=0), event("B", 4, w=6), event("B", 9, w=7)]


def texts(defining: str, reading: str) -> tuple[str, str]:
    """A program that defines events and one that reads them."""
    text, type_, field, _ = DEFINING[defining]
    return text, READING[reading][0].format(D=type_, v=field)


@pytest.mark.parametrize(("defining", "reading"), PAIRS)
def test_every_language_reads_what_every_language_defines(defining: str, reading: str) -> None:
    _, _, field, start = DEFINING[defining]
    made, wanted = texts(defining, reading)
    if defining == reading == "tesla":
        start = 2  # rules see what an event of rules is made of
    _, query, fields = READING[reading]
    for programs in permutations((made, wanted)):
        found = run_program("meaning", merge_programs(list(programs)), EVENTS)
        assert [record for record in found if record["query"] == query] == [
            {
                "query": query,
                "start": start,
                "end": 9,
                "positions": [1, 2, 4],
                "bindings": {"d": [1, 2], "b": [4]},
                "event": {name.format(v=field): value for name, value in fields.items()},
            }
        ]


def test_files_of_eql_read_each_other(tmp_path: Path) -> None:
    (tmp_path / "Rise.eql").write_text(EQL + "SELECT a.v FROM A a ; C c WHERE FILTER(a.v > 1)", encoding="utf-8")
    (tmp_path / "End.eql").write_text(EQL + "SELECT r.`a.v` FROM Rise r ; B b", encoding="utf-8")
    program = merge_programs([tmp_path / "End.eql", tmp_path / "Rise.eql"])
    [end] = [match for match in run_program("meaning", program, EVENTS) if match["query"] == "End"]
    assert end["event"] == {"r.a.v": 5}


def test_queries_of_one_text_read_each_other() -> None:
    text = "DECLARE EVENT A(v: int) DECLARE STREAM S(A) QUERY Q AS SELECT * FROM S WHERE P WITHIN 1 EVENTS\n"
    text += "QUERY P AS SELECT a[v] FROM S WHERE A AS a WITHIN 1 EVENTS"
    assert [match["query"] for match in run_program("meaning", weft.compile(text), EVENTS[:1])] == ["Q", "P"]


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(("defining", "reading"), PAIRS)
def test_a_field_that_is_not_defined_is_an_error_where_it_is_read(defining: str, reading: str) -> None:
    made, wanted = texts(defining, reading)
    field = DEFINING[defining][2]
    wrong = wanted.replace(f"`{field}`", "`vv`")
    with pytest.raises(ProgramError) as caught:
        merge_programs([wrong, made])
    [finding] = caught.value.diagnostics
    assert finding.code in ("unknown-attribute", "unknown-field")
    assert finding.source.text[finding.span.start : finding.span.end].strip("`") == "vv"
    assert finding.hint


def test_a_type_that_nobody_declares_or_defines_is_an_error() -> None:
    made, _ = texts("tesla", "step")
    with pytest.raises(ProgramError, match="there is no external 'DD'"):
        merge_programs([made, STEP + "R(*): DD ; B"])
    with pytest.raises(ProgramError, match=r"there is no event type 'DD'[\s\S]*did you mean 'D'"):
        merge_programs([made, EQL + "SELECT * FROM DD d ; B b"])


def test_all_errors_of_all_texts_are_told_at_once() -> None:
    with pytest.raises(ProgramError) as caught:
        merge_programs([STEP + "R(*): X ; B", EQL + "SELECT * FROM Y d ; B b"])
    assert len(caught.value.diagnostics) == 2


def test_a_query_that_reads_itself_is_refused() -> None:
    with pytest.raises(ProgramError, match="'A' reads the events that it defines"):
        weft.compile("QUERY A AS SELECT * WHERE A WITHIN 1 EVENTS")


def test_a_cycle_is_refused_with_its_name() -> None:
    cycle = [
        "QUERY P AS SELECT * WHERE R WITHIN 1 EVENTS",
        "define R(x: int) from Q() where x = 1",
        "pattern Q any(P p)",
    ]
    with pytest.raises(UsageError, match="P <- R <- Q <- P"):
        merge_programs(cycle)
    with pytest.raises(ProgramError, match="P <- Q <- P"):
        weft.compile("QUERY P AS SELECT * WHERE Q WITHIN 1 EVENTS QUERY Q AS SELECT * WHERE P WITHIN 1 EVENTS")


def test_rules_may_be_made_of_their_own_type_from_before() -> None:
    chain = "define R(x: int) from A() and last R() within 9 from A where x = R.x + 1\n"
    seed = "define R(x: int) from B() where x = 0"
    query = "QUERY Q AS SELECT r[x] WHERE R AS r FILTER r[x > 1] WITHIN 1 EVENTS"
    events = [event("B", 1), event("A", 2), event("A", 3)]
    found = run_program("meaning", merge_programs([query, chain + seed]), events)
    assert [match["event"] for match in found if match["query"] == "Q"] == [{"x": 2}]


def test_two_queries_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two programs have a query called 'D'"):
        merge_programs([DEFINING["ceql"][0], DEFINING["tesla"][0]])


def test_a_type_that_the_input_has_too_is_doubtful_if_it_is_read() -> None:
    made = "define B(w: int) from C() where w = 1"
    _, findings = compile_each([made, STEP + "R(*): A ; B"])
    assert [(finding.code, finding.severity) for finding in findings] == [("defined-and-declared", "warning")]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProgramWarning)
        merge_programs([made, STEP + "R(*): A ; C"])  # nobody reads it


def test_input_and_derived_events_of_one_type_are_both_seen() -> None:
    program = merge_programs(["define B(w: int) from C() where w = C.u", "pattern R any(B b) derive w = b.w"])
    found = [as_record(match) for match in weft.detect(EVENTS, program, engine="meaning")]
    assert [match["event"] for match in found if match["query"] == "R"] == [{"w": 0}, {"w": 6}, {"w": 7}]


def test_rules_deployed_one_by_one_tell_where_what_they_look_back_at_starts(tmp_path: Path) -> None:
    """A rule in a layer of its own, over what a query defines, sees an instant of another rule with its history."""
    texts = [
        "define Pair() from B() and last A() within 9 from B",
        "QUERY Seen AS SELECT b WHERE B AS b WITHIN 1 EVENT",
        "define Again() from Seen() as s and each Pair() as p within 9 from s",
    ]
    events = [event("A", 1), event("B", 3), event("B", 6)]
    running = weft.live()
    for text in texts:
        running.deploy(text)
    found = [*running.push(events[:2])]
    running.save(tmp_path / "saved")
    running = weft.LiveProgram.load(tmp_path / "saved")
    found += [*running.push(events[2:]), *running.finish()]
    shown = sorted((match.start, match.end, match.positions) for match in found if match.query == "Again")
    assert shown == [(1, 6, (0, 1, 2))]
    meant = weft.detect(events, texts, engine="meaning")
    assert shown == [(match.start, match.end, match.positions) for match in meant if match.query == "Again"]
