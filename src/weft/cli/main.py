"""The `weft` command: its table of commands, and how failures become messages and exit codes.

Exit codes: 0 all went well, 1 the program or the input is wrong, 2 wrong usage.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from weft.cli.commands import Commands, summaries
from weft.cli.console import say, say_what_others_say
from weft.cli.interrupts import INTERRUPTED, say_interrupted, was_interrupted
from weft.errors import UsageError, WeftError


class QuietGroup(TyperGroup):
    """Commands whose failures are messages on stderr, never stack traces. Each is loaded when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands by their summaries."""
        self.commands = summaries()
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        say_what_others_say()
        try:
            done = self._run(ctx)
            sys.stdout.flush()
            return done
        except UsageError as error:
            say(error, err=True)
            raise typer.Exit(2) from None
        except WeftError as error:
            say(error, err=True)
            raise typer.Exit(1) from None
        except BrokenPipeError:
            raise typer.Exit(0) from None  # the reader has what it wanted: `weft match … | head`
        except OSError as problem:
            say(f"cannot write to standard output: {problem.strerror or problem}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt as stopped:
            say_interrupted(*stopped.args)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            _forget_unwritable_output()

    def _run(self, ctx: Any) -> Any:
        """Treat an interrupt reported by Spark as an interrupt, not as a failure."""
        try:
            return super().invoke(ctx)
        except Exception:
            if was_interrupted():
                raise KeyboardInterrupt from None
            raise


def _forget_unwritable_output() -> None:
    """What standard output did not take goes nowhere, or Python would try once more at exit and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=QuietGroup,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find patterns of events in files, tables and live streams.\n\n"
    "Start with `weft match QUERY.ceql --events EVENTS.jsonl`.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"weft {version('weft-cep')}")
        raise typer.Exit(0)


TRY = """weft finds patterns of events in files, tables and live streams.

Three things to try:

    weft init fraud     a small project: a program, events, a test
    weft web fraud      a project in a browser (pip install 'weft-cep[workbench]')
    weft doctor         what is installed here, and what is missing

weft --help lists all commands."""


@app.callback()
def weft(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Find patterns of events."""
    if context.invoked_subcommand is None:
        say(TRY)
