"""`weft why`: why chosen events of a file are a match, or what would have to be otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from weft.cli import options
from weft.cli.console import say, say_json
from weft.cli.grouping import grouped
from weft.cli.match import Events, events_of
from weft.errors import UsageError
from weft.reasons import Reasons
from weft.reasons import why as find


@grouped
def why(
    at: Annotated[str, typer.Option("--at", metavar="POSITIONS", help="Places in stream order, from 0: 3,7,12.")],
    texts: options.ProgramTexts,
    events: Events = None,
    time: options.Time = "ts",
    type_: options.Type = "type",
    order: options.Order = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain why some events are a match, or what exactly prevents it.

    Which step of the pattern they were taken for; which condition, order, bound of time or choice failed; which events
    prevent it. Computed by the definition of what programs mean:

        weft why fire.ceql --events sensors.jsonl --at 1,3,8
    """
    program = texts.compiled(texts.paths)
    given = events_of(events or [], program)
    found = find(given, program, positions_in(at), time=time, type=type_, order=order or ())
    if as_json:
        say_json(found.to_json(), indent=2)
    else:
        say(shown(found))


def positions_in(text: str) -> list[int]:
    """`3,7,12` as numbers."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"--at takes positions, as in 3,7,12, not {text!r}") from None


def shown(found: Reasons) -> str:
    """The events that are spoken of, and the explanations."""
    lines = [f"{position:>6}  {_event(event)}" for position, event in found.events.items()]
    return "\n".join([*lines, "", str(found)])


def _event(event: Mapping[str, object]) -> str:
    return "  ".join(f"{name} {value!r}" for name, value in event.items())
