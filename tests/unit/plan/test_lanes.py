"""By which key the work may be split, and when it may not."""

from __future__ import annotations

import pytest

import weft
from weft.plan.planner import plan

STEP = 'topology "T"\nexternal A(f: bool, k: int) < "a" [1.0]\nexternal B(f: bool, k: int) < "b" [1.0]\n'


@pytest.mark.parametrize(
    ("language", "text", "key"),
    [
        ("ceql", "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 5 EVENTS", (("k",),)),
        ("ceql", "SELECT * WHERE A ; B WITHIN 5 EVENTS", ()),
        ("ceql", "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 5 EVENTS CONSUME BY ANY", ()),
        ("ceql", "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 5 [x]", ()),
        ("step", STEP + "Q(*): A ;[A.k = B.k] B", (("k",),)),
        # One event alone is a match, also one that lacks the attribute and so has no lane.
        ("step", STEP + "Q(*): A[!A.f]", ()),
        ("step", STEP + "Q(*): A +?[prev(A.k) = A.k]", ()),
        ("tesla", "define X() from B(k = $k) and each A(k = $k) within 5 from B", (("k",),)),
        ("tesla", "define X() from B(k = $k) and each A(k > $k) within 5 from B", ()),
        ("tesla", "define X() from B(k = $k) and each A(k = $k) within 5 from B and not C() between A and B", ()),
        (
            "tesla",
            "define X() from B(k = $k) and each A(k = $k) within 5 from B and not C(k = $k) between A and B",
            (("k",),),
        ),
        # A terminator alone fires without the attribute, too.
        ("tesla", "define X(k: int) from B(k > 3) where k = B.k", ()),
    ],
)
def test_key(language: str, text: str, key: tuple[tuple[str, ...], ...]) -> None:
    (lanes,) = plan(weft.compile(text, language=language)).lanes
    assert lanes.key == key
