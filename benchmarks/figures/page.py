"""The page that shows figures, in the order of the documents, with what was expected of each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

DOCUMENTS = {
    "next": "NEXT: distributed complex event processing with query rewriting",
    "step": "Step: data-flow operators in tasks",
    "epn": "EPN: rewriting patterns for two objectives",
    "trex": "T-Rex: TESLA rules and their automata",
    "dcore": "DCORE: distributed enumeration of complex events",
}
HEAD = """# Experiments

The figures and tables of the five source documents, measured again with weft at scale {scale:g}. Solid lines and bars
are weft's, dotted lines are values that the documents state; those were measured on other machines, so compare shapes,
not heights. Tasks, units and cores beyond one are lanes measured one after the other, of which the slowest counts.
`weft bench figure --list` names the figures, `weft bench figure NAME --scale 1 --out DIR` runs one of them at its full
size and writes CSV, PNG and SVG, and `weft bench figures` makes this page.

{held} of {all} have the expected shape here.
"""


def write_page(outcomes: Iterable[Any], scale: float, folder: Path, left_out: Iterable[str] = ()) -> Path:
    """Write the page beside the folder of the figures; it names those that are left out."""
    done, missing = list(outcomes), ", ".join(left_out)
    parts = [HEAD.format(scale=scale, held=sum(one.holds for one in done), all=len(done))]
    if missing:
        parts.append(f"Not run for this page: {missing}.\n")
    for document, own in groupby(done, lambda one: one.figure.id.partition("-")[0]):
        parts.append(f"## {DOCUMENTS[document]}\n")
        for one in own:
            figure = one.figure
            parts.append(f"### {figure.id}: {figure.title}\n")
            parts.append(f"![{figure.title}]({folder.name}/{figure.id}.svg)\n\n{one.sentence}\n")
    page = folder.with_name(f"{folder.name}.md")
    page.write_text("\n".join(parts), encoding="utf-8")
    return page
