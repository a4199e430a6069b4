"""Query languages: which one a text is in, and its way from text to the algebra."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import PurePath
from types import ModuleType

from weft.algebra.analysis.feeding import cycles_beyond_rules
from weft.algebra.query import Program
from weft.errors import Diagnostic, ProgramError, UsageError
from weft.languages.ceql.declarations import Schema, given_catalog
from weft.languages.defined import NOTHING_DEFINED, Defined, defined_by, defined_types, doubts_about, place_of
from weft.languages.limits import TooLarge, within_limits
from weft.languages.syntax import SyntaxNode
from weft.source import SourceText, Span
from weft.tree import Node, deep, growing

__all__ = ["LANGUAGES", "Language", "compile_text", "language_of", "parse_syntax"]


Lower = Callable[..., tuple[Program, tuple[Diagnostic, ...]]]


@dataclass(frozen=True)
class Language:
    """A query language: how its texts are recognised, parsed, lowered and printed.

    Its folder has the modules `parser`, `lower` and `printer`, which are imported when they are first used.
    """

    name: str
    keywords: frozenset[str]  # one of which, in capitals, starts every text
    joins: bool = False  # its queries see what queries deployed before define, and are checked together with them
    clause: str = ""  # a word by which a text is told that begins like one of another language

    @property
    def ending(self) -> str:
        """The ending of its files."""
        return f".{self.name}"

    @property
    def parse(self) -> Callable[[SourceText], SyntaxNode]:
        """The function from text to syntax."""
        parse: Callable[[SourceText], SyntaxNode] = self._module("parser").parse
        return parse

    @property
    def lower(self) -> Lower:
        """The function from syntax to the algebra, with warnings."""
        lower: Lower = self._module("lower").lower
        return lower

    @property
    def print(self) -> Callable[..., str]:
        """The function from syntax to text."""
        to_source: Callable[..., str] = self._module("printer").to_source
        return to_source

    def recognises(self, text: str) -> bool:
        """Return whether a text contains a clause that only this language has."""
        return bool(self.clause) and self.clause in text.upper() and self._module("clauses").has_clause(text)

    def _module(self, name: str) -> ModuleType:
        return import_module(f"weft.languages.{self.name}.{name}")


LANGUAGES = (
    Language("ceql", frozenset({"SELECT", "QUERY", "CREATE", "DECLARE"})),
    Language("eql", frozenset({"SOURCE", "SINK"})),
    Language("epn", frozenset({"PATTERN"})),
    Language("step", frozenset({"TOPOLOGY", "EXTERNAL"})),
    Language("tesla", frozenset({"DEFINE", "RULE", "ASSIGN"}), joins=True),
    Language("sql", frozenset({"WITH"}), clause="MATCH_RECOGNIZE"),
)

_LEADING_WORD = re.compile(r"(?>\s+|--[^\n]*|/\*.*?\*/)*+([A-Za-z]+)", re.DOTALL)


def compile_text(
    text: str,
    *,
    language: str | None = None,
    name: str = "<text>",
    stem: str = "q",
    schema: Schema | None = None,
    time_unit: str = "ms",
    running: Program | None = None,
    defined: Defined | None = None,
) -> tuple[Program, tuple[Diagnostic, ...]]:
    """A program in the algebra, and the warnings about it; raises ProgramError when it is wrong.

    `name` is what messages call the text and `stem` what a nameless query is called. `schema` gives event
    types (`{type: {attribute: kind}}` or a Catalog) to check against when the program declares none. The program
    is to be deployed beside the one that is `running`, if there is one. `defined` are the types that queries define,
    in this text and beside it; None: those of this text and of what is running.
    """
    chosen = language_of(text, language=language, name=name)
    source = SourceText(text, name, stem)
    _require_unicode(source)
    context = {"running": running.queries} if running is not None and chosen.joins else {}
    try:
        with growing(), deep:
            tree = within_limits(chosen.parse, source)
            lower = partial(chosen.lower, tree, source, schema=schema, time_unit=time_unit, **context)
            if defined is None:
                known = NOTHING_DEFINED if running is None else defined_by([running])
                program, warnings = _lowered(lower, known, source)
            else:
                known = defined
                program, warnings = lower(defined=defined)
            return program, (*warnings, *doubts_about(program, given_catalog(schema), known, source))
    except TooLarge as found:
        raise found.in_text(source) from None
    except ProgramError as found:
        if language is None and chosen is not (meant := _language_that_parses(source, chosen)):
            raise _with_hint(found, f"this looks like {meant.name.upper()}: {_how_to_say(meant, name)}") from None
        raise
    except RecursionError:
        hint = "split it into several queries, or write fewer operators in one formula"
        raise TooLarge("this program is nested too deeply", Span(0, 0), hint).in_text(source) from None


def _language_that_parses(source: SourceText, chosen: Language) -> Language:
    """Return the chosen language if its grammar reads the text, else the first that does, else the chosen one."""
    for language in (chosen, *LANGUAGES):
        try:
            with deep:
                within_limits(language.parse, source)
        except (ProgramError, TooLarge, RecursionError):
            continue
        return language
    return chosen


def _how_to_say(language: Language, name: str) -> str:
    if PurePath(name).suffix:
        return f"give the file the ending {language.ending}, or name the language (--language {language.name})"
    return f"name the language, as in language={language.name!r}"


def _with_hint(error: ProgramError, hint: str) -> ProgramError:
    """Return the error with the hint at its first finding, whose own hint is about the wrong language."""
    first, *others = error.diagnostics
    return ProgramError([replace(first, hint=hint), *others])


def _require_unicode(source: SourceText) -> None:
    """Refuse halves of surrogates: bytes of a command line that are not UTF-8 become these, and no event has them."""
    try:
        source.text.encode()
    except UnicodeEncodeError as found:
        place = Span(found.start, found.start + 1)
        message = "this is not Unicode: half of a pair of surrogates, or a byte that is not UTF-8"
        raise ProgramError([Diagnostic("syntax", message, source, place)]) from None


def _lowered(lower: Lower, known: Defined, source: SourceText) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Lower a text whose queries may read each other's output: twice if they do, first to learn their fields."""
    first = Defined(known.types, is_open=True)
    try:
        program, warnings = lower(defined=first)
    except ProgramError:
        if first.wanted:
            lower(defined=known)  # says of unknown types, too
        raise
    _refuse_cycles(program, source)
    own = defined_types(program.queries)
    if first.wanted or any(type_ in own for query in program.queries for type_ in query.reads):
        return lower(defined=Defined({**known.types, **own}))
    return program, warnings


def _refuse_cycles(program: Program, source: SourceText) -> None:
    """Raise ProgramError when queries of a text wait for each other."""
    for cycle in cycles_beyond_rules(program.queries):
        path = " <- ".join((*cycle, cycle[0]))
        if len(cycle) == 1:
            message = f"the query {cycle[0]!r} reads the events that it defines, which are called like it"
            hint = "give the query another name"
        else:
            message = f"these queries wait for each other: {path}"
            hint = "let one of them read other events"
        raise ProgramError([Diagnostic("cycle", message, source, place_of(cycle[0], source), hint)])


def parse_syntax(text: str, *, language: str | None = None, name: str = "<text>", stem: str = "q") -> Node:
    """The syntax tree of a program, unchecked; raises ProgramError when the text does not parse."""
    with deep:
        return within_limits(language_of(text, language=language, name=name).parse, SourceText(text, name, stem))


def language_of(text: str, *, language: str | None = None, name: str = "<text>") -> Language:
    """The language asked for, else the one of the file ending, of what is in the text, or of the text's first word."""
    if language is not None:
        wanted = language.lower()
        found = next((known for known in LANGUAGES if known.name == wanted), None)
        if found is None:
            raise UsageError(f"there is no language {language!r}; known: {', '.join(k.name for k in LANGUAGES)}")
        return found
    ending = PurePath(name).suffix.lower()
    word = _LEADING_WORD.match(text)
    leading = word[1].upper() if word else ""
    by_ending = (known for known in LANGUAGES if known.ending == ending)
    by_content = (known for known in LANGUAGES if known.recognises(text))
    by_word = (known for known in LANGUAGES if leading in known.keywords)
    return next(by_ending, None) or next(by_content, None) or next(by_word, None) or LANGUAGES[0]
