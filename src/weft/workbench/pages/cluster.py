"""The page of the cluster: what Spark says of executors, cores, memory and tasks."""

from __future__ import annotations

from dataclasses import asdict

from nicegui import ui

from weft.workbench.cluster import Executor
from weft.workbench.pages.frame import asked, card, fill, frame, table
from weft.workbench.pages.run_texts import size_text
from weft.workbench.service import Workbench

COLUMNS = ("run", "id", "host", "cores", "memory_used", "memory", "active_tasks", "completed_tasks", "failed_tasks")
BEAT = 2.0  # seconds between two looks


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/cluster")
    async def page() -> None:
        with frame("/cluster", bench.project.folder.name):
            with card("This machine"):
                machine = ui.label().props('data-testid="machine"')
            with card("Executors of Spark"):
                listed = table(COLUMNS, [], "key", "executors")
                listed.props('no-data-label="no run on Spark is active; start one on the page Running"')
                unknown = ui.label().classes("weft-mono weft-quiet")

            async def look() -> None:
                found = await asked(bench.cluster)
                if found is None:
                    return
                free = (
                    f", {size_text(found.memory_free)} of {size_text(found.memory)} memory free" if found.memory else ""
                )
                machine.text = f"{found.cores} cores, load {found.load:.1f}{free}"
                fill(listed, [_row(one) for one in found.executors])
                unknown.text = f"not known yet: {', '.join(found.unknown)}" if found.unknown else ""

            ui.timer(BEAT, look)
            await look()


def _row(one: Executor) -> dict[str, object]:
    """An executor as a row of the table; every run has one that is called `driver`."""
    sizes = {"memory_used": size_text(one.memory_used), "memory": size_text(one.memory)}
    return {**asdict(one), **sizes, "key": f"{one.run} {one.id}"}
