"""User-defined functions: their declaration, and a call of the code for the values of many events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt

from weft.errors import UsageError

Kind = OneOf["number", "integer", "text", "boolean"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
DTYPES: dict[Kind, Any] = {"number": np.float64, "integer": np.int64, "text": object, "boolean": np.bool_}
_CLASSES: dict[Kind, tuple[type, ...]] = {
    "number": (int, float, np.number),
    "integer": (int, np.integer),
    "text": (str,),
    "boolean": (bool, np.bool_),
}
_NATURAL: dict[Kind, str] = {"number": "iuf", "integer": "iu", "text": "U", "boolean": "b"}  # kinds of dtypes


@dataclass(frozen=True)
class UserFunction:
    """A function that a user declared: its name, the kinds of its operands and of its values, and its code.

    It has a value where all operands have one of their kind. `fingerprint` identifies the code: a saved query has only
    that, and finds the code among the functions that the process has registered.
    """

    name: str
    takes: tuple[Kind, ...]
    gives: Kind
    fingerprint: str
    code: Callable[..., Any] | None = field(default=None, compare=False, repr=False, metadata={"stored": False})

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[..., UserFunction], tuple[object, ...]]:
        """Go to another process with the code, which saved queries find there."""
        return known, (self.name, self.takes, self.gives, self.fingerprint, self.code)

    def apply(self, operands: Sequence[Values]) -> tuple[Values, Mask]:
        """The values for some events, and which of them there are; operands are arrays of equal length."""
        count = len(operands[0])
        if not count:
            return np.empty(0, DTYPES[self.gives]), np.empty(0, bool)
        code = self.code or _known_code(self)
        try:
            given = np.asarray(code(*operands))
        except Exception as problem:
            raise UsageError(f"the function {self.name!r} fails: {type(problem).__name__}: {problem}") from problem
        if given.shape != (count,):
            what = (
                f"{len(given):,} value{'s' * (len(given) != 1)}"
                if given.ndim == 1
                else "one value"
                if not given.ndim
                else "a table"
            )
            raise UsageError(
                f"the function {self.name!r} returns {what} for {count:,} events: it takes arrays, and returns an "
                "array with one value for each event"
            )
        return self._checked(given)

    def apply_one(self, operands: Sequence[object]) -> Any:
        """The value for one event, or None if there is none."""
        kinds = zip(operands, self.takes, strict=True)
        values, present = self.apply([np.array([operand], DTYPES[kind]) for operand, kind in kinds])
        return values.tolist()[0] if present[0] else None

    def _checked(self, given: Values) -> tuple[Values, Mask]:
        """The values as the kind that is declared; None and not-a-number are no values."""
        if given.dtype.kind == "f":
            present = ~np.isnan(given)
        else:
            present = np.array([one is not None and one == one for one in given.tolist()], bool)
        kind, own = self.gives, given[present]
        natural = given.dtype.kind in _NATURAL[kind]
        if not natural and kind == "integer" and given.dtype.kind == "f":
            natural = bool(np.all((own == np.floor(own)) & (np.abs(own) < 2.0**63)))
        wrong = [] if natural else [one for one in own.tolist() if not _is_of(kind, one)]
        if wrong or (kind == "integer" and given.dtype == np.uint64 and own.size and int(own.max()) >= 2**63):
            value = wrong[0] if wrong else own.max()
            hint = f"declare it with gives={_kind_of(value)!r}" if _kind_of(value) else f"it may return {kind}s only"
            raise UsageError(f"the function {self.name!r} gives a {kind}, but returns {value!r}: {hint}")
        values = np.zeros(len(given), DTYPES[kind])
        try:
            values[present] = own
        except OverflowError:
            raise UsageError(f"the function {self.name!r} returns an integer of more than 64 bits") from None
        return values, present


_declared: dict[str, UserFunction] = {}  # by name: what programs may use
_known: dict[tuple[str, str], Callable[..., Any]] = {}  # by name and fingerprint: what saved queries mean


def declare(function: UserFunction) -> None:
    """Let programs that are compiled from now on use a function; it replaces an earlier one of the same name."""
    assert function.code is not None
    _declared[function.name] = function
    _known[function.name, function.fingerprint] = function.code


def declared() -> dict[str, UserFunction]:
    """The functions that programs may use, by name."""
    return _declared


def known(
    name: str, takes: tuple[Kind, ...], gives: Kind, fingerprint: str, code: Callable[..., Any] | None
) -> UserFunction:
    """A function that came from another process, whose code is known here from now on."""
    if code is not None:
        _known[name, fingerprint] = code
    return UserFunction(name, takes, gives, fingerprint, code)


def _known_code(function: UserFunction) -> Callable[..., Any]:
    found = _known.get((function.name, function.fingerprint))
    if found is None:
        raise UsageError(
            f"a saved query calls the function {function.name!r}, which is not known here or has changed since: "
            "declare it by weft.function before the query is loaded (--functions FILE)"
        )
    return found


def _is_of(kind: Kind, value: object) -> bool:
    return isinstance(value, _CLASSES[kind]) and (kind == "boolean" or not isinstance(value, bool | np.bool_))


def _kind_of(value: object) -> Kind | None:
    return next((kind for kind in ("boolean", "integer", "number", "text") if _is_of(kind, value)), None)
