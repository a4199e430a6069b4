"""Streams on Spark that change the form of their queries between triggers lose no match and repeat none, whenever lanes
are restarted; the pieces are put together in this process."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.forms.test_adapting import PROGRAMS, max_variable, soon, streams
from tests.spark.pipeline import Stream, cut, matches_in
from tests.strategies_chains import RATES, chain_texts

import weft
from weft.algebra.query import Program
from weft.api import detect
from weft.engines import continuous
from weft.errors import ProgramError, UsageError
from weft.languages import compile_text
from weft.optimizer.pipeline import Choices
from weft.plan.forms import replanning
from weft.plan.planner import plan
from weft.running.logs import log_trigger
from weft.runtime.execution import adapting
from weft.runtime.reading.order import Reading
from weft.runtime.spark.jobs.job import Job, job_of
from weft.runtime.store.pages import FOREIGN
from weft.runtime.watching.triggers import Trigger

pytestmark = [pytest.mark.filterwarnings("ignore::weft.DataWarning")]
TOGETHER = "what was seen is counted over all tests"
SEEN: Counter[str] = Counter()
SOON = {"FIRST_LOOK": 1, "ENOUGH": 1}
Events = list[dict[str, object]]


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Say how often forms changed, and refuse a run in which none did."""
    yield
    print(f"\nchanges: {dict(SEEN)}")
    assert not SEEN["streams"] or (SEEN["changed"] and SEEN["with matches"]), dict(SEEN)


def job_for(program: Program, choices: Choices, strategy: str | None, lanes: int, *, adapts: bool = True) -> Job:
    chosen = plan(choices.applied(program), strategy=strategy, lanes=lanes, statistics=choices.statistics)
    return job_of(
        chosen,
        Reading(time_unit=program.time_unit),
        lanes,
        streaming=True,
        adapts=(program, choices) if adapts else None,
    )


def changes_in(stream: Stream) -> int:
    """How often the form changed, as the lanes keep it."""
    forms = [json.loads(pages["head"])["form"] for pages in stream.pages.values() if "head" in pages]
    return sum(json.loads(form)["adapting"]["changes"] for form in forms if form is not None)


def run(job: Job, triggers: list[Events], forget: list[bool]) -> Stream:
    stream = Stream(job, delay=0)
    for number, (part, restarts) in enumerate(zip(triggers, forget, strict=True)):
        stream.trigger([part])
        if restarts or number == len(triggers) // 2:
            stream.forget()
    stream.end()
    return stream


# What has other operands than single events is no operator of its own, so that its brackets matter.
BRACKETS = st.tuples(
    st.sampled_from(["({0} v0 ; ({1} v1 | {3} w1)) ; {2} v2", "{0} v0 ; (({1} v1 | {3} w1) ; {2} v2)"]),
    st.permutations("ABCD"),
).map(lambda drawn: f"SELECT * FROM {drawn[0].format(*drawn[1])}")


@some(20)
@given(
    st.one_of(BRACKETS, BRACKETS, chain_texts(3, 3)),
    RATES,
    streams(),
    st.sampled_from([None, None, "slice", "one"]),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_changes_lose_and_repeat_nothing(
    text: str, rates: dict[str, float], events: Events, strategy: str | None, lanes: int, rng: random.Random
) -> None:
    bounded = f"{text}{', ' if 'WHERE' in text else ' WHERE '}(v0, v{max_variable(text)}) OCCURS WITHIN 20"
    try:
        program = replace(compile_text(bounded, language="eql")[0], inputs=())
        job = job_for(program, Choices(True, weft.Statistics(rates)), strategy, lanes)
    except (ProgramError, UsageError):  # a strategy that is none for this query
        return
    meant = Counter(match.id for match in detect(events, program, engine="meaning", rejects=[]))
    triggers = cut(events, (rng.randint(0, len(events)) for _ in range(6)))
    with patch.multiple(adapting, **SOON), patch.object(replanning, "GAIN", 1.0001):
        stream = run(job, triggers, [rng.random() < 0.5 for _ in triggers])
    SEEN["streams"] += 1
    SEEN["changed"] += bool(changes_in(stream))
    SEEN["with matches"] += bool(changes_in(stream) and meant)
    assert Counter(match.id for match in matches_in(stream.table())) == meant


@pytest.mark.parametrize("language", PROGRAMS)
def test_changes_of_all_languages_lose_and_repeat_nothing(language: str) -> None:
    """Lanes by key or one, each of which changes by itself, at the beginning of a trigger."""

    @some(50 if language == "eql" else 25)  # its brackets that run suit most rates
    @given(
        PROGRAMS[language][0],
        PROGRAMS[language][1],
        st.none() | RATES,
        st.integers(1, 3),
        st.randoms(use_true_random=False),
    )
    def each(program: Program, events: Events, rates: dict[str, float] | None, lanes: int, rng: random.Random) -> None:
        choices = Choices(True, None if rates is None else weft.Statistics(rates))
        meant = Counter(match.id for match in detect(events, program, engine="meaning", rejects=[]))
        triggers = cut(events, (rng.randint(0, len(events)) for _ in range(6)))
        with soon():
            stream = run(job_for(program, choices, None, lanes), triggers, [rng.random() < 0.5 for _ in triggers])
        SEEN.update({"streams": 1, language: bool(changes_in(stream)), "changed": bool(changes_in(stream))})
        SEEN["with matches"] += bool(changes_in(stream) and meant)
        assert Counter(match.id for match in matches_in(stream.table())) == meant

    each()
    assert SEEN[language], SEEN


QUERY = "SELECT * FROM A a ; (B b ; C c) WHERE (a, c) OCCURS WITHIN 40"
EVENTS: Events = [{"type": "AAAABC"[n % 6], "ts": n} for n in range(240)]
KNOWN = Choices(True, weft.Statistics({"A": 1, "B": 100, "C": 1}))


def test_a_changed_stream_goes_on_in_its_form_and_forgets_the_old_one() -> None:
    program = weft.compile(QUERY, "eql")
    meant = sorted(match.id for match in detect(EVENTS, program, engine="meaning"))
    job = job_for(program, KNOWN, None, 1)
    stream = Stream(job, delay=0)
    pages: set[str] = set()
    with patch.multiple(adapting, **SOON), patch.object(replanning, "GAIN", 1.0001):
        for part in cut(EVENTS, range(30, 240, 30)):
            stream.trigger([part])
            stream.forget()
            pages |= stream.pages[job.lanes[0].id].keys()
    assert changes_in(stream)
    # It goes on without `adapt` in the form that it had.
    stream.job = job_for(program, KNOWN, None, 1, adapts=False)
    stream.trigger([[]])
    stream.forget()
    stream.end()
    assert sorted(match.id for match in matches_in(stream.table())) == meant
    layers = {name.split("/")[2] for name in pages if name.startswith("matcher/layer/")}
    left = {name.split("/")[2] for name in stream.pages[job.lanes[0].id] if name.startswith("matcher/layer/")}
    assert len(left) == 1 < len(layers) or len(layers) == 1, (left, layers)


def test_a_changed_stream_of_another_program_is_refused() -> None:
    stream = Stream(job_for(weft.compile(QUERY, "eql"), KNOWN, None, 1), delay=0)
    with patch.multiple(adapting, **SOON), patch.object(replanning, "GAIN", 1.0001):
        for part in cut(EVENTS[:120], range(30, 120, 30)):
            stream.trigger([part])
    stream.forget()
    stream.job = job_for(weft.compile(QUERY.replace("40", "41"), "eql"), KNOWN, None, 1)
    with pytest.raises(UsageError) as error:
        stream.trigger([EVENTS[120:]])
    assert str(error.value) == FOREIGN or "another program" in str(error.value)


def test_what_cannot_change_its_form_is_refused(tmp_path: Path) -> None:
    program = weft.compile(QUERY, "eql")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "e.jsonl").write_text('{"type": "A", "ts": 1}\n')
    with pytest.raises(UsageError, match="`adapt` is for streams"):
        weft.match(tmp_path / "in" / "e.jsonl", program, adapt=True)
    where = {"sink": str(tmp_path / "out"), "checkpoint": str(tmp_path / "state")}
    with pytest.raises(UsageError, match="as it was written"):
        continuous(program, [("x", str(tmp_path / "in"))], choices=Choices(optimize=False), adapt=True, **where)


# ---------------------------------------------------------------- a real session

BOUND = 20  # ticks of a match
# By these numbers (B | D) ; C is joined first; the stream below has B and D as often as A, and C hardly ever.
DECLARED = Choices(True, weft.Statistics({"A": 700, "B": 5, "D": 5, "C": 100}))
JOINED = f"SELECT * FROM A a ; (B b | D d) ; C c WHERE (a, c) OCCURS WITHIN {BOUND}"
FILES, IN_FILE = 4, 90_000  # rates are measured in the third
Told = tuple[int, int, tuple[int, ...]]


def many_events() -> Events:
    dice = random.Random(4)
    return [
        {"type": dice.choice("AAABBBDDD") if n % 60 else "C", "ts": n, "k": dice.randrange(3), "x": dice.randrange(7)}
        for n in range(FILES * IN_FILE)
    ]


def meant_around(program: Program, events: Events, place: int, size: int = 90) -> set[Told]:
    """What is meant and ends close to a place: a match depends on nothing that is longer ago than its bound."""
    first = max(0, place - size - BOUND - 1)
    found = detect(events[first : place + size], program, engine="meaning", rejects=[])
    # Times are positions.
    return {told(match, first) for match in found if place - size <= match.end}


def told(match: weft.Match, first: int = 0) -> Told:
    return match.start, match.end, tuple(first + position for position in match.positions)


def test_what_lanes_have_seen_is_kept_between_triggers() -> None:
    """Each trigger is too short to measure rates in it, and may be in a process of its own."""
    program = weft.compile(JOINED.replace(" WHERE", " WHERE a.k = c.k,"), "eql")
    events = many_events()[:600]
    meant = sorted(match.id for match in detect(events, program, engine="meaning"))
    stream = Stream(job_for(program, DECLARED, None, 1), delay=0)
    with patch.multiple(adapting, FIRST_LOOK=90, ENOUGH=60):
        for part in cut(events, range(25, 600, 25)):
            stream.trigger([part])
            stream.forget()
    stream.end()
    assert changes_in(stream)
    assert sorted(match.id for match in matches_in(stream.table())) == meant
    assert meant


# Nothing is declared, so look-backs are taken as written; B with a large x is rare, and most D need no look at A.
RULE = f"""define X(v: int)
from D() as d and each A(k = d.k) as a within {BOUND} from d and last B(x > 5) as b within {BOUND} from d
where v = b.x"""


@pytest.mark.spark
@pytest.mark.parametrize(("language", "text", "choices"), [("eql", JOINED, DECLARED), ("tesla", RULE, Choices())])
def test_a_stream_on_spark_changes_its_form(
    language: str, text: str, choices: Choices, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was declared is wrong, so the comparison that the form rests on does not hold: it is changed and told of."""
    program, events = weft.compile(text, language), many_events()
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        lines = (json.dumps(event) + "\n" for event in events[number * IN_FILE : (number + 1) * IN_FILE])
        path = tmp_path / "in" / f"{number}.jsonl"
        path.write_text("".join(lines))
        os.utime(path, (1000 + number, 1000 + number))
    triggers: list[Trigger] = []
    run = continuous(
        program,
        [("in", str(tmp_path / "in"))],
        choices=choices,
        adapt=True,
        sink=str(tmp_path / "out"),
        checkpoint=str(tmp_path / "state"),
        until="complete",
        lanes=1,
        files_per_trigger=1,
        positions=True,
    )
    run.watch(triggers.append)
    run.watch(log_trigger)
    with caplog.at_level("INFO", logger="weft.run"):
        run.start()
        run.wait()
    assert triggers[0].changes == 0 < triggers[-1].changes
    assert "changes of form" in caplog.text
    types = Counter[str]()
    for lane in (lane for trigger in triggers for lane in trigger.lanes if lane.counted is not None):
        types.update(lane.counted["types"])
    assert types == Counter(str(event["type"]) for event in events if event["type"] in program.queries[0].reads)
    rows = [json.loads(line) for path in (tmp_path / "out").glob("*.jsonl") for line in path.read_text().splitlines()]
    found = sorted((row["start"], row["end"], tuple(row["positions"])) for row in rows)
    assert found == sorted(map(told, detect(events, program, engine="local", optimize=False, rejects=[])))
    for place in range(0, len(events), IN_FILE // 10):  # forms change at the beginning of a file, for some time
        meant = meant_around(program, events, place)
        assert meant == {row for row in found if place - 90 <= row[1] < place + 90}
        assert meant
