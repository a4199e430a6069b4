"""Near valuations of chains (patterns written in Python): the fewest parts without which chosen events match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from weft.algebra.chains import Chain, Contiguity, Link
from weft.algebra.meaning.chains import chain_intervals
from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.valuations import Valuation
from weft.algebra.predicates import Always
from weft.algebra.text.program import expression_text
from weft.algebra.why.failures import Failure, Kind, Near

MOST_PARTS = 3  # so many are left out together


@dataclass(frozen=True)
class _Part:
    """Something that a link asks, by the link's place in the chain, and what stays without it."""

    path: tuple[int, ...]
    kind: Kind
    wanted: str
    loose: tuple[tuple[str, object], ...] | None  # None: the link is left out

    def failure(self, name: str, positions: tuple[int, ...]) -> Failure:
        return Failure(self.kind, name, self.wanted, "the chosen events are not so", positions)


def chain_nears(chain: Chain, members: Sequence[Happening], chosen: Sequence[int]) -> Iterator[Near[Valuation]]:
    """The near valuations that leave out the fewest parts of the chain."""
    low, high = min(chosen), max(chosen)
    inside = members[low : high + 1]
    positions = tuple(sorted({position for i in chosen for position in members[i].positions}))
    parts = list(_parts(chain.links, ()))
    for count in range(MOST_PARTS + 1):
        found = False
        for left_out in combinations(parts, count):
            links = chain.links
            for part in sorted(left_out, key=lambda part: (part.path, part.loose is None), reverse=True):
                links = _loosened(links, part)
            for start, end, bound in chain_intervals(Chain(links), inside, lambda *_: True) if links else ():
                if {index + low for _, index in bound} == set(chosen):
                    found = True
                    moved = frozenset((name, index + low) for name, index in bound)
                    failures = tuple(part.failure(_named(chain.links, part.path), positions) for part in left_out)
                    yield Near(Valuation(start + low, end + low, moved), failures)
        if found:
            return
    yield Near(
        Valuation(low, high, frozenset(("", i) for i in chosen)),
        (Failure("extra", "", "the steps of the pattern, in their order", "these events are not such", positions),),
    )


def _parts(links: Sequence[Link], path: tuple[int, ...]) -> Iterator[_Part]:
    for number, link in enumerate(links):
        here = (*path, number)
        if link.negated:
            yield _Part(here, "unwanted", f"no event {link.name}", None)
            continue
        if not isinstance(link.fits.where, Always):
            loose = ("fits", replace(link.fits, where=Always()))
            yield _Part(here, "condition", expression_text(link.fits.where), (loose,))
        if link.fits.types:
            yield _Part(here, "type", f"an event {' or '.join(link.fits.types)}", (("fits", type(link.fits)()),))
        if link.contiguity is not Contiguity.ANY and (number or path):
            wanted = f"{link.name} {link.contiguity.value} after what is before it"
            yield _Part(here, "gap", wanted, (("contiguity", Contiguity.ANY),))
        if link.inner is not Contiguity.ANY and link.most != 1:
            wanted = f"the events of {link.name} {link.inner.value} after each other"
            yield _Part(here, "gap", wanted, (("inner", Contiguity.ANY),))
        if link.until is not None:
            yield _Part(here, "unwanted", f"no {expression_text(link.until)} before", (("until", None),))
        if link.greedy:
            yield _Part(here, "choice", f"all events of {link.name} that fit", (("greedy", False),))
        if (link.least, link.most) != (1, 1):
            wanted = f"{link.least} to {link.most or 'more'} events {link.name}"
            yield _Part(here, "length", wanted, (("least", 1), ("most", None)))
        if not link.optional and (number or path):
            yield _Part(here, "missing", f"an event {link.name}", (("optional", True),))
        yield from _parts(link.group, here)


def _loosened(links: tuple[Link, ...], part: _Part, depth: int = 0) -> tuple[Link, ...]:
    at = part.path[depth]
    if depth + 1 < len(part.path):
        inner = replace(links[at], group=_loosened(links[at].group, part, depth + 1))
        return (*links[:at], inner, *links[at + 1 :])
    if part.loose is None:
        return (*links[:at], *links[at + 1 :])
    return (*links[:at], replace(links[at], **dict(part.loose)), *links[at + 1 :])  # type: ignore[arg-type]


def _named(links: Sequence[Link], path: tuple[int, ...]) -> str:
    link = links[path[0]]
    return link.name if len(path) == 1 else _named(link.group, path[1:])
