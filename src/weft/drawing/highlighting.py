"""Program texts as HTML with coloured words. The languages' own parsers say what each word is."""

from __future__ import annotations

import io
import keyword
import re
import token as python_tokens
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module

import lark

from weft.drawing.svg import escaped
from weft.languages import language_of
from weft.languages.grammars import load_parser
from weft.pattern.builder import BUILT

_STYLES = {
    "keyword": "color:#cf222e;font-weight:600",
    "string": "color:#0a3069",
    "number": "color:#0550ae",
    "comment": "color:#6e7781;font-style:italic",
}
_KINDS = {"STRING": "string", "NUMBER": "number", "COMMENT": "comment"}
_NAMES = frozenset({"NAME", "DOTTED", "QUALIFIED", "PARAMETER", "BLOCK"})
_LOOKS = re.compile(
    r"""(?P<comment>(?:--|//)[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)
      |(?P<string>'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*")
      |(?P<word>[^\W\d]\w*)
      |(?P<number>\d+(?:\.\d+)?)""",
    re.VERBOSE,
)
_SMALL = frozenset({"step", "tesla", "epn"})  # whose words are written in small letters
Piece = tuple[str, int, int]  # a kind, and the text from here to there


def highlighted(text: str, language: str) -> str:
    """The text as HTML; what cannot be read is plain."""
    shown: list[str] = []
    done = 0
    for kind, begin, end in _python_pieces(text) if language == BUILT else pieces(text, language):
        style = _STYLES[kind]
        shown += escaped(text[done:begin]), f'<span style="{style}">{escaped(text[begin:end])}</span>'
        done = end
    return "".join(shown) + escaped(text[done:])


def pieces(text: str, language: str) -> Iterator[Piece]:
    """Yield the words of programs in several languages, separated by empty lines."""
    if language == "sql":
        yield from _by_looks(text, 0, language)
        return
    begin = 0
    while begin < len(text):
        tokens, stop = _tokens(text[begin:], language)
        end = len(text) if stop is None else text.rfind("\n\n", begin, begin + stop)
        if end <= begin:  # a mistake: what comes behind it is told by its looks
            wrong = begin + (stop or 0)
            yield from _words([token for token in tokens if begin + (token.end_pos or 0) <= wrong], text, begin, wrong)
            yield from _by_looks(text, wrong, language)
            return
        yield from _words([token for token in tokens if begin + (token.end_pos or 0) <= end], text, begin, end)
        begin = end + len(text[end:]) - len(text[end:].lstrip())
        language = language_of(text[begin:]).name


def _tokens(text: str, language: str) -> tuple[list[lark.Token], int | None]:
    """The tokens up to a place where the text is none of the language, or None if it is."""
    tokens: list[lark.Token] = []
    try:
        tokens.extend(_parser(language).parse_interactive(text).iter_parse())  # those before a mistake, too
    except lark.UnexpectedInput as unexpected:
        return tokens, unexpected.pos_in_stream or 0
    return tokens, None


def _words(tokens: Sequence[lark.Token], text: str, begin: int, end: int) -> Iterator[Piece]:
    """Comments are what is left between tokens."""
    done = begin
    for token in tokens:
        left, right = begin + (token.start_pos or 0), begin + (token.end_pos or 0)
        yield from _comments(text, done, left)
        kind = _KINDS.get(token.type) or ("keyword" if _is_keyword(token) else None)
        if kind is not None:
            yield kind, left, right
        done = right
    yield from _comments(text, done, end)


def _by_looks(text: str, begin: int, language: str) -> Iterator[Piece]:
    """The words of a text that cannot be parsed: every word of the language counts as such."""
    known = _every_word(language)
    for found in _LOOKS.finditer(text, begin):
        kind = str(found.lastgroup)
        if kind != "word":
            yield kind, *found.span()
        elif found[0].lower() in known:
            yield "keyword", *found.span()


@cache
def _every_word(language: str) -> frozenset[str]:
    if language == "sql":
        return frozenset(word.lower() for word in _sql_words())
    names = (terminal.name for terminal in _parser(language).terminals)
    return frozenset(word.lower() for name in names if name not in _NAMES for word in _spelled(language, name))


def _sql_words() -> frozenset[str]:
    """The words of SQL that row patterns use: those of clauses and those of expressions."""
    parts: list[frozenset[str]] = [
        import_module("weft.languages.sql.mistakes").KEYWORDS,
        import_module("weft.languages.sql.expressions").RESERVED,
    ]
    return frozenset({"MATCH_RECOGNIZE", "RUNNING", "FINAL", "PREV", "CLASSIFIER", "MATCH_NUMBER"}).union(*parts)


def _is_keyword(token: lark.Token) -> bool:
    return token.type not in _NAMES and token.value[:1].isalpha()


def _comments(text: str, begin: int, end: int) -> Iterator[Piece]:
    gap = text[begin:end]
    if gap.lstrip()[:2] in ("--", "//", "/*"):
        yield "comment", begin + len(gap) - len(gap.lstrip()), begin + len(gap.rstrip())


def expected_words(text: str, language: str) -> list[str]:
    """The language's words that can stand behind a text; all of them if the text is wrong before its end."""
    if language == "sql":  # whose text around clauses has no grammar here
        return sorted(_sql_words())
    try:
        parser = _parser(language).parse_interactive(text)
        parser.exhaust_lexer()
        accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    except lark.UnexpectedInput:
        accepted = {terminal.name for terminal in _parser(language).terminals}
    found = (word for name in sorted(accepted - _NAMES) for word in _spelled(language, name))
    return list(dict.fromkeys(word.lower() if language in _SMALL else word.upper() for word in found))


@cache
def _spelled(language: str, name: str) -> tuple[str, ...]:
    """Return the keywords of a terminal; symbols, numbers and texts have none."""
    terminal = next((one for one in _parser(language).terminals if one.name == name), None)
    if terminal is None or name in _KINDS:
        return ()
    (spelled, *_) = re.split(r"\\b|\(\?[=!]|\\s", str(terminal.pattern.value))
    return tuple(re.findall(r"[A-Za-z]{2,}", spelled))


@cache
def _parser(language: str) -> lark.Lark:
    return load_parser(f"weft.languages.{language}")


def _python_pieces(text: str) -> Iterator[Piece]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    try:
        for item in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _KINDS.get(python_tokens.tok_name[item.type])
            if item.type == python_tokens.NAME and keyword.iskeyword(item.string):
                kind = "keyword"
            if kind is not None:
                (first, left), (last, right) = item.start, item.end
                yield kind, starts[first - 1] + left, starts[last - 1] + right
    except (tokenize.TokenError, SyntaxError):
        return
