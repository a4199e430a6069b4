"""Saved live programs that were cut, edited or damaged: one sentence that names the file, or a program that works."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

import weft
from weft.api import compile_with_findings
from weft.connectors.saved import ABOUT, SUM, checksum
from weft.errors import InputError, UsageError

PROGRAMS = {
    "pair.ceql": "SELECT * FROM S WHERE (A AS a ; B AS b) FILTER a[x > 0] WITHIN 100 EVENTS",
    "next.eql": "SELECT a.x FROM A a ; B b WHERE FILTER(a.x = b.x), (a, b) OCCURS WITHIN 1 min",
    "near.tesla": "define Near(x: int)\nfrom B() and last A(x = $x) within 1 min from B\nwhere x = A.x",
    "broker.epn": "pattern Broker sequence(A a, B b) policies evaluation immediate, repeated every, consumption reuse",
}
EVENTS = [{"type": "AB"[n % 3 == 2], "ts": n, "x": n % 2, "t": "text"} for n in range(12)]
CASES = int(os.environ.get("WEFT_FUZZ", "1000")) // 10
SEED = int(os.environ.get("WEFT_SEED", "2"))
VALUES = [None, True, 0, -1, 2**63, 1.5, float("nan"), "", "x", "\ud800", [], [[]], {}, {"is": "query.Query"}]
VALUES += [{"set": 3}, {"decimal": "x"}, {"map": 4}, {"one": "a"}]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    programs = [
        compile_with_findings(text, Path(name).suffix[1:], stem=Path(name).stem)[0] for name, text in PROGRAMS.items()
    ]
    running = weft.live(programs)
    running.push(EVENTS[:6])
    place = tmp_path_factory.mktemp("saved") / "saved"
    running.save(place)
    return place.read_bytes()


def parts_of(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def archive_of(parts: dict[str, bytes]) -> bytes:
    """The parts with checksums of the archive that fit them, as an editor leaves them."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return written.getvalue()


def cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def flipped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 8))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def garbage(data: bytes, random: Random) -> bytes:
    return random.randbytes(random.choice((0, 5, len(data))))


def edited(text: bytes, random: Random) -> bytes:
    """JSON with one value left out, or another in its place."""
    about = json.loads(text)
    *way, last = random.choice(list(_places(about)))
    holder = about
    for step in way:
        holder = holder[step]
    if random.random() < 0.3:
        del holder[last]
    else:
        holder[last] = random.choice(VALUES)
    return json.dumps(about).encode()


def _places(value: Any, way: tuple[Any, ...] = ()) -> Any:
    if way:
        yield way
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*way, key))


def loaded(place: Path, data: bytes) -> weft.LiveProgram | None:
    """The program that was saved as this; None: it was refused, in a sentence that names the file."""
    place.write_bytes(data)
    told = ""
    try:
        return weft.LiveProgram.load(place)
    except (InputError, UsageError) as problem:
        told = str(problem)
    assert str(place) in told
    assert len(told.splitlines()) == 1
    return None


def tried(place: Path, data: bytes) -> list[tuple[int, ...]] | None:
    """What it finds."""
    running = loaded(place, data)
    return running and [match.positions for match in [*running.push(EVENTS[6:]), *running.finish()]]


def test_any_file_of_a_saved_program_may_be_damaged(saved: bytes, tmp_path: Path) -> None:
    place, parts = tmp_path / "other", parts_of(saved)
    expected = tried(place, saved)
    assert expected
    outcomes = set()
    for number in range(CASES):
        random = Random(SEED * 1_000_003 + number)
        if random.random() < 0.3:
            data = random.choice((cut, flipped, garbage))(saved, random)
        else:
            name = ABOUT if random.random() < 0.5 else random.choice(sorted(parts))
            changes = (cut, flipped, garbage, *([edited] * 4 if name == ABOUT else []))
            data = archive_of({**parts, name: random.choice(changes)(parts[name], random)})
        found = tried(place, data)
        assert found is None or found == expected, number
        outcomes.add(found is None)
    assert True in outcomes


def test_parts_may_not_be_missing_or_of_another_file(saved: bytes, tmp_path: Path) -> None:
    parts = parts_of(saved)
    for name in parts.keys() - {SUM}:
        assert tried(tmp_path / "other", archive_of({key: part for key, part in parts.items() if key != name})) is None
    assert tried(tmp_path / "other", archive_of({**parts, "pages/matcher/more": b"x"})) is None


def test_a_file_without_a_checksum_is_refused(saved: bytes, tmp_path: Path) -> None:
    parts = parts_of(saved)
    del parts[SUM]
    assert tried(tmp_path / "other", archive_of(parts)) is None


def test_edited_files_with_a_renewed_checksum_raise_only_our_errors(saved: bytes, tmp_path: Path) -> None:
    parts = parts_of(saved)
    del parts[SUM]
    found = []
    for number in range(CASES):
        changed = {**parts, ABOUT: edited(parts[ABOUT], Random(SEED * 7_000_003 + number))}
        found.append(loaded(tmp_path / "other", archive_of({**changed, SUM: checksum(changed)})))
    assert found.count(None) > CASES // 2
