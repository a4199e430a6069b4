"""Step's '!': a sequence as written, turned into what must happen and what must not (STEP, section 5.3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from weft.languages.findings import Findings
from weft.languages.step import syntax
from weft.languages.syntax import And, Expression, Field, parts_of


@dataclass(frozen=True)
class Negations:
    """`left ; !unwanted … ; right`. Without a left side, what is unwanted must not happen before the right."""

    left: syntax.Pattern | None
    unwanted: tuple[syntax.Negated, ...]
    right: syntax.Pattern
    conditions: tuple[Expression, ...]
    each: bool


def negations_of(node: syntax.Follow, findings: Findings) -> Negations | None:
    """A sequence with the negations between its two sides taken out; None when its shape was reported."""
    if isinstance(node.left, syntax.Follow) and _ends_in_negation(node.left):
        node = _appended(node.left, node)
    left = None if isinstance(node.left, syntax.Negated) else node.left
    unwanted: list[syntax.Negated] = []
    links = [node]
    if isinstance(node.left, syntax.Negated):
        unwanted.append(node.left)
    else:
        while isinstance(links[-1].right, syntax.Follow) and isinstance(links[-1].right.left, syntax.Negated):
            unwanted.append(links[-1].right.left)
            links.append(links[-1].right)
    right = links[-1].right
    if isinstance(right, syntax.Negated):
        message = "nothing follows this '!'"
        hint = "say what ends the sequence: A ; !B ; C; that nothing ever comes after is never known"
        findings.error("misplaced-negation", message, right.span, hint)
        return None
    conditions = tuple(link.condition for link in links if link.condition is not None)
    if left is None and conditions:
        message = "a condition joins two events, and '!' leaves one here"
        hint = "put conditions on the unwanted event into its own brackets: !A[A.x = B.x] ; B"
        findings.error("condition-on-negation", message, conditions[0].span, hint)
    if len({link.each for link in links}) > 1:
        message = "';' and ';?' are mixed around a '!'"
        findings.error("mixed-next", message, node.span, "the two form one operator: write the same on both sides")
    return Negations(left, tuple(unwanted), right, conditions, node.each)


def _ends_in_negation(node: syntax.Follow) -> bool:
    """Whether it is `P ; !Q`, or has several '!' in a row at its end: the `(P ; !Q)` of `(P ; !Q) ; R`."""
    if isinstance(node.left, syntax.Negated):
        return False
    right = node.right
    while isinstance(right, syntax.Follow) and isinstance(right.left, syntax.Negated):
        right = right.right
    return isinstance(right, syntax.Negated)


def _appended(first: syntax.Follow, link: syntax.Follow) -> syntax.Follow:
    """`(P ; !Q) ; R` as `P ; (!Q ; R)`; `link` is the `;` before R."""
    if isinstance(first.right, syntax.Follow):
        right = _appended(first.right, link)
    else:
        right = syntax.Follow(first.right, link.right, link.condition, link.each, span=link.span)
    return syntax.Follow(first.left, right, first.condition, first.each, span=link.span)


def own_and_shared(leaf: syntax.Leaf) -> tuple[list[Expression], list[Expression]]:
    """The conditions on an unwanted event that read it alone, and those that read other events too."""
    own: list[Expression] = []
    shared: list[Expression] = []
    for part in parts_of(leaf.condition, And) if leaf.condition is not None else ():
        others = any(isinstance(node, Field) and node.variable.text != leaf.variable.text for node in part.walk())
        (shared if others else own).append(part)
    return own, shared
