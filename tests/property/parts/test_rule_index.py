"""The index finds the rules that start at an event, for all constants."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st
from tests.driving import event_batches
from tests.harness import some

from weft.algebra.meaning import matches
from weft.algebra.predicates import Attribute, Comparison, ComparisonOperator, Literal, Value
from weft.algebra.query import Program
from weft.algebra.rules import Rule
from weft.kernels.rules.index import LARGE
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.data.events import EventBatch
from weft.runtime.operators.rules.operator import RuleOperator
from weft.runtime.writing.match_rows import to_matches

FAR = 2**62
POOLS: dict[str, tuple[Value, ...]] = {
    "dense": tuple(range(40)),
    "far apart": tuple(number * 10**12 for number in range(-20, 20)),
    "two places": (*range(12), *range(10**9, 10**9 + 30)),
    "ends": (-(2**63), -(2**63) + 1, -1, 0, 1, FAR, FAR + 1, 2**63 - 1),
    "floats": (
        0.0,
        -0.0,
        1.0,
        1.5,
        2.0,
        3.0,
        2.0**53,
        2.0**63,
        -(2.0**63),
        1e80,
        1e100,
        1e300,
        float("inf"),
        float("-inf"),
    ),
    "huge": (2**63, 2**63 + 1, 2**64, -(2**63) - 1, 10**80, 10**100, 2 * 10**308, 10**400, -(10**400)),
    "texts": tuple(f"text {number}" for number in range(30)),
    "truths": (True, False),
}
OPERATORS: tuple[ComparisonOperator, ...] = ("=", "=", "=", "=", "=", "<", "<=", ">", ">=", "<>")
Found = list[tuple[str, tuple[int, ...]]]


def near(chance: Random, pool: tuple[Value, ...]) -> Value:
    """A value of a pool, or one close to it, maybe as a number of the other kind."""
    value = chance.choice(pool)
    if isinstance(value, bool | str) or chance.random() < 0.7:
        return value
    if isinstance(value, int) and abs(value) < 2**53 and chance.random() < 0.5:
        return float(value)
    return int(value) if isinstance(value, float) and abs(value) < 2**60 else value + chance.choice((-1, 1))


def filters(chance: Random, pools: list[str], count: int) -> list[Rule]:
    """Rules that pass events on: each with a constant of its own, or one that others have too, or two."""
    program, _ = compile_text("define F() from E(v = 0 and w = 0)", language="tesla")
    (rule,) = program.queries
    assert isinstance(rule, Rule)
    terminator, events = rule.terminator, rule.terminator.events
    rules = []
    for number in range(count):
        conditions = [
            Comparison(chance.choice(OPERATORS), Attribute(name), Literal(near(chance, POOLS[chance.choice(pools)])))
            for name in chance.choice(("v", "v", "w", "vw", "vv"))
        ]
        own = replace(terminator, events=replace(events, type=chance.choice("EF"), static=tuple(conditions)))
        rules.append(replace(rule, name=f"F{number}", terminator=own))
    return rules


def stream(chance: Random, pools: list[str], count: int) -> list[dict[str, object]]:
    """Events of values near those of rules. Of one kind each column of a batch can hold whole numbers or floats."""
    events: list[dict[str, object]] = []
    for time in range(count):
        values = {name: near(chance, POOLS[chance.choice(pools)]) for name in "vw" if chance.random() < 0.9}
        kept = {name: value for name, value in values.items() if not isinstance(value, int) or abs(value) < 2**63}
        events.append({"type": chance.choice("EF"), "ts": time, **kept})
    return events


def pushed(run: RuleOperator, batches: list[EventBatch]) -> Found:
    return sorted((m.query, m.positions) for m in to_matches(piece for batch in batches for piece in run.push(batch)))


def meant(rules: list[Rule], events: list[dict[str, object]]) -> Found:
    return sorted((match.query, match.positions) for match in matches(Program("tesla", tuple(rules)), events))


@some(30)
@example(["floats", "huge"], 6, 1)
@given(st.lists(st.sampled_from(sorted(POOLS)), min_size=1, max_size=3), st.integers(1, 60), st.integers(0, 2**32))
def test_rules_of_any_constants(pools: list[str], count: int, seed: int) -> None:
    chance = Random(seed)
    rules, events = filters(chance, pools, count), stream(chance, pools, 30)
    chosen = plan(Program("tesla", tuple(rules)))
    # One event in a batch: its number keeps its kind.
    assert pushed(RuleOperator(rules), event_batches([[event] for event in events], chosen)) == meant(rules, events)


@some(30)
@given(st.lists(st.sampled_from(sorted(POOLS)), min_size=1, max_size=3), st.integers(1, 40), st.integers(0, 2**32))
def test_rules_that_come_and_go(pools: list[str], count: int, seed: int) -> None:
    """Each batch is seen by the rules that are there then."""
    chance = Random(seed)
    rules, events = filters(chance, pools, count), stream(chance, pools, 24)
    chosen = plan(Program("tesla", tuple(rules)))
    run = RuleOperator([])
    there: dict[int, Rule] = {}
    for position, (event, batch) in enumerate(
        zip(events, event_batches([[event] for event in events], chosen), strict=True)
    ):
        new = [rules.pop() for _ in range(min(len(rules), chance.randrange(5)))]
        there |= zip(run.extend(new), new, strict=True)
        gone = [number for number in there if chance.random() < 0.2]
        run.remove(gone)
        there = {number: rule for number, rule in there.items() if number not in gone}
        expected = [(name, (position,)) for name, _ in meant(list(there.values()), [event])]
        assert pushed(run, [batch]) == expected


def test_more_constants_than_the_cache_holds() -> None:
    """One rule for each value, of one attribute close together and of another far apart."""
    (rule,) = filters(Random(1), ["dense"], 1)
    terminator, events = rule.terminator, rule.terminator.events
    count = LARGE + 1
    rules = []
    for name, factor in (("v", 1), ("w", 10**12)):
        for number in range(count):
            equal = Comparison("=", Attribute(name), Literal(number * factor))
            own = replace(terminator, events=replace(events, type="E", static=(equal,)))
            rules.append(replace(rule, name=f"{name}{number}", terminator=own))
    chance = Random(2)
    wanted = [(chance.randrange(2 * count), chance.randrange(2 * count)) for _ in range(200)]
    rows = [{"type": "E", "ts": time, "v": v, "w": w * 10**12} for time, (v, w) in enumerate(wanted)]
    found = pushed(
        RuleOperator(rules), event_batches([rows[:3], rows[3:]], plan(Program("tesla", (rules[0], rules[-1]))))
    )
    numbers = enumerate(wanted)
    assert found == sorted(
        (f"{name}{value}", (place,))
        for place, pair in numbers
        for name, value in zip("vw", pair, strict=True)
        if value < count
    )
