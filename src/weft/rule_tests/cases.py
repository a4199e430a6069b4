"""A test file as values: its program and its cases, each with its events and what is expected of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from weft.algebra.patterns import Bind, Event
from weft.algebra.query import Program, Query
from weft.api import compile_with_findings
from weft.errors import InputError, ProgramError, UsageError, did_you_mean
from weft.languages.texts import PROGRAM_SUFFIXES
from weft.rule_tests import tables
from weft.rule_tests.lines import EventDict, Expected, Notation, read_events, read_expected
from weft.rule_tests.places import Places, TestText, shifted
from weft.rule_tests.tables import TableCase
from weft.runtime.reading.kinds import NANOSECONDS
from weft.source import SourceText, Span
from weft.tree import Node

ENDING = ".test.toml"
FILE_KEYS: Mapping[str, type] = {
    "program": str,
    "language": str,
    "time": str,
    "type": str,
    "time_unit": str,
    "case": list,
}
CASE_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "query": str,
    "events": str,
    "events_file": str,
    "expected": str,
    "expected_count": (int, dict),
}
_KINDS = {
    dict: "texts by the names of tables",
    int: "a number",
    str: "a text",
    list: "a list of [[case]]",
    (int, dict): "a number, or a number for each query",
}


@dataclass(frozen=True)
class Case:
    """Events and the matches they must give. `expected` None: only the numbers in `counts` count."""

    name: str
    place: TestText
    events: Sequence[EventDict] | Path
    lines: Sequence[TestText]  # where the events are written; none if they are in a file
    expected: tuple[Expected, ...] | None
    counts: Mapping[str | None, int] = field(default_factory=dict)  # by query; None: all together
    query: str | None = None  # matches of other queries are left alone


@dataclass(frozen=True)
class RuleTests:
    """A program and its cases. Each case is parsed when it is run, so that an invalid one does not affect the rest."""

    program: Program
    notation: Notation
    cases: Sequence[Callable[[], Case | TableCase]]


def find_files(paths: Sequence[str]) -> list[Path]:
    """Return the test files of paths: files themselves, and all test files in folders."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        inside = sorted(path.rglob(f"*{ENDING}")) if path.is_dir() else [path]
        if not path.exists():
            raise InputError(f"no such test file or folder: {path}")
        if not inside:
            raise InputError(f"no tests in {path}: files that end in {ENDING} are looked for")
        found.update(dict.fromkeys(inside))
    return list(found)


def read_file(path: Path, within: Path | None = None) -> RuleTests:
    """Read a test file and compile its program. `within`: the folder that all files it names must be in."""
    source = _source(path)
    table = _parse(source)
    places = Places(source)
    _check_keys(table, FILE_KEYS, places, 0)
    for needed in ("program", "case"):
        if not table.get(needed):
            raise places.head(0).wrong("missing-key", f"the file has no `{needed}`", "see `weft test --help`")
    notation = _notation(table)
    if notation.time_unit not in NANOSECONDS:
        hint = did_you_mean(notation.time_unit, NANOSECONDS)
        raise places.key(0, "time_unit").wrong("unknown-unit", f"there is no unit {notation.time_unit!r}", hint)
    beside = Beside(path.parent, within)
    program = _compile(table, places, beside, notation.time_unit)
    reader = _CaseReader(places, beside, notation, _variables(program))
    read: Callable[..., Case | TableCase] = reader.read_tables if program.row_patterns else reader.read
    return RuleTests(program, notation, [partial(read, case, at) for at, case in enumerate(table["case"], 1)])


def read_notation(path: Path) -> Notation:
    """Read how the events of a test file are written."""
    return _notation(_parse(_source(path)))


def _source(path: Path) -> SourceText:
    try:
        return SourceText(path.read_text(encoding="utf-8-sig"), str(path))
    except FileNotFoundError:
        raise InputError(f"no such test file: {path}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read the test file {path}: {problem}") from None


def _notation(table: dict[str, Any]) -> Notation:
    return Notation(**{key: table[key] for key in ("time", "type", "time_unit") if key in table})


def _parse(source: SourceText) -> dict[str, Any]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        message, line, column = str(problem), source.text.count("\n") + 1, 1
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message)
        if found is not None:
            message, line, column = found[1], int(found[2]), int(found[3])
        lines = source.text.split("\n")
        offset = min(sum(len(text) + 1 for text in lines[: line - 1]) + column - 1, len(source.text))
        place = TestText("", source, Span(offset, offset))
        raise place.wrong("not-toml", f"this is not TOML: {message}") from None


def _check_keys(
    table: Mapping[str, object], known: Mapping[str, type | tuple[type, ...]], places: Places, section: int
) -> None:
    for key, value in table.items():
        place = places.key(section, key)
        if key not in known:
            raise place.wrong("unknown-key", f"there is no key {key!r} here", did_you_mean(key, known))
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise place.wrong("wrong-kind", f"`{key}` must be {_KINDS[known[key]]}")


@dataclass(frozen=True)
class Beside:
    """The folder of a test file, relative to which files are named; with `within`, they must be inside that folder."""

    folder: Path
    within: Path | None = None

    def path(self, named: str, place: TestText) -> Path:
        """The path of a file that is named in a test file."""
        path = self.folder / named
        if self.within is not None and not path.resolve().is_relative_to(self.within.resolve()):
            raise place.wrong("outside", f"{named!r} is not in the project", "name a file of the project")
        return path


def _compile(table: Mapping[str, object], places: Places, beside: Beside, time_unit: str) -> Program:
    """The program, from its file beside the tests or from its text in them."""
    text = str(table["program"])
    is_file = "\n" not in text and Path(text).suffix in PROGRAM_SUFFIXES
    written = places.value(0, "program", text)
    language = table.get("language")
    try:
        # With a line's end a text is never taken for the name of a file.
        given = beside.path(text, places.key(0, "program")) if is_file else text + "\n"
        return compile_with_findings(given, None if language is None else str(language), time_unit=time_unit)[0]
    except ProgramError as error:
        raise error if is_file else shifted(error, written) from None
    except (InputError, UsageError) as error:
        raise places.key(0, "program").wrong("no-program", str(error)) from None


def _variables(program: Program) -> dict[str, frozenset[str]]:
    """The variables that each query reports."""
    known: dict[str, frozenset[str]] = {}
    for query in program.queries:
        names = _shown(query) if isinstance(query, Query) else frozenset(query.shown_variables)
        known[query.name] = known.get(query.name, frozenset()) | names
    return known


def _shown(query: Query) -> frozenset[str]:
    """The names that matches show: those selected, else all variables, and types of events without a variable."""
    if query.selected is not None:
        return frozenset(query.shown_variables).intersection(selected.name for selected in query.selected)
    names: set[str] = set()
    waiting: list[tuple[Node, bool]] = [(query.pattern, False)]
    while waiting:
        node, has_variable = waiting.pop()
        if isinstance(node, Bind):
            names.add(node.name)
        elif isinstance(node, Event) and not has_variable:
            names.update(node.names)
        waiting += [(child, has_variable or isinstance(node, Bind)) for child in node.children()]
    return frozenset(names)


@dataclass(frozen=True)
class _CaseReader:
    places: Places
    beside: Beside
    notation: Notation
    variables: Mapping[str, frozenset[str]]

    def read_tables(self, table: object, section: int) -> TableCase:
        """The case of a section, of SQL."""
        if not isinstance(table, dict):
            raise self.places.key(0, "case").wrong("wrong-kind", f"`case` must be {_KINDS[list]}")
        _check_keys(table, tables.KEYS, self.places, section)
        expected = self.places.value(section, "expected", table["expected"]) if "expected" in table else None
        place = self.places.head(section)
        return tables.read_table_case(table, section, place, expected, lambda name: self.beside.path(name, place))

    def read(self, table: object, section: int) -> Case:
        """The case of a section of the file."""
        place = self.places.head(section)
        if not isinstance(table, dict):
            raise self.places.key(0, "case").wrong("wrong-kind", f"`case` must be {_KINDS[list]}")
        _check_keys(table, CASE_KEYS, self.places, section)
        if "expected" not in table and "expected_count" not in table:
            hint = 'write `expected` or `expected_count`; `expected = "none"` says that nothing matches'
            raise place.wrong("missing-key", "the case expects nothing at all", hint)
        if ("events" in table) == ("events_file" in table):
            raise place.wrong("missing-key", "a case has either `events` or `events_file`")
        query = table.get("query")
        if query is not None:
            self._require_query(query, self.places.value(section, "query", query))
        lines: list[TestText] = []
        events: Sequence[EventDict] | Path
        if "events_file" in table:
            events = self.beside.path(table["events_file"], self.places.key(section, "events_file"))
        else:
            read = read_events(self.places.value(section, "events", table["events"]), self.notation)
            lines, events = [line for line, _ in read], [event for _, event in read]
        expected = self._expected(section, table["expected"], query) if "expected" in table else None
        counts = self._counts(section, table.get("expected_count", {}))
        return Case(table.get("name", f"case {section}"), place, events, lines, expected, counts, query)

    def _expected(self, section: int, text: str, query: str | None) -> tuple[Expected, ...]:
        lines = self.places.value(section, "expected", text).lines()
        if [line.text for line in lines] == ["none"]:
            return ()
        if not lines:
            hint = 'write `expected = "none"` when nothing may match'
            raise self.places.key(section, "expected").wrong("missing-key", "no match is written here", hint)
        if query is None and len(self.variables) == 1:
            query = next(iter(self.variables))
        return tuple(read_expected(line, self.variables, query) for line in lines)

    def _counts(self, section: int, given: int | Mapping[str, object]) -> dict[str | None, int]:
        counts: dict[str | None, object] = {None: given} if isinstance(given, int) else dict(given.items())
        place = self.places.key(section, "expected_count")
        checked: dict[str | None, int] = {}
        for name, number in counts.items():
            if name is not None:
                self._require_query(name, place)
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise place.wrong("wrong-kind", f"{number!r} is not a number of matches")
            checked[name] = number
        return checked

    def _require_query(self, name: str, place: TestText) -> None:
        if name not in self.variables:
            hint = did_you_mean(name, self.variables)
            raise place.wrong("unknown-query", f"the program has no query {name!r}", hint)
