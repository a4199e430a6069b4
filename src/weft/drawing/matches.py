"""Matches in a notebook: a table of the first of them, and their timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from weft.drawing.scene import Scene, SceneMatch
from weft.drawing.svg import element, escaped, shortened
from weft.drawing.timeline import timeline_svg

MOST_COLUMNS = 8  # for variables
MOST_SHOWN = 3  # events of one variable
LONGEST = 70  # letters of an event
_CELL = "text-align:left;vertical-align:top"


def matches_html(scene: Scene, notes: Iterable[str] = ()) -> str:
    """The scene as HTML, with what else is to be said about it."""
    left_out = scene.total - len(scene.matches)
    parts = [f"{scene.total:,} match{'es' if scene.total != 1 else ''}" if scene.total else "no matches"]
    if left_out:
        parts.append(f"{left_out:,} more {'is' if left_out == 1 else 'are'} not shown")
    picture = [_table(scene), timeline_svg(scene)] if scene.total else []
    return element("div", *(element("p", escaped(text)) for text in ("; ".join(parts), *notes)), *picture)


def _table(scene: Scene) -> str:
    names = list(dict.fromkeys(name for match in scene.matches for name in match.bindings))[:MOST_COLUMNS]
    heads = ("query", "start", "end", *names, "event")
    lines = [_line("th", [escaped(shortened(head, LONGEST)) for head in heads])]
    lines += [_line("td", _cells(match, scene, names)) for match in scene.matches]
    return element("table", *lines, style="border-collapse:collapse;font-size:12px")


def _line(tag: str, cells: Iterable[str]) -> str:
    return element("tr", *(element(tag, cell or " ", style=_CELL) for cell in cells))


def _cells(match: SceneMatch, scene: Scene, names: Iterable[str]) -> Iterator[str]:
    yield from (escaped(shortened(value, LONGEST)) for value in (match.query, match.start, match.end))
    for name in names:
        positions = match.bindings.get(name, ())
        shown = [escaped(_event_text(match, scene, name, number)) for number in range(len(positions))[:MOST_SHOWN]]
        if len(positions) > MOST_SHOWN:
            shown.append(f"{len(positions) - MOST_SHOWN:,} more")
        yield "<br/>".join(shown)
    yield escaped(_fields_text(match.event))


def _event_text(match: SceneMatch, scene: Scene, name: str, number: int) -> str:
    """What an event says: as the match shows it, or else as the input has it, or else where it is."""
    position = match.bindings[name][number]
    shown = match.variables.get(name, ())[number : number + 1]
    seen = scene.events.get(position)
    return _fields_text(shown[0] if shown else seen.attributes if seen else {}) or f"@{position}"


def _fields_text(event: object) -> str:
    if not isinstance(event, Mapping):
        return "" if event is None else shortened(event, LONGEST)
    return shortened(", ".join(f"{name} = {value}" for name, value in event.items() if value is not None), LONGEST)
