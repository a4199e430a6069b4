"""Program texts as HTML with coloured words. The languages' own parsers say what each word is."""

from __future__ import annotations

import io
import keyword
import token as python_tokens
import tokenize
from collections.abc import Iterator
from functools import cache

import lark

from weft.drawing.svg import escaped
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
    """The text as HTML; what cannot be read (several languages may be in one text) is plain from there on."""
    shown: list[str] = []
    done = 0
    for kind, begin, end in _python_pieces(text) if language == BUILT else _pieces(text, language):
        style = _STYLES.get(kind)
        shown += escaped(text[done:begin]), f'<span style="{style}">{escaped(text[begin:end])}</span>'
        done = end
    return "".join(shown) + escaped(text[done:])


def _pieces(text: str, language: str) -> Iterator[Piece]:
    """Comments are what is left between tokens."""
    done = 0
    for token in _tokens(text, language):
        begin, end = token.start_pos or 0, token.end_pos or 0
        yield from _comments(text, done, begin)
        kind = _KINDS.get(token.type) or ("keyword" if _is_keyword(token) else None)
        if kind is not None:
            yield kind, begin, end
        done = end
    yield from _comments(text, done, len(text))


def _tokens(text: str, language: str) -> Iterator[lark.Token]:
    try:
        yield from _parser(language).parse_interactive(text).iter_parse()
    except lark.UnexpectedInput:
        return


def _is_keyword(token: lark.Token) -> bool:
    return token.type not in _NAMES and token.value[:1].isalpha()


def _comments(text: str, begin: int, end: int) -> Iterator[Piece]:
    gap = text[begin:end]
    if gap.lstrip()[:2] in ("--", "//", "/*"):
        yield "comment", begin + len(gap) - len(gap.lstrip()), begin + len(gap.rstrip())


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
