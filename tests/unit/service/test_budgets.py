"""Budgets: what is a budget, what happens at the limit, and that it is counted by query."""

from __future__ import annotations

from random import Random

import pytest

import weft
from weft.errors import BudgetError, UsageError
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.limits.budgets import EVERYTHING, budget_from_text, budgets_of
from weft.runtime.limits.guarding import Guard

MANY = weft.compile("SELECT * FROM S WHERE (A+ AS a ; B AS b)")
EVENTS = [*({"type": "A", "ts": at} for at in range(8)), {"type": "B", "ts": 8}]  # 255 matches at one event


def test_a_budget_is_refused_that_cannot_be_kept() -> None:
    for given, why in [
        ({}, "has a limit"),
        ({"state_bytes": 0}, "above 0"),
        ({"matches_per_event": 5, "action": "shed"}, "choose stop or sample"),
        ({"seconds_per_batch": 5, "action": "sample"}, "choose stop or shed"),
        ({"state_bytes": 5, "action": "panic"}, "not 'panic'"),
    ]:
        with pytest.raises(UsageError, match=why):
            weft.Budget(**given)  # type: ignore[arg-type]


def test_budgets_are_for_all_or_by_query() -> None:
    budget = weft.Budget(matches_per_batch=5)
    assert budgets_of(budget, ["q"]) == {EVERYTHING: (budget,)}
    assert budgets_of({"q": budget}, ["q"]) == {"q": (budget,)}
    with pytest.raises(UsageError, match="no such query"):
        budgets_of({"r": budget}, ["q"])
    with pytest.raises(UsageError, match="for all queries together"):
        budgets_of({"q": weft.Budget(seconds_per_batch=5, action="shed")}, ["q"])
    with pytest.raises(UsageError, match=r"is a weft\.Budget"):
        budgets_of({"q": 5}, ["q"])  # type: ignore[dict-item]


def test_a_budget_as_text() -> None:
    assert budget_from_text("state=100MB,then=shed") == ("*", weft.Budget(state_bytes=10**8, action="shed"))
    assert budget_from_text("q:matches-per-event=10,then=sample") == (
        "q",
        weft.Budget(matches_per_event=10, action="sample"),
    )
    assert budget_from_text("seconds=2.5s") == ("*", weft.Budget(seconds_per_batch=2.5))
    for text in ("memory=5", "state=many", "state", "matches=1.5x"):
        with pytest.raises(UsageError, match="--budget"):
            budget_from_text(text)


@pytest.mark.parametrize(
    ("text", "program", "told"),
    [
        ("matches=3", MANY, "then=sample gives some"),
        ("q:matches-per-event=3", MANY, "then=sample gives some"),
        ("state=1", MANY, "so do then=shed and then=drop-oldest"),
        ("q:state=9,then=shed", MANY, "choose then=stop or then=drop-oldest"),
        ("state=9,then=drop-oldest", "SELECT LAST * WHERE A ; B WITHIN 9 EVENTS", "choose then=stop, or then=shed"),
        ("matches=3,then=shed", MANY, "'shed' does not help with matches: choose stop or sample"),
        ("then=sample", MANY, "a budget has a limit: state, matches-per-event, matches, seconds"),
        ("seconds=0.0000001", MANY, r"shed events \(then=shed\)"),
    ],
)
def test_a_budget_as_text_is_spoken_of_as_it_is_written(text: str, program: weft.Program | str, told: str) -> None:
    with pytest.raises((UsageError, BudgetError), match=told) as refused:
        list(weft.detect(EVENTS, program, budget=dict([budget_from_text(text)])))
    assert "action" not in str(refused.value)
    assert "_per_" not in str(refused.value)


@pytest.mark.parametrize("limit", ["matches_per_event", "matches_per_batch"])
def test_it_stops_with_a_message(limit: str) -> None:
    with pytest.raises(BudgetError, match=r"q: .* more than the 10 matches"):
        list(weft.detect(EVENTS, MANY, budget=weft.Budget(**{limit: 10})))  # type: ignore[arg-type]
    assert len(list(weft.detect(EVENTS, MANY, budget=weft.Budget(**{limit: 255})))) == 255  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", ["matches_per_event", "matches_per_batch"])
def test_a_sample_is_counted_and_spread(limit: str) -> None:
    running = weft.live(MANY, budget={"q": weft.Budget(**{limit: 10}, action="sample")})  # type: ignore[arg-type]
    found = list(running.push(EVENTS))
    assert len({match.id for match in found}) == 10
    assert len({match.positions[0] for match in found}) > 2
    assert {match.id for match in found} <= {match.id for match in weft.detect(EVENTS, MANY)}
    assert running.counters["sampled out of q"] == 245


def test_a_limit_for_an_event_is_for_each_event() -> None:
    events = [{"type": type_, "ts": at} for at, type_ in enumerate("AABAAB")]
    running = weft.live(MANY, budget=weft.Budget(matches_per_event=3, action="sample"))
    assert len(running.push(events)) == 6


def test_rules_are_counted_by_query() -> None:
    program = weft.compile(
        "define Y() from B() and each A() within 9 from B; define Z() from B() and each A() within 9 from B"
    )
    running = weft.live(program, budget={"Y": weft.Budget(matches_per_batch=2, action="sample")})
    found = [match.query for match in running.push(EVENTS)]
    assert (found.count("Y"), found.count("Z")) == (2, 8)
    assert running.counters["sampled out of Y"] == 6


def test_state_beyond_the_budget_stops_a_program() -> None:
    with pytest.raises(BudgetError, match="bytes, and its budget is 1,000"):
        list(weft.detect(EVENTS, MANY, budget=weft.Budget(state_bytes=1000)))


def test_a_program_that_went_beyond_its_budget_has_ended() -> None:
    running = weft.live(MANY, budget=weft.Budget(matches_per_event=3))
    with pytest.raises(BudgetError):
        running.push(EVENTS)
    with pytest.raises(UsageError, match="has ended"):
        running.push(EVENTS)


def test_time_beyond_the_budget_stops_or_sheds() -> None:
    times = iter(range(0, 10_000, 3))
    stopping = Guard(MANY.queries, {EVERYTHING: (weft.Budget(seconds_per_batch=1),)}, clock=lambda: next(times))
    stopping.events(_nothing(), Matcher(plan(MANY)))
    with pytest.raises(BudgetError, match="longer than the 1 seconds"):
        stopping.done(Matcher(plan(MANY)))
    budget = weft.Budget(seconds_per_batch=1, action="shed")
    shedding = Guard(MANY.queries, {EVERYTHING: (budget,)}, clock=lambda: next(times))
    assert shedding.shedder is not None
    for share in (0.1, 0.2, 0.3):
        shedding.events(_nothing(), Matcher(plan(MANY)))
        shedding.done(Matcher(plan(MANY)))
        assert shedding.shedder.share == pytest.approx(share)


def _nothing() -> object:
    from tests.driving import event_batches

    from weft.plan.planner import plan

    return next(iter(event_batches([[{"type": "A", "ts": 1}]], plan(MANY))))


def test_other_engines_say_that_they_have_no_budget() -> None:
    with pytest.raises(UsageError, match="engine='local'"):
        weft.detect(EVENTS, MANY, "meaning", budget=weft.Budget(state_bytes=5))


# ---------------------------------------------------------------- bytes of one query

PAIR = (
    "QUERY many AS SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 1 HOUR\n"
    "QUERY few AS SELECT * WHERE C AS c ; B AS b PARTITION BY [k] WITHIN 1 HOUR"
)
STEP = 'topology "t"\n' + "\n".join(f'external {name}(k: int, x: int) < "{name}.jsonl" [1.0]' for name in "ABC")
OPENERS = [{"type": "A", "ts": at, "k": at % 7} for at in range(50_000)]


def test_bytes_of_one_query_are_its_own() -> None:
    running = weft.live(weft.compile(PAIR, "ceql"), budget={"few": weft.Budget(state_bytes=400_000)})
    running.push(OPENERS)  # only the other one keeps them
    with pytest.raises(BudgetError, match=r"many holds .* and its budget is 400,000"):
        weft.live(weft.compile(PAIR, "ceql"), budget={"many": weft.Budget(state_bytes=400_000)}).push(OPENERS)
    dropping = weft.live(
        weft.compile(PAIR, "ceql"), budget={"many": weft.Budget(state_bytes=400_000, action="drop-oldest")}
    )
    for at in range(0, len(OPENERS), 5000):
        dropping.push(OPENERS[at : at + 5000])
    assert dropping.counters["dropped"] > 1000
    assert len(dropping.push([{"type": "B", "ts": 50_000, "k": 1}])) > 0


@pytest.mark.parametrize(
    ("language", "text", "budget", "why"),
    [
        ("tesla", "define X() from A()\ndefine Y() from B()", weft.Budget(state_bytes=9), "rules of a program share"),
        ("tesla", "define X() from A()\ndefine Y() from B()", weft.Budget(seconds_per_batch=9), "the seconds of 'X'"),
        *(
            (
                "tesla",
                f"define X() from B() and {rule}",
                weft.Budget(state_bytes=9, action="drop-oldest"),
                "looks back at",
            )
            for rule in (
                "first A() within 9 from B",
                "each A() within 9 from B consuming A",
                "each A() within 9 from B and not A() within 5 from B",
            )
        ),
        (
            "eql",
            "SELECT * FROM (A a @ 9 msec) \\ B b",
            weft.Budget(state_bytes=9, action="drop-oldest"),
            "absences",
        ),
        (
            "step",
            f"{STEP}\nX(*): (A +[prev(A.x) = A.x])",
            weft.Budget(state_bytes=9, action="drop-oldest"),
            "absences and choices",
        ),
        (
            "epn",
            "pattern X all(A a, B b) context fixed 9 policies repeated last",
            weft.Budget(state_bytes=9, action="drop-oldest"),
            "policies",
        ),
        (
            "ceql",
            "QUERY X AS SELECT LAST * WHERE A ; B WITHIN 9 EVENTS",
            weft.Budget(state_bytes=9, action="drop-oldest"),
            "invent",
        ),
        (
            "ceql",
            "QUERY X AS SELECT a[x] WHERE A AS a ; B WITHIN 9 EVENTS\nQUERY Y AS SELECT LAST * WHERE X ; B",
            weft.Budget(state_bytes=9, action="drop-oldest"),
            "looks at what it finds",
        ),
        (
            "ceql",
            "QUERY X AS SELECT * WHERE A ; B WITHIN 9 EVENTS",
            weft.Budget(state_bytes=9, action="shed"),
            "see the same",
        ),
    ],
)
def test_what_cannot_be_done_for_one_query_is_refused_with_the_reason(
    language: str, text: str, budget: weft.Budget, why: str
) -> None:
    program = weft.compile(text, language)
    with pytest.raises(UsageError, match=why):
        weft.live(program, budget={program.names[0]: budget})


# ---------------------------------------------------------------- what waits, in all languages

DROPPING = {
    "contiguous": ("ceql", "QUERY X AS SELECT * WHERE A AS a ; B AS b : C AS c PARTITION BY [k] WITHIN 1 HOUR"),
    "strict": ("ceql", "QUERY X AS SELECT STRICT * WHERE A+ AS a ; B AS b WITHIN 1 HOUR"),
    "chain": ("eql", "SELECT a.x FROM A a ; B b WHERE FILTER(a.u = b.u) AND (a, b) OCCURS WITHIN 1 hour"),
    "chain without": ("eql", "SELECT a.x FROM (A a ; C c) \\ B b WHERE FILTER(a.u = c.u) AND b.u = a.u"),
    "joined": (
        "eql",
        "SELECT a.x FROM A a ; B b WHERE FILTER(a.u = b.u AND a.x < b.x) AND (a, b) OCCURS WITHIN 1 hour",
    ),
    "each": ("step", f"{STEP}\nX(*): A ;?[A.k = B.k && B.x < 60] B"),
    "both": ("step", f"{STEP}\nX(*): A ,[A.k = B.k] B"),
    "runs": ("step", f"{STEP}\nX(*): (A +?[prev(A.k) = A.k && A.x < 40]) ;[dur < 30] C"),
    "looked back at": (
        "tesla",
        "define X(v: int) from B(x < 60) and each A(k = B.k) within 1 hours from B where v = A.x",
    ),
    "the last": ("tesla", "define X(v: int) from B() and last A(x > B.x) within 1 hours from B where v = A.x"),
    "by key": (
        "epn",
        "pattern X sequence(A a, B b) where a.k = b.k and b.x < 60 policies repeated every, consumption reuse",
    ),
    "searched": (
        "epn",
        "pattern X sequence(A a, B b) where a.x + b.x = 100 policies repeated every, consumption reuse",
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", DROPPING)
def test_the_oldest_is_dropped_and_what_is_left_is_right(name: str) -> None:
    """All that is found is meant, what is made of the latest events is found, and what was dropped is counted."""
    language, text = DROPPING[name]
    chance = Random(1)
    events = [
        {
            "type": chance.choice("AAAAABC"),
            "ts": at // 2,
            "k": chance.randrange(7),
            "u": chance.randrange(500),
            "x": chance.randrange(200),
        }
        for at in range(6000)
    ]
    program = weft.compile(text, language)
    (query,) = program.names
    meant = {match.id: match for match in weft.detect(events, program)}
    for given in (
        {query: weft.Budget(state_bytes=20_000, action="drop-oldest")},
        weft.Budget(20_000, action="drop-oldest"),
    ):
        running = weft.live(program, budget=given)
        found = [match for at in range(0, 6000, 100) for match in running.push(events[at : at + 100])]
        found += running.finish()
        told = {match.id for match in found}
        assert len(told) == len(found)
        assert told <= meant.keys()
        late = {id_ for id_, match in meant.items() if min(match.positions) >= 5600}
        assert late
        assert late <= told
        assert running.counters["dropped"] == running.counters[f"dropped of {query}"] > 100


def test_seconds_of_one_query_are_its_own() -> None:
    """The clock runs for each query alone: the one that takes long is named, whoever else is there."""
    text = "QUERY few AS SELECT * WHERE C AS c ; B AS b WITHIN 9 EVENTS\nQUERY many AS SELECT * WHERE A+ AS a ; B AS b"
    events = [*({"type": "A", "ts": at} for at in range(16)), {"type": "B", "ts": 16}]
    with pytest.raises(BudgetError, match="many takes longer for a batch than the 1e-06 seconds"):
        list(weft.detect(events, weft.compile(text, "ceql"), budget={"many": weft.Budget(seconds_per_batch=1e-6)}))
    kept = {"few": weft.Budget(seconds_per_batch=1000), "many": weft.Budget(seconds_per_batch=1000)}
    assert len(list(weft.detect(events, weft.compile(text, "ceql"), budget=kept))) == 2**16 - 1


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("eql", "SELECT a.x FROM A a ; B b"),
        ("step", f"{STEP}\nX(*): A ;? B"),
        ("tesla", "define X() from B() and each A() within 9 from B"),
        ("epn", "pattern X sequence(A a, B b)"),
        ("epn", "pattern X all(A a, B b) where a.x < b.x context fixed 9"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_seconds_of_a_query_that_is_alone_are_counted_in_all_languages(language: str, text: str) -> None:
    program = weft.compile(text, language)
    events = [{"type": "AB"[at % 2], "ts": at, "x": at, "k": 1} for at in range(10)]
    (query,) = program.names
    with pytest.raises(BudgetError, match=f"{query} takes longer for a batch"):
        list(weft.detect(events, program, budget={query: weft.Budget(seconds_per_batch=1e-9)}))
