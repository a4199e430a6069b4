"""What `make demo` shows: card fraud and a warehouse fire, found on an embedded Spark."""

from __future__ import annotations

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
FIRE, SENSORS = HERE / "fire" / "fire.ceql", HERE / "fire" / "sensors.jsonl"
console = Console()


def show_program(path: Path) -> None:
    """The query as it is written."""
    console.print(f"\n[bold]{path.relative_to(HERE.parent)}[/bold]")
    console.print(path.read_text().rstrip(), style="cyan", markup=False, highlight=False, soft_wrap=True)


def find_fraud(folder: Path) -> None:
    """Two tiny payments, then a large one, of the same card within ten minutes: over Parquet, on Spark."""
    query = HERE / "cards" / "fraud.ceql"
    payments = folder / "payments.parquet"
    show_program(query)
    generate.write(payments, PAYMENTS)
    console.print(f"\nStarting Spark on this machine, then matching {PAYMENTS:,} payments from Parquet …")
    session = weft.spark_session()
    started = time.perf_counter()
    frame = weft.match(session.read.parquet(str(payments)), weft.compile(query), positions=True)
    found = sorted(frame.collect(), key=lambda row: (row["end"], row["start"]))
    seconds = time.perf_counter() - started
    shops = pq.read_table(payments, columns=["ts", "amount"])
    table = Table(title=f"{len(found)} suspicious cards, found in {seconds:.1f} s")
    for title in ("card", "small payments", "large payment", "shop", "within"):
        table.add_column(title)
    for row in found:
        event = row["event"]
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
    """A cool reading, dry air, a hot reading, in one zone: over JSON lines, in this process and on Spark."""
    show_program(FIRE)
    console.print("\nMatching in this process; a first run without compiled kernels takes half a minute longer …")
    matches = list(weft.detect(SENSORS, weft.compile(FIRE)))
    table = Table(title=f"{len(matches)} matches in {SENSORS.name}")
    for title in ("query", "start", "end", "positions", "bindings", "event"):
        table.add_column(title)
    for match in matches:
        bindings = ", ".join(f"{name} = {list(places)}" for name, places in match.bindings.items())
        values = (match.query, match.start, match.end, list(match.positions), bindings, match.event)
        table.add_row(*map(str, values))
    console.print(table)


def compare_engines() -> None:
    """The same query over the same file gives the same matches, ids included, on Spark."""
    program = weft.compile(FIRE)
    same = list(weft.detect(SENSORS, program, engine="spark")) == list(weft.detect(SENSORS, program))
    console.print(f"\nThe fire again, this time on Spark: {'the same matches' if same else 'OTHER MATCHES'}.")


if __name__ == "__main__":
    find_fire()
    with tempfile.TemporaryDirectory() as folder:
        find_fraud(Path(folder))
    compare_engines()
    console.print("\nNext: docs/tutorial.md, or [bold].venv/bin/weft --help[/bold]")
