"""Terminal output of all commands, with control characters escaped.

Names, values and paths come from programs, events and files of unknown origin. Their control characters are
shown as escapes.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path

import typer

from weft.running.logs import TextLines
from weft.source import printable, printable_json


def say(text: object, *, err: bool = False) -> None:
    """Write lines to standard output, or to standard error."""
    typer.echo("\n".join(map(printable, str(text).split("\n"))), err=err)


def say_json(value: object, *, indent: int | None = None) -> None:
    """Write a value to standard output, as JSON."""
    typer.echo(printable_json(json.dumps(value, ensure_ascii=False, indent=indent)))


def say_what_others_say() -> None:
    """Show Python warnings and unhandled log records in the same way."""

    def shown(message: Warning | str, *_: object, **__: object) -> None:
        say(f"warning: {message}", err=True)

    warnings.showwarning = shown
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(TextLines())
        logging.lastResort.addFilter(_is_news)
        if not logging.root.handlers:  # the first to log through the root would make one that prints stack traces
            logging.root.addHandler(logging.lastResort)


def _is_news(record: logging.LogRecord) -> bool:
    """Spark's bridge to Java logs failures, and interrupts, that it raises as well: who asked for it says so."""
    return not (record.exc_info and "py4j" in Path(record.pathname).parts)


def rewrite_line(text: str) -> None:
    """Write over the last line of a terminal's standard error; nothing elsewhere."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[2K{printable(text)}", nl=False, err=True)
