"""The table of commands. Each is loaded when it is asked for: `weft match` needs neither Spark nor the workbench."""

from __future__ import annotations

import gc
import re
from collections import UserDict
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from weft.cli.loading import hide_pandas_from_arrow

# Where the function of each command is, in the order of the help.
PLACES = {
    "match": "weft.cli.match:match",
    "check": "weft.cli.check:check",
    "explain": "weft.cli.explain:explain",
    "why": "weft.cli.why:why",
    "test": "weft.cli.test:run_tests",
    "run": "weft.cli.runs.run:run",
    "serve": "weft.cli.services.serve:serve_program",
    "publish": "weft.cli.services.remote:publish",
    "subscribe": "weft.cli.services.remote:subscribe",
    "deploy": "weft.cli.services.remote:deploy",
    "measure": "weft.cli.measure:measure",
    "tune": "weft.cli.tune:tune",
    "list": "weft.cli.runs.registry:list_runs",
    "show": "weft.cli.runs.registry:show",
    "stop": "weft.cli.runs.registry:stop",
    "web": "weft.cli.web:web",
    "bench": "weft.cli.bench:bench",
    "warm": "weft.cli.setup.warm:warm",
    "init": "weft.cli.setup.init:init",
    "doctor": "weft.cli.setup.doctor:doctor",
}
NEEDS_NO_ARROW = ("init", "doctor")
TAKES_FILES_OF_EVENTS = ("match", "why", "measure")  # several files after one `--events`


class Commands(UserDict[str, Any]):
    """Commands by name; those that were asked for are kept."""

    def __init__(self) -> None:
        super().__init__(PLACES)

    def __getitem__(self, name: str) -> Any:
        """The command, loaded."""
        found = self.data[name]
        if isinstance(found, str):
            found = self.data[name] = _load(name, found)
        return found


def summaries() -> dict[str, Any]:
    """Return all commands with their first sentences, and nothing else: to list them loads none."""
    found: dict[str, Any] = {}
    for name, place in PLACES.items():
        module, function = place.split(":")
        text = Path(__file__).parent.joinpath(*module.split(".")[2:]).with_suffix(".py").read_text()
        first = re.search(rf'^def {function}\(.*?"""(.+?)(?:""")?$', text, re.MULTILINE | re.DOTALL)
        found[name] = TyperCommand(name, help=first[1] if first else "", rich_markup_mode="markdown")
    return found


def _load(name: str, place: str) -> Any:
    if name not in NEEDS_NO_ARROW:
        hide_pandas_from_arrow()
    module, function = place.split(":")
    one = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    how: dict[str, Any] = {}
    if name in TAKES_FILES_OF_EVENTS:
        how["cls"] = import_module("weft.cli.match").MatchCommand
    one.command(name, **how)(getattr(import_module(module), function))
    gc.freeze()  # what was loaded stays: nobody has to look for garbage in it
    gc.enable()
    return typer.main.get_command(one)
