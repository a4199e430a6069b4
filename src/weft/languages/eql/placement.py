"""Where EQL's conditions belong: the operators of a pattern, each with the conditions that are its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.algebra.predicates import Predicate
from weft.algebra.terms import looks_back, mentioned
from weft.languages.eql import syntax
from weft.languages.eql.conditions import QueryCondition
from weft.languages.findings import Findings


@dataclass(eq=False)
class PlacedPattern:
    """A pattern with its own conditions: `among` are those of FILTER where the operator passes events over."""

    pattern: syntax.Pattern
    parent: PlacedPattern | None = None
    operands: list[PlacedPattern] = field(default_factory=list)
    where: list[Predicate] = field(default_factory=list)
    among: list[Predicate] = field(default_factory=list)

    def ancestors(self) -> list[PlacedPattern]:
        """This place and those around it, innermost first."""
        return [self, *(self.parent.ancestors() if self.parent else [])]

    @property
    def leaves(self) -> dict[str, PlacedPattern]:
        """The places of the variables below it."""
        if isinstance(self.pattern, syntax.Leaf):
            return {self.pattern.variable.text: self}
        return {name: leaf for operand in self.operands for name, leaf in operand.leaves.items()}

    def can_read(self, variable: str) -> bool:
        """Whether the variable can be read here: below, and not bound by what must not happen further down."""
        leaf = self.leaves.get(variable)
        if leaf is None:
            return False
        around = leaf.ancestors()
        below = around[: around.index(self)]
        return not any(
            isinstance(place.pattern, syntax.Without) and variable in place.operands[1].leaves for place in below
        )


def normalised(pattern: syntax.Pattern) -> syntax.Pattern:
    r"""The pattern with `E1 ; (E2 \ E3)` written as `(E1 ; E2) \ E3`, from the inside out."""
    inner = pattern.map_children(lambda child: normalised(child) if isinstance(child, syntax.Pattern) else child)
    if isinstance(inner, syntax.Next) and isinstance(inner.right, syntax.Without):
        joined = normalised(syntax.Next(inner.left, inner.right.pattern, span=inner.span))
        return syntax.Without(joined, inner.right.unwanted, span=inner.span)
    return inner


def places_of(pattern: syntax.Pattern, parent: PlacedPattern | None = None) -> PlacedPattern:
    """The places of a pattern, without conditions."""
    place = PlacedPattern(pattern, parent)
    place.operands = [places_of(child, place) for child in pattern.children() if isinstance(child, syntax.Pattern)]
    return place


def put(condition: QueryCondition, root: PlacedPattern, findings: Findings) -> None:
    """Give a condition to the operator it belongs to."""
    leaves = root.leaves
    names = mentioned(condition.predicate)
    if not names or not names <= leaves.keys():
        return  # reported when it was lowered
    place = _lowest(condition.predicate, leaves)
    unreadable = sorted(name for name in names if not place.can_read(name))
    if unreadable:
        message = f"{unreadable[0]!r} is part of what must not happen, so it is not known outside"
        hint = "compare it with events on the left of its \\, or inside the right side"
        findings.error("unreadable-variable", message, condition.span, hint)
        return
    if isinstance(place.pattern, syntax.Leaf) and not condition.in_filter:
        place = _deciding(place)
    passes_over = isinstance(place.pattern, syntax.Next | syntax.Repeated)
    (place.among if condition.in_filter and passes_over else place.where).append(condition.predicate)
    if isinstance(place.pattern, syntax.Union):
        message = f"no match binds {' and '.join(repr(name) for name in sorted(names))} together"
        findings.warning("never-together", message, condition.span, "they stand on different sides of a |")


def _lowest(predicate: Predicate, leaves: dict[str, PlacedPattern]) -> PlacedPattern:
    """The lowest place below which all variables are bound; never below the + around one that looks back."""
    around = [leaves[name].ancestors() for name in sorted(mentioned(predicate))]
    lowest = next(place for place in around[0] if all(place in others for others in around))
    for name in looks_back(predicate):
        path = leaves[name].ancestors()
        repeated = next((place for place in path if isinstance(place.pattern, syntax.Repeated)), lowest)
        lowest = max(lowest, repeated, key=path.index)
    return lowest


def _deciding(leaf: PlacedPattern) -> PlacedPattern:
    """Where a plain condition on one variable ends the search: the ; it is next in, or the + directly around it."""
    around = leaf.parent
    if around is None:
        return leaf
    is_next = isinstance(around.pattern, syntax.Next) and around.operands[1] is leaf
    return around if is_next or isinstance(around.pattern, syntax.Repeated) else leaf
