"""Exact numeric values: of numbers, and of the digits that denote them, beyond what floats can represent.

A float is taken as the shortest decimal that denotes it (one of 2**53 or more as its exact value).
"""

from __future__ import annotations

from decimal import Decimal

Number = int | float | Decimal
EXACT = 2**53  # integers up to here are exact as floats
NAMED_DIGITS = 15  # decimals of so many digits are told apart by floats


def worth(number: Number) -> int | Decimal:
    """What a number compares by."""
    if not isinstance(number, float):
        return number
    return Decimal(repr(number)) if abs(number) < EXACT else Decimal(number)


def real(digits: str) -> float | Decimal:
    """Return the value of a non-integer number: a float that represents it exactly, else a decimal."""
    near = float(digits)
    if len(digits) <= NAMED_DIGITS + 1 or repr(near) == digits:
        return near
    exact = Decimal(digits)
    return near if exact == worth(near) else exact


def negated(number: Number) -> Number:
    """Minus a number; Python's own minus would round a decimal."""
    return number.copy_negate() if isinstance(number, Decimal) else -number


def number_text(number: Number) -> str:
    """A number as programs have it."""
    return f"{number:f}" if isinstance(number, Decimal) else repr(number)
