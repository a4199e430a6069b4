"""Writes card payments: mostly ordinary shopping, and a few stolen cards. The same file every time.

python examples/cards/generate.py payments.parquet --payments 200000
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

SHOPS = ("bakery", "books", "fuel", "grocer", "jeweller", "kiosk", "phones", "travel")
MINUTE = 60_000  # one tick is a millisecond
SEED = 20


def payments(count: int, cards: int = 3000, thefts: int = 12, seed: int = SEED) -> Iterator[dict[str, object]]:
    """Payments in order of time; every so often a stolen card is tried and then emptied."""
    chance = random.Random(seed)
    stolen = set(range(count // (2 * thefts), count, max(1, count // thefts)))
    pending: list[tuple[int, dict[str, object]]] = []
    now = 0
    for number in range(count):
        now += chance.randrange(1, 400)
        while pending and pending[0][0] <= now:
            yield pending.pop(0)[1]
        if number in stolen:
            pending = sorted([*pending, *_theft(now, chance, cards)], key=lambda planned: planned[0])
        yield _payment(now, f"card-{chance.randrange(cards):04}", chance.lognormvariate(3.2, 0.8), chance.choice(SHOPS))
    yield from (payment for _, payment in pending)


def _theft(now: int, chance: random.Random, cards: int) -> list[tuple[int, dict[str, object]]]:
    card = f"card-{chance.randrange(cards):04}"
    times = [now + chance.randrange(MINUTE), now + chance.randrange(MINUTE, 3 * MINUTE)]
    probes = [(time, _payment(time, card, chance.uniform(0.5, 1.9), "kiosk")) for time in times]
    later = now + chance.randrange(4 * MINUTE, 8 * MINUTE)
    return [*probes, (later, _payment(later, card, chance.uniform(600, 2500), "jeweller"))]


def _payment(time: int, card: str, amount: float, shop: str) -> dict[str, object]:
    return {"type": "Payment", "ts": time, "card": card, "amount": round(amount, 2), "shop": shop}


def write(path: Path, count: int) -> None:
    """Write the payments as JSON lines or Parquet, by the file's ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(list(payments(count))), path)
        return
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(payment) + "\n" for payment in payments(count))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="payments.parquet or payments.jsonl")
    parser.add_argument("--payments", type=int, default=200_000)
    arguments = parser.parse_args()
    write(arguments.file, arguments.payments)
