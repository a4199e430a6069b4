"""A program in a notebook: its text with coloured words, and its plan as a picture."""

from __future__ import annotations

from weft.algebra.query import Program
from weft.algebra.text.row_patterns import row_plan_lines
from weft.drawing.highlighting import highlighted
from weft.drawing.plan import expected, plan_svg
from weft.drawing.svg import MONO, element, escaped
from weft.errors import WeftError
from weft.optimizer.pipeline import DEFAULT, Choices
from weft.plan.planner import plan

MOST_LINES = 200


def program_html(program: Program) -> str:
    """The program as HTML."""
    lines = program.text.strip("\n").split("\n")
    shown = highlighted("\n".join(lines[:MOST_LINES]), program.language)
    more = f"\n… {len(lines) - MOST_LINES:,} more lines" if len(lines) > MOST_LINES else ""
    style = f"font-family:{MONO};line-height:1.4;padding:10px;background:#f6f8fa;color:#24292f;overflow:auto"
    return element("div", element("pre", shown + more or " ", style=style), plan_picture(program))


def plan_picture(program: Program, choices: Choices = DEFAULT) -> str:
    """The plan of a program as a picture, or why there is none; of SQL, how conditions are evaluated."""
    if program.row_patterns:
        lines = (line for query in program.row_patterns for line in row_plan_lines(query))
        return element("pre", escaped("\n".join(lines)))
    try:
        optimized = choices.applied(program)
        return plan_svg(plan(optimized), expected(optimized))
    except WeftError as problem:
        return element("p", escaped(problem))
