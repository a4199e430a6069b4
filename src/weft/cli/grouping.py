"""Commands that take groups of options as values: of a parameter that is a dataclass each field is an option."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as the command line's library is to see it: with one parameter for each option."""
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    shown: list[inspect.Parameter] = []
    for name, own in inspect.signature(command).parameters.items():
        if name in groups:
            shown += [_option(field, groups[name]) for field in fields(groups[name])]
        else:
            shown.append(inspect.Parameter(name, KEYWORD, default=own.default, annotation=hints[name]))

    @wraps(command)
    def called(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined] # it is what `inspect` looks for
    called.__annotations__ = {option.name: option.annotation for option in shown}
    del called.__wrapped__  # its parameters are others
    return called


def _option(field: Field[Any], kind: type) -> inspect.Parameter:
    """A field as a parameter; one without a default must be given."""
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    annotation = get_type_hints(kind, include_extras=True)[field.name]
    return inspect.Parameter(field.name, KEYWORD, default=default, annotation=annotation)
