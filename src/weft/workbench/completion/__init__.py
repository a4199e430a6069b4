"""What may be meant at a place of a text: words of the language that can stand there, types, attributes, variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.drawing.highlighting import expected_words
from weft.workbench.completion.scopes import CompletionScope, scope_at
from weft.workbench.completion.tables import TABLES, Table

NOTHING: Mapping[str, Sequence[str]] = {}
PART = re.compile(r"[$^]?[^\W\d]\w*$|[$^]$")


@dataclass(frozen=True)
class CompletionWord:
    """A word and what it is: keyword, type, stream, attribute, variable, unit or value; `of`: whose it is."""

    word: str
    kind: str
    of: str = ""


@dataclass(frozen=True)
class Completion:
    """The words that may stand in place of the characters from `start` to the place that was asked about."""

    start: int
    words: list[CompletionWord]


def complete(text: str, language: str, position: int, seen: Mapping[str, Sequence[str]] = NOTHING) -> Completion:
    """What may be meant at a position, the likeliest first. Inside comments and texts nothing is.

    `seen` are types with attributes that sample events have.
    """
    position = max(0, min(position, len(text)))
    part = PART.search(text[:position])
    start = part.start() if part else position
    table = TABLES[language]
    scope = scope_at(text, table, start, seen)
    if scope.role == "quoted":
        return Completion(start, [])
    names = list(_names(scope, table))
    keywords = (
        [] if scope.after_dot else [CompletionWord(word, "keyword") for word in expected_words(text[:start], language)]
    )
    first = {word.word: word for word in reversed([*names, *keywords])}
    return Completion(start, [first[word] for word in dict.fromkeys(word.word for word in [*names, *keywords])])


def _names(scope: CompletionScope, table: Table) -> Iterator[CompletionWord]:
    """Names for the role that a name has there."""
    if scope.after_dot:
        yield from _attributes(scope, scope.owner)
    elif scope.role == "types":
        yield from _types(scope)
    elif scope.role == "streams":
        yield from (CompletionWord(name, "stream") for name in scope.streams or ())
    elif scope.role == "variables":
        yield from _variables(scope)
    elif scope.role == "attributes":
        yield from _attributes(scope, scope.owner)
        yield from _variables(scope) if scope.owner else ()
    elif scope.role in ("units", "kinds"):
        yield from (
            CompletionWord(word, "unit" if scope.role == "units" else "type") for word in table.words[scope.role]
        )
    elif scope.role in table.words:
        yield from (CompletionWord(word, "value") for word in table.words[scope.role])


def _types(scope: CompletionScope) -> Iterator[CompletionWord]:
    return (CompletionWord(name, "type") for name in scope.types)


def _variables(scope: CompletionScope) -> Iterator[CompletionWord]:
    yield from (CompletionWord(name, "variable", of or "") for name, of in scope.variables.items())
    yield from (CompletionWord(name, "variable") for name in scope.parameters)


def _attributes(scope: CompletionScope, owner: str) -> Iterable[CompletionWord]:
    """Those of a variable's or a type's events; of all types if its own are not known."""
    type_ = scope.variables.get(owner, owner) or ""
    own = scope.types.get(type_)
    if own:
        return [CompletionWord(name, "attribute", type_) for name in own]
    every = dict.fromkeys((name, of) for of, names in scope.types.items() for name in names)
    return [CompletionWord(name, "attribute", of) for name, of in every]
