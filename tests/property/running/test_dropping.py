"""Eviction of the oldest partial matches: every match is correct, and those of later events are complete."""

from __future__ import annotations

import warnings
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests import strategies, strategies_composite, strategies_epn, strategies_tesla
from tests.driving import event_batches, keep
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.running.test_live_equals_meaning import EventDict, keys

from weft.algebra.meaning import matches
from weft.algebra.meaning.match import Match
from weft.algebra.query import Program, Query
from weft.languages import compile_text
from weft.optimizer.pipeline import optimize
from weft.plan.dropping import kept_whole
from weft.plan.planner import plan
from weft.runtime.execution.matcher import Matcher
from weft.runtime.writing.match_rows import to_matches

SOME = some(30)
WHEN = st.tuples(st.floats(0.2, 0.9), st.integers(1, 3), st.booleans())  # where, how often, and whether it starts anew


def check(program: Program, events: list[EventDict], when: tuple[float, int, bool]) -> None:
    """Drop what may be dropped in the middle of a stream, and compare with what is meant."""
    program = replace(program, inputs=())
    ordered = sorted(events, key=lambda e: (e.get("end", e.get("ts")), e.get("start", e.get("ts"))))
    share, times, restarts = when
    middle = int(share * len(ordered))
    meant = list(matches(program, ordered))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chosen = plan(optimize(program))
        matcher, pages = Matcher(chosen), dict[str, bytes]()
        losing = set(program.names).difference(kept_whole(program.queries))
        found = []
        for batch in event_batches([ordered[:middle], ordered[middle:]], chosen):
            found += matcher.push(batch)
            if int(batch.positions[-1]) < middle:
                for _ in range(times):
                    matcher.drop_oldest(1, losing)
                if restarts:
                    keep(pages, matcher.snapshot())
                    matcher = Matcher.restore(chosen, pages)
        found += matcher.finish()
    told = set(keys(match for part in found for match in to_matches([part])))
    assert told <= set(keys(meant))
    assert set(keys(match for match in meant if is_later(match, ordered, middle))) <= told or by_value(program)


def is_later(match: Match, events: list[EventDict], middle: int) -> bool:
    """Whether a match begins after all events before the middle."""
    return all(match.start > float(str(event.get("end", event.get("ts")))) for event in events[:middle])


def by_value(program: Program) -> bool:
    """Whether there is a window over an attribute: what is dropped is older by that."""
    windows = (query.window for query in program.queries if isinstance(query, Query))
    return any(window is not None and window.unit == "attribute" for window in windows)


@SOME
@given(strategies.programs(), strategies.streams(word=("A", "B", "C", "A")), WHEN)
def test_regular_queries(program: Program, events: list[EventDict], when: tuple[float, int, bool]) -> None:
    check(program, events, when)


@SOME
@given(composite_programs, strategies_composite.composite_streams(), WHEN)
def test_composite_queries(program: Program, events: list[EventDict], when: tuple[float, int, bool]) -> None:
    check(program, events, when)


@SOME
@given(
    strategies_epn.examples(most=2).map(lambda example: compile_text(example.text, language="epn")[0]),
    strategies_epn.streams(),
    WHEN,
)
def test_situations(program: Program, events: list[EventDict], when: tuple[float, int, bool]) -> None:
    check(program, events, when)


@SOME
@given(strategies_tesla.texts(strategies_tesla.rule_sets()), strategies_tesla.rule_streams(), WHEN)
def test_rules(text: str, events: list[EventDict], when: tuple[float, int, bool]) -> None:
    check(compile_text(text, language="tesla")[0], events, when)
