"""Many matches of one push: subscribers and callers have them in pieces, and they are all there."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from weft.runtime.data.matches import MatchBatch, PlainMatch, to_batch
from weft.runtime.live import pieces
from weft.runtime.live.pieces import Pieces

LISTS = "SELECT a FROM S WHERE A+ AS a WITHIN 8 EVENTS"
PAIRS = "SELECT a[x], b[x] FROM S WHERE A AS a ; A AS b WITHIN 8 EVENTS"
EVENTS = [{"type": "A", "ts": ts, "x": ts % 3} for ts in range(40)]
pytestmark = pytest.mark.filterwarnings("ignore::weft.ProgramWarning")


def pushed(programs: str | list[str], receive: object, **options: object) -> weft.Matches:
    running = weft.live(**options)  # type: ignore[arg-type]
    for number, program in enumerate([programs] if isinstance(programs, str) else programs):
        running.deploy(program, name=f"q{number}")
    running.subscribe("*", receive)  # type: ignore[arg-type]
    return running.push(EVENTS)


@pytest.mark.parametrize("options", [{}, {"key": "ts"}], ids=["positions", "keys"])
def test_pieces_of_one_query_are_in_match_order_together(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    whole = list(pushed(LISTS, id, **options))
    monkeypatch.setattr(pieces, "MOST_BYTES", 20_000)
    got: list[weft.Match] = []
    found = pushed(LISTS, got.append, **options)
    assert len(found) == len(whole) > 1000
    assert len(list(found.batches())) > 3
    assert list(found) == got == whole  # more than once
    assert found.to_arrow().column("id").to_pylist() == [match.id for match in whole]
    assert f"{len(whole):,}" in found._repr_html_()


@pytest.mark.parametrize("most", [1, 5000])
def test_pieces_of_several_queries_lose_and_double_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int
) -> None:
    def ids_by(path: Path) -> list[str]:
        return [json.loads(line)["id"] for line in path.read_text().splitlines()]

    whole = list(pushed([LISTS, PAIRS], tmp_path / "whole.jsonl"))
    monkeypatch.setattr(pieces, "MOST_BYTES", most)
    found = pushed([LISTS, PAIRS], tmp_path / "pieces.jsonl")
    assert sorted(match.id for match in found) == sorted(match.id for match in whole)
    assert ids_by(tmp_path / "pieces.jsonl") == [match.id for match in found]
    for rows in found.batches():
        ends = rows.column("end").to_pylist()
        assert ends == sorted(ends)


def test_a_receiver_may_deploy_between_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = len(pushed(PAIRS, id))
    monkeypatch.setattr(pieces, "MOST_BYTES", 1)
    running = weft.live(PAIRS)

    def receive(match: weft.Match) -> None:
        if len(running.program.names) == 1:
            running.deploy("SELECT a FROM S WHERE A AS a", name="later")

    subscription = running.subscribe("*", receive)
    assert len(running.push(EVENTS)) == whole == subscription.delivered
    assert [match.query for match in running.push([{"type": "A", "ts": 90, "x": 1}])].count("later") == 1


def test_pieces_that_are_complete_are_not_in_memory() -> None:
    batches: list[weakref.ref[MatchBatch]] = []

    def found() -> Iterator[MatchBatch]:
        for at in range(50):
            batch = to_batch("q", [PlainMatch(at, at, at, at, (at,), {"a": [at]}, {"x": at})])
            batches.append(weakref.ref(batch))
            yield batch

    kept = Pieces(by_end=True, most_bytes=200)
    for batch in found():
        kept.add(batch)
    del batch
    gc.collect()
    assert len(kept) == 50
    assert sum(one() is not None for one in batches) < 15
    first, second = ([int(end) for piece in kept for batch in piece for end in batch.ends] for _ in range(2))
    assert first == second == list(range(50))


def test_matches_of_one_time_that_are_too_many_come_in_pieces_too() -> None:
    kept = Pieces(by_end=True, most_bytes=200)
    for at in range(50):
        kept.add(to_batch("q", [PlainMatch(at, 99, at, at, (at,), {"a": [at]}, {})]))
    assert len(list(kept)) > 5
    assert [int(start) for piece in kept for batch in piece for start in batch.starts] == list(range(50))
