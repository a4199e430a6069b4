"""The independent checker of a tortured run: the matches in the sink against `meaning`, by id, stretch by stretch.

It knows the events and the texts of queries, and nothing of how they were run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft import api

Event = dict[str, Any]


def meant(events: Iterable[tuple[int, Event]], programs: Sequence[Path]) -> dict[str, Counter[str]]:
    """For each query the ids of its matches by the definition of meaning; no match reaches across stretches."""
    stretches: dict[int, list[Event]] = {}
    for stretch, event in events:
        stretches.setdefault(stretch, []).append(event)
    program = api.merge_programs([api.compile(path) for path in programs])
    found: dict[str, Counter[str]] = {name: Counter() for name in program.names}
    for part in stretches.values():
        for match in api.detect(part, program, engine="meaning"):
            found[match.query][match.id] += 1
    return found


def written(sink: Path) -> dict[str, Counter[str]]:
    """For each query the ids in the files of the sink."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(sink.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found.setdefault(row["query"], Counter())[row["id"]] += 1
    return found


def rejected(sink: Path) -> list[dict[str, Any]]:
    """What took no part, with the reasons."""
    return [
        json.loads(line)
        for path in sorted((sink / "rejects").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def compared(name: str, expected: Counter[str], found: Counter[str], *, all_of_them: bool = True) -> list[str]:
    """What is wrong with the matches of a query, which are all that are expected, or (a guest's) some of these."""
    pairs = [("not expected, or twice", found - expected)] + [("lost", expected - found)] * all_of_them
    return [f"{name}: {some.total()} {what}, as {sorted(some)[:3]}" for what, some in pairs if some]


def wrong_rejects(rejects: Sequence[Mapping[str, Any]], types: str) -> list[str]:
    """Events of these types that were rejected: none may be, whatever the clock says."""
    wrong = [one for one in rejects if isinstance(one["event"], dict) and str(one["event"].get("type")) in types]
    return [f"{len(wrong)} good events were rejected, as {wrong[:2]}"] if wrong else []
