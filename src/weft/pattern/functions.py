"""`weft.function`: declare Python functions that conditions and derived values may use."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, TypeVar, overload

from weft.algebra.functions import KINDS, Kind, UserFunction, declare
from weft.described import described
from weft.errors import UsageError, did_you_mean
from weft.languages.epn.functions import FUNCTIONS

Code = TypeVar("Code", bound=Callable[..., Any])


@overload
def function(code: Code, /) -> Code: ...


@overload
def function(
    *, name: str | None = None, takes: Sequence[Kind] | None = None, gives: Kind = "number"
) -> Callable[[Code], Code]: ...


@described(
    code="A function of arrays, one for each operand, which returns an array with one value for each event.",
    name="The name that programs use; the function's own unless it is given.",
    takes="The kind of each operand: `number` (float64), `integer` (int64), `text` (objects) or `boolean`. Numbers "
    "unless they are given.",
    gives="The kind of the values.",
)
def function(
    code: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    takes: Sequence[Kind] | None = None,
    gives: Kind = "number",
) -> Any:
    """Declare a vectorised function for programs that are compiled from now on.

        @weft.function(takes=("text",), gives="boolean")
        def is_foreign(account):
            return np.array([not one.startswith("DE") for one in account])

    It is called with the values of many events at once, those that have all operands, in any order and number; its
    values must depend on these only. None and not-a-number are missing values. On Spark it is sent along.
    """

    def declaring(given: Code) -> Code:
        declare(_declared(given, name, takes, gives))
        return given

    return declaring if code is None else declaring(code)


def load_functions(path: str) -> None:
    """Run a Python file, which declares functions."""
    loader = SourceFileLoader("weft_functions", path)
    module = ModuleType(loader.name)
    module.__file__ = path
    # It is no module that other processes could import, so that its functions go there as they are.
    try:
        loader.exec_module(module)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path!r} to take functions from") from None
    except UsageError:
        raise
    except Exception as problem:
        raise UsageError(f"the file {path!r} fails: {type(problem).__name__}: {problem}") from problem


def _declared(code: Callable[..., Any], name: str | None, takes: Sequence[Kind] | None, gives: Kind) -> UserFunction:
    if not callable(code):
        raise UsageError(f"weft.function takes a function, not a {type(code).__name__}")
    own = str(name or getattr(code, "__name__", ""))
    if not own.isidentifier():
        raise UsageError(f"{own!r} is no name for a function: give name= letters, digits and underscores")
    if own.lower() in FUNCTIONS:
        raise UsageError(f"{own!r} is a function that programs have already: give yours another name=")
    if isinstance(takes, str):
        raise UsageError(f"takes= is a kind for each operand, as in takes=({takes!r},)")
    kinds = _numbers_for(code) if takes is None else tuple(takes)
    for kind in (*kinds, gives):
        if kind not in KINDS:
            raise UsageError(f"{kind!r} is no kind of values: {did_you_mean(str(kind), KINDS)}")
    if not kinds:
        raise UsageError(f"the function {own!r} takes no operands: a program calls it with at least one")
    return UserFunction(own, kinds, gives, _fingerprint(code), code)


def _numbers_for(code: Callable[..., Any]) -> tuple[Kind, ...]:
    try:
        parameters = inspect.signature(code).parameters.values()
    except (TypeError, ValueError):
        raise UsageError("how many operands this function has is not known: give takes=") from None
    if any(one.kind in (one.VAR_POSITIONAL, one.KEYWORD_ONLY) and one.default is one.empty for one in parameters):
        raise UsageError("how many operands this function has is not known: give takes=")
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return tuple("number" for one in positional if one.default is one.empty)


def _fingerprint(code: Callable[..., Any]) -> str:
    """A text that differs for different code: its source where there is one, else what it is compiled to."""
    try:
        text = inspect.getsource(code)
    except (OSError, TypeError):
        text = _instructions(getattr(code, "__code__", None)) or repr(type(code))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _instructions(code: CodeType | None) -> str:
    if code is None:
        return ""
    inner = (_instructions(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts)
    return "|".join((code.co_code.hex(), *code.co_names, *inner))
