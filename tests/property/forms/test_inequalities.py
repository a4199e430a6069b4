"""What a form rests on: every comparison holds by the statistics it was made with, and one does not by statistics that
would have led to another form."""

from __future__ import annotations

from collections import Counter
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.property.forms.test_adapting import PROGRAMS, bounded, compiled
from tests.strategies_chains import RATES, chain_texts, union_texts

from weft.algebra.composites import CompositeQuery
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.situations import SituationQuery
from weft.optimizer import prefixes, splits
from weft.optimizer.atoms import conditions_of
from weft.optimizer.cost.known import resolve_statistics
from weft.optimizer.cost.model import Costs
from weft.optimizer.cost.ranks import ConditionRanks
from weft.optimizer.join_order import work_of
from weft.optimizer.pipeline import as_written, trace
from weft.statistics import Statistics

NOTHING_LOST = 1 + 1e-6  # costs are sums in another order
FEW_LOOKS = 3_000.0  # of a core, so that the rates here decide about splits
LONGER = st.one_of(chain_texts(4, 5).map(bounded), union_texts())
SOURCES = {language: programs for language, (programs, _) in PROGRAMS.items()}
SOURCES["longer eql"] = LONGER.map(compiled("eql"))


def statistics(program: Program, rates: dict[str, float], dice: Random) -> Statistics:
    """Rates, and how often each condition holds."""
    texts = [one.text for found in conditions_of(program) for one in found]
    return Statistics({**rates, "E": 1.0}, {text: dice.choice([0.01, 0.1, 0.5, 0.9, 1.0]) for text in texts})


@pytest.mark.parametrize("source", SOURCES)
def test_a_better_form_breaks_a_comparison(source: str) -> None:
    seen: Counter[str] = Counter()

    @some(40)
    @given(SOURCES[source], RATES, RATES, st.integers(0, 1 << 30))
    def each(program: Program, rates: dict[str, float], others: dict[str, float], seed: int) -> None:
        dice = Random(seed)
        known, later = (statistics(program, one, dice) for one in (rates, others))
        chosen, costs = trace(program, known), Costs(resolve_statistics(program, known))
        inequalities = [inequality for one in chosen.queries for inequality in one.inequalities]
        assert all(one.gain(costs) <= _worth(one.rule) for one in inequalities if one.rule != "keep_shared")
        better, costs = trace(program, later), Costs(resolve_statistics(program, later))
        broken = [one for one in inequalities if one.gain(costs) > 1]
        seen.update(programs=1, compared=bool(inequalities), broken=bool(broken))
        if any(_gains(*pair, costs) for pair in zip(chosen.program.queries, better.program.queries, strict=True)):
            assert broken
            seen["better"] += 1

    with patch.object(splits, "LOOKS", FEW_LOOKS), patch.object(prefixes, "LOOKS", FEW_LOOKS):
        each()
    print(f"\n{source}: {dict(seen)}")
    assert seen["broken"], seen


def _worth(rule: str) -> float:
    """Look-backs change their places only where that saves a tenth."""
    return 1.1 if rule == "order_lookbacks" else NOTHING_LOST


def _gains(chosen: AnyQuery, better: AnyQuery, costs: Costs) -> bool:
    """Whether one form of a query costs clearly more than another, by itself."""
    match chosen, better:
        case SituationQuery(), SituationQuery():
            return chosen.situation != better.situation
        case Query(), Query():
            ranks = ConditionRanks(chosen.pattern, costs.statistics)
            return ranks.work(chosen.pattern) > 1.01 * ranks.work(better.pattern)
    if isinstance(chosen, CompositeQuery) and isinstance(better, CompositeQuery):
        now, then = (work_of([query.pattern], costs) for query in (chosen, better))
        if now <= 1.01 * then:  # of forms that take as long, the one that was written runs
            return False
    before, after = (
        as_written(Program("", (query,)), costs.statistics).queries[0].cost_after for query in (chosen, better)
    )
    return before > 1.01 * after
