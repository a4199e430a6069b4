"""What tests of several engines share: cases with known answers, how to run an engine, how to compare."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.api import detect
from weft.languages import compile_text

TESTS = Path(__file__).resolve().parent
MATCH_KEYS = ("query", "start", "end", "positions", "bindings", "event")
ENGINES = (
    pytest.param("meaning"),
    pytest.param("local"),
    pytest.param("spark", marks=pytest.mark.spark),
)
SPARK_SAMPLE = 24  # Spark runs the same matcher, and a job for every case takes its time: every so many of them

Case = dict[str, object]
Record = dict[str, object]


def some(number: int, **more: object) -> settings:
    """So many random cases, or as many as WEFT_EXAMPLES says."""
    return settings(max_examples=int(os.environ.get("WEFT_EXAMPLES", number)), deadline=None, **more)  # type: ignore[arg-type]


def vector_folder() -> Path | None:
    """The folder of cases from elsewhere: named by WEFT_VECTORS, in the tests, or beside the repository."""
    named = os.environ.get("WEFT_VECTORS")
    places = [Path(named)] if named else [TESTS / "vectors", TESTS.parents[1] / "shared" / "vectors"]
    return next((place for place in places if place.is_dir()), None)


def load_vectors(name: str) -> list[Case]:
    """The cases of `name`.jsonl, none when there is no such file."""
    folder = vector_folder()
    return read_cases(folder / f"{name}.jsonl") if folder is not None else []


def load_own_vectors(name: str) -> list[Case]:
    """Our own cases of `name`.jsonl."""
    return read_cases(TESTS / "vectors_own" / f"{name}.jsonl")


def read_cases(path: Path) -> list[Case]:
    """The cases of a file of JSON lines, none when there is no such file."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


# ---------------------------------------------------------------- engines


def require_engine(engine: str) -> None:
    """Skip the test, saying why, when what the engine runs on is not installed."""
    if engine == "spark" and importlib.util.find_spec("pyspark") is None:
        pytest.skip("the spark engine needs pyspark, which is not installed")


def run_engine(
    engine: str, program_text: str, events: Sequence[Mapping[str, object]], language: str = "ceql"
) -> list[Record]:
    """The matches of a program on one engine, as records."""
    program, _ = compile_text(program_text, language=language)
    return run_program(engine, program, events)


def run_program(engine: str, program: Program, events: Sequence[Mapping[str, object]]) -> list[Record]:
    """The matches of a program in the algebra on one engine, as records."""
    require_engine(engine)
    if engine == "meaning":
        return [as_record(match) for match in matches(program, events)]
    return [as_record(match) for match in detect(events, program, engine=engine, rejects=[])]


# ---------------------------------------------------------------- comparing


def as_record(match: object) -> Record:
    """A match of any engine (an object with fields, or a mapping) as a plain record."""
    read = match.get if isinstance(match, Mapping) else lambda key: getattr(match, key, None)
    record = {key: plain(read(key)) for key in MATCH_KEYS}
    bindings = record["bindings"]
    assert isinstance(bindings, dict)
    record["bindings"] = {name: positions for name, positions in bindings.items() if positions}
    return record


def plain(value: object) -> object:
    """Tuples and lists as lists, mappings as dictionaries, whatever the engine made them of."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def same_matches(case: Case, records: Iterable[Record]) -> bool:
    """Whether the records are what the case expects."""
    return difference(case, records) == ""


def difference(case: Case, records: Iterable[Record]) -> str:
    """What is missing of the expected matches and what is too much, as text; empty when nothing is.

    Compared are the keys an expected match has, as a multiset; a case may name the keys and ask for a set:
    `"compare": "set of (start, end, positions)"`.
    """
    expected = case["expected"]
    assert isinstance(expected, list)
    named = re.fullmatch(r"set of \(([\w, ]+)\)", str(case.get("compare", "")))
    keys = named[1].split(", ") if named else sorted({key for match in expected for key in match}) or MATCH_KEYS
    wanted = Counter(_frozen({key: match.get(key) for key in keys}) for match in expected)
    found = Counter(_frozen({key: record.get(key) for key in keys}) for record in records)
    if named:
        wanted, found = Counter(set(wanted)), Counter(set(found))
    lines = [f"missing: {match}" for match in (wanted - found).elements()]
    return "\n".join([*lines, *(f"too much: {match}" for match in (found - wanted).elements())])


def _frozen(value: object) -> object:
    """A hashable stand-in; equal for numbers of equal value, but not for a boolean and a number."""
    if isinstance(value, Mapping):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items() if item != []))
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return ("boolean", value) if isinstance(value, bool) else value


# ---------------------------------------------------------------- events


def event(type: str, ts: int, **attributes: object) -> dict[str, object]:
    """An instantaneous event."""
    return {"type": type, "ts": ts, **attributes}


def interval(type: str, start: int, end: int, **attributes: object) -> dict[str, object]:
    """An event with a start and an end."""
    return {"type": type, "start": start, "end": end, **attributes}


def stream(*types: str) -> list[dict[str, object]]:
    """Events of these types, one per tick from 0; `A1` is an A with x = 1."""
    events = []
    for ts, text in enumerate(types):
        found = re.fullmatch(r"([A-Za-z]+)(-?\d+)?", text)
        assert found is not None, text
        events.append(event(found[1], ts) if found[2] is None else event(found[1], ts, x=int(found[2])))
    return events
