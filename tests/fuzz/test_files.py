"""Mutated files are read, or rejected whole or in part: nothing but our errors comes out.

WEFT_FUZZ says how many are tried; `make fuzz` tries 20,000, and FUZZ=1000000 a million.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from tests.fuzz.files import EDGES, files

import weft

COUNT = int(os.environ.get("WEFT_FUZZ", "300"))
SEED = int(os.environ.get("WEFT_SEED", "1"))
CORPUS = Path(__file__).parent / "files.jsonl"
PROGRAMS = [
    weft.compile("SELECT a[x], b[s] WHERE A AS a ; B AS b FILTER a[x] < b[x] OR a[s] = 'a' WITHIN 5 EVENTS", "ceql"),
    weft.compile("SELECT a.x FROM A a ; B b WHERE FILTER(a.k = b.k) AND (a, b) OCCURS WITHIN 9 msec", "eql"),
]

pytestmark = pytest.mark.filterwarnings("ignore")


def try_file(folder: Path, ending: str, data: bytes) -> None:
    """Read a file and match it, twice alike, unless it is refused."""
    path = folder / f"events.{ending}"
    path.write_bytes(data)
    for program in PROGRAMS:
        told = []
        for _ in range(2):
            rejects: list[weft.Rejected] = []
            try:
                found = weft.detect(str(path), program, rejects=rejects)
                matches = [match.id for match in found]
            except weft.InputError as refused:
                told.append(str(refused))
            else:
                told.append(repr((matches, [(one.row, one.line, one.reason) for one in rejects])))
        assert told[0] == told[1]


@pytest.mark.parametrize("part", range(10))
def test_mutated_files_are_read_or_rejected(part: int, tmp_path: Path) -> None:
    for ending, data in files(10 * SEED + part, COUNT // 10):
        try:
            try_file(tmp_path, ending, data)
        except Exception as error:
            line = json.dumps([ending, base64.b85encode(data).decode()])
            error.add_note(f"add this line to {CORPUS.name}: {line}")
            raise


@pytest.mark.parametrize("line", CORPUS.read_text(encoding="utf-8").splitlines())
def test_what_was_found_stays_mended(line: str, tmp_path: Path) -> None:
    ending, data = json.loads(line)
    try_file(tmp_path, ending, base64.b85decode(data))


@pytest.mark.parametrize("value", EDGES, ids=lambda value: repr(value)[:20])
def test_values_at_edges_are_the_same_in_memory_and_in_lines(value: object, tmp_path: Path) -> None:
    """Whatever stands in an attribute: what is matched and rejected does not depend on the way it came."""
    events = [{"type": "A", "ts": 1, "x": value, "s": value}, {"type": "B", "ts": 2, "x": value, "s": "a"}]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    for program in PROGRAMS:
        here, there = ([m.id for m in weft.detect(given, program, rejects=[])] for given in (events, str(path)))
        assert here == there
