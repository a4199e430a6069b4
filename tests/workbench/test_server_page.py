"""The page of a server in a real browser: connect, deploy, watch, publish, and what is shown when the server goes."""

from __future__ import annotations

from tests.serving import ServerProcess
from tests.workbench.test_journeys import address, go, page, picture, project, pytestmark

__all__ = ["address", "page", "project", "pytestmark"]
TOGETHER = "one workbench serves all journeys"


def test_a_server_is_used_from_its_page(page: object) -> None:
    server = ServerProcess()
    try:
        go(page, "server")
        at = page.get_by_test_id  # type: ignore[attr-defined]
        at("server-url").fill(server.url)
        at("connect").click()
        at("server-state").get_by_text(f"connected to {server.url}").wait_for()
        at("server-deploy").click()
        at("server-queries").get_by_text("Fire").first.wait_for()
        at("server-watch").click()
        at("server-publish").click()
        at("server-published").get_by_text("accepted").wait_for()
        at("server-matches").get_by_text("Fire").first.wait_for()
        assert "matches" in at("server-count").inner_text()
        picture(page, "server")
        at("server-queries").get_by_role("checkbox").last.click()
        at("server-remove").click()
        at("server-queries").get_by_text("none yet").wait_for()
    finally:
        server.stop()
    at("server-state").get_by_text("the server is gone").wait_for()
    assert page.asked_elsewhere == []  # type: ignore[attr-defined] # the browser talks to the workbench alone
