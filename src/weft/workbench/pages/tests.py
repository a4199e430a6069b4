"""The page of tests: all cases of the project, with what is missing and what is too much."""

from __future__ import annotations

from nicegui import ui

from weft.errors import plural
from weft.workbench.jobs import TestCase, TestReport
from weft.workbench.pages.frame import asked, button, card, frame, texts
from weft.workbench.service import Workbench


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/tests")
    async def page() -> None:
        with frame("/tests", bench.project.folder.name), card("Tests"):
            head = ui.row().classes("w-full items-center gap-3")
            body = ui.column().classes("w-full gap-2")
            with head:
                summary = ui.label().props('data-testid="summary"').classes("grow")

            async def run() -> None:
                summary.text = "running …"
                report = await asked(bench.tests)
                summary.text = "" if report is None else _summary(report)
                if report is not None:
                    body.clear()
                    with body:
                        _show(report)

            with head:
                button("Run again", run, "run-tests", "outline")
            ui.timer(0.05, run, once=True)


def _summary(report: TestReport) -> str:
    failed = sum(not case.passed for case in report.cases)
    return f"{len(report.cases)} cases, {failed} failed, {len(report.problems)} mistakes in files"


def _show(report: TestReport) -> None:
    for problem in report.problems:
        texts([problem], "problem").classes("weft-bad")
    for file in dict.fromkeys(case.file for case in report.cases):
        ui.label(file).classes("text-weight-medium q-mt-sm weft-mono")
        for case in (case for case in report.cases if case.file == file):
            _case(case)


def _case(case: TestCase) -> None:
    with ui.row().classes("items-center gap-2"):
        ui.icon("check_circle" if case.passed else "cancel", color="positive" if case.passed else "negative")
        ui.label(case.name).props('data-testid="case"')
    if not case.passed:
        lines = [f"missing  {one.get('query')}: {one.get('positions')}" for one in case.missing]
        lines += [f"extra    {one.get('query')}: {one.get('positions')}" for one in case.extra]
        lines += [f"{plural(one['found'], 'match', 'matches')}, expected {one['expected']}" for one in case.counts]
        texts(lines, "difference").classes("q-pl-lg")
