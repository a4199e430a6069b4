"""A warning of composite patterns that keep more and more, because nothing bounds the time that they take."""

from __future__ import annotations

from weft.algebra.analysis.spans import kept_for_ever
from weft.algebra.composites import Composite, Without
from weft.languages.findings import Findings
from weft.source import Span


def warn_of_no_bound(pattern: Composite, place: Span, hint: str, findings: Findings) -> None:
    """Warn, once for a query, of what its pattern keeps for ever; `hint` is how the language bounds times."""
    found = next(kept_for_ever(pattern), None)
    if found is None:
        return
    message = "no bound of time: what has begun to match is kept for ever"
    if isinstance(found, Without):
        unwanted = " and ".join(found.unwanted.variables)
        message = f"no bound of time: each {unwanted} is kept for ever, to be found in what it must not be in"
        if found.when == "before":
            message = f"each {unwanted} is kept for ever: it must not come before what matches, however long before"
            hint = "write what it must not come after, with a bound: X ; !Q ;[dur < 3600000] Y"
    findings.warning("no-bound", message, place, hint)
