"""Step's experiments: whole queries (7.6), operators at their windows and in lanes (7.3), stabilisation (7.5).

The baseline is PyArrow evaluating the conditions on single events, or comparing neighbours, on the same table;
the whole engine runs from the Arrow table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.calls import calls, quotes, random_quotes
from benchmarks.measure import Row, cpu_seconds, row
from benchmarks.merging import stabilisation
from benchmarks.stages import staged
from benchmarks.step_lanes import parallel

import weft
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.reading.order import read_events

STOCK = 'topology "T"\nexternal Stock(name: string, price: int) < "stock.jsonl" [500000.0]\n'
CALL = (
    'topology "T"\nexternal Call(fromNo: string, toNo: string, unitPrice: int, accNo: string, userTyp: string) '
    '< "calls.jsonl" [180000.0]\n'
)
SPIKE = (
    STOCK + "Spike(S1.name, S1.price): "
    "(Stock/S1+[prev(S1.price) < S1.price && prev(S1.name) = S1.name && len > 75 && len < 200]) "
    ";[S1.name = S2.name && dur < 7200] "
    "(Stock/S2+[prev(S2.price) > S2.price && prev(S2.name) = S2.name && len > 100 && len < 300])"
)
FRAUD = (
    CALL + 'Fraud(Eve.accNo, Eve.fromNo): (Call/Eve[dur = 0 && Eve.userTyp = "secret"] '
    ";[Eve.fromNo = Alice.toNo && dur < 3600] Call/Alice[Alice.unitPrice > 10]) "
    "+[prev(Eve.accNo) = Eve.accNo && len > 10 && len < 50]"
)
PAIRS = (
    STOCK + "Q(A.name): (Stock/A[A.price > 900] ;[A.price > B.price + 960 && dur < 1000] Stock/B) "
    "+[prev(A.name) != A.name && len > 3 && len < 9]"
)
NEXT, CONJUNCTION, LENGTHS = (50, 500, 5000), (250, 2500, 25000), (10, 100)  # of the document


def run(scale: float = 1.0) -> list[Row]:
    """All cases; `scale` multiplies the number of events."""
    count = max(1 << 14, int(1_000_000 * scale))
    alone = [*_whole_queries(count), *_operators(count // 4), *stabilisation(count), *_sharing(count // 8)]
    return [*alone, *parallel(count // 20), *in_stages(count)]


def in_stages(count: int) -> Iterator[Row]:
    """Whole queries with their operators on nodes, where a greedy iteration keeps the whole in one lane."""
    cases = (
        ("stock spike", quotes(count), SPIKE),
        ("mobile fraud", calls(count), FRAUD),
        ("runs of pairs without a key", random_quotes(count // 10, companies=1000, together=1), PAIRS),
    )
    for case, table, text in cases:
        program = weft.compile(text, language="step")
        batch = blocks.concat(list(read_events(table, columns=plan(program).columns)))
        yield from staged(case, program, batch, (2, 4))


def _rate(table: pa.Table, text: str, *, repeats: int = 3) -> float:
    """Events per second of CPU time."""
    program = weft.compile(text, language="step")
    return len(table) / cpu_seconds(lambda: weft.count(table, program), repeats=repeats)


def _meaning_rate(table: pa.Table, text: str, events: int) -> float:
    """The same by the definition, on the first events; both must give the same matches."""
    program = weft.compile(text, language="step")
    few = table.slice(0, events).to_pylist()
    if weft.count(few, program) != weft.count(few, program, engine="meaning"):
        raise RuntimeError(f"the engine and the definition disagree about {text!r}")
    return events / cpu_seconds(lambda: weft.count(few, program, engine="meaning"), repeats=1)


def _case(case: str, table: pa.Table, text: str, goal: str, baseline: float, few: int) -> list[Row]:
    rate = _rate(table, text)
    meant = _meaning_rate(table, text, few)
    return [
        row(case, rate / 1e6, "M events/s", "PyArrow's predicates", baseline / rate, goal),
        row(f"{case}, by the definition on {few} events", meant / 1e6, "M events/s", case, rate / meant),
    ]


def _whole_queries(count: int) -> list[Row]:
    stock, phone = quotes(count), calls(count)

    def compare_quotes() -> None:
        for symbol in (pc.less, pc.greater):
            symbol(stock["price"].slice(0, count - 1), stock["price"].slice(1))
        pc.equal(stock["name"].slice(0, count - 1), stock["name"].slice(1))

    def compare_calls() -> None:
        pc.equal(phone["userTyp"], "secret")
        pc.equal(phone["start"], phone["end"])
        pc.greater(phone["unitPrice"], 10)
        pc.equal(phone["fromNo"], phone["toNo"])

    return [
        *_case("stock spike, 30 companies", stock, SPIKE, ">= 3", count / cpu_seconds(compare_quotes), 1000),
        *_case("mobile fraud, 100 customers", phone, FRAUD, ">= 1.5", count / cpu_seconds(compare_calls), 400),
    ]


def _operators(count: int) -> list[Row]:
    """Each operator alone; what a larger window costs beyond its matches shows in the ratio."""
    keyed, keyless = random_quotes(count, companies=1000), random_quotes(count // 16)
    pairs, single = random_quotes(count, together=2), random_quotes(count, together=1)
    higher, alike = "A.price < B.price", "prev(S.name) = S.name && prev(S.price) != S.price"
    nothing = 'external No(x: int) < "no.jsonl" [0.0]\n'
    return [
        *_windows("greedy next, key", keyed, f"Stock/A ;[A.name = B.name && {higher} && dur < @] Stock/B", NEXT),
        *_windows("any next, key", keyed, f"Stock/A ;?[A.name = B.name && {higher} && dur < @] Stock/B", NEXT),
        *_windows("greedy next, no key", keyless, f"Stock/A ;[{higher} && dur < @] Stock/B", NEXT),
        *_windows("conjunction, key", pairs, "Stock/A ,[A.name = B.name && dur < @] Stock/B", CONJUNCTION),
        *_windows("conjunction, no key", pairs, "Stock/A ,[A.price != B.price && dur < @] Stock/B", CONJUNCTION),
        *_windows("greedy iteration", single, f"Stock/S +[{alike} && len < @]", LENGTHS),
        *_windows("any iteration", single.slice(0, count // 100), f"Stock/S +?[{alike} && len < @]", LENGTHS),
        *_windows("exception before, nothing unwanted", single, "!No ; Stock", (0,), nothing),
    ]


def _windows(name: str, table: pa.Table, pattern: str, windows: Sequence[int], more: str = "") -> list[Row]:
    """One pattern at several windows: events per second, and the cost per event and match beside the smallest's."""
    rows: list[Row] = []
    first = 0.0
    for window in windows:
        text = f"{STOCK}{more}Q(*): {pattern.replace('@', str(window))}"
        matches = weft.count(table, weft.compile(text, language="step"))["Q"]
        rate = _rate(table, text, repeats=2)
        cost = len(table) / rate / (len(table) + matches)
        first = first or cost
        case = f"{name}, {window}, {matches / len(table):.3g} matches per event" if window else name
        scale, unit = (1e6, "M events/s") if rate > 1e5 else (1e3, "k events/s")
        rows.append(row(case, rate / scale, unit, f"per event and match, {windows[0]}" if window else "", cost / first))
    return rows


def _sharing(count: int) -> list[Row]:
    """A hundred queries that begin alike, and the same number that begin each in its own way."""
    table = random_quotes(count, companies=1000)

    def queries(first: str) -> str:
        return STOCK + "\n".join(
            f"Q{n}(*): (Stock/A{n} ;[A{n}.name = B{n}.name && {first.format(n=n, limit=900 + n / 1000)} && dur < 50] "
            f"Stock/B{n}) ;[B{n}.name = C{n}.name && dur < {60 + n}] Stock/C{n}[C{n}.price > 990]"
            for n in range(100)
        )

    shared = len(table) / _rate(table, queries("A{n}.price > 900"), repeats=1)
    apart = len(table) / _rate(table, queries("A{n}.price > {limit}"), repeats=1)
    return [row("100 queries with one first half", shared, "s", "each with its own", shared / apart, "< 0.6")]
