"""The live program of a server, as commands that can be repeated after a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from weft.algebra.query import Program
from weft.algebra.rules import Rule
from weft.connectors.json_lines import JsonText
from weft.errors import Diagnostic, InputError, UsageError, WeftError
from weft.languages import compile_text
from weft.live_programs.program import LiveProgram
from weft.runtime.data.events import Rejected
from weft.runtime.reading.chunks import Chunk, chunks_of
from weft.runtime.reading.sources import with_defaults
from weft.serve.hub import Hub
from weft.serve.journal import Record

NDJSON, ARROW = "ndjson", "arrow"
VERSION = 3  # of what a snapshot keeps beside the live program
ANSWERS = 4  # of each publisher that are kept: those of the batches that it may send again
PUBLISHERS = 10_000  # whose numbers are kept: those that have published last
MOST_REJECTED = 1000  # rows that an answer lists
MOST_OPENED = 1 << 30  # bytes of an Arrow stream when it is opened up
Answer = dict[str, Any]


@dataclass(frozen=True)
class Publication:
    """One publication in a record: its number of lines, its sender, and its number from this sender."""

    lines: int
    source: str | None = None
    sequence: int | None = None


class WithType:
    """Events with a default type."""

    def __init__(self, events: Any, column: str, type: str) -> None:
        self._events, self._defaults = events, {column: type}

    def chunks(self, time_unit: str) -> Iterator[Chunk]:
        """The events."""
        return (with_defaults(chunk, self._defaults) for chunk in chunks_of(self._events, 1 << 16, time_unit))


class ServedProgram:
    """A live program, with what else a server knows: texts of queries, publishers, and who watches which events."""

    def __init__(self, running: LiveProgram, hub: Hub, rejects: list[Rejected], type: str = "type") -> None:
        self.running, self.hub = running, hub
        self.texts: dict[str, dict[str, Any]] = {}  # by the name of a query: its text, and its language
        self.publishers: dict[str, list[tuple[int, Answer]]] = {}  # the last numbers of each, and what was answered
        self.watched: list[str] = []  # types of events of the input that somebody subscribed to
        self.totals: Counter[str] = Counter()
        self._rejects, self._type = rejects, type
        running.subscribe("*", hub)

    def apply(self, record: Record) -> list[Answer]:
        """Execute a record, and return an answer for each of its parts, or raise its error."""
        about = record.about
        match about["op"]:
            case "events":
                parts = [Publication(*part) for part in about["parts"]]
                return self._publish(parts, about["form"], about.get("type"), record.body)
            case "deploy":
                return [self._deploy(about["text"], about["language"], about["name"])]
            case "replace":
                return [self._replace(about["name"], about["text"], about["language"])]
            case "remove":
                return [self._remove(about["name"])]
            case "watch":
                return [self.watch(about["type"])]
            case "advance":
                return [{"matches": len(self.running.advance(about["time"]))}]
        raise InputError(f"the journal has a record {about['op']!r}, which this version of weft does not know")

    # -- events ---------------------------------------------------------------------------------

    def _publish(self, parts: Sequence[Publication], form: str, type: str | None, body: bytes) -> list[Answer]:
        events = JsonText(body, "body") if form == NDJSON else arrow_table(body)
        self._rejects.clear()
        before = self.running.events
        self.running.push(events if type is None else WithType(events, self._type, type))
        self.totals["requests"] += len(parts)
        answers = [{"accepted": 0, "rejected": [], "late": 0} for _ in parts]
        firsts, first = [], 0
        for part in parts:
            firsts.append(first)
            first += part.lines
        counts = Counter[int]()
        for one in self._rejects:
            row = one.row if one.line is None else one.line - 1
            place = max(at for at, begin in enumerate(firsts) if begin <= row)
            counts[place] += 1
            self._tell(answers[place], row - firsts[place], one.reason)
        if len(parts) == 1:
            answers[0]["accepted"] = self.running.events - before
        else:
            for place, part in enumerate(parts):
                answers[place]["accepted"] = part.lines - counts[place]
        for part, answer in zip(parts, answers, strict=True):
            if part.source is not None and part.sequence is not None:
                answered = self.publishers.pop(part.source, [])
                self.publishers[part.source] = [*answered, (part.sequence, answer)][-ANSWERS:]
        for source in list(islice(self.publishers, max(0, len(self.publishers) - PUBLISHERS))):
            del self.publishers[source]
        return answers

    def _tell(self, answer: Answer, row: int, reason: str) -> None:
        is_late = reason.startswith("late")
        answer["late"] += is_late
        self.totals["late" if is_late else "unreadable"] += 1
        if len(answer["rejected"]) < MOST_REJECTED:
            answer["rejected"].append({"row": row, "reason": reason})
        else:
            answer["more_rejected"] = answer.get("more_rejected", 0) + 1

    def last_of(self, source: str) -> int:
        """The number of a publisher's last batch; -1 if there is none."""
        return self.publishers[source][-1][0] if source in self.publishers else -1

    def known(self, source: str | None, sequence: int | None) -> Answer | None:
        """Return the answer to a repeated publication, or None if it is new."""
        if source is None or sequence is None or sequence > self.last_of(source):
            return None
        answers = dict(self.publishers[source])
        return {**answers.get(sequence, {"accepted": 0, "rejected": [], "late": 0}), "duplicate": True}

    # -- queries --------------------------------------------------------------------------------

    def _compiled(
        self, text: str, language: str | None, name: str | None, beside: Program
    ) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Compile a text; it is never the path of a file, whatever it looks like.

        An internal error of the compiler rejects the text, and the server continues.
        """
        try:
            program, findings = compile_text(
                text,
                language=language,
                stem=name or "q",
                schema=beside.catalog,
                time_unit=beside.time_unit,
                running=beside,
            )
        except WeftError:
            raise
        except Exception as failure:
            found = f"{type(failure).__name__}: {failure}"
            raise InputError(f"weft fails to compile this text, which is a mistake of weft: {found}") from failure
        return replace(program, time_unit=beside.time_unit), findings

    def _deploy(self, text: str, language: str | None, name: str | None) -> Answer:
        program, findings = self._compiled(text, language, name, self.running.program)
        self._refuse_repeated(program)
        self.running.deploy(program)
        return self._noted(program, text, findings)

    def _refuse_repeated(self, program: Program) -> None:
        """Reject a rule that runs already: several may define one type, but the same one twice is a mistake."""
        running = [query for query in self.running.program.queries if isinstance(query, Rule)]
        for rule in program.queries:
            alike = (other for other in running if other.name == rule.name)
            if isinstance(rule, Rule) and any(replace(rule, number=other.number) == other for other in alike):
                raise UsageError(
                    f"this rule, which defines {rule.name!r}, runs already: remove {rule.name!r} first, or replace it"
                )

    def _note_text(self, program: Program, text: str) -> None:
        for name in program.names:  # several rules may define one type, each with a text of its own
            before = self.texts.get(name, {}).get("text")
            self.texts[name] = {"text": f"{before}\n\n{text}" if before else text, "language": program.language}

    def _noted(self, program: Program, text: str, findings: Sequence[Diagnostic]) -> Answer:
        self._note_text(program, text)
        answer: Answer = {"names": list(program.names), "warnings": [finding_json(one) for one in findings]}
        if any(one.uri for one in program.inputs) or program.outputs:
            answer["ignored"] = "sources and sinks that the text names are not opened: publish, and subscribe"
        return answer

    def _replace(self, name: str, text: str, language: str | None) -> Answer:
        running = self.running.program
        left = running.without(name) if any(query.is_called(name) for query in running.queries) else running
        program, findings = self._compiled(text, language, name, left)
        change = self.running.change(left.extended(program))
        self.texts.pop(name, None)
        self._forget()
        return {**self._noted(program, text, findings), "change": str(change)}

    def become(self, programs: Sequence[Program]) -> str | None:
        """Deploy the queries of programs: equal ones stay, different ones of the same name are replaced."""
        running, program = self.running.program, reduce(Program.extended, programs)
        called = {query.name for query in program.queries}
        kept = tuple(query for query in running.queries if query.name not in called)
        wanted = replace(running, queries=kept).extended(program) if kept else program
        change = self.running.change(wanted)
        self.texts = {name: text for name, text in self.texts.items() if name not in called}
        self._forget()
        for part in programs:
            self._note_text(part, part.text)
        return None if change.is_none else str(change)

    def _remove(self, name: str) -> Answer:
        self.running.remove(name)
        self._forget()
        return {"removed": name}

    def _forget(self) -> None:
        """Remove the texts of removed queries."""
        self.texts = {name: text for name, text in self.texts.items() if name in self.running.program.names}

    def watch(self, type: str) -> Answer:
        """Log events of an input type from now on."""
        if type not in self.watched:
            self.running.subscribe(type, self.hub.watch(type))
            self.watched.append(type)
        return {"watched": type}

    # -- state ----------------------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """Return what a snapshot contains besides the live program."""
        return {
            "version": VERSION,
            "texts": self.texts,
            "publishers": self.publishers,
            "watched": self.watched,
            "totals": self.totals,
            "counts": self.hub.counts,
            "firsts": self.hub.firsts,
        }

    def load(self, about: Mapping[str, Any], log: pa.Table) -> None:
        """Restore the contents of a snapshot."""
        self.texts = dict(about["texts"])
        for source, known in about["publishers"].items():
            self.publishers[source] = [(number, answer) for number, answer in known]
        self.totals.update(about["totals"])
        self.hub.counts.update(about["counts"])
        for type_ in about["watched"]:
            self.watch(type_)
        self.hub.load(log, about.get("firsts", (0, 0)))

    def save(self, path: Path) -> None:
        """Write the live program to a file."""
        self.running.save(path, compressed=False)


def check_version(about: Mapping[str, Any]) -> None:
    """Reject state that another version of weft saved."""
    if about.get("version") != VERSION:
        raise UsageError(
            "it was saved by another version of weft, which this one cannot read: run that version, or give a new "
            "--state and deploy the queries again"
        )


def arrow_table(body: bytes) -> pa.Table:
    """The events of an Arrow stream; it comes from anywhere, so all of it is checked."""
    try:
        batches, opened = [], 0
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            for batch in reader:
                batch.validate(full=True)
                opened += batch.nbytes
                if opened > MOST_OPENED:
                    raise InputError(f"the Arrow stream has more than {MOST_OPENED >> 20} MiB when it is opened up")
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)
    except (pa.ArrowException, OSError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"this is no Arrow stream that can be read: {problem}") from None


def finding_json(finding: Diagnostic) -> dict[str, object]:
    """A finding as JSON, with its span: the characters of the text that it is about."""
    return {**finding.to_json(), "span": [finding.span.start, finding.span.end]}
