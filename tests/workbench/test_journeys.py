"""Journeys through the workbench in a real browser; they also make the pictures in docs/ when WEFT_PICTURES is set."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="journeys need playwright")
pytest.importorskip("nicegui", reason="the workbench needs weft[workbench]")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TOGETHER = "one workbench serves all journeys"
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt-get install chromium)")

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "workbench"
PAGES = int(os.environ.get("WEFT_PAGES", "12"))  # `make pages` opens fifty
PATIENCE = 90_000  # milliseconds: machines may be busy
MARKUP = "<img src=x onerror=document.title=7>"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journeys") / "shop"
    shutil.copytree(ROOT / "examples" / "fire", folder / "fire")
    rows = [{"type": "AB"[n % 2], "ts": n, "x": n % 5} for n in range(400)]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    odd = [{"type": "A", "ts": 1, "x": MARKUP}, {"type": "B", "ts": 2, "x": MARKUP}]
    (folder / "odd.jsonl").write_text("".join(json.dumps(row) + "\n" for row in odd))
    return folder


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    environment = {**os.environ, "WEFT_RUNS": str(project.parent / "runs")}
    server = subprocess.Popen(
        [sys.executable, "-m", "weft", "web", str(project), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert server.stdout is not None
    try:
        for line in server.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                yield found[0]
                break
        else:
            pytest.fail("the workbench did not start")
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[object]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = browser.new_page(viewport={"width": 1200, "height": 860})
        found.set_default_timeout(PATIENCE)
        found.asked_elsewhere = []
        own = address.partition("/?")[0].removeprefix("http:")

        def note(request: object) -> None:
            url = request.url  # type: ignore[attr-defined]
            if own not in url and not url.startswith("data:"):
                found.asked_elsewhere.append(url)

        found.on("request", note)
        found.goto(address)
        yield found
        browser.close()


def go(page: object, place: str) -> None:
    page.get_by_test_id(f"to-{place}").click()  # type: ignore[attr-defined]


def picture(page: object, name: str) -> None:
    if os.environ.get("WEFT_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        page.wait_for_timeout(700)  # type: ignore[attr-defined] # for charts and notes to settle
        page.screenshot(path=str(PICTURES / f"{name}.png"))  # type: ignore[attr-defined]


def write(page: object, text: str) -> None:
    """Write a text into the editor, key by key as a user does."""
    page.locator(".cm-content").click()  # type: ignore[attr-defined]
    page.keyboard.press("Control+a")  # type: ignore[attr-defined]
    page.keyboard.insert_text(text)  # type: ignore[attr-defined]


def test_from_a_wrong_query_to_a_running_one(page: object, address: str, project: Path) -> None:
    expect = playwright.expect
    get = page.get_by_test_id  # type: ignore[attr-defined]
    base = address.partition("/?")[0]

    # Write a wrong query, and see the mark.
    page.goto(f"{base}/?path=fire/fire.ceql")  # type: ignore[attr-defined]
    expect(get("verdict")).to_contain_text("0 errors", timeout=PATIENCE)
    expect(page.locator("[data-testid=plan] svg")).to_be_visible(timeout=PATIENCE)  # type: ignore[attr-defined]
    picture(page, "programs")
    # Words are completed: here the attributes of the type that the variable has.
    get("new").click()
    expect(page.locator(".cm-content")).to_contain_text("A AS a ; B AS b", timeout=PATIENCE)  # type: ignore[attr-defined]
    page.goto(f"{base}/?path=fire/fire.ceql")  # type: ignore[attr-defined]
    expect(get("verdict")).to_contain_text("0 errors", timeout=PATIENCE)
    write(page, "SELECT * FROM S WHERE T AS a ; H AS b FILTER a[")
    page.keyboard.press("Control+Space")  # type: ignore[attr-defined]
    offered = page.locator(".cm-tooltip-autocomplete li")  # type: ignore[attr-defined]
    expect(offered.first).to_contain_text("id", timeout=PATIENCE)
    offered.first.click()
    expect(page.locator(".cm-content")).to_contain_text("FILTER a[id", timeout=PATIENCE)  # type: ignore[attr-defined]

    write(page, "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] = c[x] WITHIN 9 EVENTS")
    expect(get("verdict")).to_contain_text("1 error", timeout=PATIENCE)
    expect(page.locator(".weft-error").first).to_be_visible()  # type: ignore[attr-defined]

    # Mend it, and see the plan.
    write(page, "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] = b[x] WITHIN 9 EVENTS")
    expect(get("verdict")).to_contain_text("0 errors", timeout=PATIENCE)
    expect(get("plan")).to_contain_text("a[x] = b[x]", timeout=PATIENCE)
    expect(get("plan")).to_contain_text("strategy key")
    get("path").fill("pairs.ceql")
    get("try").click()

    # See matches, ask why not, keep a test.
    expect(get("run")).to_be_visible(timeout=PATIENCE)
    assert (project / "pairs.ceql").exists()
    expect(page.get_by_label("events", exact=True)).to_have_value("pairs.jsonl")  # type: ignore[attr-defined]
    get("run").click()
    expect(get("total")).to_contain_text("matches in 400 events", timeout=PATIENCE)
    expect(page.locator("[data-testid=timeline] svg")).to_be_visible()  # type: ignore[attr-defined]
    rows = get("events").locator("tbody tr")
    rows.nth(0).locator(".q-checkbox").click()
    rows.nth(1).locator(".q-checkbox").click()
    get("why").click()
    expect(get("reasons")).to_contain_text("a[x] = b[x], but a[x] is 0, b[x] is 1", timeout=PATIENCE)
    get("keep").click()
    expect(page.get_by_text("kept in pairs.test.toml")).to_be_visible(timeout=PATIENCE)  # type: ignore[attr-defined]

    go(page, "tests")
    expect(get("summary")).to_contain_text("4 cases, 0 failed", timeout=PATIENCE)
    picture(page, "tests")

    # Deploy it to a running stream, see counts grow, stop it.
    go(page, "running")
    get("run-program").click()
    page.get_by_role("option", name="pairs.ceql").click()  # type: ignore[attr-defined]
    get("rate").fill("5")  # more than a minute, so that it still runs when counts are compared
    get("start").click()
    expect(get("state")).to_have_text("running", timeout=PATIENCE)
    expect(get("queries")).to_contain_text(re.compile(r"pairs\s*[1-9]\d* matches"), timeout=PATIENCE)
    before = get("reading-events").inner_text()
    expect(get("reading-events")).not_to_have_text(before, timeout=PATIENCE)
    expect(get("funnels")).to_contain_text("match")
    expect(get("operators")).to_contain_text("automaton 0: pairs")
    expect(get("lanes")).to_contain_text("100%")
    expect(get("log")).to_contain_text("trigger 0")
    expect(get("tail")).to_contain_text("pairs", timeout=PATIENCE)
    expect(get("pressure")).to_contain_text("of 400 events replayed", timeout=PATIENCE)
    assert page.locator("tr.weft-here").inner_text().startswith("pairs")  # type: ignore[attr-defined]
    get("change").click()
    expect(page.get_by_text("pairs runs pairs.ceql now")).to_be_visible(timeout=PATIENCE)  # type: ignore[attr-defined]
    if os.environ.get("WEFT_PICTURES"):
        page.wait_for_timeout(6000)  # type: ignore[attr-defined]
    page.set_viewport_size({"width": 1200, "height": 1330})  # type: ignore[attr-defined]
    picture(page, "running")
    page.set_viewport_size({"width": 1200, "height": 860})  # type: ignore[attr-defined]
    get("stop").click()
    expect(get("state")).to_have_text("ended", timeout=PATIENCE)
    get("restart").click()
    expect(get("state")).to_have_text("running", timeout=PATIENCE)
    if os.environ.get("WEFT_PICTURES"):  # the ended run is shown once more, in dark
        page.wait_for_timeout(9000)  # type: ignore[attr-defined]
    get("stop").click()
    expect(get("state")).to_have_text("ended", timeout=PATIENCE)

    # Rename the program, then delete it; switch to dark colours, which stay.
    page.goto(f"{base}/?path=pairs.ceql")  # type: ignore[attr-defined]
    expect(page.locator("tr.weft-here")).to_contain_text("pairs.ceql", timeout=PATIENCE)  # type: ignore[attr-defined]
    get("path").fill("couples.ceql")
    get("rename").click()
    expect(page.locator("tr.weft-here")).to_contain_text("couples.ceql", timeout=PATIENCE)  # type: ignore[attr-defined]
    get("delete").click()
    get("delete-yes").click()
    expect(get("programs")).not_to_contain_text("couples.ceql", timeout=PATIENCE)
    assert not (project / "couples.ceql").exists()
    get("dark").click()
    expect(page.locator("body.body--dark")).to_be_visible(timeout=PATIENCE)  # type: ignore[attr-defined]
    page.reload()  # type: ignore[attr-defined]
    expect(page.locator("body.body--dark")).to_be_visible(timeout=PATIENCE)  # type: ignore[attr-defined]
    get("dark").click()

    go(page, "cluster")
    expect(get("machine")).to_contain_text("cores", timeout=PATIENCE)
    picture(page, "cluster")
    assert page.asked_elsewhere == []  # type: ignore[attr-defined]


def test_the_timeline_of_fire_and_why_not(page: object, address: str) -> None:
    expect = playwright.expect
    get = page.get_by_test_id  # type: ignore[attr-defined]
    page.goto(f"{address.partition('/?')[0]}/try?path=fire/fire.ceql")  # type: ignore[attr-defined]
    get("run").click()
    expect(get("total")).to_contain_text("2 matches in 9 events", timeout=PATIENCE)
    # A click on a match chooses it, and tells of its events; one on an event takes it in, or out.
    picked = page.locator("[data-testid=timeline] .weft-match-0 circle").first  # type: ignore[attr-defined]
    picked.click()
    expect(get("positions")).to_have_value("1, 3, 8", timeout=PATIENCE)
    expect(get("match")).to_contain_text("val 22")
    expect(page.locator("[data-testid=timeline] .weft-chosen")).to_have_count(4)  # type: ignore[attr-defined]
    get("why").click()
    expect(get("reasons")).to_contain_text("everything holds", timeout=PATIENCE)
    for number in (2, 3):
        page.locator(f"[data-testid=timeline] .weft-at-{number} circle").click()  # type: ignore[attr-defined]
    expect(get("positions")).to_have_value("1, 2, 8", timeout=PATIENCE)
    get("why").click()
    expect(get("reasons")).to_contain_text("val < 25, but val is 48", timeout=PATIENCE)
    page.get_by_role("button", name="by variable").click()  # type: ignore[attr-defined]
    expect(get("timeline")).to_contain_text("…", timeout=PATIENCE)
    page.get_by_role("button", name="lanes by type").click()  # type: ignore[attr-defined]
    expect(get("timeline")).not_to_contain_text("…", timeout=PATIENCE)
    page.set_viewport_size({"width": 1200, "height": 1540})  # type: ignore[attr-defined]
    page.evaluate("window.scrollTo(0, 0)")  # type: ignore[attr-defined]
    picture(page, "try")
    page.set_viewport_size({"width": 1200, "height": 860})  # type: ignore[attr-defined]


def test_markup_of_events_and_programs_is_shown_and_never_run(page: object, address: str) -> None:
    expect = playwright.expect
    get = page.get_by_test_id  # type: ignore[attr-defined]
    base = address.partition("/?")[0]
    page.goto(f"{base}/?path=fire/fire.ceql")  # type: ignore[attr-defined]
    expect(get("verdict")).to_contain_text("0 errors", timeout=PATIENCE)
    write(page, f"SELECT * FROM S WHERE A AS a ; B AS b WITHIN 9 EVENTS -- {MARKUP}\nFILTER '{MARKUP}'")
    expect(get("verdict")).to_contain_text("error", timeout=PATIENCE)
    write(page, f"SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] = '{MARKUP}' WITHIN 9 EVENTS")
    expect(get("verdict")).to_contain_text("0 errors", timeout=PATIENCE)
    get("path").fill("odd.ceql")
    get("try").click()
    expect(get("run")).to_be_visible(timeout=PATIENCE)
    get("events-file").click()
    page.get_by_role("option", name="odd.jsonl").click()  # type: ignore[attr-defined]
    get("run").click()
    expect(get("total")).to_contain_text("1 match in", timeout=PATIENCE)
    expect(get("events")).to_contain_text("<img src=x")
    get("events").locator("tbody tr").nth(1).locator(".q-checkbox").click()
    get("why").click()
    expect(get("reasons")).to_contain_text("not a match", timeout=PATIENCE)
    assert page.locator("img[src=x]").count() == 0  # type: ignore[attr-defined]
    assert page.title() != "7"  # type: ignore[attr-defined]


def test_ten_thousand_matches_and_a_thousand_programs_are_listed(page: object, address: str, project: Path) -> None:
    expect = playwright.expect
    get = page.get_by_test_id  # type: ignore[attr-defined]
    base = address.partition("/?")[0]
    many = project / "many"
    many.mkdir()
    for number in range(1000):
        (many / f"q{number:04}.ceql").write_text("SELECT * FROM S WHERE A AS a ; B AS b WITHIN 900 EVENTS")
    rows = [{"type": "AB"[n >= 110], "ts": n} for n in range(220)]
    (many / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        page.goto(f"{base}/?path=many/q0500.ceql")  # type: ignore[attr-defined]
        expect(get("programs").locator("tbody tr").first).to_be_visible(timeout=PATIENCE)
        get("search").fill("q0777")
        expect(get("programs").locator("tbody tr")).to_have_count(1, timeout=PATIENCE)
        page.goto(f"{base}/try?path=many/q0777.ceql")  # type: ignore[attr-defined]
        get("run").click()
        expect(get("total")).to_contain_text("12,100 matches in 220 events", timeout=PATIENCE)
        expect(get("matches")).to_contain_text("of 10000")
        expect(get("matches").locator("tbody tr")).to_have_count(10)  # a page of them is in the document
    finally:
        shutil.rmtree(many)


def test_many_pages_are_open_at_once(page: object, address: str) -> None:
    base = address.partition("/?")[0]
    places = ("/try", "/running", "/cluster")
    context = page.context.browser.new_context()  # type: ignore[attr-defined]
    try:
        pages = [context.new_page() for _ in range(PAGES)]
        for one in pages:
            one.set_default_timeout(PATIENCE)
        pages[0].goto(address)
        for number, one in enumerate(pages):
            one.goto(f"{base}{places[number % len(places)]}", wait_until="commit")
        for number, one in enumerate(pages):
            name = ("run", "start", "machine")[number % len(places)]
            playwright.expect(one.get_by_test_id(name)).to_be_visible(timeout=PATIENCE)
    finally:
        context.close()


def test_a_browser_without_the_token_sees_nothing(page: object, address: str) -> None:
    other = page.context.browser.new_page()  # type: ignore[attr-defined]
    answer = other.goto(address.partition("/?")[0])
    assert answer.status == 401
    other.close()


def test_pages_fit_a_laptop_and_a_tablet_light_and_dark(page: object, address: str) -> None:
    expect = playwright.expect
    get = page.get_by_test_id  # type: ignore[attr-defined]
    base = address.partition("/?")[0]
    try:
        for width, height, dark in ((1280, 800, False), (820, 1180, True)):
            page.set_viewport_size({"width": width, "height": height})  # type: ignore[attr-defined]
            for place in (
                "/?path=fire/fire.ceql",
                "/try?path=fire/fire.ceql",
                "/tests",
                "/running",
                "/server",
                "/cluster",
            ):
                page.goto(f"{base}{place}")  # type: ignore[attr-defined]
                expect(get("dark")).to_be_visible(timeout=PATIENCE)
                page.evaluate(f"Quasar.Dark.set({str(dark).lower()})")  # type: ignore[attr-defined]
                overflow = "document.documentElement.scrollWidth - innerWidth"
                assert page.evaluate(overflow) <= 0, (place, width)  # type: ignore[attr-defined]
                name = place.strip("/").partition("?")[0] or "programs"
                if name == "programs":  # the list is beside the editor, or above it where there is little room
                    listed, editor = get("programs").bounding_box(), page.locator(".cm-editor").bounding_box()  # type: ignore[attr-defined]
                    assert (listed["y"] + listed["height"] <= editor["y"]) == (width < 1024)
                if dark and name == "running":
                    picture(page, f"{name}-dark")
    finally:
        page.set_viewport_size({"width": 1200, "height": 860})  # type: ignore[attr-defined]


def test_pages_and_lists_are_used_from_the_keyboard(page: object, address: str) -> None:
    expect = playwright.expect
    press = page.keyboard.press  # type: ignore[attr-defined]
    page.goto(f"{address.partition('/?')[0]}/?path=fire/fire.ceql")  # type: ignore[attr-defined]
    here = page.locator("tr.weft-here")  # type: ignore[attr-defined]
    expect(here).to_contain_text("fire.ceql", timeout=PATIENCE)
    here.focus()
    press("ArrowDown")
    press("Enter")
    expect(here).to_contain_text("heating.ceql", timeout=PATIENCE)
    press("Alt+2")
    expect(page.get_by_test_id("run")).to_be_visible(timeout=PATIENCE)  # type: ignore[attr-defined]
    press("Control+Enter")
    expect(page.get_by_test_id("total")).to_contain_text("in 9 events", timeout=PATIENCE)  # type: ignore[attr-defined]
    row = page.get_by_test_id("matches").locator("tbody tr").first  # type: ignore[attr-defined]
    row.focus()
    press("Enter")
    expect(page.get_by_test_id("match")).to_contain_text("from", timeout=PATIENCE)  # type: ignore[attr-defined]
