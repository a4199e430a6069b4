"""A zoomable timeline of matches as one HTML page that needs no network: a row for each key, an arc for each step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from weft.drawing.scene import Moment, Row, moment_of
from weft.drawing.svg import COLOURS, element, shortened

LONGEST = 60  # letters of a value
HEIGHT = 420  # pixels in a notebook
Point = tuple[float, int, str]  # a time, the number of a row, and a text


@dataclass(frozen=True)
class Plot:
    """A timeline that a notebook shows, and that `save` writes as one HTML file."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return its path.

        Args:
            path: The file of the page.
        """
        file = Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        return element("iframe", " ", srcdoc=self.html, width="100%", height=HEIGHT, style="border:0")

    def __repr__(self) -> str:
        return "<timeline: show it in a notebook, or save('timeline.html')>"


@dataclass
class PlotData:
    """What the page draws: events as points in rows, and matches as chains of points."""

    row_of: str  # the attribute that says in which row an event is
    time: str = "ts"
    type: str = "type"
    rows: dict[str, int] = field(default_factory=dict)
    events: list[Point] = field(default_factory=list)
    matches: list[dict[str, Any]] = field(default_factory=list)
    has_dates: bool = False

    def add_event(self, event: Row) -> None:
        """Draw an event that is part of no match, if its time is known."""
        point = self._point(event)
        if point is not None:
            self.events.append(point)

    def add_match(self, match: Row) -> None:
        """Draw a match with the events that its `variables` show."""
        variables = match.get("variables") or {}
        found = [
            point
            for name, events in variables.items()
            for event in (() if events is None else events)
            if (point := self._point(event, f"{name} <- ")) is not None
        ]
        if found:
            self.matches.append({"query": str(match.get("query")), "events": sorted(found)})

    def page(self, total: int) -> Plot:
        """Return the page for the first of `total` matches."""
        times = [point[0] for point in self.events] + [point[0] for one in self.matches for point in one["events"]]
        some = f", {len(self.matches):,} shown" if len(self.matches) < total else ""
        data = {
            "title": f"{total:,} match{'es' * (total != 1)}{some}",
            "queries": list(dict.fromkeys(one["query"] for one in self.matches)),
            "rows": list(self.rows),
            "matches": self.matches,
            "events": self.events,
            "from": min(times, default=0),
            "to": max(times, default=1),
            "dates": self.has_dates,
            "colours": COLOURS,
        }
        return Plot(_template().replace("/*DATA*/", _inside_script(data)))

    def _point(self, event: Mapping[str, Any], before: str = "") -> Point | None:
        when = _when(event.get(self.time, event.get("end")))
        if when is None:
            return None
        if isinstance(when, datetime):
            self.has_dates = True
            when = when.timestamp() * 1000
        row = self.rows.setdefault(shortened(event.get(self.row_of, ""), LONGEST), len(self.rows))
        hidden = (self.time, self.type)
        lines = [f"{name} = {shortened(value, LONGEST)}" for name, value in event.items() if name not in hidden]
        head = f"{before}{event.get(self.type, '')} at {event.get(self.time, event.get('end'))}"
        return float(when), row, "\n".join([head, *lines])


def _when(value: object) -> Moment | None:
    """Return the time of an event; dates in texts count as dates."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    return moment_of(value)


@cache
def _template() -> str:
    return Path(__file__).with_name("plot.html").read_text(encoding="utf-8")


def _inside_script(data: object) -> str:
    """Write JSON that cannot end the script element it is in."""
    return json.dumps(data, ensure_ascii=True, default=str).replace("<", "\\u003c")
