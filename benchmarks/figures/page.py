"""The page that shows figures, in the order of the documents, with what was expected of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.figures.figure import Figure
from benchmarks.figures.record import FigureRecord

DOCUMENTS = {
    "next": "NEXT: distributed complex event processing with query rewriting",
    "step": "Step: data-flow operators in tasks",
    "epn": "EPN: rewriting patterns for two objectives",
    "trex": "T-Rex: TESLA rules and their automata",
    "dcore": "DCORE: distributed enumeration of complex events",
}
HEAD = """# Experiments

The figures and tables of the five source documents, measured again with weft at scale {scale:g}, in one run
{commit}that took {minutes:.0f} minutes. Solid lines and bars are weft's, dotted lines are values that the documents
state; those were measured on other machines, so compare shapes, not heights. Tasks, units and cores beyond one are
lanes measured one after the other, of which the slowest counts. `weft bench figure --list` names the figures,
`weft bench figure NAME --scale 1 --out DIR` runs one of them at its full size and writes CSV, PNG and SVG, and
`weft bench figures` makes this page.

{held} of {all} have the expected shape here.
"""


def sentence(figure: Figure, holds: bool) -> str:
    """Which shape was expected, whether it holds, and if not, why."""
    told = f"Expected: {figure.shape}: {'it holds' if holds else 'it does not hold here'}."
    return told if holds else f"{told} {figure.reason or 'The reason is not known.'}"


def write_page(record: FigureRecord, figures: Sequence[Figure]) -> Path:
    """Write the page beside the folder of the figures."""
    commit = f"on commit {record.commit} " if record.commit else ""
    head = HEAD.format(
        scale=record.scale, commit=commit, minutes=record.seconds / 60, held=record.held, all=len(figures)
    )
    parts = [head]
    for document, own in groupby(figures, lambda figure: figure.id.partition("-")[0]):
        parts.append(f"## {DOCUMENTS[document]}\n")
        for figure in own:
            told = sentence(figure, record.figures[figure.id]["holds"])
            parts.append(f"### {figure.id}: {figure.title}\n")
            parts.append(f"![{figure.title}]({record.folder.name}/{figure.id}.svg)\n\n{told}\n")
    page = record.folder.with_name(f"{record.folder.name}.md")
    page.write_text("\n".join(parts), encoding="utf-8")
    return page
