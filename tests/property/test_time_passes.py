"""Time may pass between events, whoever says so: the matches stay those that are meant, and none comes too early."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.property.test_composites_equal_meaning import programs, streams, together
from tests.property.test_engines_equal_meaning import event_batches, rows_of
from tests.property.test_engines_equal_meaning import row_of as public_row
from tests.property.test_situations_equal_meaning import Case, cases, meant

from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.errors import InputError
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.matcher import Matcher
from weft.runtime.matches import MatchBatch

SOME = settings(max_examples=int(os.environ.get("WEFT_EXAMPLES", "60")), deadline=None)
EventDict = dict[str, object]


def with_time(chosen: Plan, events: Sequence[EventDict], rng: random.Random) -> list[MatchBatch]:
    """The matches of events given one by one, with time that passes between them, as far as the next event."""
    matcher = Matcher(chosen)
    found: list[MatchBatch] = []
    batches = event_batches([[event] for event in events], chosen)
    for number, batch in enumerate(batches):
        found += matcher.push(batch)
        end = int(batch.ends[-1])
        until = int(batches[min(number + 1, len(batches) - 1)].ends[0])
        for time in sorted(rng.randint(end, until) for _ in range(rng.randint(0, 2))):
            safe = matcher.safe
            fresh = list(matcher.advance(time))
            assert all(end >= safe for batch in fresh for end in batch.ends.tolist() if safe is not None)
            found += fresh
    return [*found, *matcher.finish()]


@SOME
@given(st.one_of(programs, together), streams, st.randoms(use_true_random=False))
def test_composites(program: Program, events: list[EventDict], rng: random.Random) -> None:
    found = with_time(plan(program), events, rng)
    assert rows_of(found) == sorted(public_row(match) for match in matches(program, events))


@SOME
@given(cases(), st.randoms(use_true_random=False))
def test_situations(case: Case, rng: random.Random) -> None:
    try:
        found = with_time(plan(case.program), case.events, rng)
    except InputError:  # see `NetworkRun`
        assume(False)
    assert rows_of(found) == meant(case)
