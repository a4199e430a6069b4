"""By which attributes a query may be split, and by which it may not: cases where a key would change the answer."""

from __future__ import annotations

import pytest
from tests.harness import event, run_program

from weft.languages import compile_text
from weft.plan.planner import plan

STEP = 'topology "t" external A(k: int) < "a" [1.0] external B(k: int) < "b" [1.0] '


def keys(text: str, language: str) -> list[tuple[tuple[str, ...], ...]]:
    return [lanes.key for lanes in plan(compile_text(text, language=language)[0]).lanes]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("eql", "SELECT * FROM A a \\ B b WHERE FILTER(a.k = b.k)"),
        ("eql", "SELECT * FROM (A a | (C c ; D d)) WHERE FILTER(c.k = d.k)"),
        ("eql", "SELECT * FROM A a+ WHERE FILTER(a.k = PREV(a.k))"),
        ("tesla", "define Q(n: int) from A() and not B(k = A.k) within 5 from A where n = 1"),
    ],
)
def test_an_event_that_may_be_alone_needs_no_key(language: str, text: str) -> None:
    """Without the attribute it belongs to no lane by key, and matches all the same."""
    assert keys(text, language) == [()]
    program = compile_text(text, language=language)[0]
    for engine in ("meaning", "local"):
        assert [found["positions"] for found in run_program(engine, program, [event("A", 1)])] == [[0]]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("eql", "SELECT * FROM (A a ; B b) \\ C c WHERE FILTER(a.k = b.k), FILTER(a.k = c.k)"),
        ("step", STEP + "Q(*): A/a ;[a.k = b.k] B/b"),
        ("step", STEP + "Q(*): (A/a +?[prev(a.k) = a.k && len < 3]) ;[a.k = b.k] B/b"),
        ("eql", "SELECT * FROM A a+ ; B b WHERE FILTER(PREV(a.k) = a.k), FILTER(a.k = b.k)"),
        ("epn", "pattern Q all(A a, B b) where a.k = b.k"),
        ("tesla", "define Q(n: int) from A() and each B(k = A.k) within 5 from A where n = 1"),
        ("ceql", "SELECT * FROM S WHERE A AS a; B+ AS b; C AS c FILTER a[k] = b[k] AND b[k] = c[k]"),
        ("ceql", "SELECT MAX a FROM S WHERE A AS a; (B OR C) AS b FILTER a[k] = b[k] WITHIN 5 EVENTS"),
        ("ceql", "SELECT * FROM S WHERE (A AS a; B AS b) AS x; C AS c FILTER x[k] = c[k] AND a[j > 1]"),
    ],
)
def test_two_events_tied_by_an_equality_are_split_by_it(language: str, text: str) -> None:
    assert keys(text, language) == [(("k",),)]


@pytest.mark.parametrize(
    "text",
    [
        "WHERE A AS a; B AS b; C AS c FILTER a[k] = b[k]",  # nothing ties c
        "WHERE A AS a; B AS b FILTER a[k] = b[j]",
        "WHERE A AS a; B AS b FILTER a[k] = b[k] OR a[j] = b[j]",
        "WHERE A AS a; (B AS b OR C) FILTER a[k] = b[k]",  # vacuous where b is bound to nothing
        "WHERE A AS a : B AS b FILTER a[k] = b[k]",  # events of other keys stand between them
        "WHERE A AS a; NOT(C) : B AS b FILTER a[k] = b[k]",
        "WHERE A AS a; B AS b FILTER a[k] = b[k] WITHIN 5 [x]",
        "WHERE A AS a; B AS b FILTER a[k] = b[k] CONSUME BY ANY",
        "WHERE A+ AS a",
    ],
)
def test_a_regular_query_whose_match_depends_on_other_keys_is_not_split(text: str) -> None:
    assert keys(f"SELECT * FROM S {text}", "ceql") == [()]


def test_strict_counts_events_of_all_keys() -> None:
    assert keys("SELECT STRICT * FROM S WHERE A AS a; B AS b FILTER a[k] = b[k]", "ceql") == [()]


def test_rules_that_feed_each_other_are_split_by_a_key_that_goes_through_them() -> None:
    text = """define Q(k: int, j: int) from A() and each B(k = A.k and j = A.j) within 5 from A where k = A.k, j = A.j
    define R(k: int) from C() and last Q(k = C.k {more}) within 5 from C where k = C.k"""
    assert keys(text.format(more="and j = C.j"), "tesla") == [(("j",),)]
    assert keys(text.format(more=""), "tesla") == [(("k",),)]
    assert keys(text.format(more="").replace("where k = A.k,", "where k = A.j,"), "tesla") == [()]


@pytest.mark.parametrize("slot", ["a", "b"])
def test_the_newest_event_is_the_newest_of_all_keys(slot: str) -> None:
    text = f"pattern Q all(A a, B b) where a.k = b.k policies repeated every; {slot}: repeated override"
    assert keys(text, "epn") == [()]
    # Only the newest of its type counts, and it has another key.
    other = "B" if slot == "b" else "A"
    events = [event(other, 1, k=1), event(other, 2, k=2), event("A" if slot == "b" else "B", 3, k=1)]
    program = compile_text(text, language="epn")[0]
    assert run_program("meaning", program, events) == run_program("local", program, events) == []


@pytest.mark.parametrize("where", ["dur = 5", "5 = dur"])
@pytest.mark.parametrize("follow", [";", ";?"])
def test_an_exact_length_is_more_than_a_limit(where: str, follow: str) -> None:
    program = compile_text(STEP + f"Q(*): A/a {follow}[{where}] B/b", language="step")[0]
    events = [event("A", 0, k=1), event("B", 3, k=1), event("B", 5, k=1), event("B", 6, k=1)]
    for engine in ("meaning", "local"):
        assert [found["positions"] for found in run_program(engine, program, events)] == [[0, 2]]


def test_queries_beside_one_that_looks_at_all_partitions_are_one_lane() -> None:
    """The greatest values of all keys were those of each lane."""
    top = "QUERY best AS SELECT t[k] WHERE T AS t PARTITION BY [k] ORDER BY t[x] DESC LIMIT 1 EVERY 10 MILLISECONDS\n"
    read = "QUERY pairs AS SELECT a[k] WHERE best AS a ; B AS b PARTITION BY [k] WITHIN 30 MILLISECONDS"
    assert keys(top, "ceql") == keys(top + read, "ceql") == [()]
