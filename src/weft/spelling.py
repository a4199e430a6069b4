"""Conditions as statistics call them: a text in any spelling → the one spelling by which it is found."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache

MOST_TEXTS = 1 << 12  # of conditions whose spelling is remembered
MOST_DIGITS = 40  # of a number that is spelled anew
_STRING = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_TOKEN = re.compile(rf"{_STRING}|[\w.]+|<=|>=|<>|!=|==|&&|\|\||\S")
_PARTS = re.compile(f"({_STRING})")
_WORDS = ("AND", "OR", "NOT", "CONTAINS", "LIKE", "IN", "MATCHES", "PREVIOUS", "TRUE", "FALSE")
_SPELLED = {"!=": "<>", "==": "=", "&&": "AND", "||": "OR", "PREV": "PREVIOUS", "prev": "PREVIOUS"}
_SPELLED |= {word.lower(): word for word in _WORDS}
_TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_WHOLE = re.compile(r"\s*(\w+)\[\s*(\w+)\s*(<=|>=|<>|!=|==|[<>=])([^\]]+)\]\s*$")  # A[x > 3]


@lru_cache(MOST_TEXTS)
def written(text: str) -> str:
    """A condition's text in one spelling: `b.acc>a.acc` is `a.acc < b.acc`, `3 < a.x` is `a.x > 3`, `a[x]` is `a.x`.

    So are `a.x > 3.0`, `(a.x) > 3`, `a[x > 3]`, back-quoted names, both kinds of quotes, `==`, `!=`, `&&` and `||`,
    operators in small letters, and `a.s contains 'x'`, which is `CONTAINS(a.s, 'x')`.
    """
    spelled = _without_parentheses([_token(one) for one in _TOKEN.findall(_with_dots(text))])
    if len(spelled) == 3 and spelled[1] == "CONTAINS":
        spelled = ["CONTAINS", "(", spelled[0], ",", spelled[2], ")"]
    if len(spelled) == 3 and spelled[1] in _TURNED:
        left, operator, right = spelled
        if _is_attribute(right) and (left > right or not _is_attribute(left)):
            spelled = [right, _TURNED[operator], left]
    return " ".join(spelled)


def _with_dots(text: str) -> str:
    """Attributes with dots, names without quotes; texts in it stay as they are."""
    parts = _PARTS.split(_WHOLE.sub(r"\1.\2 \3 \4", text))
    parts[::2] = (re.sub(r"(\w+)\[([\w ]+)\]", r"\1.\2", part.replace("`", "")) for part in parts[::2])
    return "".join(parts)


def _token(token: str) -> str:
    if token[0] == '"' and len(token) > 1:
        inside = token[1:-1].replace('""', '"').replace("'", "''")
        return f"'{inside}'"
    if token[0].isdigit() and len(token) <= MOST_DIGITS:
        return _number(token)
    return _SPELLED.get(token, token)


def _number(token: str) -> str:
    try:
        number = Decimal(token)
    except InvalidOperation:
        return token
    return f"{number.normalize():f}" if abs(number.adjusted()) <= MOST_DIGITS else token


def _without_parentheses(tokens: list[str]) -> list[str]:
    """Without those around the whole, and around one name or number alone."""
    if len(tokens) > 2 and (tokens[0], _end_of(tokens, 0)) == ("(", len(tokens) - 1):
        return _without_parentheses(tokens[1:-1])
    for at in range(len(tokens) - 2):
        called = at > 0 and tokens[at - 1][-1].isalnum() and tokens[at - 1] not in _WORDS
        if tokens[at] == "(" and tokens[at + 2] == ")" and not called:
            return _without_parentheses([*tokens[:at], tokens[at + 1], *tokens[at + 3 :]])
    return tokens


def _end_of(tokens: list[str], begin: int) -> int:
    """Where the parenthesis that opens there is closed."""
    depth = 0
    for at in range(begin, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at], 0)
        if not depth:
            return at
    return -1


def _is_attribute(token: str) -> bool:
    return "." in token and (token[0].isalpha() or token[0] == "_")
