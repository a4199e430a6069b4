"""What operators of sequences and unions take here, as prices: fitted to random patterns over random rates, as written.

`weft.optimizer.join_order` chooses by these prices the form in which a rewritten query runs. The rows say what was
fitted beside what it uses, and how far what it expects lies from what was measured.
"""

from __future__ import annotations

import random
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from benchmarks.measure import Row, Steady, row
from benchmarks.next import program_of

import weft
from weft.algebra.composites import Composite, CompositeEvent, CompositeSequence, CompositeUnion
from weft.optimizer.cost import Costs
from weft.optimizer.join_order import PRICES, Prices, amounts_of
from weft.plan.planner import plan
from weft.runtime.reading.order import read_events

TYPES = [f"T{number}" for number in range(8)]
UNIONS = (0.0, 0.0, 0.3, 0.3, 0.6, 1.0)  # of the operators of a pattern, about
EVENTS = 500_000
Numbers = npt.NDArray[np.float64]


def run(scale: float = 1.0) -> list[Row]:
    """Measure and fit; `scale` multiplies the number of events and of patterns."""
    dice, amounts, taken = random.Random(1), list[list[float]](), list[float]()
    for world in range(max(2, int(12 * scale))):
        rates = {name: 2 ** dice.uniform(0, 7.5) for name in TYPES}
        batches = list(read_events(events_of(rates, max(40_000, int(EVENTS * scale)), world), columns=()))
        for _ in range(max(12, int(25 * scale))):
            pattern = random_tree(dice, dice.randint(1, 6), dice.choice(UNIONS), count())
            steady = Steady([plan(program_of([pattern]))], batches)
            steady.measure(4)
            amounts.append(amounts_for(pattern, rates))
            taken.append(1e9 * steady.seconds[0] / steady.events)
    done, nanoseconds = np.array(amounts), np.array(taken)
    fitted = fit(done, nanoseconds)
    rows = [
        row(f"{name}, fitted", price, "ns", "used", price / used)
        for name, price, used in zip(Prices._fields, fitted, PRICES, strict=True)
    ]
    for case, prices in (("fitted", fitted), ("used", np.array(PRICES))):
        errors = done @ prices / nanoseconds
        for part in (0.05, 0.5, 0.95):
            found = float(np.quantile(errors, part))
            rows.append(row(f"expected by the prices {case}, quantile {part}", found, "times", "measured", found))
    return rows


def events_of(rates: dict[str, float], events: int, seed: int) -> pa.Table:
    """About so many events of Poisson sources, in order; times are in milliseconds."""
    seconds, dice = events / sum(rates.values()), np.random.default_rng(seed)
    own = [np.sort(dice.integers(0, int(1000 * seconds), dice.poisson(rate * seconds))) for rate in rates.values()]
    times = np.concatenate(own)
    types = np.repeat(list(rates), [len(one) for one in own])
    order = np.argsort(times, kind="stable")
    return pa.table({"type": types[order], "ts": times[order]})


def random_tree(dice: random.Random, operators: int, unions: float, names: count[int]) -> Composite:
    """A tree of so many operators, of which about so many are unions."""
    if not operators:
        return CompositeEvent(dice.choice(TYPES), f"v{next(names)}")
    left = dice.randrange(operators)
    one, other = (random_tree(dice, size, unions, names) for size in (left, operators - 1 - left))
    return CompositeUnion(one, other) if dice.random() < unions else CompositeSequence(one, other, "next")


def amounts_for(pattern: Composite, rates: dict[str, float]) -> list[float]:
    """How much of what has a price there is for each event."""
    total = sum(rates.values())
    sums = dict.fromkeys(Prices._fields, 0.0) | {"event": total}
    for own in amounts_of([pattern], Costs(weft.Statistics(rates))).values():
        for name, amount in own.items():
            sums[name] += amount
    return [amount / total for amount in sums.values()]


def fit(amounts: Numbers, nanoseconds: Numbers) -> Numbers:
    """The prices, none below 0, of least relative errors; without the twentieth of the patterns that fits worst."""
    kept = np.ones(len(nanoseconds), bool)
    for _ in range(2):
        used, scaled = list(range(amounts.shape[1])), amounts[kept] / nanoseconds[kept][:, None]
        while (found := np.linalg.lstsq(scaled[:, used], np.ones(len(scaled)))[0]).min() < 0:
            del used[int(found.argmin())]
        prices = np.zeros(amounts.shape[1])
        prices[used] = found
        errors = np.abs(np.log(np.maximum(amounts @ prices, 1e-9) / nanoseconds))
        kept = errors <= np.quantile(errors, 0.95)
    return prices
