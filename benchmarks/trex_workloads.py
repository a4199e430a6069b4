"""The workloads of T-Rex's own evaluation (TREX sections 5.1 and 5.2): texts of a thousand rules, and their events.

Times are in milliseconds. Windows of sequences are 14 to 16 s long, each rule has its own; the first 16 s fill them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

import weft
from weft.algebra.predicates import Attribute, Comparison, Literal
from weft.algebra.query import Program
from weft.algebra.rules import Rule

WARM_UP = 16  # seconds until all windows are full
DEFINITIONS = 100  # of the default scenario: each event concerns one of them
PAIRS = 10  # of the fire scenario: types of smoke and of temperatures
THRESHOLDS = 100


def chains(
    pick: str,
    rules: int = 1000,
    states: int = 2,
    *,
    definitions: int = DEFINITIONS,
    consuming: bool = False,
    window: int = 15,
) -> str:
    """The default scenario: sequences of so many events, one type for each state of each definition.

    Windows are of so many seconds, one more or less.
    """
    return "\n".join(_chains(pick, rules, states, definitions, consuming, window))


def _chains(pick: str, rules: int, states: int, definitions: int, consuming: bool, window: int) -> Iterator[str]:
    windows = random.Random(1)
    for number in range(rules):
        kind = number % definitions
        names = [f"E{kind}S{state}" for state in range(states)]
        parts = [f"{names[-1]}()"]
        for later, earlier in zip(names[:0:-1], names[-2::-1], strict=True):
            parts.append(
                f"{pick} {earlier}() within {windows.randint(1000 * window - 1000, 1000 * window + 1000)} from {later}"
            )
        consumed = f" consuming {names[0]}" if consuming else ""
        yield f"define C{kind}(value: int) from {' and '.join(parts)} where value = {names[0]}.value{consumed};"


def joined_chains(pick: str, sequences: int, rules: int = 1000) -> str:
    """Rules of several sequences of two that share their last event, each with a type of its own (TREX 5.2.2)."""
    windows = random.Random(3)
    return "\n".join(
        f"define C{kind}() from E{kind}S0() and "
        + " and ".join(
            f"{pick} E{kind}S{one}() within {windows.randint(14_000, 16_000)} from E{kind}S0"
            for one in range(1, sequences + 1)
        )
        + ";"
        for kind in (number % DEFINITIONS for number in range(rules))
    )


def joined_events(sequences: int, seconds: float, rate: int) -> pa.Table:
    """Events of all types of such rules, each as likely."""
    return chain_events(seconds, rate, sequences + 1)


def chain_events(seconds: float, rate: int, states: int = 2, definitions: int = DEFINITIONS) -> pa.Table:
    """Events of all types of the default scenario, each as likely."""
    return _events([f"E{kind}S{state}" for kind in range(definitions) for state in range(states)], None, seconds, rate)


def fires(pick: str) -> str:
    """Rule R1 (each) or R2 (last) for every pair of types and every threshold."""
    windows = random.Random(2)
    return "\n".join(
        f"define Fire{pair}(area: string, measuredTemp: double) from Smoke{pair}(area=$a) and "
        f"{pick} Temp{pair}(area=$a and value>{threshold}) within {windows.randint(14_000, 16_000)} from Smoke{pair} "
        f"where area=Smoke{pair}.area and measuredTemp=Temp{pair}.value;"
        for pair in range(PAIRS)
        for threshold in range(THRESHOLDS)
    )


def averages() -> str:
    """Rule R5: the average temperature of the last 15 s above a threshold; all rules fire at every smoke."""
    return "\n".join(
        f"define Fire{pair}(area: string, measuredTemp: double) from Smoke{pair}(area=$a) and "
        f"{threshold / THRESHOLDS} < $t=Avg(Temp{pair}(area=$a).value within 15000 from Smoke{pair}) "
        f"where area=Smoke{pair}.area and measuredTemp=$t;"
        for pair in range(PAIRS)
        for threshold in range(THRESHOLDS)
    )


def droughts(*, negated: bool = True) -> str:
    """Rule R4: a high temperature and no rain within the last second; or without the negation."""
    return "\n".join(
        f"define Fire{pair}(area: string, measuredTemp: double) from Temp{pair}(area=$a and value>{threshold}) "
        + (f"and not Rain{pair}(area=$a) within 1000 from Temp{pair} " if negated else "")
        + f"where area=Temp{pair}.area and measuredTemp=Temp{pair}.value;"
        for pair in range(PAIRS)
        for threshold in range(THRESHOLDS)
    )


def pair_events(first: str, second: str, share: float, seconds: float, rate: int) -> pa.Table:
    """Events of all pairs of types, so many of them of the first type; temperatures of 1 to 100, in one area."""
    names = [f"{kind}{pair}" for kind in (first, second) for pair in range(PAIRS)]
    weights = [share / PAIRS] * PAIRS + [(1 - share) / PAIRS] * PAIRS
    return _events(names, weights, seconds, rate)


def filters(rules: int) -> Program:
    """Rules that pass an event with one value on, each with its own value."""
    program = weft.compile("define F(value: int) from E(value=0) where value=E.value", language="tesla")
    (rule,) = program.queries
    assert isinstance(rule, Rule)
    terminator, events = rule.terminator, rule.terminator.events
    wanted = (Comparison("=", Attribute("value"), Literal(number)) for number in range(rules))
    many = (replace(terminator, events=replace(events, static=(value,))) for value in wanted)
    queries = tuple(replace(rule, name=f"F{number}", terminator=one) for number, one in enumerate(many))
    return replace(program, queries=queries)


def filter_events(count: int, values: int) -> pa.Table:
    """Events of one type, of which each concerns one rule."""
    random_values = np.random.default_rng(5).integers(0, values, count)
    return pa.table({"type": pa.repeat("E", count).dictionary_encode(), "ts": np.arange(count), "value": random_values})


def _events(names: list[str], weights: list[float] | None, seconds: float, rate: int) -> pa.Table:
    count = int(seconds * rate)
    generator = np.random.default_rng(4)
    codes = generator.choice(len(names), count, p=weights).astype(np.int32)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names)),
            "ts": np.arange(count) * 1000 // rate,
            "area": pa.repeat("a", count).dictionary_encode(),
            "value": generator.integers(1, 101, count),
        }
    )
