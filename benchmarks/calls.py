"""Generated stock quotes and telephone calls, the same for the same size: what Step's experiments look like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

COMPANIES, CUSTOMERS = 30, 100


def quotes(count: int, *, companies: int = COMPANIES, interleaved: bool = False, seed: int = 7) -> pa.Table:
    """Quotes at strictly rising times, prices rising and falling for random lengths of up to 250 quotes.

    Runs of one company after the other, so that there is something to find; `interleaved`: any company at any time.
    """
    random = np.random.default_rng(seed)
    lengths = random.integers(50, 250, count // 50 + 1)
    turns = np.repeat(np.arange(len(lengths)), lengths)[:count]
    steps = np.where(turns % 2 == 0, 1, -1) * random.integers(1, 4, count)
    names = (turns // 2) % companies if not interleaved else random.integers(0, companies, count)
    texts = pa.array([f"C{k:02d}" for k in range(companies)])
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), pa.array(["Stock"])).cast(pa.string()),
            "ts": np.arange(count),
            "name": pa.DictionaryArray.from_arrays(names.astype(np.int8), texts).cast(pa.string()),
            "price": 10_000 + np.cumsum(steps),
        }
    )


def random_quotes(count: int, *, together: int = 10, companies: int = 1, seed: int = 7) -> pa.Table:
    """Quotes with prices around one value, so many at each time."""
    random = np.random.default_rng(seed)
    texts = pa.array([f"C{k:04d}" for k in range(companies)])
    names = pa.DictionaryArray.from_arrays(random.integers(0, companies, count).astype(np.int16), texts)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), pa.array(["Stock"])).cast(pa.string()),
            "ts": np.arange(count) // together,
            "name": names.cast(pa.string()),
            "price": random.integers(1, 1000, count),
        }
    )


def calls(count: int, *, seed: int = 7) -> pa.Table:
    """A quarter missed calls of one adversary, a quarter calls back of victims, the rest between others."""
    random = np.random.default_rng(seed)
    kinds = random.choice(4, count)
    numbers = np.array([f"0{k:03d}" for k in range(CUSTOMERS)])
    froms = np.where(kinds == 0, 0, random.integers(1, CUSTOMERS, count))
    tos = np.where(kinds == 1, 0, random.integers(1, CUSTOMERS, count))
    ends = np.arange(count) * 20
    durations = np.where(kinds == 0, 0, random.integers(1, 16, count))
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), pa.array(["Call"])).cast(pa.string()),
            "start": ends - durations,
            "end": ends,
            "fromNo": pa.array(numbers[froms]),
            "toNo": pa.array(numbers[tos]),
            "accNo": pa.array(numbers[froms]),
            "userTyp": pa.array(np.where(kinds == 0, "secret", "open")),
            "unitPrice": np.where(kinds == 1, 20, 5),
        }
    )
