"""Budgets: what is a budget, what happens at the limit, and that it is counted by query."""

from __future__ import annotations

import pytest

import weft
from weft.errors import BudgetError, UsageError
from weft.plan.planner import plan
from weft.runtime.limits.budgets import EVERYTHING, budget_from_text, budgets_of
from weft.runtime.limits.guarding import Guard
from weft.runtime.matcher import Matcher

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
        budgets_of({"q": weft.Budget(seconds_per_batch=5)}, ["q"])
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
    stopping.events(_nothing())
    with pytest.raises(BudgetError, match="longer than the 1 seconds"):
        stopping.done(Matcher(plan(MANY)))
    budget = weft.Budget(seconds_per_batch=1, action="shed")
    shedding = Guard(MANY.queries, {EVERYTHING: (budget,)}, clock=lambda: next(times))
    assert shedding.shedder is not None
    for share in (0.1, 0.2, 0.3):
        shedding.events(_nothing())
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
        ("tesla", "define X() from A()", weft.Budget(state_bytes=9, action="drop-oldest"), "rules keep events"),
        (
            "epn",
            "pattern X all(A a, B b) context fixed 9",
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
            "QUERY X AS SELECT * WHERE A ; B WITHIN 9 EVENTS",
            weft.Budget(seconds_per_batch=9),
            "go through a batch",
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
    with pytest.raises(UsageError, match=why):
        weft.live(weft.compile(text, language), budget={"X": budget})
