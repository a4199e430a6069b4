"""Matches as a picture: the events in lanes, and under them the arcs of each match that join its events.

Marks and arcs have classes, `weft-at-POSITION` and `weft-match-NUMBER`, by which a page finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

from weft.drawing.scene import Moment, Scene, SceneEvent, SceneMatch
from weft.drawing.svg import COLOURS, FAINT, INK, LINE, PAPER, drawing, element, escaped, path, shortened, words

WIDTH = 880
RIGHT = 48  # room for half a label
LETTER = 6.2  # of a small text, in width
LANE, LABEL, MATCH, ARC = 34, 13, 42, 16  # heights of a lane, of a line of text in it, of a match and its arcs
NEAR = 9.0  # pixels between marks that can still be told apart
MOST_ATTRIBUTES = 3  # written under an event
LaneBy = Literal["type", "variable"]


def timeline_svg(scene: Scene, lanes: LaneBy = "type", width: int = WIDTH) -> str:
    """The scene as SVG of a width, with a lane for each type of events, or for each variable of the matches."""
    return _Timeline(scene, lanes, width).svg()


class _Timeline:
    """The places of everything in the picture: events have an x, lanes and matches a y."""

    def __init__(self, scene: Scene, lanes: LaneBy, width: int) -> None:
        self._scene, self._width = scene, width
        self._events = [scene.events[position] for position in sorted(scene.events)]
        self._lane_of = _lanes(scene, self._events, lanes)
        used = (position for match in scene.matches for own in match.bindings.values() for position in own)
        shown = [*(at for at in used if at in self._lane_of), *self._lane_of]
        self._lanes = list(dict.fromkeys(self._lane_of[position] for position in shown))
        names = [*self._lanes, *(match.query for match in scene.matches)]
        self._left = 34 + min(max((len(shortened(name, 24)) for name in names), default=0) * 7.4, 190)
        self._x, self._begin, self._scale = self._columns()
        self._matched = scene.matched
        self._lines = MOST_ATTRIBUTES if self._room_for_labels() else 0
        if self._lines:
            self._lines = min(max(len(seen.attributes) for seen in self._events), MOST_ATTRIBUTES)
        self._top = 30
        self._height = LANE + LABEL * self._lines
        self._first_match = self._top + len(self._lanes) * self._height + 40

    def svg(self) -> str:
        """All of it, from the back to the front."""
        bottom = self._first_match + len(self._scene.matches) * MATCH - 8
        parts = [*self._guides(), *self._lane_lines(), *self._axis()]
        for number, match in enumerate(self._scene.matches):
            drawn = self._match(match, self._first_match + number * MATCH + 10)
            parts.append(element("g", *drawn, class_=f"weft-match-{number}"))
        parts += map(self._mark, self._events)
        note = _note(self._scene, self._scale)
        if note:
            parts.append(words(note, 16, bottom + 16, size=11, fill=FAINT))
        return drawing(self._width, bottom + (28 if note else 10), *parts, title="timeline of matches")

    # -- places ---------------------------------------------------------------------------------

    def _columns(self) -> tuple[dict[int, float], dict[int, float], str]:
        """The x of each event and of its start: by time, or evenly, if times are unknown or too close together."""
        left, span = self._left + 26, self._width - RIGHT - 26 - self._left
        starts = {seen.position: _number(seen.start) for seen in self._events}
        ends = {seen.position: _number(seen.end) for seen in self._events}
        known = [time for time in (*starts.values(), *ends.values()) if time is not None]
        if known and None not in ends.values() and max(known) > min(known):
            first, whole = min(known), max(known) - min(known)
            begins, places = (
                {at: left + span * (time - first) / whole for at, time in times.items() if time is not None}
                for times in (starts, ends)
            )
            if all(near >= NEAR for near in self._distances(places)):
                return places, begins, "time"
        step = span / max(len(self._events) - 1, 1)
        return {seen.position: left + step * number for number, seen in enumerate(self._events)}, {}, "order"

    def _distances(self, places: Mapping[int, float]) -> Iterable[float]:
        """From each event to the next of its lane."""
        for lane in self._lanes:
            own = sorted(places[seen.position] for seen in self._events if self._lane_of[seen.position] == lane)
            yield from (right - left for left, right in pairwise(own))

    def _room_for_labels(self) -> bool:
        widest = max((len(text) for seen in self._events for text in _labels(seen)), default=0) * LETTER
        return widest > 0 and all(near >= widest + 8 for near in self._distances(self._x))

    def _y(self, lane: str) -> float:
        return self._top + self._lanes.index(lane) * self._height

    def _colour(self, position: int) -> str:
        return COLOURS[self._lanes.index(self._lane_of[position]) % len(COLOURS)]

    # -- shapes ---------------------------------------------------------------------------------

    def _lane_lines(self) -> Iterable[str]:
        for lane in self._lanes:
            y = self._y(lane)
            yield element("line", x1=self._left, x2=self._width - 16, y1=y, y2=y, stroke=LINE, stroke_width=2)
            colour = COLOURS[self._lanes.index(lane) % len(COLOURS)]
            yield words(shortened(lane, 24), 16, y + 4, size=13, fill=colour, font_weight=600)

    def _guides(self) -> Iterable[str]:
        """From each event of a match down to the last match that it is part of."""
        for seen in self._events:
            users = [n for n, match in enumerate(self._scene.matches) if seen.position in match.positions]
            if users:
                x, y = self._x[seen.position], self._y(self._lane_of[seen.position])
                bottom = self._first_match + users[-1] * MATCH + 10
                yield element("line", x1=x, x2=x, y1=y, y2=bottom, stroke=LINE, stroke_dasharray="2 3")

    def _axis(self) -> Iterable[str]:
        """The times of events, as many as have room."""
        y = self._first_match - 32
        yield element("line", x1=self._left, x2=self._width - 16, y1=y, y2=y, stroke=FAINT)
        yield words("time" if self._has_times() else "position", 16, y + 4, size=11, fill=FAINT)
        done = 0.0
        form = _time_form([seen.end for seen in self._events if seen.end is not None])
        for seen in self._events:
            text = str(seen.position) if not self._has_times() or seen.end is None else form(seen.end)
            x, half = self._x[seen.position], len(text) * LETTER / 2
            if x - half > done:
                yield element("line", x1=x, x2=x, y1=y, y2=y + 4, stroke=FAINT)
                yield _label(text, x, y + 16, FAINT)
                done = x + half + 10

    def _has_times(self) -> bool:
        return all(seen.end is not None for seen in self._events)

    def _mark(self, seen: SceneEvent) -> str:
        x, y = self._x[seen.position], self._y(self._lane_of[seen.position])
        colour = self._colour(seen.position)
        is_part = seen.position in self._matched
        look = {"fill": colour if is_part else PAPER, "stroke": colour if is_part else "#afb8c1", "stroke_width": 2}
        shown = [element("title", escaped(_tooltip(seen)))]
        begin = self._begin.get(seen.position, x)
        if begin < x:  # an event that lasts
            shown.append(element("line", x1=begin, x2=x, y1=y, y2=y, stroke=look["stroke"], stroke_width=5))
        shown.append(element("circle", cx=x, cy=y, r=6, **look))
        for number, text in enumerate(_labels(seen)[: self._lines]):
            shade = INK if is_part else "#8c959f"
            shown.append(_label(text, x, y + 20 + LABEL * number, shade))
        return element("g", *shown, class_=f"weft-at-{seen.position}")

    def _match(self, match: SceneMatch, y: float) -> Iterable[str]:
        places = [position for position in match.positions if position in self._x]
        yield words(shortened(match.query, 24), 16, y + 4, size=13, font_weight=600)
        if not places:
            return
        first, last = self._x[places[0]], self._x[places[-1]]  # all of its row can be clicked
        yield element("rect", x=first, y=y - 18, width=last - first, height=MATCH - 6, fill=PAPER, fill_opacity=0)
        for left, right in pairwise(self._x[position] for position in places):
            bend = min(ARC, (right - left) / 2)
            middle = f"{left + bend:.1f} {y + bend:.1f} {right - bend:.1f} {y + bend:.1f}"
            line = f"M{left:.1f} {y:.1f}C{middle} {right:.1f} {y:.1f}"
            yield path(line, INK, stroke_width=2, stroke_linecap="round")
        done = 0.0
        for position in places:
            x = self._x[position]
            yield element("circle", cx=x, cy=y, r=5, fill=self._colour(position), stroke=PAPER, stroke_width=1.5)
            text = shortened(", ".join(name for name, own in match.bindings.items() if position in own), 18)
            half = len(text) * LETTER / 2
            if x - half > done:
                yield _label(text, x, y - 9, INK)
                done = x + half + 4


def _lanes(scene: Scene, events: Sequence[SceneEvent], lanes: LaneBy) -> dict[int, str]:
    """The lane of each event: its type, or the first variable that has it if that is asked, or types are not known."""
    if lanes == "type" and all(seen.type is not None for seen in events):
        return {seen.position: str(seen.type) for seen in events}
    names: dict[int, str] = {}
    for match in scene.matches:
        for name, positions in match.bindings.items():
            for position in positions:
                names.setdefault(position, name)
    return {seen.position: names.get(seen.position, "…") for seen in events}


def _label(text: str, x: float, y: float, fill: str) -> str:
    """Return a small centred text with a background, so that no line crosses it."""
    width = len(text) * LETTER
    plate = element("rect", x=x - width / 2, y=y - 10, width=width, height=12, fill=PAPER)
    return plate + words(text, x, y, size=11, fill=fill, text_anchor="middle")


def _labels(seen: SceneEvent) -> list[str]:
    return [shortened(f"{name} {value}", 14) for name, value in list(seen.attributes.items())[:MOST_ATTRIBUTES]]


def _tooltip(seen: SceneEvent) -> str:
    parts = [seen.type or "event", f"position {seen.position}"]
    if seen.end is not None:
        parts.append(f"{seen.end}" if seen.start in (None, seen.end) else f"{seen.start} to {seen.end}")
    parts += [f"{name} = {shortened(value, 60)}" for name, value in list(seen.attributes.items())[:20]]
    return "\n".join(parts)


def _number(moment: Moment | None) -> float | None:
    return moment.timestamp() if isinstance(moment, datetime) else moment


def _time_form(moments: Sequence[Moment]) -> Callable[[Moment], str]:
    """How times are written: without the day if it is always the same, and without fractions that are always zero."""
    dates = [moment for moment in moments if isinstance(moment, datetime)]
    day = "" if len({date.date() for date in dates}) == 1 else "%Y-%m-%d "
    clock = "%H:%M:%S" if any(date.second or date.microsecond for date in dates) else "%H:%M"
    fraction = any(date.microsecond for date in dates)

    def form(moment: Moment) -> str:
        if not isinstance(moment, datetime):
            return str(moment)
        return moment.strftime(day + clock) + (f".{moment.microsecond // 1000:03d}" if fraction else "")

    return form


def _note(scene: Scene, scale: str) -> str:
    """What is left out, and what the distances mean."""
    left_out = scene.total - len(scene.matches)
    hidden = len(scene.matched - scene.events.keys())
    notes = [
        f"{left_out:,} more {'match' if left_out == 1 else 'matches'}" if left_out else "",
        f"{hidden:,} more {'event' if hidden == 1 else 'events'} of these matches" if hidden else "",
        "in order, distances are not times" if scale == "order" and len(scene.events) > 1 else "",
        "no matches" if not scene.total else "",
    ]
    return "; ".join(note for note in notes if note)
