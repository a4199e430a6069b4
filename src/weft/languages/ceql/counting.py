"""`{n}`, `{n,m}`, `{n,}` and `?`, lowered: the formula written out as often as it may occur."""

from __future__ import annotations

from weft.algebra.patterns import Event, Maybe, Other, Pattern, Repeat, Sequence
from weft.languages.ceql import syntax
from weft.languages.findings import Findings
from weft.languages.limits import MOST_EVENTS


def counted(node: syntax.Counted, pattern: Pattern, findings: Findings) -> Pattern:
    """Return the pattern repeated the given number of times, with gaps or contiguous."""
    least, most = node.least, node.most
    if not isinstance(least, int) or not (most is None or isinstance(most, int)):
        findings.error("bad-count", "a count is a whole number", node.span, "write {3}, {2,4}, {2,} or ?")
        return pattern
    if most is not None and (most < least or most == 0):
        message = f"{{{least},{most}}} is no count: the second number is the larger one, and at least 1"
        findings.error("bad-count", message, node.span, "write {least,most}, as in {2,4}")
        return pattern
    size = sum(isinstance(part, Event | Other) for part in pattern.walk())
    if size * max(least, most or 1) > MOST_EVENTS:
        message = f"this counts more than {MOST_EVENTS} events, which is the limit"
        hint = "write + and compare the count in a filter: A+ AS a … FILTER COUNT(a) >= 500"
        findings.error("bad-count", message, node.span, hint)
        return pattern
    return _written_out(pattern, least, most, node.contiguous)


def _written_out(pattern: Pattern, least: int, most: int | None, contiguous: bool) -> Pattern:
    found: Pattern | None
    if most is None:
        found = Repeat(pattern, contiguous)
        mandatory = least - 1
        if least == 0:
            return Maybe(found)
    else:
        found = None
        for _ in range(most - least):
            found = Maybe(pattern if found is None else Sequence(pattern, found, contiguous))
        mandatory = least
    for _ in range(mandatory):
        found = pattern if found is None else Sequence(pattern, found, contiguous)
    assert found is not None
    return found
