"""A pattern as the Python text that builds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from keyword import iskeyword

from weft.algebra import predicates as algebra
from weft.algebra.chains import Contiguity, Fits, Link, Skip, SkipTo

_CALLS = {Contiguity.STRICT: "next", Contiguity.NEXT: "followed_by", Contiguity.ANY: "followed_by_any"}
_SKIPS = {
    SkipTo.NEXT: "skip_to_next",
    SkipTo.PAST_LAST: "skip_past_last_event",
    SkipTo.FIRST: "skip_to_first",
    SkipTo.LAST: "skip_to_last",
}
_SYMBOLS = {"=": "==", "<>": "!="}


def chain_text(
    links: Sequence[Link],
    duration: int | str | timedelta | None = None,
    skip: Skip | None = None,
    keys: Sequence[str] = (),
    conditions: Sequence[algebra.Predicate] = (),
) -> str:
    """The calls that build the pattern, one step on each line."""
    lines = [_link_text(link, first=number == 0) for number, link in enumerate(links)]
    lines += [f".having({condition_text(condition)})" for condition in conditions]
    if keys:
        lines.append(f".by({', '.join(map(repr, keys))})")
    if duration is not None:
        lines.append(f".within({duration!r})")
    if skip is not None:
        lines.append(
            f".after_match(AfterMatch.{_SKIPS[skip.to]}({'' if skip.variable is None else repr(skip.variable)}))"
        )
    return lines[0] if len(lines) == 1 else "(" + "\n    ".join(lines) + ")"


def _link_text(link: Link, *, first: bool) -> str:
    call = ("not_" if link.negated else "") + _CALLS[link.contiguity]
    step = chain_text(link.group) if link.group else repr(link.name)
    return ("Pattern.begin" if first else f".{call}") + f"({step})" + "".join(_modifiers(link))


def _modifiers(link: Link) -> Iterator[str]:
    yield from _fits_text(link.fits)
    if link.most is None:
        yield ".one_or_more()" if link.least == 1 else f".times_or_more({link.least})"
    elif (link.least, link.most) != (1, 1):
        yield f".times({link.least})" if link.least == link.most else f".times({link.least}, {link.most})"
    if link.inner is Contiguity.STRICT:
        yield ".consecutive()"
    elif link.inner is Contiguity.ANY:
        yield ".allow_combinations()"
    if link.greedy:
        yield ".greedy()"
    if link.until is not None:
        yield f".until({condition_text(link.until.where)})"
    if link.optional:
        yield ".optional()"


def _fits_text(fits: Fits) -> Iterator[str]:
    if fits.types:
        yield f".subtype({', '.join(map(repr, fits.types))})"
    if fits.where != algebra.Always():
        yield f".where({condition_text(fits.where)})"


def condition_text(node: algebra.Predicate) -> str:
    """A condition as a Python expression over `e`."""
    match node:
        case algebra.Comparison(operator, left, right):
            return f"{_value(left)} {_SYMBOLS.get(operator, operator)} {_value(right)}"
        case algebra.And(operands):
            return " & ".join(f"({condition_text(operand)})" for operand in operands)
        case algebra.Or(operands):
            return " | ".join(f"({condition_text(operand)})" for operand in operands)
        case algebra.Not(operand):
            return f"~({condition_text(operand)})"
        case algebra.IsNull(operand):
            return f"{_value(operand)}.is_null()"
        case algebra.In(operand, values):
            return f"{_value(operand)}.is_in({list(values)!r})"
        case algebra.Like(operand, pattern):
            return f"{_value(operand)}.like({pattern!r})"
        case algebra.RegexMatch(operand, pattern):
            return f"{_value(operand)}.matches({pattern!r})"
    raise TypeError(f"not a condition of the builder: {node!r}")


def _value(node: algebra.Expression) -> str:
    match node:
        case algebra.Literal(value):
            return repr(value)
        case algebra.Attribute(name, variable):
            owner = "e" if variable is None else f"step({variable!r})"
            plain = name.isidentifier() and not iskeyword(name) and not name.startswith("_") and name != "count"
            return f"{owner}.{name}" if plain else f"{owner}[{name!r}]"
        case algebra.Aggregate("COUNT", algebra.Attribute("*", variable)):
            return f"step({variable!r}).count()"
        case algebra.Aggregate(function, attribute):
            return f"{_value(attribute)}.{function.lower()}()"
        case algebra.Negative(operand):
            return f"(-{_value(operand)})"
        case algebra.Arithmetic(operator, left, right):
            return f"({_value(left)} {operator} {_value(right)})"
        case algebra.Call("ABS", (operand,)):
            return f"abs({_value(operand)})"
        case algebra.Call("COALESCE", operands):
            return f"coalesce({', '.join(map(_value, operands))})"
        case algebra.Call(str(function), (operand,)):
            return f"{_value(operand)}.{function.lower()}()"
    raise TypeError(f"not a value of the builder: {node!r}")
