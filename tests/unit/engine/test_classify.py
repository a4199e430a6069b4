"""The classifier at its limits: many columns, many constants, new texts, shared dictionaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weft.algebra.predicates import And, Attribute, Comparison, In, Like, Literal, Not
from weft.plan.atoms import IsStream, IsType
from weft.runtime.classify.classifier import Classifier
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.reading.order import read_events


def batch_of(columns, types=None, streams=None):
    length = len(next(iter(columns.values())))
    times = np.arange(length)
    made = {}
    for name, array in columns.items():
        text = pa.types.is_string(array.type) or pa.types.is_dictionary(array.type)
        made[name] = Column(texts=array) if text else Column(numbers=array)
    return EventBatch(pa.array(types or ["T"] * length), times, times, times, made, streams)


def truths_of(classifier, batch, query=0):
    return [classifier.truths(query, int(letter)) for letter in classifier.letters(batch)[query]]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 20, 70])  # tables, then hashing, then event by event
def test_any_number_of_columns(count):
    generator = np.random.default_rng(count)
    values = generator.integers(0, 2, (count, 300))
    batch = batch_of({f"a{i}": pa.array(row) for i, row in enumerate(values)})
    classifier = Classifier([[Comparison(">", Attribute(f"a{i}"), Literal(0)) for i in range(count)]])
    for _ in range(2):
        assert truths_of(classifier, batch) == [tuple(row) for row in (values > 0).T.tolist()]
    assert classifier.letter_count(0) <= max(300, 64)


def test_hashed_letters_grow():
    classifier = Classifier([[Comparison(">", Attribute(f"a{i}"), Literal(0)) for i in range(20)]])
    for seed in range(4):
        values = np.random.default_rng(seed).integers(0, 2, (20, 3000))
        batch = batch_of({f"a{i}": pa.array(row) for i, row in enumerate(values)})
        assert truths_of(classifier, batch) == [tuple(row) for row in (values > 0).T.tolist()]


@pytest.mark.parametrize("count", [1, 16, 17, 1000, 70_000])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_any_number_of_thresholds(count, kind):
    values = np.arange(-2, count + 2, max(1, count // 50)).astype(kind)
    batch = batch_of({"x": pa.array(values), "y": pa.array(values)})
    constants = list(range(count))
    wanted = [0, count // 2, count - 1]
    others = In(Attribute("x"), tuple(constants))
    predicates = [
        Comparison(op, Attribute("x"), Literal(c)) for c in wanted for op in ("<", "<=", "=", "<>", ">=", ">")
    ]
    classifier = Classifier([[others], [*predicates, Comparison(">", Attribute("y"), Literal(1))]])
    expected = [
        (*(f for c in wanted for f in (v < c, v <= c, v == c, v != c, v >= c, v > c)), v > 1) for v in values.tolist()
    ]
    assert truths_of(classifier, batch, 1) == expected
    assert truths_of(classifier, batch, 0) == [(0 <= v < count,) for v in values.tolist()]


def test_many_constants_of_a_text():
    names = [f"name {i}" for i in range(70_000)]
    classifier = Classifier(
        [[In(Attribute("s"), tuple(names[::2]))], [Comparison("=", Attribute("s"), Literal(names[4]))]]
    )
    batch = batch_of({"s": pa.array([*names[:100], "", "name 69999 and more"])})
    assert truths_of(classifier, batch, 0) == [(i < 100 and i % 2 == 0,) for i in range(102)]
    assert truths_of(classifier, batch, 1) == [(i == 4,) for i in range(102)]


def test_new_texts_in_later_batches():
    predicates = [
        Like(Attribute("s"), "a%"),
        Like(Attribute("s"), "%z"),
        Comparison(">=", Attribute("s"), Literal("m")),
    ]
    classifier = Classifier([predicates, predicates[:1]])
    for texts in (["a", None, "b"], ["az", "a", "z"], [f"{c}{i}z" for c in "amx" for i in range(500)]):
        batch = batch_of({"s": pa.array(texts, pa.string())})
        expected = [(t is not None and t[0] == "a", bool(t) and t[-1] == "z", bool(t) and t >= "m") for t in texts]
        assert truths_of(classifier, batch) == expected
        assert truths_of(classifier, batch, 1) == [truth[:1] for truth in expected]


def test_dictionaries_shared_and_not():
    classifier = Classifier(
        [[Comparison("=", Attribute("s"), Literal("b")), Comparison("<>", Attribute("s"), Literal("b"))]]
    )
    dictionary = pa.array(["a", "b", "c"])
    shared = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 2, 1], pa.int8()), dictionary)
    other = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int64()), pa.array(["b", "x"]))
    nothing = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    is_b, is_other, missing = (True, False), (False, True), (False, False)
    assert truths_of(classifier, batch_of({"s": shared})) == [is_b, missing, is_other, is_other, is_b]
    assert truths_of(classifier, batch_of({"s": shared.slice(1, 3)})) == [missing, is_other, is_other]
    assert truths_of(classifier, batch_of({"s": other})) == [is_b, is_other]
    assert truths_of(classifier, batch_of({"s": nothing})) == [missing, missing]


def test_slices_and_nulls():
    values = pa.array([None, 1, 5, None, 9, 2])
    texts = pa.array(["p", None, "q", "p", "", "p"])
    predicates = [Comparison(">", Attribute("x"), Literal(1)), Comparison("=", Attribute("s"), Literal("p"))]
    expected = [(False, True), (False, False), (True, False), (False, True), (True, False), (True, True)]
    for first in range(5):
        batch = batch_of({"x": values.slice(first), "s": texts.slice(first)})
        assert truths_of(Classifier([predicates]), batch) == expected[first:]


def test_types_and_streams():
    predicates = [IsType("A"), IsStream("S"), And((IsType("A"), Not(IsStream("S"))))]
    columns = {"x": pa.array([1, 2, 3])}
    batch = batch_of(columns, ["A", "A", "B"], pa.array(["S", "U", None]))
    expected = [(True, True, False), (True, False, True), (False, True, False)]
    assert truths_of(Classifier([predicates]), batch) == expected
    assert truths_of(Classifier([predicates]), batch_of(columns, ["A", "A", "B"])) == [
        (True, True, False),
        (True, True, False),
        (False, True, False),
    ]


def test_queries_with_the_same_predicates_share_letters():
    predicate = Comparison(">", Attribute("x"), Literal(1))
    equal, unlike = Comparison(">", Attribute("x"), Literal(1)), Comparison(">", Attribute("x"), Literal(True))
    classifier = Classifier([[predicate], [equal], [unlike], []])
    letters = classifier.letters(batch_of({"x": pa.array([1, 2])}))
    assert letters[0] is letters[1]
    assert truths_of(classifier, batch_of({"x": pa.array([1, 2])}), 2) == [(False,), (False,)]
    assert letters[3].tolist() == [0, 0]
    assert classifier.truths(3, 0) == ()


def test_letters_into_given_memory():
    classifier = Classifier([[IsType("A")], [IsType("B")]])
    (batch,) = read_events([{"type": "A", "ts": 1}, {"type": "B", "ts": 2}])
    out = np.empty(2, np.int32)
    coded = classifier.code(batch)
    found = [
        [classifier.truths(query, k) for k in classifier.letters_of(query, coded, out).tolist()] for query in (0, 1)
    ]
    assert found == [[(True,), (False,)], [(False,), (True,)]]
