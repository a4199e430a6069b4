"""Writes trades of a few made-up stocks, prices walking at random. The same file every time.

python examples/stocks/generate.py trades.csv --trades 100000
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Iterator
from pathlib import Path

STOCKS = {"ALFA": 40.0, "BETA": 25.0, "GAMA": 110.0, "DELT": 70.0, "EPSI": 15.0}
FIELDS = ("type", "ts", "name", "volume", "price")
SEED = 7


def trades(count: int, seed: int = SEED) -> Iterator[dict[str, object]]:
    """Trades in order of time (milliseconds since the market opened)."""
    chance = random.Random(seed)
    prices = dict(STOCKS)
    now = 0
    for _ in range(count):
        now += chance.randrange(0, 200)
        name = chance.choice(list(STOCKS))
        prices[name] = max(1.0, prices[name] * (1 + chance.gauss(0, 0.002)))
        yield {
            "type": chance.choice(("BUY", "SELL")),
            "ts": now,
            "name": name,
            "volume": chance.choice((100, 200, 500, 1000)),
            "price": round(prices[name], 2),
        }


def write(path: Path, count: int) -> None:
    """Write the trades as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(trades(count))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="trades.csv")
    parser.add_argument("--trades", type=int, default=100_000)
    arguments = parser.parse_args()
    write(arguments.file, arguments.trades)
