"""Operators and repetitions as SQL writes them, whatever the nodes are that have them."""

from __future__ import annotations

from collections.abc import Sequence

OR, AND, NOT, COMPARE, ADD, MULTIPLY, NEGATE, ATOM = range(8)  # how strongly a text binds
LEVELS = {
    **{"or": OR, "and": AND, "||": ADD, "+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "%": MULTIPLY},
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "is distinct from"), COMPARE),
    "div": MULTIPLY,
}
ROWS = {
    "one": "ONE ROW PER MATCH",
    "show": "ALL ROWS PER MATCH SHOW EMPTY MATCHES",
    "omit": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
}
BoundText = tuple[str, int]  # a text and how strongly it binds


def bound(part: BoundText, level: int) -> str:
    """A part with parentheses if it binds less strongly than that."""
    text, binds = part
    return text if binds >= level else f"({text})"


def quoted(text: str, mark: str = '"') -> str:
    """A text in quotes, those in it doubled."""
    return mark + text.replace(mark, 2 * mark) + mark


def bounds_text(least: int, most: int | None) -> str:
    """How often something is repeated."""
    simple = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if simple:
        return simple
    if most is None:
        return f"{{{least},}}"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def operation_text(operator: str, parts: Sequence[BoundText], *, nests: bool) -> BoundText | None:
    """An operation on parts, or None if it is a function; `nests`: equal connectives in each other are kept apart."""
    texts = [text for text, _ in parts]
    if operator in ("is null", "is true", "is false"):
        return f"{bound(parts[0], ADD)} {operator.upper()}", COMPARE
    if operator == "not":
        return f"NOT {bound(parts[0], NOT)}", NOT
    if operator == "negate":
        return f"-{bound(parts[0], ATOM if nests else NEGATE)}", NEGATE
    if operator == "in":
        return f"{bound(parts[0], ADD)} IN ({', '.join(texts[1:])})", COMPARE
    if operator in ("like", "ilike", "rlike"):
        first, *others = (bound(part, ADD) for part in parts)
        return f"{first} {operator.upper()} {' ESCAPE '.join(others)}", COMPARE
    if operator == "array":
        return f"ARRAY[{', '.join(texts)}]", ATOM
    if operator == "[]":
        return f"{bound(parts[0], ATOM)}[{texts[1]}]", ATOM
    if operator not in LEVELS or len(parts) < 2:
        return None
    level = LEVELS[operator]
    apart = nests and level in (OR, AND)
    left = ADD if level == COMPARE else level + apart
    right = left + (level >= ADD)
    return f" {operator.upper()} ".join([bound(parts[0], left), *(bound(part, right) for part in parts[1:])]), level
