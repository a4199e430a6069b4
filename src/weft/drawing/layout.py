"""Boxes and arrows: a graph in ranks from left to right, each box to the right of those that lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.drawing.svg import FAINT, INK, MONO, drawing, element, path, words

SIZE, LETTER, LEADING = 12, 7.3, 16  # of the font: its size, a letter's width, a line's height
PAD, GAP, BETWEEN = 10, 46, 16  # inside boxes, from rank to rank, from box to box
MARGIN = 14


@dataclass(frozen=True)
class Box:
    """A box with its lines of text. Inputs are round and grey, outputs round and green."""

    lines: tuple[str, ...]
    kind: str = "operator"
    is_shared: bool = False  # drawn with two lines

    @property
    def width(self) -> float:
        """As its longest line needs."""
        return max(len(line) for line in self.lines) * LETTER + 2 * PAD

    @property
    def height(self) -> float:
        """As its lines need."""
        return len(self.lines) * LEADING + PAD


class Arrow(NamedTuple):
    """From a box to another, by number; dashed where events may lie between."""

    source: int
    target: int
    dashed: bool = False


class BoxPosition(NamedTuple):
    """Where a box is: its upper left corner."""

    x: float
    y: float


_FILLS = {"operator": ("#ddf4ff", "#54aeff"), "input": ("#f6f8fa", "#8c959f"), "output": ("#dafbe1", "#4ac26b")}


def graph_svg(boxes: Sequence[Box], arrows: Sequence[Arrow], title: str) -> str:
    """The graph as a picture."""
    ranks = _ordered(_ranks(len(boxes), arrows), arrows)
    places, width, height = _placed(boxes, ranks)
    shown = [_arrow(arrow, boxes, places) for arrow in dict.fromkeys(arrows)]
    shown += [_box(box, places[number]) for number, box in enumerate(boxes)]
    return drawing(width, height, _TIP, *shown, font=MONO, title=title)


# -- places ----------------------------------------------------------------------------------------


def _ranks(count: int, arrows: Sequence[Arrow]) -> list[list[int]]:
    """Boxes by how many come before them on the longest way; arrows that close a circle do not count."""
    after: list[list[int]] = [[] for _ in range(count)]
    for arrow in arrows:
        after[arrow.source].append(arrow.target)
    order = {number: place for place, number in enumerate(_in_order(after))}
    rank = [0] * count
    for number in order:
        for target in after[number]:
            if order[target] > order[number]:
                rank[target] = max(rank[target], rank[number] + 1)
    for number in set(range(count)).difference(arrow.target for arrow in arrows):  # beside what is made of it
        rank[number] = max(min((rank[target] for target in after[number]), default=1) - 1, 0)
    return [[n for n in range(count) if rank[n] == level] for level in range(max(rank, default=0) + 1)]


def _in_order(after: Sequence[Sequence[int]]) -> list[int]:
    """Each box before those it leads to, as far as there is no circle."""
    finished: list[int] = []
    seen: set[int] = set()
    for root in range(len(after)):
        waiting = [] if root in seen else [(root, iter(after[root]))]
        seen.add(root)
        while waiting:
            number, rest = waiting[-1]
            target = next((target for target in rest if target not in seen), None)
            if target is None:
                finished.append(number)
                waiting.pop()
            else:
                seen.add(target)
                waiting.append((target, iter(after[target])))
    return finished[::-1]


def _ordered(ranks: list[list[int]], arrows: Sequence[Arrow]) -> list[list[int]]:
    """The boxes of each rank near those they are joined to: less crosses."""
    near: dict[int, list[int]] = {}
    for arrow in arrows:
        near.setdefault(arrow.target, []).append(arrow.source)
        near.setdefault(arrow.source, []).append(arrow.target)
    height = {number: float(place) for rank in ranks for place, number in enumerate(rank)}
    for rank in (*ranks[1:], *ranks[::-1], *ranks[1:]):
        middle = {n: sum(height[o] for o in near.get(n, [n])) / len(near.get(n, [n])) for n in rank}
        rank.sort(key=lambda number: (middle[number], number))
        height |= {number: float(place) for place, number in enumerate(rank)}
    return ranks


def _placed(boxes: Sequence[Box], ranks: Sequence[Sequence[int]]) -> tuple[dict[int, BoxPosition], float, float]:
    """Where the boxes are, and the size of the whole; each rank is in the middle of the height."""
    heights = [sum(boxes[n].height for n in rank) + BETWEEN * (len(rank) - 1) for rank in ranks]
    whole = max(heights, default=0)
    places: dict[int, BoxPosition] = {}
    x = float(MARGIN)
    for rank, height in zip(ranks, heights, strict=True):
        y = 2 * MARGIN + (whole - height) / 2
        wide = max(boxes[n].width for n in rank)
        for number in rank:
            places[number] = BoxPosition(x + (wide - boxes[number].width) / 2, y)
            y += boxes[number].height + BETWEEN
        x += wide + GAP
    return places, x - GAP + MARGIN, whole + 4 * MARGIN


# -- shapes ----------------------------------------------------------------------------------------


def _box(box: Box, at: BoxPosition) -> str:
    fill, edge = _FILLS[box.kind]
    round_ = 6 if box.kind == "operator" else box.height / 2 if len(box.lines) == 1 else 14
    shapes = [_frame(box, at, 0, round_, fill=fill, stroke=edge)]
    if box.is_shared:
        shapes.append(_frame(box, at, 3, round_ - 3, fill="none", stroke=edge))
    for number, line in enumerate(box.lines):
        y = at.y + PAD / 2 + LEADING * (number + 0.75)
        look = {"font_weight": 600} if number == 0 and box.kind != "operator" else {}
        colour = INK if number == 0 or box.kind == "operator" else FAINT
        shapes.append(words(line, at.x + box.width / 2, y, size=SIZE, fill=colour, text_anchor="middle", **look))
    return element("g", *shapes)


def _frame(box: Box, at: BoxPosition, inset: float, round_: float, **look: object) -> str:
    size = {"width": box.width - 2 * inset, "height": box.height - 2 * inset}
    return element("rect", x=at.x + inset, y=at.y + inset, rx=max(round_, 0.0), **size, **look)


def _arrow(arrow: Arrow, boxes: Sequence[Box], places: dict[int, BoxPosition]) -> str:
    one, other = places[arrow.source], places[arrow.target]
    x, y = one.x + boxes[arrow.source].width, one.y + boxes[arrow.source].height / 2
    to_x, to_y = other.x, other.y + boxes[arrow.target].height / 2
    if arrow.source == arrow.target:
        left = one.x + boxes[arrow.source].width / 2
        line = f"M{left + 12:.1f},{one.y:.1f} c10,-22 -34,-22 -24,-2"
    elif to_x <= x:  # back, below the boxes
        x, y = one.x + boxes[arrow.source].width / 2, one.y + boxes[arrow.source].height
        to_x, to_y = other.x + boxes[arrow.target].width / 2, other.y + boxes[arrow.target].height + 2
        line = f"M{x:.1f},{y:.1f} C{x:.1f},{y + 26:.1f} {to_x:.1f},{to_y + 26:.1f} {to_x:.1f},{to_y:.1f}"
    else:
        bend = min(GAP, (to_x - x) / 2)
        line = f"M{x:.1f},{y:.1f} C{x + bend:.1f},{y:.1f} {to_x - bend:.1f},{to_y:.1f} {to_x - 2:.1f},{to_y:.1f}"
    dashes = {"stroke_dasharray": "5 4"} if arrow.dashed else {}
    return path(line, FAINT, stroke_width=1.4, marker_end=f"url(#{_TIP_NAME})", **dashes)


_TIP_NAME = "weft-tip"
_TIP = element(
    "defs",
    element(
        "marker",
        element("path", d="M0,0 L8,4 L0,8 z", fill=FAINT),
        **{"id": _TIP_NAME, "viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 7, "markerHeight": 7},
        orient="auto",
    ),
)
