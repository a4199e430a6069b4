"""Counts of members, `{n}`, `{n,m}` and `{n,}`, as Step and EQL write them behind what is repeated."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from weft.languages.findings import Findings
from weft.languages.limits import MOST_LENGTH
from weft.languages.stops import Explained, Stop
from weft.languages.syntax import SyntaxNode
from weft.languages.tokens import from_to, number_of


@dataclass(frozen=True)
class Count(SyntaxNode):
    """`{least,most}`: how many members a run has; `{n}` is `{n,n}`, and in `{n,}` there is no most."""

    least: int | float
    most: int | float | None

    @property
    def text(self) -> str:
        """The count as it is written."""
        if self.least == self.most:
            return f"{{{self.least}}}"
        return f"{{{self.least},{'' if self.most is None else self.most}}}"


def count_of(least: Token, comma: Token | None, most: Token | None) -> Count:
    """The count that tokens say."""
    fewest = number_of(least)
    greatest = number_of(most) if most else None if comma else fewest
    return Count(fewest, greatest, span=from_to(least, most or least))


def bounds_of(node: Count, findings: Findings) -> tuple[int, int | None]:
    """The least and greatest length that a count allows; one that is none is reported."""
    least, most = node.least, node.most
    if not isinstance(least, int) or isinstance(most, float):
        message, hint = "a count is a whole number", "write {3}, {2,4} or {2,}"
    elif least < 1:
        message, hint = "a run has at least one member", "write {1,2} for one or two"
    elif max(least, most or 0) > MOST_LENGTH:
        message, hint = f"no run has so many members: {MOST_LENGTH:,} is the limit", "write {2,} for two or more"
    elif most is not None and most < least:
        message, hint = f"{node.text} is no count: the second number is the larger one", "as in {2,4}"
    else:
        return least, most
    findings.error("bad-count", message, node.span, hint)
    return 1, None


def broken_count(stop: Stop) -> Explained | None:
    """A count without a number, or that is not closed."""
    hint = "write {3}, {2,4} or {2,}"
    if stop.said(-1) == "{" and stop.expected == {"NUMBER"}:
        return "a count begins with a number", stop.span, hint
    closing = stop.expected & {"RBRACE", "CLOSE_COUNT"}
    if closing and stop.expected <= closing | {"COMMA", "NUMBER"}:
        return "this count is not closed", stop.span, hint
    return None
