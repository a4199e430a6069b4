"""Queries of all languages that change their form while they run, as measured statistics ask for it, find what is
meant: each match once, in order, with its id; whatever the batches, and saved and loaded in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driving import event_batches
from tests.harness import some
from tests.property.engines.test_prefixes import alike as patterns_alike
from tests.property.forms.test_rewriting import look_backs
from tests.strategies import conditions
from tests.strategies_blocks import block_patterns
from tests.strategies_chains import RATES, TYPES, chain_texts
from tests.strategies_tesla import rule_sets, texts

import weft
from weft.algebra.patterns import Bind, Correlate, Event, Pattern, Sequence
from weft.algebra.predicates import Attribute, Comparison
from weft.algebra.query import Program, Query, Window
from weft.api import detect
from weft.engines import start
from weft.errors import UsageError
from weft.languages import compile_text
from weft.live_programs.starting import live
from weft.optimizer import prefixes, splits
from weft.optimizer.pipeline import Choices
from weft.plan.forms import replanning
from weft.plan.operators import Plan
from weft.plan.partitioning.choice import AUTO
from weft.plan.planner import plan
from weft.runtime import local
from weft.runtime.data.events import EventBatch, Rejected
from weft.runtime.execution import adapting
from weft.runtime.execution import threaded_matcher as crew
from weft.runtime.execution.changing import ALLOWED
from weft.runtime.lanes.sharing import Sharing
from weft.runtime.local import LocalRun
from weft.runtime.options import Options
from weft.runtime.reading.order import Reading
from weft.runtime.writing.match_rows import rows_to_matches

pytestmark = [pytest.mark.filterwarnings("ignore::weft.DataWarning")]
TOGETHER = "what was seen is counted over all tests"
SEEN: Counter[str] = Counter()
STRATEGIES = ("key", "slice", "slice", "query", "one", AUTO, "replicate")
LITTLE, NONE = 1.0001, 0.0  # how many times as much a form must cost to be changed; NONE: whatever it costs
FEW_LOOKS = 40_000.0  # of a core, so that rates of the streams here decide about splits
Events = list[dict[str, object]]


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """Say how often forms changed in each language, and refuse a run in which those of one never did."""
    yield
    print(f"\nchanges: {dict(sorted(SEEN.items()))}")
    for language in {name.split(": ")[0] for name in SEEN}:
        assert SEEN[f"{language}: changed"], dict(SEEN)
        assert SEEN[f"{language}: changed with matches"], dict(SEEN)


# ---------------------------------------------------------------- streams


@st.composite
def streams(draw: st.DrawFn) -> Events:
    """A stream whose rates change in the middle: first some types are frequent, then others."""
    often = draw(st.permutations(TYPES))
    events: Events = []
    end = 0
    for kinds in (often[:2] * 3 + often[2:], often[2:] * 3 + often[:2]):
        for _ in range(draw(st.integers(24, 40))):
            end += draw(st.integers(0, 1))
            values = {"k": draw(st.sampled_from([0, 0, 1])), "x": draw(st.integers(0, 2))}
            events.append({"type": draw(st.sampled_from(kinds)), "ts": end, **values})
    return events


def changing(types: str, sizes: tuple[int, int] = (24, 40), lengths: tuple[int, ...] = (0,)) -> st.SearchStrategy:
    """The same of other types, with ties, intervals of these lengths, more attributes and missing values."""
    return st.integers(0, 1 << 30).map(lambda seed: _stream(Random(seed), types, sizes, lengths))


def _stream(dice: Random, types: str, sizes: tuple[int, int], lengths: tuple[int, ...]) -> Events:
    often, events, end = dice.sample(types, len(types)), list[dict[str, object]](), 0
    half = len(often) // 2
    for kinds in (often[:half] * 4 + often[half:], often[half:] * 4 + often[:half]):
        usual = dice.choice([0, 1])  # the values change, too: so conditions hold more or less often
        for _ in range(dice.randint(*sizes) // 2):
            end += dice.choice([0, 1, 1, 2])
            start = end - dice.choice(lengths)
            event: dict[str, object] = {"type": dice.choice(kinds), "start": start, "end": end}
            values = {
                **{name: dice.choice([usual, usual, 0, 1, 2, None]) for name in ("k", "x", "v")},
                **{"y": dice.choice([0, 1]), "j": dice.choice([0, 0, 1]), "s": dice.choice("pq"), "w": 1.5},
            }
            events.append(event | {name: value for name, value in values.items() if value is not None})
    return sorted(events, key=lambda one: (one["end"], one["start"]))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- programs of all languages


def bounded(text: str) -> str:
    return f"{text}{', ' if 'WHERE' in text else ' WHERE '}(v0, v{max_variable(text)}) OCCURS WITHIN 20"


def max_variable(text: str) -> int:
    return max(number for number in range(6) if f"v{number}" in text)


# What has other operands than single events is no operator of its own, so that its brackets matter.
NEXT = st.tuples(
    st.sampled_from(
        [
            "({0} v0 ; ({1} v1 | {3} w1)) ; {2} v2",
            "{0} v0 ; (({1} v1 | {3} w1) ; {2} v2)",
            "({0} v0 | ({1} w0 | ({2} x0 | {3} y0))) ; {1} v1",
        ]
    ),
    st.permutations("ABCD"),
).map(lambda drawn: f"SELECT * FROM {drawn[0].format(*drawn[1])}")
EXTERNALS = "".join(f'external {type_}(k: int, x: int) < "{type_}.jsonl" [1.0]\n' for type_ in "ABCD")
# Brackets of `;?`, the order of `|` inside, and of `,`.
JOINS = st.tuples(
    st.sampled_from(
        [
            "{0}/a ;?[dur < 12] ({1}/b ;? {2}/c)",
            "{0}/a ;?[dur < 14 && a.k = b.k] ({1}/b ;?[b.x <= c.x] {2}/c)",
            "({0}/a ;? ({1}/b | {2}/c)) ;?[dur < 12] {3}/d",
            "({0}/a | ({1}/b | ({2}/c | {3}/d))) ;?[dur < 9] {1}/e",
            "({0}/a , {1}/b) ;?[dur < 12] ({2}/c ;? {3}/d)",
        ]
    ),
    st.permutations("ABCD"),
).map(lambda drawn: f'topology "T"\n{EXTERNALS}Q(*): {drawn[0].format(*drawn[1])}')


@st.composite
def regular(draw: st.DrawFn) -> Program:
    """A sequence of three events with several conditions."""
    leaves = [Bind(Event(type_), name) for type_, name in zip(draw(st.permutations("ABCD")), "uvw", strict=False)]
    pattern: Pattern = Sequence(Sequence(leaves[0], leaves[1], False), leaves[2], False)
    for _ in range(draw(st.integers(2, 3))):
        one, other = draw(st.permutations("uvw"))[:2]
        names, operator = st.sampled_from("kxv"), draw(st.sampled_from(["=", "<>", "<=", "<", ">"]))
        compared = Comparison(operator, Attribute(draw(names), one), Attribute(draw(names), other))
        pattern = Correlate(pattern, draw(st.sampled_from([compared, compared, draw(conditions("uvw"))])))
    return Program("CEQL", (Query("q", pattern, window=Window("time", draw(st.integers(4, 20)))),))


def compiled(language: str) -> Callable[[str], Program]:
    """Without what a program declares: rates are given, or nobody knows them."""
    return lambda text: replace(compile_text(text, language=language)[0], inputs=())


EQL = st.one_of(NEXT, NEXT, chain_texts(3, 3)).map(bounded)
PROGRAMS: dict[str, tuple[st.SearchStrategy, st.SearchStrategy]] = {
    "eql": (EQL.map(compiled("eql")), changing("ABCD", (40, 70), (0, 0, 0, 2))),
    "step": (JOINS.map(compiled("step")), changing("ABCD", (30, 50), (0, 0, 0, 2))),
    "ceql": (regular(), changing("ABCD", (24, 40), (0, 0, 0, 3))),
    "tesla": (st.one_of(look_backs(), texts(rule_sets(3))).map(compiled("tesla")), changing("ABC", (30, 60))),
    "epn": (
        st.one_of(block_patterns(("sequence",)), patterns_alike()).map(compiled("epn")),
        changing("ABCDE", (30, 40), (0, 0, 0, 2)),
    ),
}


# ---------------------------------------------------------------- statistics choose


class Parts:
    """Events in stream order, in batches of any size."""

    def __init__(self, events: Events, cuts: list[int], chosen: Plan) -> None:
        parts = [events[a:b] for a, b in pairwise([0, *cuts, len(events)]) if a < b]
        self._batches = event_batches(parts, chosen)
        self.reading, self.is_live, self.safe = Reading(), False, None
        self.rejected: list[Rejected] = []
        self.counters: dict[str, int] = {}
        self.longest: int | None = max((int(e["end"]) - int(e["start"]) for e in events), default=0)  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[EventBatch]:
        return iter(self._batches)


def cuts_of(dice: Random, events: Events) -> list[int]:
    return sorted(dice.sample(range(1, len(events)), dice.randint(2, 12)))


def ids(program: Program, events: Events) -> list[str]:
    return [match.id for match in detect(events, program, engine="meaning", rejects=[])]


def note(language: str, changes: int, meant: list[str], refused: int = 0) -> None:
    SEEN[f"{language}: streams"] += 1
    SEEN[f"{language}: changes"] += changes
    SEEN[f"{language}: refused"] += refused
    SEEN[f"{language}: changed"] += bool(changes)
    SEEN[f"{language}: changed with matches"] += bool(changes and meant)


@pytest.mark.parametrize("language", PROGRAMS)
def test_local_runs_lose_and_repeat_nothing(language: str) -> None:
    """The same matches, with the same ids, in the same order; one matcher over batches of any size."""

    @some(30)
    @given(PROGRAMS[language][0], PROGRAMS[language][1], RATES, st.integers(0, 1 << 30))
    def each(program: Program, events: Events, rates: dict[str, float], seed: int) -> None:
        dice = Random(seed)
        meant = ids(program, events)
        choices = Choices(True, weft.Statistics(rates) if dice.random() < 0.5 else None)
        with soon(dice.choice([LITTLE, NONE])):
            chosen = plan(choices.applied(program), statistics=choices.statistics)
            parts = Parts(events, cuts_of(dice, events), chosen)
            run = LocalRun(chosen, parts, written=program, choices=choices)
            found = [match.id for rows in run.rows() for match in rows_to_matches(rows)]
        assert found == meant
        note(language, run.counters.get("changes", 0), meant, run.counters.get("changes_refused", 0))

    each()


@pytest.mark.parametrize("language", PROGRAMS)
def test_live_programs_lose_and_repeat_nothing(language: str) -> None:
    """They are saved and loaded, in the middle of a change too."""

    @some(20)
    @given(PROGRAMS[language][0], PROGRAMS[language][1], RATES, st.integers(0, 1 << 30))
    def each(program: Program, events: Events, rates: dict[str, float], seed: int) -> None:
        dice = Random(seed)
        meant = ids(program, events)
        known = weft.Statistics(rates) if dice.random() < 0.5 else None
        found, changes, refused = [], 0, 0
        with soon(dice.choice([LITTLE, NONE])), TemporaryDirectory() as folder:
            running = live(program, statistics=known, rejects=[])
            for a, b in pairwise([0, *cuts_of(dice, events), len(events)]):
                found += [match.id for match in running.push(events[a:b])]
                if dice.random() < 0.3:
                    running.save(Path(folder) / "state")
                    running = live.load(Path(folder) / "state", statistics=known, rejects=[])
            found += [match.id for match in running.finish()]
            changes, refused = (running.counters.get(name, 0) for name in ("changes", "changes_refused"))
        assert Counter(found) == Counter(meant)
        note(language, changes, meant, refused)

    each()


@pytest.mark.parametrize("language", PROGRAMS)
def test_lanes_lose_and_repeat_nothing(language: str) -> None:
    """Each lane changes its own form between the pieces of its events; lanes of strategies that cannot only say so."""

    @some(50)
    @given(PROGRAMS[language][0], PROGRAMS[language][1], RATES, st.integers(0, 1 << 30))
    def each(program: Program, events: Events, rates: dict[str, float], seed: int) -> None:
        dice = Random(seed)
        meant = ids(program, events)
        choices = Choices(True, weft.Statistics(rates) if dice.random() < 0.5 else None)
        strategy, lanes, threads = dice.choice(STRATEGIES), dice.randint(1, 4), dice.choice([1, 2])
        few = patch.multiple(crew, FEWEST=1, PUSHED=dice.randint(2, 9), WAVE=2, AHEAD=3)
        with soon(dice.choice([LITTLE, NONE])), few, patch.object(local, "ROUND", dice.choice([9, 40, 1 << 20])):
            sharing = Sharing(strategy, lanes, threads)
            options = Options(sharing=sharing, choices=choices)
            try:
                runs = [start(events, program, "local", options) for _ in range(2)]
            except UsageError as error:
                if "is not possible for" not in str(error):  # not every strategy suits every program
                    raise
                return
            found = [match.id for rows in runs[0].rows() for match in rows_to_matches(rows)]
            counted = sum(runs[1].counts().values())
        assert found == meant
        assert counted == len(meant)
        changes, refused = (runs[0].counters.get(name, 0) for name in ("changes", "changes_refused"))
        assert strategy in (*ALLOWED, AUTO) or not changes
        note(f"{language} in lanes", changes, meant, refused)

    each()


@contextmanager
def soon(gain: float = LITTLE) -> Iterator[None]:
    """Rates are measured all the time, and the least gain is enough."""
    with (
        patch.multiple(adapting, FIRST_LOOK=1, ENOUGH=1),
        patch.object(replanning, "GAIN", gain),
        patch.object(splits, "LOOKS", FEW_LOOKS),
        patch.object(prefixes, "LOOKS", FEW_LOOKS),
    ):
        yield


# ---------------------------------------------------------------- single cases


def test_a_query_that_changed_can_be_removed() -> None:
    text = "SELECT * FROM A a ; (B b | D d) ; C c WHERE (a, c) OCCURS WITHIN 50"
    events = [{"type": "C" if n % 9 == 0 else "B" if n % 70 == 1 else "A", "ts": n} for n in range(420)]
    known = weft.Statistics({"A": 1, "B": 50, "C": 50, "D": 1})
    with soon(), live(statistics=known, rejects=[]) as running:
        running.deploy(weft.compile(text, "eql"))
        for at in range(0, len(events), 70):
            running.push(events[at : at + 70])
        assert running.counters["changes"] > 0
        running.remove("q")
        assert not list(running.push([{"type": name, "ts": 500 + n} for n, name in enumerate("ABC")]))


@pytest.mark.parametrize("sharing", [Sharing(threads=1), Sharing(lanes=1), Sharing("slice", 2, 2)])
def test_who_asks_for_threads_or_lanes_gets_forms_that_change(sharing: Sharing) -> None:
    program = weft.compile("SELECT * FROM A a ; (B b | D d) ; C c WHERE (a, c) OCCURS WITHIN 50", "eql")
    events = [{"type": "C" if n % 9 == 0 else "B" if n % 70 == 1 else "A", "ts": n} for n in range(420)]
    known = Choices(True, weft.Statistics({"A": 1, "B": 50, "C": 50, "D": 1}))
    with soon(), patch.object(crew, "PUSHED", 40):
        batches = iter(pa.Table.from_pylist(events).to_batches(max_chunksize=64))
        run = start(batches, program, "local", Options(sharing=sharing, choices=known))
        assert [match.id for rows in run.rows() for match in rows_to_matches(rows)] == ids(program, events)
        assert run.counters["changes"] > 0


def test_lanes_that_cannot_change_say_why(caplog: pytest.LogCaptureFixture) -> None:
    program = weft.compile("SELECT * FROM A a ; (B b | D d) ; C c WHERE (a, c) OCCURS WITHIN 50", "eql")
    events = [{"type": "C" if n % 9 == 0 else "B" if n % 70 == 1 else "A", "ts": n} for n in range(420)]
    known = Choices(True, weft.Statistics({"A": 1, "B": 50, "C": 50, "D": 1}))
    with soon(), caplog.at_level("INFO", logger="weft"):
        run = start(events, program, "local", Options(sharing=Sharing("replicate", 2, 1), choices=known))
        assert [match.id for rows in run.rows() for match in rows_to_matches(rows)] == ids(program, events)
    assert run.counters["changes_refused"] > 0
    assert "lanes of the strategy `replicate`" in caplog.text


def test_one_matcher_over_a_table_changes_too() -> None:
    program = weft.compile("SELECT * FROM A a ; (B b ; C c) WHERE (a, c) OCCURS WITHIN 40", "eql")
    events = [{"type": "AAAABC"[n % 6], "ts": n} for n in range(300)]
    batches = pa.Table.from_pylist(events).to_batches(max_chunksize=64)
    meant = ids(program, events)
    for known in (weft.Statistics({"A": 1, "B": 100, "C": 1}), weft.Statistics({"A": 100, "B": 1, "C": 100})):
        with soon():
            run = start(iter(batches), program, "local", Options(choices=Choices(True, known)))
            assert [match.id for rows in run.rows() for match in rows_to_matches(rows)] == meant


@pytest.mark.parametrize(
    ("language", "text", "reason"),
    [
        ("eql", "SELECT * FROM A a ; (B b | D d) ; C c", "no bound of time"),
        (
            "epn",
            "pattern P sequence(A a, B b, C c) where a.k = b.k\npattern Q sequence(A a, B b, D d) where a.k = b.k",
            "a context with a bound of time",
        ),
    ],
)
def test_what_cannot_change_is_counted_and_told(
    language: str, text: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is declared is wrong, or nothing is, so that another form would be cheaper."""
    program, _ = compile_text(text, language=language)
    events = [{"type": "ABD"[n % 3] if n % 60 else "C", "ts": 100 * n, "k": n} for n in range(600)]
    known = weft.Statistics({"A": 100, "B": 0.5, "D": 0.5, "C": 10}) if language == "eql" else None
    with (
        patch.multiple(adapting, FIRST_LOOK=1, ENOUGH=1),
        caplog.at_level("INFO", logger="weft"),
        live(program, statistics=known, rejects=[]) as running,
    ):
        for at in range(0, len(events), 60):
            running.push(events[at : at + 60])
        assert running.counters["changes_refused"] > 0
    assert reason in caplog.text
