"""Whatever programs, events and files are called and say: no command hands their control characters to a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.console import say, say_json
from weft.cli.main import app
from weft.running import registry
from weft.source import printable, printable_json

EVIL = "\x1b]0;owned\x07\x9b31m\u202e\x7f\x00\u2066"
NAME = EVIL.replace("\x00", "")  # in paths and arguments of commands there is no zero
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVENTS = [
    {"type": f"A{EVIL}", "ts": 1, EVIL: EVIL},
    {"type": "A", "ts": 2, EVIL: EVIL},
    {"type": "B", "ts": "x" + EVIL},
]
EVENTS += [{"type": "B", "ts": 3, "s": EVIL}]
QUERY = f"SELECT a, b WHERE A AS a ; B AS b FILTER b[s] <> '{NAME}' WITHIN 9 EVENTS"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inside = tmp_path / f"p{NAME}"
    inside.mkdir()
    (inside / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS) + EVIL + "\n")
    (inside / "events.csv").write_text(f"type,ts,s\nA,1,{NAME}\nB,{NAME},x\nB,3,{NAME}\n")
    (inside / f"good{NAME}.ceql").write_text(QUERY)
    (inside / f"twin{NAME}.ceql").write_text(QUERY)
    (inside / "same.ceql").write_text(f"QUERY one AS {QUERY}")
    (inside / "again.ceql").write_text(f"QUERY one AS {QUERY}")
    (inside / f"wrong{NAME}.ceql").write_text(f"SELECT * WHERE A AS {EVIL} ; B\n{EVIL}")
    (inside / f"doubt{NAME}.ceql").write_text(f"SELECT * WHERE A AS a ; B AS b FILTER a[`{NAME}`] = b[`{NAME}`]")
    (inside / "rules.tesla").write_text(f"define X(v: string) from B() and last A() within 5 from B where v = '{EVIL}'")
    case = {"events": [f"1 A s='{NAME}'", f"2 B{NAME} x"], "expected": [f"q{NAME}: a@0"]}
    toml = f"program = \"good{NAME}.ceql\"\n[[case]]\nname = 'one'\n" + "".join(
        f"{key} = {json.dumps(value)}\n" for key, value in case.items()
    )
    (inside / f"c{NAME}.test.toml").write_text(toml.replace("\x7f", "\\u007f"))
    monkeypatch.setenv("WEFT_RUNS", str(tmp_path / "runs"))
    return inside


Command = Callable[[Path], list[str]]
COMMANDS: dict[str, Command] = {
    "match": lambda at: ["match", str(at / f"good{NAME}.ceql"), "-e", str(at / "events.jsonl")],
    "match counts": lambda at: ["match", str(at / f"good{NAME}.ceql"), "-e", str(at / "events.jsonl"), "--count"],
    "match csv": lambda at: ["match", "-q", QUERY, "-e", str(at / "events.csv"), "-f", "csv"],
    "match doubtful": lambda at: ["match", str(at / f"doubt{NAME}.ceql"), "-e", str(at / "events.jsonl"), "--stats"],
    "match wrong": lambda at: ["match", str(at / f"wrong{NAME}.ceql"), "-e", str(at / "events.jsonl")],
    "match nothing": lambda at: ["match", "-q", QUERY, "-e", str(at / f"none{NAME}")],
    "match rules": lambda at: ["match", str(at / "rules.tesla"), "-e", str(at / "events.jsonl")],
    "match columns": lambda at: ["match", "-q", QUERY, "-e", str(at / "events.csv"), "--time", f"ts{NAME}"],
    "match out": lambda at: ["match", "-q", QUERY, "-e", str(at / "events.csv"), "-o", str(at / NAME / "x")],
    "check": lambda at: ["check", *map(str, sorted(at.glob("*.ceql")))],
    "check json": lambda at: ["check", "--json", *map(str, sorted(at.glob("*.ceql")))],
    "check nothing": lambda at: ["check", str(at / f"none{NAME}.ceql")],
    "explain": lambda at: ["explain", str(at / f"doubt{NAME}.ceql"), "--stage", "algebra"],
    "explain plan": lambda at: ["explain", str(at / f"doubt{NAME}.ceql")],
    "explain json": lambda at: ["explain", str(at / f"doubt{NAME}.ceql"), "--json"],
    "explain rules": lambda at: ["explain", str(at / "rules.tesla"), "--stage", "syntax"],
    "why": lambda at: ["why", str(at / f"good{NAME}.ceql"), "-e", str(at / "events.jsonl"), "--at", "1,3"],
    "test": lambda at: ["test", str(at)],
    "test json": lambda at: ["test", "--json", str(at)],
    "measure": lambda at: ["measure", str(at / f"doubt{NAME}.ceql"), "-e", str(at / "events.jsonl")],
    "tune": lambda at: ["tune", str(at / f"good{NAME}.ceql"), "--rates", NAME],
    "run": lambda at: ["run", "-q", QUERY, "--source", NAME, "--sink", str(at / "o"), "--checkpoint", str(at / "c")],
    "run nowhere": lambda at: [
        *("run", "-q", QUERY, "--source", f"x={at}/{NAME}"),
        *("--sink", str(at / "o"), "--checkpoint", str(at / "c")),
    ],
    "show": lambda at: ["show", f"x{NAME}"],
    "stop": lambda at: ["stop", f"x{NAME}"],
    "bench": lambda at: ["bench", NAME],
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.filterwarnings("ignore")
def test_no_command_hands_them_on(name: str, folder: Path) -> None:
    """What `match` puts into a pipe is data: on a terminal it goes through `printable_json`, see below."""
    with warnings.catch_warnings():
        done = CliRunner().invoke(app, COMMANDS[name](folder))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert not RAW.findall(done.stderr), ascii(done.stderr)
    shown = done.stdout if not name.startswith("match") else printable_json(done.stdout)
    assert not RAW.findall(shown), ascii(shown)
    assert done.stdout or done.stderr
    if "json" in name:
        for line in done.stdout.splitlines() if name != "explain json" else [done.stdout]:
            json.loads(line)


def test_matches_on_a_terminal_are_shown(folder: Path) -> None:
    """A real terminal, from beginning to end: matches, rejects, and the bar."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "weft", *COMMANDS["match"](folder), "--no-progress"]
    process = subprocess.Popen(command, stdout=follower, stderr=follower, stdin=subprocess.DEVNULL)
    os.close(follower)
    told = b""
    while True:
        try:
            piece = os.read(leader, 1 << 16)
        except OSError:  # Linux says so when the other end is closed
            break
        told += piece
        if not piece:
            break
    os.close(leader)
    assert process.wait() == 0, told
    text = told.decode().replace("\r\n", "\n")
    assert "\\u009b31m" in text
    assert not RAW.findall(text), ascii(text)


def test_a_run_that_is_shown_says_nothing_raw(folder: Path) -> None:
    about = {"programs": [EVIL], "sources": [EVIL], "sink": EVIL, "queries": [EVIL], "command": [], "folder": EVIL}
    registration = registry.Registration("fire", about)
    (registration.folder / registry.LOG).write_text(f"{EVIL}\nline\n")
    registration.end(f"it ended {EVIL}")
    for command in (["show", "fire"], ["show", "fire", "--json"], ["list"], ["list", "--json"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0
        assert not RAW.findall(done.stdout), ascii(done.stdout)
    assert printable(EVIL) in CliRunner().invoke(app, ["show", "fire"]).stdout


def test_what_is_said_keeps_its_lines_and_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"one\ttwo\n{EVIL}")
    assert capsys.readouterr().out == f"one\ttwo\n{printable(EVIL)}\n"
    say_json({EVIL: [EVIL]}, indent=2)
    told = capsys.readouterr().out
    assert not RAW.findall(told)
    assert json.loads(told) == {EVIL: [EVIL]}
