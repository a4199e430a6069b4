"""Regular expressions in linear time, whatever the expression and the text are (RE2): none can hold a program up."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = (
    True  # only whether there is a match is asked for, and thousands of groups would cost gigabytes
)
_LACKS = ("(?=", "(?!", "(?<=", "(?<!", "(?P=", "\\1", "\\2", "\\3", "\\4", "\\5", "\\6", "\\7", "\\8", "\\9")


class RegexError(ValueError):
    """What is wrong with a regular expression."""


@lru_cache(maxsize=1024)
def finder(pattern: str) -> Callable[[str], bool]:
    """Whether a regular expression is found anywhere in a text."""
    try:
        expression = re2.compile(pattern, options=_OPTIONS)
    except re2.error as fault:
        raise RegexError(_said(fault)) from None
    return lambda text: expression.search(text) is not None


def liker(pattern: str) -> Callable[[str], bool]:
    """Whether a text as a whole is like SQL's pattern: `%` is any text, `_` any one character."""
    parts = ("(?s:.*)" if char == "%" else "(?s:.)" if char == "_" else re2.escape(char) for char in pattern)
    return finder(f"^(?:{''.join(parts)})$")


def hint(pattern: str) -> str:
    """What to do about an expression that cannot be read."""
    if any(part in pattern for part in _LACKS):
        return "look-around and back references are not known here: state what must be there, or use two conditions"
    return "put a backslash before a literal character, as in '\\('"


def _said(fault: Exception) -> str:
    text = fault.args[0] if fault.args else ""
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
