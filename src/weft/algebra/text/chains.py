"""Chains as indented text: one link on each line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from weft.algebra.chains import Contiguity, Fits, Link, Skip
from weft.algebra.predicates import Predicate

_BEFORE = {Contiguity.STRICT: "next", Contiguity.NEXT: "followed by", Contiguity.ANY: "followed by any"}
_BETWEEN = {Contiguity.STRICT: ", consecutive", Contiguity.NEXT: "", Contiguity.ANY: ", in any combination"}


def link_lines(links: Sequence[Link], text: Callable[[Predicate], str]) -> Iterator[str]:
    """The links of a chain, those of a group below it."""
    for number, link in enumerate(links):
        before = "begin" if number == 0 else ("not " if link.negated else "") + _BEFORE[link.contiguity]
        fits = "" if link.fits == Fits() else f"[{text(link.fits)}]"
        yield f"{before} {'group' if link.group else link.name}{fits}{_often(link)}{_until(link, text)}"
        for line in link_lines(link.group, text):
            yield "  " + line


def _often(link: Link) -> str:
    if (link.least, link.most) == (1, 1):
        return ", optional" if link.optional else ""
    most = "or more" if link.most is None else "" if link.most == link.least else f"to {link.most}"
    times = " ".join(part for part in (str(link.least), most, "times") if part)
    return f", {times}{_BETWEEN[link.inner]}{', greedy' * link.greedy}{', optional' * link.optional}"


def _until(link: Link, text: Callable[[Predicate], str]) -> str:
    return "" if link.until is None else f", until {text(link.until)}"


def skip_text(skip: Skip) -> str:
    """Format the after-match skip strategy."""
    where = "" if skip.variable is None else f" {skip.variable}"
    return f"after a match skip to {skip.to.value}{where}"
