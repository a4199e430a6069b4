"""Load shedding: how many matches are still found when half of the events are left out, and what waits in a burst.

`utility` leaves out what matters least, `random` anything; the whole stream is the baseline. The stocks and cards are
those of the examples.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import weft

EXAMPLES = Path(__file__).parent.parent / "examples"
PUSH = 1000  # events pushed at a time
Row = dict[str, Any]


def run(scale: float = 1.0) -> Iterator[Row]:
    """Recall with half of the events shed, on both examples; then a burst of ten times what can be matched."""
    root = str(EXAMPLES.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    from examples.cards.generate import payments
    from examples.stocks.generate import trades

    cards = list(payments(int(100_000 * scale), thefts=max(20, int(200 * scale))))
    stocks = list(trades(int(20_000 * scale)))
    for name, file, events in (("fraud", "cards/fraud.ceql", cards), ("stock", "stocks/dip.ceql", stocks)):
        program = weft.compile(EXAMPLES / file)
        yield from recalls(name, program, events)
    yield from burst(weft.compile(EXAMPLES / "cards/fraud.ceql"), cards)


def recalls(name: str, program: weft.Program, events: list[dict[str, object]]) -> Iterator[Row]:
    """The share of matches that are found when half of the events are shed."""
    whole, _ = found(program, events, None)
    for policy in ("utility", "random"):
        ids, counters = found(program, events, weft.Shed(share=0.5, policy=policy))  # type: ignore[arg-type]
        assert ids <= whole, "a match that is none"
        yield {
            "case": f"{name}: recall, {policy}, {counters.get('shed', 0) / len(events):.0%} of {len(events):,} shed",
            "value": len(ids),
            "unit": f"of {len(whole):,} matches",
            "baseline": "all events",
            "ratio": len(ids) / max(1, len(whole)),
            "goal": "≥ 0.9" if policy == "utility" else None,
        }


def found(program: weft.Program, events: list[dict[str, object]], shed: weft.Shed | None) -> tuple[set[str], Any]:
    """The ids of the matches, pushed as they would come, and what was counted."""
    ids: set[str] = set()
    running = weft.live(program, shed=shed)
    for at in range(0, len(events), PUSH):
        ids.update(match.id for match in running.push(events[at : at + PUSH]))
    ids.update(match.id for match in running.finish())
    return ids, running.counters


def burst(program: weft.Program, events: list[dict[str, object]]) -> Iterator[Row]:
    """Ten times as many events as are matched in the same time, through a queue that sheds: what waits, what is lost.

    The rate that can be sustained is measured first; then all events come as fast as a tenth of that time allows.
    """
    whole, _ = found(program, events, None)
    room, most, ids = 5 * PUSH, 0, set[str]()
    started = time.perf_counter()
    with weft.live(program, queue=room) as steady:
        for at in range(0, len(events), PUSH):
            steady.push(events[at : at + PUSH])
        steady.join()
        seconds = time.perf_counter() - started
    pause = seconds / 10 / (len(events) / PUSH)
    with weft.live(program, queue=room, when_full="drop") as running:
        running.subscribe("*", lambda match: ids.add(match.id))
        started = time.perf_counter()
        for number, at in enumerate(range(0, len(events), PUSH)):
            running.push(events[at : at + PUSH])
            most = max(most, running.queued)
            time.sleep(max(0.0, started + (number + 1) * pause - time.perf_counter()))
        sent = time.perf_counter() - started
        running.join()
        counters = running.counters
    assert ids <= whole, "a match that is none"
    rate = (len(events) / sent) / (len(events) / seconds)
    yield {
        "case": f"burst: {rate:.1f} times the sustainable rate; most that waited, room for {room:,}",
        "value": most,
        "unit": "events",
        "baseline": "twice the room",
        "ratio": most / (2 * room),
        "goal": "≤ 1",
    }
    yield {
        "case": f"burst: recall, {counters.get('shed', 0) / len(events):.0%} shed",
        "value": len(ids),
        "unit": f"of {len(whole):,} matches",
        "baseline": "all events",
        "ratio": len(ids) / max(1, len(whole)),
    }
