"""What the data shows that is probably not meant is warned of: types that never come, other streams, other units."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import weft
from weft import DataWarning

ENGINES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
NOW = 1_700_000_000


def doubts(events: list[dict[str, Any]], text: str, engine: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weft.count(events, text, engine)
        list(weft.detect(events, text, engine))
    texts = [str(one.message) for one in caught if issubclass(one.category, DataWarning)]
    assert texts[: len(texts) // 2] == texts[len(texts) // 2 :]
    return texts[: len(texts) // 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_type_that_never_comes(engine: str) -> None:
    events = [{"type": "Login", "ts": 1}, {"type": "Logout", "ts": 2}]
    (told,) = doubts(events, "SELECT * WHERE Login AS a : Logot AS b", engine)
    assert "no event has the type 'Logot'" in told
    if engine == "local":
        assert "did you mean 'Logout'" in told
    assert doubts(events, "SELECT * WHERE Login AS a : Logout AS b", engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_times_of_another_unit(engine: str) -> None:
    events = [{"type": "A", "ts": NOW + n} for n in range(3)]
    (told,) = doubts(events, "SELECT * WHERE A AS a", engine)
    assert "look like s since 1970, and are taken for ms" in told
    assert doubts([{"type": "A", "ts": NOW * 1000}], "SELECT * WHERE A AS a", engine) == []
    assert doubts([{"type": "A", "ts": 5}], "SELECT * WHERE A AS a", engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_an_attribute_called_stream(engine: str) -> None:
    text = "CREATE STREAM S { EVENT A { x int } } SELECT * FROM S WHERE A AS a"
    events = [{"type": "A", "ts": 1, "stream": "eu"}, {"type": "A", "ts": 2, "stream": "eu"}]
    (told,) = doubts(events, text, engine)
    assert "2 events have 'eu' in their attribute 'stream', and the queries read S only" in told
