"""Where output goes: never onto input, never half, and never to a place that turns out unwritable after the work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weft.cli.main import app

QUERY = "SELECT * WHERE A AS a"
EVENTS = '{"type":"A","ts":1}\n{"type":"A","ts":2}\n'


def weft(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text(EVENTS)
    return path


@pytest.mark.parametrize("option", ["--out", "--rejects"])
def test_an_input_is_never_overwritten(events: Path, tmp_path: Path, option: str) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(events)
    hard = tmp_path / "hard.jsonl"
    hard.hardlink_to(events)
    for place in (events, link, hard):
        result = weft("match", "-q", QUERY, "--events", str(events), option, str(place))
        assert (result.exit_code, events.read_text()) == (2, EVENTS)
        assert "would be overwritten" in result.stderr


def test_a_program_is_never_overwritten(events: Path, tmp_path: Path) -> None:
    program = tmp_path / "p.ceql"
    program.write_text(QUERY)
    assert weft("match", str(program), "--events", str(events), "--out", str(program)).exit_code == 2
    assert program.read_text() == QUERY


def test_a_sink_is_never_an_input(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(EVENTS)
    program = tmp_path / "p.eql"
    place = tmp_path / "a.jsonl"
    program.write_text(f"SOURCE A (x int) FROM '{place}'\nSINK out TO '{place}'\nSELECT * FROM A a INTO out")
    result = weft("match", str(program))
    assert place.read_text() == EVENTS
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize("wrong", ["not json at all", '{"type":"A"'])
def test_what_was_there_stays_when_the_input_is_bad(tmp_path: Path, wrong: str) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_text(wrong)
    out = tmp_path / "out.jsonl"
    out.write_text("yesterday\n")
    result = weft("match", "-q", QUERY, "--events", str(bad), "--out", str(out))
    assert result.exit_code == 1
    assert out.read_text() == "yesterday\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.parquet", "out.jsonl"]


def test_an_interrupt_says_what_was_kept(tmp_path: Path) -> None:
    pipe, out = tmp_path / "events.jsonl", tmp_path / "out.jsonl"
    os.mkfifo(pipe)
    out.write_text("yesterday\n")
    command = [sys.executable, "-m", "weft", "match", "-q", QUERY, "--events", str(pipe), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with pipe.open("w") as writer:  # waits until it is read
        writer.write(EVENTS)
        writer.flush()
        while not list(tmp_path.glob(".*unfinished")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "out.jsonl was left as it was before" in said
    assert out.read_text() == "yesterday\n"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("option", ["--out", "--rejects"])
def test_places_that_cannot_be_written_are_found_first(tmp_path: Path, option: str) -> None:
    for place in (tmp_path, tmp_path / "nowhere" / "out.jsonl"):
        result = weft("match", "-q", QUERY, "--events", str(tmp_path / "missing-*"), option, str(place))
        assert result.exit_code == 1
    events = tmp_path / "events.jsonl"
    events.write_text("[]\n")
    result = weft("match", "-q", QUERY, "--events", str(events), option, str(tmp_path / "nowhere" / "out.jsonl"))
    assert result.exit_code == 1
    assert "cannot write" in result.stderr
    assert "could not be read" not in result.stderr  # the work had not begun


def test_two_outputs_need_two_files(events: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "x.jsonl")
    result = weft("match", "-q", QUERY, "--events", str(events), "--out", place, "--rejects", place)
    assert result.exit_code == 2


def test_a_whole_file_keeps_its_mode_and_its_link(events: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text("old")
    kept.chmod(0o640)
    link = tmp_path / "out.jsonl"
    link.symlink_to(kept)
    assert weft("match", "-q", QUERY, "--events", str(events), "--out", str(link)).exit_code == 0
    assert link.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o640
    assert len(kept.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "command", ["match -q '{q}' --events {e}", "match -q '{q}' --events {e} --count", "check -q '{q}'"]
)
def test_a_full_disk_behind_standard_output_ends_with_a_message(events: Path, command: str) -> None:
    line = f"{sys.executable} -m weft {command.format(q=QUERY, e=events)} > /dev/full"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    *before, last = done.stderr.splitlines()
    assert last == "cannot write to standard output: No space left on device"
    assert all(line.startswith("compiling kernels") for line in before)


def test_a_run_does_not_write_where_it_reads(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for sink, checkpoint in ((source, tmp_path / "c"), (tmp_path / "out", source / "state")):
        args = ("--source", f"s={source}", "--sink", str(sink), "--checkpoint", str(checkpoint), "--until", "read")
        result = weft("run", "-q", QUERY, *args)
        assert result.exit_code == 2
        assert "read from" in result.stderr


class TestInline:
    def test_a_query_on_the_command_line(self, events: Path) -> None:
        result = weft("match", "-q", QUERY, "--events", str(events), "--count")
        assert result.stdout == '{"query": "q", "count": 2}\n'

    def test_several_have_names_of_their_own(self, events: Path) -> None:
        result = weft("match", "-q", QUERY, "-q", "SELECT * WHERE A AS a ; A AS b", "--events", str(events), "--count")
        assert result.stdout == '{"query": "q1", "count": 2}\n{"query": "q2", "count": 1}\n'

    def test_none_at_all_is_said(self, events: Path) -> None:
        result = weft("match", "--events", str(events))
        assert result.exit_code == 2
        assert "-q" in result.stderr


@pytest.mark.parametrize("engine", ["local", "meaning", pytest.param("spark", marks=pytest.mark.spark)])
def test_exit_code_1_when_everything_was_rejected(tmp_path: Path, engine: str) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"type":"A"}\n{"ts":1}\n')
    result = weft("match", "-q", QUERY, "--events", str(events), "--engine", engine)
    assert result.exit_code == 1
    assert "no event could be read" in result.stderr
