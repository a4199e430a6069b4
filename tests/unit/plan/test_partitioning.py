"""Which strategies are sound for which programs; and, for those that are refused, that they would be wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.harness import event, stream

import weft
from weft.algebra.meaning import matches
from weft.errors import UsageError
from weft.plan.partitioning.by_query import ByQuery
from weft.plan.partitioning.by_slice import BySlice
from weft.plan.partitioning.replicated import Leaves, Replicated
from weft.plan.partitioning.splits import Split
from weft.plan.planner import plan
from weft.runtime.execution.threaded_matcher import ThreadedMatcher
from weft.runtime.reading.order import read_events
from weft.runtime.writing.match_rows import to_arrow
from weft.statistics import Statistics

RATES = {"A": 64.0, "B": 64.0, "C": 1.0}
EXTERNALS = " ".join(f'external {type_}(x: real) < "{type_}" [{rate}]' for type_, rate in RATES.items())


def step(pattern: str) -> Any:
    return weft.compile(f'topology "t" {EXTERNALS} Q(*): {pattern}', language="step")


def forced(program: Any, events: list[dict[str, Any]], split: Split, lanes: int = 2) -> list[list[int]]:
    """The positions of matches when a split is used whether or not it is sound."""
    program = replace(program, inputs=(), queries=tuple(split.rewritten(query) for query in program.queries))
    chosen = plan(program)
    (group,) = chosen.lanes
    chosen = replace(chosen, lanes=(replace(group, split=split),))
    crew = ThreadedMatcher(chosen, chosen.lanes_for(lanes))
    found = [match for batch in read_events(events, columns=chosen.columns) for match in crew.push(batch)]
    rows = to_arrow([*found, *crew.finish()], [query.name for query in program.queries]).to_pylist()
    return [row["positions"] for row in rows]


def meant(program: Any, events: list[dict[str, Any]]) -> list[list[int]]:
    return [list(match.positions) for match in matches(replace(program, inputs=()), events)]


def refusal(program: Any, strategy: str) -> str:
    with pytest.raises(UsageError) as error:
        plan(program, strategy=strategy)
    return str(error.value)


SLICES = BySlice("forced", "time", 2, 0, size=4)

# Programs that slices would be wrong for, a stream that shows it, and what the refusal names.
UNSOUND: list[tuple[str, Any, list[dict[str, Any]], str]] = [
    (
        "ceql",
        "SELECT * WHERE A ; B ; C WITHIN 2 MILLISECONDS CONSUME BY ANY",
        [event(*at) for at in (("A", 1), ("B", 2), ("A", 2), ("C", 3), ("B", 3), ("C", 4))],
        "CONSUME BY",
    ),
    ("ceql", "SELECT * WHERE A ; B", stream(*"AxxxxxxB"), "WITHIN"),
    ("eql", "SELECT a.ts FROM A a ; B b", stream(*"AxxxxxxB"), "Sequence has no bound"),
    ("step", "A/a ; B/b", stream(*"AxxxxxxB"), "Sequence has no bound"),
    ("step", "!C/c ; A/a", stream(*"CxxxxxxA"), "Without before"),
    ("step", "A/a +[dur < 9]", stream(*"AAAAAAAA"), "Repeat longest"),
    (
        "tesla",
        "define X() from B() as b and first A() as a within 2 from b consuming a",
        [event("A", 1), event("A", 2), event("B", 3), event("B", 4)],
        "consuming",
    ),
    ("epn", "pattern P sequence(A a, B b)", stream(*"AxxxxxxB"), "no context"),
    ("epn", "pattern P sequence(A a, B b) context from C until D", stream(*"CAxxxxxB"), "from … until"),
]


@pytest.mark.parametrize(("language", "text", "events", "named"), UNSOUND)
def test_slices_are_refused_where_they_would_be_wrong(
    language: str, text: str, events: list[dict[str, Any]], named: str
) -> None:
    program = step(text) if language == "step" else weft.compile(text, language=language)
    assert named in refusal(program, "slice")
    assert forced(program, events, SLICES) != meant(program, events)


@pytest.mark.parametrize(
    ("pattern", "leaf", "events"),
    [
        ("A/a ; B/b", "b", stream(*"ABBABB")),  # the right operand of a greedy next
        ("A/a ; !C/c ; B/b", "c", stream(*"ACBACxB")),  # what is unwanted
        ("A/a +[dur < 9]", "a", stream(*"AAAA")),  # inside a greedy iteration
    ],
)
def test_leaves_that_are_not_pointwise_are_not_shared_out(
    pattern: str, leaf: str, events: list[dict[str, Any]]
) -> None:
    program = step(pattern)
    assert forced(program, events, Replicated("forced", Leaves(frozenset((leaf,))))) != meant(program, events)
    try:
        split = plan(program, strategy="replicate").lanes[0].split
    except UsageError as error:
        assert "Repeat longest" in str(error)  # noqa: PT017 # either is right
    else:
        assert isinstance(split, Replicated)
        assert leaf not in split.leaves.own


@pytest.mark.parametrize(
    ("pattern", "leaves", "shared"),
    [
        ("A/a ; B/b", {"a"}, ("A",)),
        ("A/a ; A/b", {"a"}, ()),  # the other leaf reads copies
        ("A/a ;? (A/b ;? B/c)", {"c"}, ("B",)),
        ("A/a | B/b", {"a", "b"}, ("A", "B")),
        ("(A/a | B/b +[dur < 9]) ; C/c", {"a"}, ("A",)),
    ],
)
def test_the_leaf_that_is_shared_out(pattern: str, leaves: set[str], shared: tuple[str, ...]) -> None:
    split = plan(step(pattern), strategy="replicate").lanes[0].split
    assert isinstance(split, Replicated)
    assert split.leaves.own == leaves
    assert split.shared == shared


@pytest.mark.parametrize(("often", "leaf"), [("A", "a"), ("B", "b"), ("C", "c")])
def test_what_comes_most_often_is_shared_out(often: str, leaf: str) -> None:
    rates = Statistics({"A": 1, "B": 1, "C": 1} | {often: 100})
    split = plan(step("A/a ;? (B/b ;? C/c)"), strategy="replicate", statistics=rates).lanes[0].split
    assert isinstance(split, Replicated)
    assert split.leaves.own == {leaf}


def test_a_union_of_many_branches_has_one_leaf_of_each() -> None:
    pattern = " | ".join(f"(A/a{n} ;? B/b{n})" for n in range(40))  # in two to the power of forty ways
    split = plan(step(pattern), strategy="replicate").lanes[0].split
    assert isinstance(split, Replicated)
    assert len(split.leaves.own) == 40


def test_a_lane_is_not_sent_what_it_does_not_need() -> None:
    program = step("A/a ;? B/b")
    crew = ThreadedMatcher(chosen := plan(program, strategy="replicate"), chosen.lanes_for(4))
    events = [event("AB"[n % 2], n) for n in range(4000)]
    list(crew.push(next(iter(read_events(events, columns=chosen.columns)))))
    seen = [member.counters["events"] for member in crew.members]
    assert sum(seen) == 2000 * 4 + 2000  # one side four times, the other once


@pytest.mark.parametrize(
    ("pattern", "times"),
    [
        ("A/a +?[dur < 9]", 1),
        ("A/a +?[dur < 9] ; B/b", 1),
        ("A/a +?[dur < 9] | B/b +?[dur < 9]", 1),
        ("A/a +?[dur < 9] , B/b +?[dur < 9]", 3),  # either may begin a match
    ],
)
def test_lanes_list_the_runs_that_begin_with_their_events(pattern: str, times: int) -> None:
    chosen = plan(step(pattern), strategy="replicate")
    events = [event("AB"[n % 3 == 0], n) for n in range(60)]

    def runs(lanes: int) -> int:
        crew = ThreadedMatcher(chosen, chosen.lanes_for(lanes))
        list(crew.push(next(iter(read_events(events, columns=chosen.columns)))))
        found = [standing for member in crew.members for standing in member.operator_stats()]
        return sum(standing.emitted for standing in found if "repeat each" in standing.name)

    assert runs(3) == times * runs(1) > 0


def test_families_are_placed_by_what_they_cost() -> None:
    queries = "Q(*): A/a ; B/b R(*): A/a ; B/b S(*): C/c ; C/d T(*): C/c | C/d"
    text = f'topology "t" {EXTERNALS} {queries}'
    placed = plan(weft.compile(text, language="step"), strategy="query").lanes[0].split
    assert isinstance(placed, ByQuery)
    assert sorted(placed.dealt((0, 1, 2, 3), 2)) == [(0, 1), (2, 3)]
    assert len(placed.dealt((0, 1, 2, 3), 9)) <= 4


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_slices_of_whole_partitions(lanes: int) -> None:
    program = weft.compile("pattern P all(A a, B b) context fixed 3", language="epn")
    split = plan(program, strategy="slice").lanes[0].split
    assert isinstance(split, BySlice)
    sized = split.sized(7, 40, lanes)
    assert (split.back, split.ahead) == (0, 0)
    assert sized.size % 3 == sized.origin % 3 == 0


def test_what_is_wrong_with_a_request_is_said() -> None:
    with pytest.raises(UsageError, match="did you mean 'slice'"):
        weft.detect([], "SELECT * WHERE A", strategy="slices")
    with pytest.raises(UsageError, match="at least one lane"):
        weft.detect([], "SELECT * WHERE A", lanes=0)
    with pytest.raises(UsageError, match="engine='local'"):
        weft.detect([], "SELECT * WHERE A", engine="meaning", lanes=2)


def test_a_family_that_is_too_heavy_is_cut() -> None:
    rules = "define X() from B() as b and last A() as a within 9 from b; " + "; ".join(
        f"define Y{type_}() from {type_}() as t and each X() as x within 20 from t" for type_ in "ABC"
    )
    program = weft.compile(rules + ";", language="tesla")
    chosen = plan(program, strategy="query")
    lanes = chosen.lanes_for(3)
    assert sorted(lane.queries for lane in lanes) == [(0, 1), (0, 2), (0, 3)]
    assert [lane.mute for lane in lanes] == [frozenset(), {0}, {0}]
    assert [lane.queries for lane in chosen.lanes_for(1)] == [(0, 1, 2, 3)]
    events = [event("ABC"[n * n % 7 % 3], n) for n in range(60)]
    found = list(weft.detect(events, program, strategy="query", lanes=3))
    assert found == list(weft.detect(events, program, engine="meaning"))
    assert {match.query for match in found} == {"X", "YA", "YB", "YC"}
    counts = weft.count(events, program, strategy="query", lanes=3)
    assert counts == weft.count(events, program, engine="meaning")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE (A AS a ; B AS b)+ FILTER a[x] < b[x] WITHIN 9 MILLISECONDS",
        "SELECT * WHERE A AS a ; (B AS b OR C AS b) FILTER a[x] < b[x] WITHIN 9 MILLISECONDS",
        "SELECT * WHERE A AS a ; A AS b FILTER a[x] < b[x] WITHIN 9 MILLISECONDS",
        "SELECT * WHERE A AS a : B AS b FILTER a[x] < b[x] WITHIN 9 MILLISECONDS",
    ],
)
def test_maximal_matches_are_for_flat_patterns(text: str) -> None:
    program = weft.compile(text)
    assert "not every choice" in refusal(program, "match:mcee")
    assert plan(program, strategy="match:es").lanes[0].split.strategy == "match"


def test_maximal_matches_may_have_a_window_of_events() -> None:
    program = weft.compile("SELECT * FROM S WHERE A AS a ; B+ AS b ; C AS c FILTER a[x] < b[x] WITHIN 6 EVENTS")
    events = [event("AABBBC"[n % 6], n, x=n * 5 % 7) for n in range(60)]
    found = list(weft.detect(events, program, strategy="match:mcee", lanes=3))
    assert found
    assert found == list(weft.detect(events, program, engine="meaning"))


def test_rules_that_differ_in_constants_only_stay_together() -> None:
    rules = "\n".join(
        f"define F{pair}() from A{pair}() as a and last B{pair}(x > {limit}) as b within {9 + limit} from a;"
        for limit in range(10)
        for pair in range(4)
    )
    program = weft.compile(rules, language="tesla")
    chosen = plan(program, strategy="query")
    lanes = chosen.lanes_for(2)
    assert sorted(len(lane.queries) for lane in lanes) == [20, 20]
    assert sorted(sorted(lane.types or ()) for lane in lanes) == [["A0", "A2", "B0", "B2"], ["A1", "A3", "B1", "B3"]]
    # There are fewer searches than lanes here: they are cut.
    many = chosen.lanes_for(8)
    assert sorted(len(lane.queries) for lane in many) == [5] * 8
    assert all(len(lane.types or ()) == 2 for lane in many)
    events = [event("AB"[n % 3 > 0] + str(n % 4), n, x=n % 13) for n in range(200)]
    found = list(weft.detect(events, program, strategy="query", lanes=2))
    assert found == list(weft.detect(events, program, engine="meaning")) != []
