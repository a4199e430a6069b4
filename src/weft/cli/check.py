"""`weft check`: what is wrong in programs, and where."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from weft.api import compile_with_findings
from weft.cli import options
from weft.cli.render import sources_of
from weft.errors import Diagnostic, InputError, ProgramError


def check(
    programs: options.Programs = None,
    queries: options.Queries = None,
    language: options.Language = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per finding, on stdout.")] = False,
) -> None:
    """Check programs without running them.

    Every finding has its line, its column, a caret under the place and, where there is one, a hint:

        weft check fire.ceql fraud.ceql

        weft check --json *.ceql

    Exit code 1 says that there are errors; warnings alone leave it at 0.
    """
    findings: list[Diagnostic] = []
    unreadable = 0
    given = sources_of(programs, queries)
    for text_or_path, stem in given:
        try:
            found = compile_with_findings(text_or_path, language, stem=stem)[1]
        except ProgramError as error:
            found = error.diagnostics
        except InputError as error:
            typer.echo(str(error), err=True)
            unreadable += 1
            continue
        findings += found
    _show(findings, as_json=as_json)
    errors = sum(finding.severity == "error" for finding in findings)
    if not as_json:
        warnings = len(findings) - errors
        rest = f", {unreadable} could not be read" if unreadable else ""
        what = "program" if queries else "file"
        files = f"{len(given)} {what}{'s' * (len(given) != 1)}"
        typer.echo(f"{files}: {errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}{rest}")
    if errors or unreadable:
        raise typer.Exit(1)


def _show(findings: list[Diagnostic], *, as_json: bool) -> None:
    for finding in findings:
        if as_json:
            typer.echo(json.dumps(finding.to_json(), ensure_ascii=False))
        else:
            typer.echo(finding.render() + "\n", err=True)
