"""How large a pattern built in Python may be: what is larger is a `UsageError`, before it costs time or memory."""

from __future__ import annotations

import math

from weft.algebra.chains import Link
from weft.errors import UsageError
from weft.languages.limits import MOST_CHARACTERS, MOST_DIGITS, MOST_NESTED, MOST_PARTS
from weft.regexes import RegexError, finder
from weft.tree import Node

MOST_TAKEN = 10_000  # events that a pattern counts one by one: `times` is written out


def require_steps(links: tuple[Link, ...]) -> None:
    """Refuse a pattern of too many steps, or of counts that would be written out too far."""
    for link in links:
        require_depth(link)
    steps = sum(isinstance(node, Link) for link in links for node in link.walk(Link))
    if steps > MOST_PARTS:
        raise UsageError(f"this pattern has {steps:,} steps; {MOST_PARTS:,} is the limit")
    if _taken(links) > MOST_TAKEN:
        raise UsageError(
            f"this pattern counts more than {MOST_TAKEN:,} events one by one, which is the limit: "
            "write one_or_more, and having(step(…).count() >= …)"
        )


def require_depth(node: Node) -> None:
    """Refuse what is nested too deeply."""
    level, depth = [node], 0
    while level:
        depth += 1
        if depth > MOST_NESTED:
            raise UsageError(f"more than {MOST_NESTED} steps or operators are nested in each other, which is the limit")
        level = [child for parent in level for child in parent.children()]


def require_text(text: object, what: str) -> str:
    """Refuse a text that no event can have."""
    if not isinstance(text, str):
        raise UsageError(f"{what} is a text, not a {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} is not Unicode: it has half of a pair of surrogates") from None
    return text


def require_number(number: float) -> None:
    """Refuse a number that is none, or that has too many digits."""
    if isinstance(number, float) and math.isnan(number):
        raise UsageError("nothing compares with NaN: a missing number is asked for by e.amount.is_null()")
    if isinstance(number, int) and abs(number) >= 10**MOST_DIGITS:
        raise UsageError(f"a number has at most {MOST_DIGITS:,} digits")


def require_pattern(pattern: object, what: str, *, regex: bool = False) -> str:
    """Refuse a pattern of texts that is too long, or that cannot be read."""
    text = require_text(pattern, what)
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{what} has {len(text):,} characters; {MOST_CHARACTERS:,} is the limit")
    if regex:
        try:
            finder(text)
        except RegexError as fault:
            raise UsageError(f"{what} cannot be read: {fault}") from None
    return text


def _taken(links: tuple[Link, ...]) -> int:
    """How many events are counted one by one."""
    return sum((link.least if link.most is None else link.most) * (_taken(link.group) or 1) for link in links)
