"""Generated stock trades, the same for the same size: what CORE's stock experiments look like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SYMBOLS = 32


def symbol(number: int) -> str:
    """The name of a stock."""
    return f"S{number:02d}"


def trades(count: int, *, partitions: int = 1, seed: int = 7) -> pa.Table:
    """BUY and SELL events of 32 stocks, one each millisecond, prices from 0 to 100, with an account to partition by."""
    random = np.random.default_rng(seed)
    names = pa.array([symbol(k) for k in range(SYMBOLS)])
    kinds = pa.DictionaryArray.from_arrays(random.integers(0, 2, count).astype(np.int8), pa.array(["BUY", "SELL"]))
    stocks = pa.DictionaryArray.from_arrays(random.integers(0, SYMBOLS, count).astype(np.int8), names)
    return pa.table(
        {
            "type": kinds.cast(pa.string()),
            "ts": np.arange(count),
            "name": stocks.cast(pa.string()),
            "price": random.uniform(0, 100, count),
            "volume": random.integers(1, 1000, count),
            "account": random.integers(0, partitions, count),
        }
    )


def sequence(length: int, *, window: int, never: bool, partition: bool = False, form: str = "{}") -> str:
    """A query for trades of different stocks, in order, each above a price; `never`: the last does not come."""
    steps, filters = [], []
    for k in range(length):
        last = k == length - 1
        name = "NONE" if never and last else symbol(k)
        steps.append(form.format(f"SELL AS t{k}") if k > 0 and not last else f"SELL AS t{k}")
        filters.append(f"t{k}[name = '{name}'] AND t{k}[price > {10 + k}.5]")
    by = " PARTITION BY [account]" if partition else ""
    return f"SELECT * FROM Stock WHERE {' ; '.join(steps)} FILTER {' AND '.join(filters)}{by} WITHIN {window} EVENTS"
