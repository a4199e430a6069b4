"""`weft check`: what is wrong in programs, and where."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.algebra.query import Program
from weft.api import compile_with_findings
from weft.cli import options
from weft.cli.console import say, say_json
from weft.cli.render import sources_of
from weft.connectors.adapters.checking import check_adapters
from weft.errors import Diagnostic, InputError, UsageError
from weft.languages.defined import Compile, Compiled, compile_together
from weft.languages.texts import path_of_program, read_program


def check(
    programs: options.Programs = None,
    queries: options.Queries = None,
    language: options.Language = None,
    functions: options.Functions = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per finding, on stdout.")] = False,
) -> None:
    """Check programs without running them.

    Every finding has its line, its column, a caret under the place and, where there is one, a hint:

        weft check fire.ceql fraud.ceql

        weft check --json *.ceql

    Programs that are given together are one program.

    Exit code 1 says that there are errors; warnings alone leave it at 0.
    """
    given = sources_of(programs, queries)
    found, unreadable = _checked(given, language)
    findings = [finding for _, own in found for finding in own]
    _show(findings, as_json=as_json)
    conflict = _conflict([program for program, _ in found if program is not None])
    if conflict is not None and as_json:
        nowhere = dict.fromkeys(("file", "line", "column", "hint"))
        say_json({"code": "conflict", "severity": "error", "message": conflict, **nowhere})
    elif conflict is not None:
        say(f"as one program: {conflict}", err=True)
    errors = sum(finding.severity == "error" for finding in findings) + (conflict is not None)
    if not as_json:
        warnings = sum(finding.severity != "error" for finding in findings)
        rest = f", {unreadable} could not be read" if unreadable else ""
        what = "program" if queries else "file"
        files = f"{len(given)} {what}{'s' * (len(given) != 1)}"
        say(f"{files}: {errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}{rest}")
    if errors or unreadable:
        raise typer.Exit(1)


def _checked(given: Sequence[tuple[str | Path, str | None]], language: str | None) -> tuple[list[Compiled], int]:
    """The programs with their findings, as far as they can be read, and how many cannot."""
    readable: list[Compile] = []
    for text_or_path, stem in given:
        compiled = partial(_with_adapters, text_or_path, language, stem)
        try:
            compile_together([compiled])
        except InputError as error:
            say(error, err=True)
        else:
            readable.append(compiled)
    return compile_together(readable), len(given) - len(readable)


def _with_adapters(
    text_or_path: str | Path, language: str | None, stem: str | None, **context: Any
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """A program with its findings, those about the places that it names included."""
    program, findings = compile_with_findings(text_or_path, language, stem=stem, **context)
    path = path_of_program(text_or_path)
    text = str(text_or_path) if path is None else read_program(path)
    return program, (*findings, *check_adapters(program, text, "<text>" if path is None else str(path)))


def _conflict(programs: Sequence[Program]) -> str | None:
    """Why programs that are right one by one cannot run as one."""
    try:
        reduce(Program.extended, programs, Program("", ()))
    except UsageError as conflict:
        return str(conflict)
    return None


def _show(findings: list[Diagnostic], *, as_json: bool) -> None:
    for finding in findings:
        if as_json:
            say_json(finding.to_json())
        else:
            say(finding.render() + "\n", err=True)
