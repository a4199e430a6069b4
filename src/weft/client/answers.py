"""What a server answers and sends, as values: answers, errors, matches."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from weft.errors import DataWarning, WeftError
from weft.runtime.data.matches import Match

MOST_REJECTS = 1000  # that a client keeps
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two tries
RETRIED = frozenset({429, 502, 503, 504})


class ServiceError(WeftError):
    """A server refuses something: `status` is that of HTTP, `findings` are those of a program, as dicts."""

    def __init__(self, message: str, status: int | None = None, findings: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.findings = list(findings)


class Remote(NamedTuple):
    """The result of a deployment: the names of queries, and warnings about the text."""

    names: tuple[str, ...]
    warnings: tuple[dict[str, Any], ...] = ()


@dataclass
class Published:
    """The result of publishing events."""

    accepted: int = 0
    rejected: int = 0
    late: int = 0  # of the rejected
    rejects: list[dict[str, Any]] = field(default_factory=list)  # the first thousand

    def add(self, answer: dict[str, Any]) -> None:
        """Add what a server answered.

        Args:
            answer: What the server said of a part of the events.
        """
        rejected = answer["rejected"]
        self.accepted += answer["accepted"]
        self.late += answer["late"]
        self.rejected += len(rejected) + answer.get("more_rejected", 0)
        self.rejects += rejected[: MOST_REJECTS - len(self.rejects)]


def checked(status: int, text: str) -> Any:
    """The JSON of an answer; raises ServiceError for a refusal."""
    try:
        found = json.loads(text)
    except ValueError:
        found = text
    if status < 400:
        return found
    if isinstance(found, dict):
        problem = found.get("problem") or found.get("detail") or text
        raise ServiceError(
            problem if isinstance(problem, str) else json.dumps(problem), status, found.get("findings", ())
        )
    raise ServiceError(f"status {status}: {text[:200]}", status)


def remote_of(answer: dict[str, Any]) -> Remote:
    """Convert the answer to a deployment."""
    return Remote(tuple(answer["names"]), tuple(answer["warnings"]))


def match_of(text: str) -> Match:
    """A match as it is sent."""
    found = json.loads(text)
    bindings = {name: tuple(positions) for name, positions in found["bindings"].items()}
    return Match(
        found["query"], found["id"], found["start"], found["end"], tuple(found["positions"]), bindings, found["event"]
    )


class Message(NamedTuple):
    """A server-sent event."""

    kind: str
    id: str | None
    data: str


class MessageParser:
    """Bytes of a stream of server-sent events → messages. Lines end with a line feed, and with nothing else: texts of
    events may have any other character.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []  # parts of a line that is not whole yet
        self._fields: dict[str, str] = {}

    def messages(self, part: bytes) -> Iterator[Message]:
        """The messages that are complete with these bytes."""
        *lines, rest = part.split(b"\n")
        for line in lines:
            whole = b"".join([*self._begun, line]).decode()
            self._begun.clear()
            if whole:
                name, _, value = whole.partition(":")
                self._fields[name] = value.removeprefix(" ")
                continue
            fields, self._fields = self._fields, {}
            if "data" in fields:
                yield Message(fields.get("event", "message"), fields.get("id"), fields["data"])
        if rest:
            self._begun.append(rest)


@dataclass
class Cursor:
    """The position of a subscription: the id after which it resumes, and how much it missed."""

    after: str | None = None
    received: int = 0
    missed: int = 0

    def take(self, message: Message) -> Match | None:
        """Record a message, and return its match, if it has one."""
        if message.kind == "gap":
            gap = json.loads(message.data)
            self.missed += gap["gap"] or 0
            many = "some" if gap["gap"] is None else f"{gap['gap']:,}"
            warnings.warn(f"{many} matches were missed: {gap['reason']}", DataWarning, stacklevel=4)
            return None
        if message.id is not None:
            self.after = message.id
        if message.kind != "message":
            return None
        self.received += 1
        return match_of(message.data)
