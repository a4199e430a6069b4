"""How a composite pattern was written, as brackets around its variables: found again in what it was rewritten to."""

from __future__ import annotations

from collections.abc import Sequence

from weft.algebra.composites import Composite, CompositeEvent
from weft.optimizer.chains import Shape, leaves_of

Brackets = str | tuple["Brackets", ...]  # a variable, or brackets around parts
Stretch = tuple[int, int]  # of the variables as they were written, the first and the last


def _brackets_of(pattern: Composite) -> Brackets:
    """The brackets of a pattern: the variable of a source, or those of the operands that it binds the variables of."""
    if isinstance(pattern, CompositeEvent):
        return pattern.variable
    operands = [child for child in pattern.children() if isinstance(child, Composite)]
    bound = [_brackets_of(operand) for operand in operands if set(operand.variables) <= set(pattern.variables)]
    return bound[0] if len(bound) == 1 else tuple(bound)


class Written:
    """The parts of a pattern as it was written."""

    def __init__(self, pattern: Composite) -> None:
        self._places: dict[str, int] = {}
        self._inside: dict[Stretch, tuple[Stretch, ...]] = {}
        self._note(_brackets_of(pattern))

    def _note(self, part: Brackets) -> Stretch:
        if isinstance(part, str):
            place = self._places[part] = len(self._places)
            return place, place
        inside = tuple(map(self._note, part))
        whole = (inside[0][0], inside[-1][1]) if inside else (0, 0)
        self._inside[whole] = inside
        return whole

    def shape(self, operands: Sequence[Composite]) -> Shape | None:
        """How operands, or branches, were put into brackets, or None if they were not written as those of one part."""
        if any(name not in self._places for operand in operands for name in operand.variables):
            return None
        places = [[self._places[name] for name in operand.variables] for operand in operands]
        numbers = {(min(own), max(own)): number for number, own in enumerate(places)}
        shape = self._shape((min(map(min, places)), max(map(max, places))), numbers)
        return shape if shape is not None and sorted(leaves_of(shape)) == list(range(len(operands))) else None

    def _shape(self, stretch: Stretch, numbers: dict[Stretch, int]) -> Shape | None:
        if stretch in numbers:
            return numbers[stretch]
        inside = self._inside.get(stretch, ())
        if len(inside) != 2:
            return None
        left, right = (self._shape(part, numbers) for part in inside)
        return None if left is None or right is None else (left, right)
