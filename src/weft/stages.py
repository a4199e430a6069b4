"""A program at each stage on its way to the kernels, as text, JSON or DOT: what `weft explain` shows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Literal, get_args

from weft.algebra.predicates import Expression, Predicate
from weft.algebra.query import Program
from weft.algebra.row_patterns import RowPattern
from weft.algebra.text.program import to_text
from weft.algebra.text.row_patterns import row_plan, row_plan_lines
from weft.errors import UsageError, did_you_mean
from weft.languages import language_of, parse_syntax
from weft.optimizer import report
from weft.optimizer.fitting import unused_statistics
from weft.optimizer.pipeline import DEFAULT, Choices, as_written, trace
from weft.pattern.builder import BUILT
from weft.plan.parallel.model import Model
from weft.plan.parallel.tasks import rates_json, rates_lines
from weft.plan.partitioning.choice import AUTO, MANY_LANES
from weft.plan.partitioning.splits import PLACED, is_placed
from weft.plan.partitioning.text import sharing_lines
from weft.plan.planner import plan
from weft.plan.row_patterns.streaming import stream_refusals, stream_warnings
from weft.plan.text.placed import placement_json, placement_lines
from weft.plan.text.plans import plan_dot, plan_text, tables_text
from weft.source import SourceText
from weft.tree import Node, deep

Stage = Literal["syntax", "algebra", "optimized", "plan", "tables"]
Format = Literal["text", "json", "dot"]
STAGES: tuple[Stage, ...] = get_args(Stage)
FORMATS: tuple[Format, ...] = get_args(Format)
Shared = tuple[str | None, int]


@deep
def show(
    program: Program,
    stage: str,
    form: str,
    choices: Choices = DEFAULT,
    sharing: Shared = (None, MANY_LANES),
    rates: Model | None = None,
    nodes: int | None = None,
) -> str:
    """The program at a stage, in a format; `sharing` is a strategy and a number of lanes, `rates` a model to show.

    With `nodes` the plan is the one that runs on that many nodes, operator by operator.
    """
    if stage not in STAGES:
        raise UsageError(f"unknown stage {stage!r}; {did_you_mean(stage, STAGES)}")
    _check_format(form)
    if stage == "plan":
        return _show_plan(program, form, choices, sharing, rates, nodes)
    if rates is not None or nodes is not None:
        raise UsageError("rates and nodes are shown with the plan: use --stage plan")
    return _SHOW[stage](program, form, choices)


@deep
def show_syntax(programs: Sequence[Program], form: str) -> str:
    """Show the syntax of each program, as it was parsed."""
    _check_format(form)
    if form == "text":
        return "\n".join(map(_syntax_text, programs))
    if any(program.language == BUILT for program in programs):
        raise UsageError("a pattern built in Python has its text only: use format='text', or stage='algebra'")
    return _show_trees([parse_syntax(program.text, language=program.language) for program in programs], form)


@deep
def show_row_patterns(programs: Sequence[Program], stage: str, form: str) -> str:
    """The row patterns of SQL at a stage; the plan says of each condition how it is evaluated."""
    if stage not in STAGES:
        raise UsageError(f"unknown stage {stage!r}; {did_you_mean(stage, STAGES)}")
    _check_format(form)
    if any(program.queries for program in programs):
        raise UsageError("SQL reads tables and other programs events: explain them one by one")
    queries = [query for program in programs for query in program.row_patterns]
    if form == "dot" or (form == "json" and stage in ("algebra", "optimized")):
        return _show_trees(queries, form)
    if form == "json":
        return json.dumps([to_json(row_plan(query)) for query in queries], indent=2, ensure_ascii=False)
    if stage in ("algebra", "optimized"):
        return "\n".join(map(to_text, queries))
    return "\n\n".join("\n".join([*row_plan_lines(query), *_on_a_stream(query)]) for query in queries)


def _on_a_stream(query: RowPattern) -> Iterator[str]:
    """What a row pattern waits for, keeps or cannot have when its input is a stream ordered by its first column."""
    refused = stream_refusals(query, query.order[0].column) if query.order else ()
    return (f"  on a stream: {remark}" for remark in (*refused, *stream_warnings(query)))


def _syntax_text(program: Program) -> str:
    if program.language == BUILT:
        return program.text
    tree = parse_syntax(program.text, language=program.language)
    return language_of(program.text, language=program.language).print(tree)


def _check_format(form: str) -> None:
    if form not in FORMATS:
        raise UsageError(f"unknown format {form!r}; {did_you_mean(form, FORMATS)}")


def _show_algebra(program: Program, form: str, choices: Choices) -> str:
    return to_text(program) if form == "text" else _show_trees(program.queries, form)


def _show_optimized(program: Program, form: str, choices: Choices) -> str:
    found = trace(program, choices.statistics) if choices.optimize else as_written(program, choices.statistics)
    found = dataclasses.replace(found, remarks=(*found.remarks, *unused_statistics(program, choices.statistics)))
    if form == "text":
        return report.trace_text(found)
    if form == "json":
        return json.dumps(report.trace_json(found), indent=2, ensure_ascii=False)
    return _show_trees(found.program.queries, form)


def _show_plan(
    program: Program, form: str, choices: Choices, sharing: Shared, rates: Model | None, nodes: int | None
) -> str:
    optimized = choices.applied(program)
    if nodes is not None:
        if sharing[0] not in (None, PLACED):
            raise UsageError(f"operators on nodes are the strategy {PLACED!r}: leave out {sharing[0]!r}, or the nodes")
        sharing = PLACED, nodes
    strategy = sharing[0] or AUTO
    placed = strategy if is_placed(strategy) else None
    chosen = plan(optimized, strategy=placed, lanes=sharing[1], statistics=choices.statistics)
    if form == "dot":
        return plan_dot(chosen)
    if form == "text":
        if chosen.placed:
            shared = list(placement_lines(chosen))
        else:
            shared = list(sharing_lines(optimized, strategy, sharing[1], choices.statistics))
        if rates is not None:
            shared += rates_lines(optimized, rates, choices.statistics)
        return plan_text(chosen, shared)
    shown: Any = to_json(chosen)
    if chosen.placed:
        shown |= {"placed": placement_json(chosen)}
    if rates is not None:
        shown |= {"rates": rates_json(optimized, rates, choices.statistics)}
    return json.dumps(shown, indent=2)


def _show_tables(program: Program, form: str, choices: Choices) -> str:
    if form != "text":
        raise UsageError("tables are shown as text only: use --format text, or --stage plan")
    return tables_text(plan(choices.applied(program), statistics=choices.statistics))


_SHOW: dict[str, Callable[[Program, str, Choices], str]] = {
    "syntax": lambda program, form, _: show_syntax([program], form),
    "algebra": _show_algebra,
    "optimized": _show_optimized,
    "tables": _show_tables,
}


def _show_trees(trees: Sequence[Node], form: str) -> str:
    if form == "json":
        shown = [to_json(tree) for tree in trees]
        return json.dumps(shown[0] if len(shown) == 1 else shown, indent=2, ensure_ascii=False)
    lines = [line for number, tree in enumerate(trees) for line in _dot_lines(tree, f"n{number}")]
    return "\n".join(["digraph program {", '  node [shape=box, fontname="monospace"]', *lines, "}"])


def to_json(value: object) -> object:
    """A node, or anything made of nodes, as JSON values; a node says its kind under `node`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value) if _is_shown(f.name, value)
        }
        return {"node": type(value).__name__, **fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, frozenset | set):
        return sorted(str(item) for item in value)
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _is_shown(field: str, owner: object) -> bool:
    """Everything but places in the text and the text itself."""
    value = getattr(owner, field)
    return (
        not isinstance(value, SourceText)
        and field not in ("span", "spans", "text", "placed")
        and (field, value) != ("order", ())
    )


def _dot_lines(node: Node, name: str) -> Iterator[str]:
    facts = [type(node).__name__]
    children: list[tuple[str, Node]] = []
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        parts = value if isinstance(value, tuple) else (value,)
        below = [part for part in parts if isinstance(part, Node)]
        if below and all(isinstance(part, Predicate | Expression) for part in below):
            facts.append(", ".join(to_text(part) for part in below))
        elif below:
            children += [(field.name, part) for part in below]
        elif value not in (None, (), False) and _is_shown(field.name, node):
            facts.append(f"{field.name} = {to_json(value)}")
    label = "\\n".join(fact.replace("\\", "\\\\").replace('"', '\\"') for fact in facts)
    yield f'  {name} [label="{label}"]'
    for number, (field_name, child) in enumerate(children):
        yield f'  {name} -> {name}_{number} [label="{field_name}"]'
        yield from _dot_lines(child, f"{name}_{number}")
