"""Pieces of SVG and HTML. Whatever comes from a user goes through `escaped`, here and nowhere else."""

from __future__ import annotations

import html
import re

INK, FAINT, LINE, PAPER = "#24292f", "#6e7781", "#d0d7de", "#ffffff"
COLOURS = ("#0969da", "#1a7f37", "#bf3989", "#9a6700", "#8250df", "#cf222e", "#1b7c83", "#57606a")
SANS = "Helvetica, Arial, sans-serif"
MONO = "SFMono-Regular, Consolas, 'DejaVu Sans Mono', monospace"

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: object) -> str:
    """A text as it may stand in SVG and HTML, between tags and in attributes."""
    return html.escape(_NOT_XML.sub("\ufffd", str(text)))


def shortened(text: object, most: int) -> str:
    """Return the text on one line, truncated to at most `most` characters."""
    line = " ".join(str(text)[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def element(name: str, *inside: str, **attributes: object) -> str:
    """An element around what is SVG already; `stroke_width=2` is the attribute stroke-width."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_plain(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{shown}>{''.join(inside)}</{name}>" if inside else f"<{name}{shown}/>"


def words(text: object, x: float, y: float, *, size: int = 12, fill: str = INK, **attributes: object) -> str:
    """A text at a place."""
    return element("text", escaped(text), x=x, y=y, font_size=size, fill=fill, **attributes)


def path(line: str, colour: str, **attributes: object) -> str:
    """A line along a path."""
    return element("path", d=line, fill="none", stroke=colour, **attributes)


def drawing(width: float, height: float, *parts: str, font: str = SANS, title: str) -> str:
    """A whole picture, which shrinks with the page."""
    return element(
        "svg",
        element("title", escaped(title)),
        element("rect", width=width, height=height, rx=6, fill=PAPER),
        *(f"\n{part}" for part in parts),
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_plain(width)} {_plain(height)}",
        width=width,
        height=height,
        style="max-width: 100%",
        font_family=font,
        role="img",
    )


def _plain(value: object) -> object:
    """Numbers with a digit behind the point: pictures are the same on every machine."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
