"""Program texts as HTML with coloured words. The languages' own parsers say what each word is."""

from __future__ import annotations

import io
import keyword
import token as python_tokens
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache

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
    """The words of programs of several languages, one after the other with empty lines between them."""
    begin = 0
    while begin < len(text):
        tokens, stop = _tokens(text[begin:], language)
        end = len(text) if stop is None else text.rfind("\n\n", begin, begin + stop)
        if end <= begin:
            return
        yield from _words([token for token in tokens if begin + (token.end_pos or 0) <= end], text, begin, end)
        begin = end + len(text[end:]) - len(text[end:].lstrip())
        language = language_of(text[begin:]).name


def _tokens(text: str, language: str) -> tuple[list[lark.Token], int | None]:
    """The tokens up to a place where the text is none of the language; None: it is."""
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


def _is_keyword(token: lark.Token) -> bool:
    return token.type not in _NAMES and token.value[:1].isalpha()


def _comments(text: str, begin: int, end: int) -> Iterator[Piece]:
    gap = text[begin:end]
    if gap.lstrip()[:2] in ("--", "//", "/*"):
        yield "comment", begin + len(gap) - len(gap.lstrip()), begin + len(gap.rstrip())


def words_of_grammar(language: str) -> list[str]:
    """The words that the grammar of a language names."""
    values = (str(terminal.pattern.value) for terminal in _parser(language).terminals)
    return sorted({value for value in values if value.isalpha() and len(value) > 1})


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
