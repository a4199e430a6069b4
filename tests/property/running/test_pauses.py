"""Kernels that pause, so that Ctrl-C gets its turn, go on where they stood: the same is found, often as they do so."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests import strategies_composite, strategies_epn, strategies_tesla
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.running.test_live_equals_meaning import EventDict, keys

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.languages import compile_text
from weft.runtime.operators.joins import chains, joining
from weft.runtime.operators.rules import operator as rules
from weft.runtime.operators.situations import stage

SOME = some(20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True, params=[0, 3])
def impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels pause as soon as they have looked at so many."""
    for module in (chains, joining, rules, stage):
        monkeypatch.setattr(module, "INTERRUPT_CHECK_EVERY", request.param)


def check(program: Program, events: list[EventDict]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = sorted(keys(weft.detect(events, program)))
        except weft.InputError:  # a long event that opens an absence in the past is refused
            return
        counted = weft.count(events, program)
    assert found == sorted(keys(matches(program, events)))
    assert sum(counted.values()) == len(found)


@SOME
@given(composite_programs, strategies_composite.composite_streams())
def test_composite_queries(program: Program, events: list[EventDict]) -> None:
    check(program, events)


@SOME
@given(strategies_epn.examples(most=2))
def test_situations(example: strategies_epn.Example) -> None:
    check(compile_text(example.text, language="epn")[0], example.events)


@SOME
@given(strategies_tesla.texts(strategies_tesla.rule_sets()), st.data())
def test_rules(text: str, data: st.DataObject) -> None:
    check(compile_text(text, language="tesla")[0], data.draw(strategies_tesla.rule_streams()))
