"""The page of the cluster: what Spark says of executors, cores, memory and tasks."""

from __future__ import annotations

from nicegui import ui

from weft.workbench.pages.frame import asked, card, frame, table
from weft.workbench.service import Workbench

COLUMNS = ("run", "id", "host", "cores", "memory_used", "memory", "active_tasks", "completed_tasks", "failed_tasks")


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/cluster")
    async def page() -> None:
        with frame("/cluster", bench.project.folder.name):
            found = await asked(bench.cluster) or {}
            with card("This machine"):
                text = f"{found.get('cores', 0)} cores, load {found.get('load', 0):.1f}"
                ui.label(text).props('data-testid="machine"')
            with card("Spark"):
                listed = table(COLUMNS, found.get("executors", []), "id", "executors")
                listed.props('no-data-label="no Spark that runs can be asked"')
                for name in found.get("unknown", []):
                    ui.label(f"{name}: its Spark has no interface (spark.ui.enabled is false)").classes("weft-mono")
