"""CORE's experiments: sequences of named trades, with and without a last event that never comes.

The baseline is PyArrow evaluating the same atomic predicates one by one on the same table. The whole local
engine runs from the Arrow table: predicates, key coding, automaton, matches counted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.measure import Row, cpu_seconds, row
from benchmarks.trades import sequence, symbol, trades

import weft
from weft.algebra.predicates import Attribute, Comparison, Literal
from weft.algebra.query import Query
from weft.kernels.automaton import tecs
from weft.plan.atoms import IsType
from weft.plan.automaton.cea import build_automaton
from weft.runtime.operators.automaton.advancing import AutomatonRun

_ARROW: dict[str, Callable[..., object]] = {
    ">": pc.greater,
    "<": pc.less,
    ">=": pc.greater_equal,
    "<=": pc.less_equal,
    "=": pc.equal,
    "<>": pc.not_equal,
}


_ONE = np.empty(0, np.int32)
_NO_PAYLOAD = np.empty(0, np.int64)


def run(scale: float = 1.0) -> list[Row]:
    """All cases; `scale` multiplies the number of events."""
    count = max(1 << 16, int(2_000_000 * scale))
    return [*_whole_engine(count), *_flatness(count), *_kernel(count)]


def predicates_seconds(table: pa.Table, text: str) -> float:
    """The time PyArrow needs for the distinct atomic predicates of a query."""
    atoms = {
        part for query in weft.compile(text).queries for atom in build_automaton(query).atoms for part in atom.guard
    }

    def evaluate() -> None:
        for atom in atoms:
            if isinstance(atom, IsType):
                pc.equal(table["type"], atom.type)
            else:
                assert isinstance(atom, Comparison)
                assert isinstance(atom.left, Attribute)
                assert isinstance(atom.right, Literal)
                _ARROW[atom.operator](table[atom.left.name], atom.right.value)

    return cpu_seconds(evaluate)


def _whole_engine(count: int) -> list[Row]:
    rows = []
    one, many = trades(count), trades(count, partitions=10_000)
    cases = [
        (f"sequence of {n}, last never comes", one, sequence(n, window=1000, never=True)) for n in (3, 6, 9, 12, 24)
    ]
    cases += [(f"sequence of {n}, last comes", one, sequence(n, window=100, never=False)) for n in (3, 6, 9, 12, 24)]
    cases += [
        ("sequence of 3, 10k partitions", many, sequence(3, window=100_000, never=False, partition=True)),
        ("sequence of 9, 10k partitions", many, sequence(9, window=100_000, never=False, partition=True)),
        ("Kleene, sequence of 3", one, sequence(3, window=100, never=False, form="({})+")),
        ("disjunction", one, _disjunction()),
    ]
    for case, table, text in cases:
        program = weft.compile(text)
        seconds = cpu_seconds(lambda table=table, program=program: weft.count(table, program))
        arrow = predicates_seconds(table, text)
        rows.append(row(case, count / seconds / 1e6, "M events/s", "PyArrow, same predicates", seconds / arrow, "<= 3"))
    return rows


def _disjunction() -> str:
    pairs = " OR ".join(f"(SELL AS a{k} ; SELL AS b{k})" for k in range(3))
    filters = " AND ".join(f"a{k}[name = '{symbol(k)}'] AND b{k}[name = '{symbol(k + 3)}']" for k in range(3))
    return f"SELECT * FROM Stock WHERE {pairs} FILTER {filters} WITHIN 100 EVENTS"


def _flatness(count: int) -> list[Row]:
    """Cost per event against stream length, window size and the number of partial matches: the ratio should be one."""
    rows = []

    def per_event(events: int, text: str) -> float:
        table, program = trades(events), weft.compile(text)
        return cpu_seconds(lambda: weft.count(table, program)) / events

    base = per_event(count, sequence(9, window=1000, never=True))
    long = per_event(4 * count, sequence(9, window=1000, never=True))
    rows.append(row("stream four times as long", long * 1e9, "ns/event", "sequence of 9", long / base, "<= 1.3"))
    for window in (100, 10_000, 100_000):
        wide = per_event(count, sequence(9, window=window, never=True))
        rows.append(row(f"window of {window} events", wide * 1e9, "ns/event", "window of 1000", wide / base, "<= 1.3"))
    few = per_event(count, sequence(3, window=1000, never=True))
    lots = per_event(count, sequence(3, window=100_000, never=True, form="({})+"))
    rows.append(row("2^n partial matches (Kleene)", lots * 1e9, "ns/event", "sequence of 3", lots / few, "<= 1.3"))
    return rows


def _kernel(count: int) -> list[Row]:
    """The automaton kernel alone: every event relevant, and none."""
    rows = []
    for length in (3, 9, 24):
        query = weft.compile(sequence(length, window=1000, never=True)).queries[0]
        dense = np.random.default_rng(1).integers(0, length - 1, count).astype(np.int32)
        seconds = kernel_seconds(query, dense)
        rows.append(
            row(f"kernel, sequence of {length}, relevant event", seconds / count * 1e9, "ns/event", goal="<= 25")
        )
    seconds = kernel_seconds(query, np.full(count, length, np.int32))
    rows.append(row("kernel, irrelevant event", seconds / count * 1e9, "ns/event", goal="<= 4"))
    return rows


def kernel_seconds(query: Query, letters: npt.NDArray[np.int32], batch: int = 65536) -> float:
    """Run a sequence query over letters again and again: letter k is what step k asks for, others are nothing's."""
    run = AutomatonRun(query, build_automaton(query))
    automaton = run.automaton
    wanted = [*(set(atom.guard) for atom in automaton.automaton.atoms), set()]
    run.learn_letters([tuple(n == 0 or p in want for n, p in enumerate(automaton.predicates)) for want in wanted])
    times = np.arange(len(letters))
    horizons = times - (int(query.window.amount) if query.window else 0)

    def work() -> None:
        for clock in (times, horizons):  # time goes on
            np.add(clock, len(letters), out=clock)
        for low in range(0, len(letters), batch):
            part = slice(low, low + batch)
            here = times[part]
            for _ in run.run(tecs.Batch(letters[part], _ONE, here, horizons[part], here, here, _NO_PAYLOAD)):
                pass

    return cpu_seconds(work)
