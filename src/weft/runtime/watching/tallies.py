"""What lanes count of the events that pass, trigger by trigger: how many of each type, how often conditions hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from weft.algebra.query import Program
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.watching.measuring import PIECE, Measure
from weft.statistics import Statistics
from weft.stored import Plain

Asked = tuple[int, int]  # of how many events a condition is true, and of how many it was asked


class Tallying:
    """Counts for one lane. All its own events count by type; conditions are asked of the first ones of each batch."""

    def __init__(self, program: Program, *, apart: bool) -> None:
        self._measure = Measure(program, apart=True, ties=False)
        self._apart = apart  # no other lane counts its own events
        self._types: Counter[str] = Counter()
        self._told: dict[str, Asked] = {}  # up to now
        self._times: tuple[int, int] | None = None

    def look(self, batch: EventBatch, own: EventBatch | None = None) -> None:
        """Take note of events; `own` are those that are counted (None: all), the others are copies."""
        if len(batch):
            first = int(batch.starts[0]) if self._times is None else self._times[0]
            self._times = first, int(batch.ends[-1])
            counts = pc.value_counts((batch if own is None else own).types)
            for type_, count in zip(*(counts.field(part).to_pylist() for part in (0, 1)), strict=True):
                self._types[type_ or ""] += count
            self._measure.look(blocks.slice(batch, 0, PIECE))

    def of_chunk(self, batch: EventBatch) -> Plain:
        """What was counted of some events alone, or None if there are none."""
        self.look(batch)
        return self.told()

    def told(self) -> Plain:
        """What was counted since this was asked last, or None if nothing came."""
        if self._times is None:
            return None
        before, self._told = self._told, self._measure.asked
        asked = {
            text: [one - other for one, other in zip(now, before.get(text, (0, 0)), strict=True)]
            for text, now in self._told.items()
        }
        types, self._types = self._types, Counter()
        times, self._times = self._times, None
        types.pop("", None)  # events without a type
        return {
            "types": dict(types),
            "asked": asked,
            "times": times,
            "apart": self._apart,
            "ticks": self._measure.ticks,
        }


def together(told: Iterable[Plain]) -> Plain:
    """What was told of several chunks, as if it were of one, or None if nothing was."""
    found = None
    for one in told:
        if found is None or one is None:
            found = one if found is None else found
            continue
        types = Counter(found["types"])
        types.update(one["types"])
        held = [(text, found["asked"].get(text, (0, 0)), one["asked"][text]) for text in one["asked"]]
        asked = {text: [before[0] + now[0], before[1] + now[1]] for text, before, now in held}
        times = min(found["times"][0], one["times"][0]), max(found["times"][1], one["times"][1])
        found = {**found, "types": dict(types), "asked": asked, "times": times}
    return found


@dataclass
class Tallies:
    """What all lanes counted so far."""

    def __post_init__(self) -> None:
        self._types: Counter[str] = Counter()
        self._asked: dict[str, Asked] = {}
        self._times: tuple[int, int] | None = None
        self._ticks = 1000.0

    def add(self, told: Iterable[Mapping[str, Plain]]) -> None:
        """Add the reports of the lanes for one trigger. Of lanes that see copies, the largest report counts."""
        apart: Counter[str] = Counter()
        most: Counter[str] = Counter()
        for one in told:
            if one["apart"]:
                apart.update(one["types"])
            else:
                most |= Counter(one["types"])
            for text, (held, of) in one["asked"].items():
                before = self._asked.get(text, (0, 0))
                self._asked[text] = before[0] + held, before[1] + of
            first, last = self._times or one["times"]
            self._times = min(first, one["times"][0]), max(last, one["times"][1])
            self._ticks = one["ticks"]
        self._types.update(apart | most)

    def statistics(self) -> Statistics:
        """The rates and selectivities that this comes to."""
        seconds = 1.0 if self._times is None else max(self._times[1] - self._times[0], 1) / self._ticks
        rates = {type_: count / seconds for type_, count in sorted(self._types.items())}
        selectivity = {text: held / of for text, (held, of) in self._asked.items() if of}
        return Statistics(rates, selectivity, origin="measured", ticks_per_second=self._ticks)
