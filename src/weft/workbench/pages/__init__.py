"""The pages of the workbench, one file each, around `service.py`. Texts of users are shown as text, never as markup."""

from __future__ import annotations

from fastapi import FastAPI
from nicegui import ui

from weft.workbench.pages import cluster, programs, remote, running, tests, trying
from weft.workbench.service import Workbench


def add_pages(app: FastAPI, bench: Workbench) -> None:
    """Put all pages into an application."""
    for page in (programs, trying, tests, running, remote, cluster):
        page.add(bench)
    ui.run_with(app, title="weft", favicon="🧵", show_welcome_message=False, reconnect_timeout=10)
