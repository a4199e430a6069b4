"""`weft test`: rule tests, from readable files."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli import options
from weft.cli.console import say, say_json
from weft.cli.render import compiling_told
from weft.engines import Engine
from weft.rule_tests import FileResult, case_lines, find_files, run_file, to_json


def run_tests(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Test files, or folders with *.test.toml.")],
    engine: Annotated[Engine, typer.Option(help="The engine that runs the cases.")] = "local",
    strategy: options.Strategy = None,
    lanes: options.Lanes = None,
    functions: options.Functions = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per case and mistake, on stdout.")] = False,
) -> None:
    """Run rule tests: programs on written events, compared with the expected matches.

    A test file is TOML: it names a `program`, and each `[[case]]` has `events` and the `expected` matches. An event
    is a line with its time, type and attributes; a match is a line with its query and variables at positions:

        12 T id=1 val=45

        fire: t1@1 h1@3 t2@8

    A case of SQL has `tables` (CSV, or files by name) and the rows that are `expected`, as CSV.

    Exit code 1 says that a case failed or that a file is wrong:

        weft test examples

        weft test fire.test.toml --engine spark

        weft test fire.test.toml --strategy slice --lanes 4
    """
    results: list[FileResult] = []
    with compiling_told():
        for path in find_files(paths):
            result = run_file(path, engine, strategy=strategy, lanes=lanes)
            results.append(result)
            _show(result, as_json=as_json)
    if not as_json:
        _summarise(results)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def _show(result: FileResult, *, as_json: bool) -> None:
    if as_json:
        for record in [*map(to_json, result.outcomes), *(finding.to_json() for finding in result.findings)]:
            say_json(record)
        return
    say(result.path)
    for outcome in result.outcomes:
        say("\n".join(case_lines(outcome)))
    for finding in result.findings:
        say(finding.render(), err=True)


def _summarise(results: list[FileResult]) -> None:
    passed = [outcome.passed for result in results for outcome in result.outcomes]
    mistakes = sum(len(result.findings) for result in results)
    failed = passed.count(False)
    wrong = f", {mistakes} mistake{'s' * (mistakes != 1)} in the files" if mistakes else ""
    say(f"{len(passed)} case{'s' * (len(passed) != 1)}: {passed.count(True)} passed, {failed} failed{wrong}")
