"""Load shedding: how many matches are still found when half of the events are left out, and what waits in a burst.

`utility` leaves out what matters least, `random` anything; the whole stream is the baseline. The stocks and cards are
those of the examples; and others of another seed, on which nothing was ever tried out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import weft

EXAMPLES = Path(__file__).parent.parent / "examples"
UNSEEN = 271_828
PUSH = 1000  # events pushed at a time
Row = dict[str, Any]


def run(scale: float = 1.0) -> Iterator[Row]:
    """Recall with half of the events shed, on both examples; then a burst of ten times what can be matched."""
    root = str(EXAMPLES.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    from examples.cards.generate import payments
    from examples.stocks.generate import trades

    fraud, dip = weft.compile(EXAMPLES / "cards/fraud.ceql"), weft.compile(EXAMPLES / "stocks/dip.ceql")
    for which, own in (("", {}), (" (unseen)", {"seed": UNSEEN})):
        cards = list(payments(int(100_000 * scale), thefts=max(20, int(200 * scale)), **own))
        yield from recalls(f"fraud{which}", fraud, cards)
        yield from recalls(f"stock{which}", dip, list(trades(int(20_000 * scale), **own)))
    yield from burst(fraud, cards)


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

    The rate that can be sustained is measured first; then all events come as fast as a tenth of that time allows. A
    queue that is full sheds half at most, and then who sends waits: the rate that was reached is told.
    """
    pieces = [events[at : at + PUSH] for at in range(0, len(events), PUSH)]
    whole, _ = found(program, events, None)
    room, most, ids = 5 * PUSH, 0, set[str]()
    usual, bytes_held = 0, 0
    started = time.perf_counter()
    with weft.live(program, queue=room) as steady:
        for piece in pieces:
            steady.push(piece)
        steady.join()
        seconds = time.perf_counter() - started
        usual = steady.state_bytes
    pause = seconds / 10 / (len(events) / PUSH)
    with weft.live(program, queue=room, when_full="drop") as running:
        running.subscribe("*", lambda match: ids.add(match.id))
        started = time.perf_counter()
        for number, piece in enumerate(pieces):
            running.push(piece)
            most = max(most, running.queued)
            time.sleep(max(0.0, started + (number + 1) * pause - time.perf_counter()))
        sent = time.perf_counter() - started
        running.join()
        counters, bytes_held = running.counters, running.state_bytes
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
        "case": "burst: state after it",
        "value": bytes_held,
        "unit": "bytes",
        "baseline": "the same events without a burst",
        "ratio": bytes_held / max(1, usual),
    }
    yield {
        "case": f"burst: recall, {counters.get('shed', 0) / len(events):.0%} shed",
        "value": len(ids),
        "unit": f"of {len(whole):,} matches",
        "baseline": "all events",
        "ratio": len(ids) / max(1, len(whole)),
    }
