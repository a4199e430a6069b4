"""What `make demo` shows: card fraud and a warehouse fire, found on an embedded Spark."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import weft

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "cards"))

import generate  # noqa: E402 - the generator of examples/cards

PAYMENTS = 200_000
console = Console()


def show_program(path: Path) -> None:
    """The query as it is written."""
    console.print(f"\n[bold]{path.relative_to(HERE.parent)}[/bold]")
    console.print(path.read_text().rstrip(), style="cyan", markup=False, highlight=False, soft_wrap=True)


def find_fraud(folder: Path) -> None:
    """Two tiny payments, then a large one, of the same card within ten minutes: over Parquet, on Spark."""
    from weft.runtime.spark.session import spark_session

    query = HERE / "cards" / "fraud.ceql"
    payments = folder / "payments.parquet"
    show_program(query)
    generate.write(payments, PAYMENTS)
    console.print(f"\nStarting Spark in this process, then reading {PAYMENTS:,} payments from Parquet …")
    session = spark_session()
    started = time.perf_counter()
    frame = weft.match(session.read.parquet(str(payments)), weft.compile(query))
    found = sorted(frame.collect(), key=lambda row: (row["end"], row["start"]))
    seconds = time.perf_counter() - started
    shops = pq.read_table(payments, columns=["ts", "amount"])
    table = Table(title=f"{len(found)} suspicious cards, found in {seconds:.1f} s")
    for title in ("card", "small payments", "large payment", "shop", "within"):
        table.add_column(title)
    for row in found:
        event = json.loads(row["event"])
        small = [shops["amount"][place].as_py() for place in row["positions"][:2]]
        minutes = (row["end"] - row["start"]) / 60_000
        table.add_row(
            event["card"],
            ", ".join(f"{amount:.2f}" for amount in small),
            f"{event['amount']:,.2f}",
            event["shop"],
            f"{minutes:.1f} min",
        )
    console.print(table)


def find_fire() -> None:
    """A cool reading, dry air, a hot reading, in one zone: over JSON lines, on Spark and in this process."""
    query, sensors = HERE / "fire" / "fire.ceql", HERE / "fire" / "sensors.jsonl"
    show_program(query)
    program = weft.compile(query)
    on_spark = list(weft.detect(sensors, program, engine="spark"))
    here = list(weft.detect(sensors, program, engine="local"))
    table = Table(title=f"{len(on_spark)} matches in {sensors.name}; the same in this process: {on_spark == here}")
    for title in ("query", "start", "end", "positions", "bindings", "event"):
        table.add_column(title)
    for match in on_spark:
        bindings = ", ".join(f"{name} = {list(places)}" for name, places in match.bindings.items())
        table.add_row(
            match.query, str(match.start), str(match.end), str(list(match.positions)), bindings, str(match.event)
        )
    console.print(table)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        find_fraud(Path(folder))
    find_fire()
    console.print("\nNext: docs/tutorial.md, or [bold].venv/bin/weft --help[/bold]")
