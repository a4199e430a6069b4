"""Descriptions of arguments, each written once: names mean the same in all public functions.

`described` adds an `Args:` section to a function's docstring, which `help` and the documentation site show.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from weft.described.texts import TEXTS

Called = TypeVar("Called", bound=Callable[..., object])


def described(**own: str) -> Callable[[Called], Called]:
    """Describe every argument of a function, by the table or in words of its `own`; one without a text is an error."""

    def with_arguments(function: Called) -> Called:
        names = [name for name in inspect.signature(function).parameters if name != "self"]
        lines = [f"    {name}: {own.get(name) or TEXTS[name]}" for name in names]
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = "\n".join([text, "", "Args:", *lines])
        return function

    return with_arguments
