"""The API reference: every argument of every public function and method is described, one by one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import weft
from weft.described import described


def public_functions() -> Iterator[tuple[str, Any]]:
    for name in weft.__all__:
        thing = getattr(weft, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing) and not issubclass(thing, Exception):
            for own, method in vars(thing).items():
                if not own.startswith("_") and inspect.isfunction(getattr(thing, own)):
                    yield f"{name}.{own}", inspect.unwrap(getattr(method, "__func__", method))


@pytest.mark.parametrize(("name", "function"), [pytest.param(*one, id=one[0]) for one in public_functions()])
def test_every_argument_is_described(name: str, function: Any):
    parameters = inspect.signature(function).parameters
    wanted = [one for one in parameters if one not in ("self", "cls")]
    _, _, arguments = (inspect.getdoc(function) or "").partition("Args:\n")
    assert re.findall(r"^ +(\w+): \S", arguments, re.MULTILINE) == wanted, name
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values()) or name == "sql"


def test_an_argument_without_a_description_is_an_error():
    with pytest.raises(KeyError, match="surprising"):

        @described()
        def function(events: object, surprising: int) -> None: ...


def test_options_of_frames_are_refused_for_files(tmp_path):
    (tmp_path / "e.jsonl").write_text('{"type": "A", "ts": 1}\n')
    with pytest.raises(weft.UsageError, match="`scan` is for DataFrames"):
        weft.match(tmp_path / "e.jsonl", "SELECT * WHERE A ; B WITHIN 1 HOUR", scan="spark")
