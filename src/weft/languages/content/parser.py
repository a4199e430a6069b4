"""From the text of a content filter to syntax."""

from __future__ import annotations

import re
from functools import cache

from lark import Lark, Token, UnexpectedInput

from weft.errors import ProgramError
from weft.languages.grammars import load_parser
from weft.languages.stops import Dialect, Explained, Stop, explain
from weft.languages.syntax import Expression, Name
from weft.languages.tokens import Child, ExpressionRules, place
from weft.source import SourceText

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
KEYWORDS = frozenset({"AND", "OR", "NOT", "CONTAINS", "TRUE", "FALSE"})


def parse(source: SourceText) -> Expression:
    """The condition in a text; raises ProgramError at the first place that is none."""
    try:
        condition: Expression = _parser().parse(source.text)  # type: ignore[assignment]
    except UnexpectedInput as unexpected:
        raise ProgramError([explain(source, unexpected, CONTENT)]) from None
    return condition


@cache
def _parser() -> Lark:
    return load_parser("weft.languages.content", _Nodes())


class _Nodes(ExpressionRules):
    """One method per rule of the grammar, called by the parser as it goes."""

    def name_of(self, token: Token) -> Name:
        text: str = token.value
        return Name(text[1:-1].replace("``", "`") if text[0] == "`" else text, span=place(token))

    def text_of(self, token: Token) -> str:
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), token.value[1:-1])

    def start(self, children: list[Child]) -> Expression:
        return children[0]  # type: ignore[no-any-return]


def _chained_comparison(stop: Stop) -> Explained | None:
    chained = stop.said(0) in ("<", "<=", ">", ">=", "=", "==", "!=", "<>")
    if not chained or "COMPARE" in stop.expected or "AND" not in stop.expected:
        return None
    return "comparisons cannot be chained", stop.span, "write low < value and value < high"


CONTENT = Dialect(
    name="part of a filter",
    keywords=KEYWORDS,
    openers=frozenset(),
    words=re.compile(
        r"""(?P<skip>\s+)
          |(?P<name>[^\W\d]\w*|`(?:[^`\n]|``)+`)
          |(?P<number>[0-9]+(?:\.[0-9]+)?)
          |(?P<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
          |(?P<unclosed>['"`])
          |(?P<symbol><=|>=|==|!=|<>|&&|\|\||.)""",
        re.VERBOSE | re.DOTALL,
    ),
    phrases={
        "NAME": "a field",
        "NUMBER": "a number",
        "STRING": "a text in quotes",
        "COMPARE": "a comparison",
        "TRUE": "",
        "FALSE": "",
        "LPAR": "'('",
        "RPAR": "')'",
        "DOT": "",
        "STAR": "'*'",
        "MINUS": "'-'",
        "PLUS": "'+'",
        "SLASH": "'/'",
        **{word: word.lower() for word in KEYWORDS - {"TRUE", "FALSE"}},
    },
    groups=(
        (frozenset({"NUMBER", "STRING", "NAME", "LPAR", "MINUS"}), "a value"),
        (frozenset({"PLUS", "MINUS", "STAR", "SLASH"}), "an arithmetic operator"),
    ),
    foreign={
        ",": "write `and` between conditions",
        "&&": "write `and`",
        "||": "write `or`",
        "!": "write `not`",
        "LIKE": "write field contains 'text'",
        "IN": "write field = 1 or field = 2",
        "IS": "a field that is missing satisfies no comparison",
    },
    mistakes=(_chained_comparison,),
    ignores_case=True,
)
