"""Events with ever new attributes: what is read grows with the events, not with events times names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weft
from weft.connectors import json_lines
from weft.runtime.reading import chunks, json_blocks, kinds

QUERY = "SELECT * FROM S WHERE A AS a ; B AS b FILTER a[x] = b[x] WITHIN 1 EVENTS"


def _events(count: int) -> list[dict[str, object]]:
    return [{"type": "AB"[place % 2], "ts": place, "x": place // 2, f"own{place}": "text"} for place in range(count)]


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values were looked for in dicts."""
    found: list[int] = []
    before = kinds.values_of_dicts

    def counted(events: list[dict[str, object]], name: str) -> list[object]:
        found.append(len(events))
        return before(events, name)

    for module in (kinds, chunks):
        monkeypatch.setattr(module, "values_of_dicts", counted)
    return found


def test_dicts_are_not_searched_for_names_that_no_program_uses(looked: list[int]) -> None:
    events = _events(2000)
    assert len(list(weft.detect(events, QUERY))) == 1000
    assert 0 < sum(looked) < 20 * len(events)


def test_a_live_program_takes_them_too(looked: list[int]) -> None:
    program = weft.live()
    program.deploy(QUERY)
    assert len(program.push(_events(2000))) == 1000
    assert 0 < sum(looked) < 20 * 2000


def test_lines_are_not_made_a_table_with_a_column_for_each_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells: list[int] = []
    before = json_blocks.arrow_chunk

    def counted(batch: object, time_unit: str) -> chunks.Chunk:
        cells.append(batch.num_rows * batch.num_columns)  # type: ignore[attr-defined]
        return before(batch, time_unit)  # type: ignore[arg-type]

    monkeypatch.setattr(json_blocks, "arrow_chunk", counted)
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in _events(3000)))
    assert len(list(weft.detect(str(path), QUERY))) == 1500
    assert sum(cells) < 100 * 3000


def test_lines_that_agree_in_their_names_are_read_by_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_blocks, "_block_of_lines", None)
    path = tmp_path / "events.jsonl"
    wide = {f"own{number}": number for number in range(300)}
    path.write_text("".join(json.dumps(event | wide) + "\n" for event in _events(2)))
    assert len(list(weft.detect(str(path), QUERY))) == 1


def test_many_lines_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MOST_LINES", 7)
    path = tmp_path / "events.jsonl"
    events = [{"type": "A", "ts": place} for place in range(30)]
    path.write_text("\n".join(map(json.dumps, events[:20])) + "\n\n\n" + "\n".join(map(json.dumps, events[20:])))
    found = list(weft.detect(str(path), "SELECT * FROM S WHERE A"))
    assert [match.positions for match in found] == [(place,) for place in range(30)]


def test_texts_that_are_not_unicode_are_found_among_many_names() -> None:
    events = _events(500)
    events[4]["own4"] = "\ud800"
    rejects: list[weft.Rejected] = []
    assert len(list(weft.detect(events, QUERY, rejects=rejects))) == 249
    assert [reject.row for reject in rejects] == [4]


def test_tables_of_matches_show_the_names_that_most_events_have() -> None:
    with pytest.warns(weft.DataWarning, match="2003 attributes"):
        table = weft.detect(_events(2000), QUERY).to_arrow()
    assert "own1999" not in str(table.schema)
    assert table.num_rows == 1000
