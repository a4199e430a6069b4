"""`weft match` with sources by name, and with the sources and sinks that a program names itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weft.cli.main import app

STEP = """topology "Moves"
external Stock(name: string, price: int) < "stocks.jsonl" [1.0]
external News(name: string) < "file://news.csv" [1.0]
Moved(Stock.price): News ;[News.name = Stock.name && dur < 100] Stock > "moved.jsonl"
Seen(*): News
"""
EQL = """SOURCE Stock (name string, price int) FROM 'stocks.jsonl'
SOURCE News (name string)
SINK a TO 'a.jsonl'
SINK b TO 'b.csv'
SELECT * FROM News n ; Stock s WHERE FILTER(n.name = s.name) AND (n, s) OCCURS WITHIN 100 INTO a, b
"""
MOVED = [[0, 2], [1, 2]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs, and events that leave their type to their source."""
    monkeypatch.chdir(tmp_path)
    Path("moves.step").write_text(STEP)
    Path("moves.eql").write_text(EQL)
    Path("stocks.jsonl").write_text("".join(json.dumps({"ts": t, "name": "x", "price": t}) + "\n" for t in (4, 9)))
    Path("news.csv").write_text("ts,name\n1,x\n2,x\n4,y\n")
    return tmp_path


def weft(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def found(text: str) -> list[tuple[str, list[int]]]:
    return [(match["query"], match["positions"]) for match in map(json.loads, text.splitlines())]


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_a_program_that_names_its_sources_and_sinks_needs_no_options(engine: str) -> None:
    result = weft("match", "moves.step", "--engine", engine)
    assert (result.exit_code, result.stderr) == (0, "")
    assert found(result.stdout) == [("Seen", [0]), ("Seen", [1]), ("Seen", [3])]
    assert found(Path("moved.jsonl").read_text()) == [("Moved", positions) for positions in MOVED]


def test_given_files_and_places_go_before_those_of_the_program() -> None:
    all_of_them = weft("match", "moves.step", "--out", "-").stdout
    assert found(all_of_them) == [("Seen", [0]), ("Seen", [1]), *(("Moved", p) for p in MOVED), ("Seen", [3])]
    named = weft("match", "moves.step", "--events", "Stock=stocks.jsonl", "News=news.csv")
    assert (named.exit_code, named.stdout) == (0, all_of_them)
    assert weft("match", "moves.step", "--events", "News=news.csv").stdout == all_of_them
    assert found(weft("match", "moves.step", "--count").stdout.replace("count", "positions")) == [
        ("Moved", 2),
        ("Seen", 3),
    ]
    assert not Path("moved.jsonl").exists()


def test_a_query_may_have_several_sinks() -> None:
    result = weft("match", "moves.eql", "-e", "News=news.csv")
    assert found(result.stdout) == [("moves", positions) for positions in MOVED]
    Path("moves.eql").write_text(EQL.replace("SOURCE News (name string)", "SOURCE News (name string) FROM 'news.csv'"))
    assert weft("match", "moves.eql").stdout == ""
    assert found(Path("a.jsonl").read_text()) == [("moves", positions) for positions in MOVED]
    assert len(Path("b.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["moves.eql"], 2, "the program does not say where the events of 'News' come from"),
        (["moves.step", "-e", "Stock=stocks.jsonl", "-e", "news.csv"], 2, "do not mix the two"),
        (["moves.step", "-e", "Stock=stock.jsonl"], 1, "no such file: stock.jsonl; did you mean stocks.jsonl?"),
        (["plain.ceql"], 2, "there are no events: give --events FILE"),
        (["far.step"], 2, "gopher://host/topic: there is no adapter for 'gopher'"),
        (["odd.step"], 2, "unknown format 'txt'"),
    ],
)
def test_mistakes(args: list[str], code: int, message: str) -> None:
    Path("plain.ceql").write_text("SELECT * WHERE A WITHIN 1 EVENTS")
    Path("far.step").write_text(STEP.replace("file://news.csv", "gopher://host/topic"))
    Path("odd.step").write_text(STEP.replace("moved.jsonl", "moved.txt"))
    result = weft("match", *args)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("sink", ["../elsewhere.jsonl", "file://{away}/elsewhere.jsonl", "link/elsewhere.jsonl"])
def test_a_program_writes_outside_its_folder_only_when_that_is_allowed(
    sink: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder / "home"
    home.mkdir()
    (home / "link").symlink_to(folder, target_is_directory=True)
    monkeypatch.chdir(home)
    events = {"stocks.jsonl": "../stocks.jsonl", "file://news.csv": "../news.csv"}
    text = STEP.replace("moved.jsonl", sink.format(away=folder))
    for name, path in events.items():
        text = text.replace(name, path)
    Path("moves.step").write_text(text)
    refused = weft("match", "moves.step")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Moved writes to ")
    assert "--allow-sinks" in refused.stderr
    assert not (folder / "elsewhere.jsonl").exists()
    assert weft("match", "moves.step", "--out", "-").exit_code == 0
    assert weft("match", "moves.step", "--allow-sinks").exit_code == 0
    assert found((folder / "elsewhere.jsonl").read_text()) == [("Moved", positions) for positions in MOVED]


def test_a_program_writes_below_its_own_folder_from_wherever_it_is_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    text = STEP.replace("stocks.jsonl", "../stocks.jsonl").replace("file://news.csv", "../news.csv")
    (folder / "moves.step").write_text(text.replace("moved.jsonl", "../moved.jsonl"))
    assert weft("match", "../moves.step").exit_code == 0
    assert (folder / "moved.jsonl").exists()
