"""What keeps events from being a match: failures, and near matches, which are matches but for their failures.

A near match binds chosen events to the steps of a pattern in one of all ways. Among them the one that costs least is
the answer: nothing less than its failures would have to be otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from weft.algebra.meaning.stream import Happening
from weft.algebra.predicates import Always, And, Predicate
from weft.algebra.text.program import expression_text

Kind = Literal[
    "missing", "extra", "type", "order", "gap", "condition", "bound", "length", "key", "unseen", "unwanted", "choice"
]
# Another reading of the chosen events is preferred to one that leaves some of them, or a step, out; then to one that
# takes events for what they are not.
COSTS: dict[str, int] = {"missing": 12, "extra": 12, "type": 4}
MARK = "\0other"  # an attribute that no event has
LARGEST = 2_000  # near matches of greater cost are not looked for
MOST = 200_000  # near matches looked at in one go

Found = TypeVar("Found")
Steps = Sequence[Sequence[tuple[str, str]]]  # of a pattern: each may be one of several, with variable and type


class TooMany(Exception):
    """There are too many ways to read the chosen events."""


@dataclass(frozen=True)
class Failure:
    """One requirement that the chosen events do not meet.

    `step` names the variables or the part of the query, `wanted` the requirement, `because` the actual state.
    `positions` are those of the chosen events concerned, `others` of further events that prevent the match.
    """

    kind: Kind
    step: str
    wanted: str
    because: str
    positions: tuple[int, ...] = ()
    others: tuple[int, ...] = ()

    @property
    def cost(self) -> int:
        """How much rather something else is named."""
        return COSTS.get(self.kind, 1)

    def __str__(self) -> str:
        """In one line."""
        text = f"{self.wanted}, but {self.because}"
        return f"{self.step}: {text}" if self.step else text


@dataclass(frozen=True)
class Near(Generic[Found]):
    """Something found but for failures; `absent` are the variables of steps that no event was chosen for."""

    found: Found
    failures: tuple[Failure, ...] = ()
    absent: frozenset[str] = frozenset()

    @property
    def cost(self) -> int:
        """What all its failures cost."""
        return sum(failure.cost for failure in self.failures)


class SearchBudget:
    """How much a near match may cost; the parts of a pattern get only those that are cheap enough."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._seen = 0

    def allows(self, *costs: int) -> bool:
        """Whether something of these costs may be part of the answer."""
        self._seen += 1
        if self._seen > MOST:
            raise TooMany
        return sum(costs) <= self.most


def budgets() -> Iterable[SearchBudget]:
    """From nothing to the largest."""
    most = 0
    while most <= LARGEST:
        yield SearchBudget(most)
        most = most + 1 if most < 4 else most * 2


def cheapest(nears: Iterable[Near[Found]]) -> Near[Found] | None:
    """The one that costs least; of equals the first."""
    return min(nears, key=lambda near: near.cost, default=None)


def marked(seen: Sequence[Happening], chosen: Collection[int]) -> list[Happening]:
    """The events, with a mark on those that are not chosen."""
    own = set(chosen)
    return [
        event if own.issuperset(event.positions) else replace(event, attributes={**event.attributes, MARK: True})
        for event in seen
    ]


def conjuncts(condition: Predicate) -> Sequence[Predicate]:
    """A condition taken apart into those that must all hold."""
    if isinstance(condition, Always):
        return ()
    if isinstance(condition, And):
        return [part for operand in condition.operands for part in conjuncts(operand)]
    return (condition,)


def condition_failure(condition: Predicate, values: str, positions: Iterable[int], step: str) -> Failure:
    """A condition that does not hold."""
    because = f"{values}" if values else "it does not hold"
    return Failure("condition", step, expression_text(condition), because, tuple(sorted(set(positions))))


def missing(variables: Sequence[str], types: Sequence[str]) -> Failure:
    """A step that no event was chosen for."""
    named = [name if name == type_ else f"{type_} {name}" for name, type_ in zip(variables, types, strict=True)]
    return Failure("missing", " ".join(variables), f"an event {' or '.join(named)}", "none of these events is")


def all_missing(steps: Steps) -> list[Failure]:
    """Steps that no event was chosen for."""
    return [missing([name for name, _ in ways], [type_ for _, type_ in ways]) for ways in steps]


def either(left: Steps, right: Steps) -> Steps:
    """The steps of one of two parts: of each a single one, or those of the part that has fewer."""
    if len(left) == len(right) == 1:
        return [[*left[0], *right[0]]]
    return left if len(left) <= len(right) else right


def extra(position: int) -> Failure:
    """A chosen event that no step takes."""
    return Failure("extra", "", "every chosen event takes part", f"no step takes {position}", (position,))


def wrong_type(step: str, wanted: str, found: str | None, positions: Iterable[int]) -> Failure:
    """An event of another type."""
    return Failure("type", step, f"an event {wanted}", f"it is {found or 'without a type'}", tuple(positions))


def shown(value: object) -> str:
    """A value as it is written."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return str(value).upper()
    return f"'{value}'" if isinstance(value, str) else str(value)


def listed(positions: Iterable[int]) -> str:
    """Positions in a sentence: the first few."""
    found = sorted(set(positions))
    return ", ".join(map(str, found[:5])) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
