"""What a program found in a sample: timeline, matches and events, in each of which matches and events can be chosen."""

from __future__ import annotations

import json
import re
from typing import Any

from nicegui import ui

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
        with card("Timeline"):
            self._lanes = ui.toggle({"type": "lanes by type", "variable": "by variable"}, value="type")
            self._lanes.props('dense no-caps unelevated data-testid="lanes-by"').on_value_change(self._redraw)
            self._timeline = picture(tried.timeline, "timeline")
            self._timeline.on("click", self._hit, js_handler=HIT)
        with card("Matches") as self.below_matches:
            counts = ", ".join(f"{name} {count:,}" for name, count in tried.counts.items())
            text = f"{tried.total:,} matches in {tried.event_total:,} events ({counts}), {tried.seconds:.2f} s"
            ui.label(text).props('data-testid="total"')
            for note in tried.notes:
                ui.label(note).classes("text-warning weft-mono")
            self._list_matches()
            self._detail = ui.column().classes("w-full gap-1").props('data-testid="match"')
            draw_funnels(tried.funnels)
        with card(
            "Events: choose some, here or on the timeline, and ask why they are a match or not"
        ) as self.below_events:
            self._events = self._list_events()

    @property
    def chosen(self) -> list[int]:
        """The positions of the events that are chosen."""
        return sorted(self._chosen)

    def add_positions(self) -> None:
        """A field with the positions that are chosen, which can be written as well."""
        self._positions = ui.input("positions").props('dense outlined data-testid="positions"')
        self._positions.on("keydown.enter", self._written).on("blur", self._written)

    # -- tables ---------------------------------------------------------------------------------

    def _list_matches(self) -> None:
        rows = [
            {"number": number, **{name: _text(match.get(name)) for name in MATCH_COLUMNS}}
            for number, match in enumerate(self._tried.matches)
        ]
        with ui.row().classes("w-full items-center gap-2"):
            search = ui.input(placeholder="filter").props('dense outlined clearable data-testid="filter-matches"')
            ui.space()
            button("Download", self._download, "download", "outline dense")
        found = table(MATCH_COLUMNS, rows, "number", "matches")
        search.bind_value_to(found, "filter")
        found.on("rowClick", lambda event: self._choose_match(int(event.args[1]["number"])))

    def _download(self) -> None:
        """Give the matches to the browser, one JSON object a line."""
        lines = (json.dumps(match, default=str, ensure_ascii=False) for match in self._tried.matches)
        ui.download.content("\n".join(lines) + "\n", "matches.jsonl")

    def _list_events(self) -> ui.table:
        names = list(dict.fromkeys(name for row in self._tried.events for name in row))
        rows = [{name: _text(value) for name, value in row.items()} for row in self._tried.events]
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
    return value if isinstance(value, int | float | str | None) else str(value).replace("'", "")
