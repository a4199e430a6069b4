"""What a program found in a sample: timeline, matches and events, in each of which matches and events can be chosen."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from typing import Any

from nicegui import ui

from weft.errors import plural
from weft.workbench.pages.frame import button, card, picture, table
from weft.workbench.pages.readings import draw_funnels
from weft.workbench.trying import Tried

MATCH_COLUMNS = ("query", "start", "end", "positions", "bindings", "event")
# A click tells which mark or arc it hit; those that are chosen are marked in the page.
HIT = """(e) => {
  const hit = e.target.closest("[class^=weft-at-],[class^=weft-match-]");
  if (hit) emit(hit.classList[0]);
}"""
MARK = """
for (const part of document.querySelectorAll("[data-testid=timeline] g[class^=weft-]"))
  part.classList.toggle("weft-chosen", CHOSEN.includes(part.classList[0]));
"""


class FoundParts:
    """The parts of the page that show matches. Callers add to `below_matches` and `below_events`."""

    def __init__(self, tried: Tried) -> None:
        self._tried = tried
        self._chosen: set[int] = set()
        self._match: int | None = None
        self._positions: ui.input | None = None
        if not tried.is_table:
            self._draw_timeline()
        with card("Rows that are found" if tried.is_table else "Matches") as self.below_matches:
            ui.label(_total(tried)).props('data-testid="total"')
            for note in tried.notes:
                ui.label(note).classes("weft-doubt weft-mono")
            self._list_matches()
            self._detail = ui.column().classes("w-full gap-1").props('data-testid="match"')
        if any(len(steps) > 1 for steps in tried.funnels.values()):
            with card("How far partial matches came"):
                draw_funnels(tried.funnels)
        with card("Rows of the table" if tried.is_table else "Events") as self.below_events:
            if not tried.is_table:
                hint = "Choose some, here or on the timeline, and ask why they are a match or not."
                ui.label(hint).classes("weft-quiet")
            self._events = self._list_events()

    @property
    def chosen(self) -> list[int]:
        """The positions of the events that are chosen."""
        return sorted(self._chosen)

    def add_positions(self) -> None:
        """A field with the positions that are chosen, which can be written as well."""
        self._positions = ui.input("positions").props('dense outlined data-testid="positions"')
        self._positions.on("keydown.enter", self._written).on("blur", self._written)

    def _draw_timeline(self) -> None:
        with card("Timeline"):
            self._lanes = ui.toggle({"type": "lanes by type", "variable": "by variable"}, value="type")
            self._lanes.props('dense no-caps unelevated data-testid="lanes-by"').on_value_change(self._redraw)
            self._timeline = picture(self._tried.timeline, "timeline")
            self._timeline.on("click", self._hit, js_handler=HIT)

    # -- tables ---------------------------------------------------------------------------------

    def _list_matches(self) -> None:
        rows = [{"number": number, **row} for number, row in enumerate(map(self._match_row, self._tried.matches))]
        fields = list(dict.fromkeys(name for row in rows for name in row if name != "number"))
        columns = fields if self._tried.is_table else MATCH_COLUMNS
        with ui.row().classes("w-full items-center gap-2"):
            search = ui.input(placeholder="filter").props('dense outlined clearable data-testid="filter-matches"')
            ui.space()
            button("JSON lines", self._download, "download", "outline dense icon=download padding='xs sm'")
            button("CSV", self._download_csv, "download-csv", "outline dense icon=download padding='xs sm'")
        found = table(columns, rows, "number", "matches").classes("" if self._tried.is_table else "weft-choose")
        found.props('no-data-label="no match: see below how far partial matches came, or choose events and ask why"')
        search.bind_value_to(found, "filter")
        if not self._tried.is_table:
            found.on("rowClick", lambda event: self._choose_match(int(event.args[1]["number"])))

    def _match_row(self, match: Mapping[str, Any]) -> dict[str, Any]:
        """A match as texts; a row of SQL as its own columns."""
        if self._tried.is_table:
            return {name: _text(value) for name, value in match["event"].items()}
        return {name: _text(match.get(name)) for name in MATCH_COLUMNS}

    def _download(self) -> None:
        """Give the matches to the browser, one JSON object a line."""
        shown = (match["event"] if self._tried.is_table else match for match in self._tried.matches)
        lines = (json.dumps(one, default=str, ensure_ascii=False) for one in shown)
        ui.download.content("\n".join(lines) + "\n", "matches.jsonl")

    def _download_csv(self) -> None:
        """Give the matches to the browser as a table, with a column for each field of their events."""
        own = () if self._tried.is_table else MATCH_COLUMNS[:-1]
        rows = [
            {**{name: _text(match.get(name)) for name in own}, **(match.get("event") or {})}
            for match in self._tried.matches
        ]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
        ui.download.content(text.getvalue(), "matches.csv")

    def _list_events(self) -> ui.table:
        names = list(dict.fromkeys(name for row in self._tried.events for name in row))
        rows = [{name: _text(value) for name, value in row.items()} for row in self._tried.events]
        if self._tried.is_table:
            return table(names, rows, "position", "events", 12)
        return table(names, rows, "position", "events", 12, selection="multiple", on_select=self._selected)

    # -- choosing -------------------------------------------------------------------------------

    def _hit(self, event: Any) -> None:
        kind, _, number = str(event.args).rpartition("-")
        if not number.isdigit():
            return
        if kind == "weft-match":
            self._choose_match(int(number))
        else:
            self._choose(self._chosen ^ {int(number)})

    def _choose_match(self, number: int) -> None:
        """Select the events of a match, and show them."""
        if number >= len(self._tried.matches):
            return
        match = self._tried.matches[number]
        self._choose({int(position) for position in match["positions"]}, number)
        self._detail.clear()
        with self._detail:
            ui.label(f"{match['query']}, from {match['start']} to {match['end']}").classes("text-weight-medium")
            for name, positions in match["bindings"].items():
                for position in positions:
                    ui.label(f"{name:<12} {self._event_text(int(position))}").classes("weft-pre")

    def _event_text(self, position: int) -> str:
        if position >= len(self._tried.events):
            return f"position {position}"
        event = self._tried.events[position]
        return "  ".join(f"{name} {value}" for name, value in event.items() if value is not None)

    def _choose(self, positions: set[int], match: int | None = None) -> None:
        self._chosen, self._match = positions, match
        self._events.selected = [row for row in self._events.rows if row["position"] in positions]
        self._tell()

    def _selected(self) -> None:
        self._chosen, self._match = {int(row["position"]) for row in self._events.selected}, None
        self._tell()

    def _written(self) -> None:
        assert self._positions is not None
        found = {int(word) for word in re.findall(r"\d+", self._positions.value or "")}
        if found != self._chosen:
            self._choose(found)

    def _tell(self) -> None:
        if self._match is None:
            self._detail.clear()
        if self._positions is not None:
            self._positions.value = ", ".join(map(str, self.chosen))
        self._mark()

    def _mark(self) -> None:
        """Mark what is chosen on the timeline."""
        names = [f"weft-at-{position}" for position in self.chosen]
        names += [] if self._match is None else [f"weft-match-{self._match}"]
        ui.run_javascript(MARK.replace("CHOSEN", json.dumps(names)))

    def _redraw(self) -> None:
        by_type = self._lanes.value == "type"
        self._timeline.content = self._tried.timeline if by_type else self._tried.timeline_by_variable
        self._mark()


def _text(value: Any) -> Any:
    """A value as a cell of a table shows it."""
    match value:
        case int() | float() | str() | None:
            return value
        case dict():
            return ", ".join(f"{name}={_text(one)}" for name, one in value.items())
        case list() | tuple():
            return " ".join(str(_text(one)) for one in value)
    return str(value)


def _total(tried: Tried) -> str:
    """How many matches there are, by query if there are several."""
    found = f"{plural(tried.total, 'match', 'matches')} in {plural(tried.event_total, 'event')}"
    if tried.is_table:
        found = f"{plural(tried.total, 'row')} from {plural(tried.event_total, 'row')}"
    each = ", ".join(f"{name} {count:,}" for name, count in tried.counts.items()) if len(tried.counts) > 1 else ""
    listed = f"; the first {len(tried.matches):,} are listed" if len(tried.matches) < tried.total else ""
    return f"{found}{f' ({each})' if each else ''}{listed}, {tried.seconds:.2f} s"
