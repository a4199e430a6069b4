"""The classifier against predicates evaluated event by event over plain dicts."""

from __future__ import annotations

import math
import re
from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given, settings

from weft.algebra.predicates import (
    Always,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    In,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    RegexMatch,
)
from weft.plan.atoms import IsStream, IsType
from weft.runtime.classify import classifier
from weft.runtime.classify.classifier import Classifier, Predicates
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.reading.kinds import column_of_values

COMPARE = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


def kind(value):
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def value_of(expression, event):
    match expression:
        case Literal(value):
            return value
        case Attribute(name):
            value = event.get(name)
            return None if value is None or value != value else value
        case Negative(operand):
            return calculate("-", 0, value_of(operand, event))
        case Arithmetic(symbol, left, right):
            return calculate(symbol, value_of(left, event), value_of(right, event))


def calculate(symbol, a, b):
    if a is None or b is None or kind(a) != "number" or kind(b) != "number":
        return None
    try:
        if symbol == "%":
            if isinstance(a, int) and isinstance(b, int):
                return (-1 if a < 0 else 1) * (abs(a) % abs(b))
            result = math.fmod(a, b)
        else:
            result = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[symbol]()
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return None if result != result else result


def compare(symbol, a, b):
    return a is not None and b is not None and kind(a) == kind(b) and COMPARE[symbol](a, b)


def true_of(predicate, event):
    match predicate:
        case Always():
            return True
        case IsType(name):
            return event["type"] == name
        case IsStream(name):
            return event.get("stream") in (None, name)
        case Comparison(symbol, left, right):
            return compare(symbol, value_of(left, event), value_of(right, event))
        case In(operand, values):
            return any(compare("=", value_of(operand, event), value) for value in values)
        case Like(operand, pattern):
            value = value_of(operand, event)
            regex = "".join({"%": "(.|\n)*", "_": "(.|\n)"}.get(char, re.escape(char)) for char in pattern)
            return isinstance(value, str) and bool(re.fullmatch(regex, value))
        case RegexMatch(operand, pattern):
            value = value_of(operand, event)
            return isinstance(value, str) and bool(re.search(pattern, value))
        case And(operands):
            return all(true_of(operand, event) for operand in operands)
        case Or(operands):
            return any(true_of(operand, event) for operand in operands)
        case Not(operand):
            return not true_of(operand, event)


NAMES = ["x", "y", "s", "flag", "mixed"]
TEXTS = ["", "a", "ab", "abc", "b", "GOOG", "a long text of more bytes", "a long text of more bytez", "zé", "x\ny"]
WHOLES = st.one_of(st.integers(-3, 5), st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]))
FLOATS = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 1e308, 5e-324, float("inf"), -float("inf"), 2.0**53])
VALUES = st.one_of(WHOLES, FLOATS, st.sampled_from(TEXTS), st.booleans())
CONSTANTS = st.one_of(VALUES, st.sampled_from([2**64, -(2**70), 10**400]))
ATTRIBUTES = st.sampled_from(NAMES).map(Attribute)
EXPRESSIONS = st.recursive(
    st.one_of(ATTRIBUTES, ATTRIBUTES, CONSTANTS.map(Literal)),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner), st.builds(Negative, inner)
    ),
    max_leaves=3,
)
SIMPLE = st.builds(Comparison, st.sampled_from(list(COMPARE)), ATTRIBUTES, CONSTANTS.map(Literal))
ATOMS = st.one_of(
    SIMPLE,
    SIMPLE,
    st.builds(Comparison, st.sampled_from(list(COMPARE)), EXPRESSIONS, EXPRESSIONS),
    st.builds(In, st.one_of(ATTRIBUTES, EXPRESSIONS), st.lists(CONSTANTS, max_size=4).map(tuple)),
    st.builds(Like, EXPRESSIONS, st.sampled_from(["a%", "_b%", "%o%", "GOOG", "", "%y"])),
    st.builds(RegexMatch, EXPRESSIONS, st.sampled_from(["^a", "b$", "O+", "more"])),
    st.sampled_from(["A", "B"]).map(IsType),
    st.sampled_from(["S1", "S2"]).map(IsStream),
    st.just(Always()),
)
PREDICATES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["A", "B", "C"])},
    optional={
        "x": WHOLES,
        "y": st.one_of(FLOATS, st.integers(-3, 3)),
        "s": st.sampled_from(TEXTS),
        "flag": st.booleans(),
        "mixed": st.one_of(st.integers(-3, 3), st.sampled_from(TEXTS), st.booleans(), st.none()),
        "stream": st.sampled_from(["S1", "S2", "S3"]),
    },
)


def batch_of(events, encode):
    def column(name):
        made = column_of_values([event.get(name) for event in events])
        if encode and made.texts is not None:
            return Column(made.numbers, made.texts.dictionary_encode(), made.booleans)
        return made

    types, streams = column("type").texts, column("stream").texts
    times = np.arange(len(events))
    return EventBatch(
        pa.nulls(0, pa.string()) if types is None else types,
        times,
        times,
        times,
        {n: column(n) for n in NAMES},
        streams,
    )


@settings(max_examples=50, deadline=None)
@given(
    queries=st.lists(st.lists(PREDICATES, max_size=4), min_size=1, max_size=4),
    batches=st.lists(st.lists(EVENTS, max_size=8), min_size=1, max_size=3),
    encode=st.booleans(),
)
def test_letters_say_what_predicates_say(queries, batches, encode):
    found = Classifier(queries)
    for events in batches:
        letters = found.letters(batch_of(events, encode))
        for query, predicates in enumerate(queries):
            said = [found.truths(query, int(letter)) for letter in letters[query]]
            assert said == [tuple(true_of(p, event) for p in predicates) for event in events]
    for query in range(len(queries)):
        truths = [found.truths(query, letter) for letter in range(found.letter_count(query))]
        assert len(set(truths)) == len(truths)


@settings(max_examples=50, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.lists(st.lists(PREDICATES, max_size=3), max_size=2),  # of those who come
            st.frozensets(st.integers(0, 5)),  # the places of those who go
            st.lists(EVENTS, min_size=1, max_size=8),
        ),
        min_size=1,
        max_size=5,
    ),
    encode=st.booleans(),
)
def test_those_who_look_at_one_stream_may_come_and_go(steps, encode):
    common, present = Predicates(), []
    with patch.object(classifier, "LEAST_GONE", 2):
        for added, gone, events in steps:
            present = [one for place, one in enumerate(present) if place not in gone]
            present += [([predicates], Classifier([predicates], common), {}) for predicates in added]
            batch = batch_of(events, encode)
            for (predicates,), one, meant in present:
                (letters,) = one.letters(batch)
                for letter, event in zip(letters.tolist(), events, strict=True):
                    truths = tuple(true_of(predicate, event) for predicate in predicates)
                    assert one.truths(0, letter) == truths
                    assert meant.setdefault(letter, truths) == truths  # also with what was found before others came
