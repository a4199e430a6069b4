"""What commands share on the terminal: compiled programs with their warnings, progress, statistics, rejects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from weft.algebra.query import Program
from weft.api import compile_with_findings
from weft.cli.console import say
from weft.connectors.files import write_rejected
from weft.errors import ProgramError, UsageError
from weft.languages.defined import compile_together
from weft.runtime.data.events import Rejected


def compile_all(
    paths: Sequence[str] | None,
    queries: Sequence[str] | None,
    language: str | None,
    time_unit: str,
    *,
    warns: bool = True,
) -> list[Program]:
    """Compile files and texts; warnings go to stderr if asked, all errors of all of them are raised together."""
    found = compile_together(
        [
            partial(compile_with_findings, text_or_path, language, time_unit=time_unit, stem=stem)
            for text_or_path, stem in sources_of(paths, queries)
        ]
    )
    errors = [finding for program, findings in found if program is None for finding in findings]
    for finding in (finding for program, findings in found if program is not None and warns for finding in findings):
        say(finding.render(), err=True)
    if errors:
        raise ProgramError(errors)
    return [program for program, _ in found if program is not None]


def sources_of(paths: Sequence[str] | None, queries: Sequence[str] | None) -> list[tuple[Path, None] | tuple[str, str]]:
    """The programs that are given as files or as texts, and what a nameless query of a text is called."""
    texts = queries or ()
    named = [(text, "q" if len(texts) == 1 else f"q{number}") for number, text in enumerate(texts, 1)]
    if not (paths or named):
        raise UsageError('there is no program: give a file, or a query itself as -q "SELECT * WHERE A AS a"')
    return [*((Path(path), None) for path in paths or ()), *named]


@contextmanager
def progress(what: str, counters: Callable[[], Mapping[str, int]], *, shown: bool) -> Iterator[None]:
    """A bar on a terminal's stderr that says how far the work is; nothing in a pipe."""
    if not (shown and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class CountersColumn(ProgressColumn):
        """Reads the counters whenever the bar is drawn."""

        def render(self, task: Task) -> Text:
            """What was read and found so far."""
            known = {name: counters().get(name) for name in ("events", "matches")}
            return Text(", ".join(f"{number:,} {name}" for name, number in known.items() if number is not None))

    columns = (TextColumn(what), BarColumn(), CountersColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        yield


@contextmanager
def compiling_told() -> Iterator[None]:
    """Say on stderr that kernels are being compiled, when that takes a while."""
    from weft.kernels.compiling import when_compiling

    text = "compiling kernels, up to a minute; each is compiled once on a machine (`weft warm` compiles all)"
    end = when_compiling(lambda: say(text, err=True))
    try:
        yield
    finally:
        end()


def show_stats(counters: Mapping[str, int], seconds: float, stages: Mapping[str, float] | None = None) -> None:
    """Counters, time by stage and speed on stderr."""
    lines = {name: f"{number:,}" for name, number in counters.items()}
    lines["seconds"] = f"{seconds:.3f}"
    lines.update((f"  {stage}", f"{spent:.3f}") for stage, spent in (stages or {}).items())
    if counters.get("events") and seconds > 0:
        rate = counters["events"] / seconds
        lines["events/s"] = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        say(f"{name:<{width}}  {value}", err=True)


def write_rejects(rejected: Sequence[Rejected], path: str | None) -> None:
    """Events that could not be read: into a file of JSON lines if one is given, else counted on stderr."""
    if path is not None:
        write_rejected(rejected, path)
    if rejected:
        where = f"see {path}" if path else f"the first: {rejected[0]} (--rejects FILE keeps them all)"
        count = f"{len(rejected):,} event{'s' * (len(rejected) > 1)}"
        say(f"warning: {count} could not be read; {where}", err=True)
