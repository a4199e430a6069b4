"""Random row patterns and tables, for tests that compare engines."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from weft.algebra.row_patterns import RowPattern
from weft.languages.sql.clauses import whole_clause
from weft.languages.sql.lower import compile_clause
from weft.source import SourceText

COLUMNS = {"part": "string", "ts": "timestamp_ntz", "v": "int", "x": "double", "name": "string"}
VARIABLES = "ABC"
# Conditions that read the row and its neighbours, and conditions that depend on the match; {0} is the variable.
LOCAL = [
    "v > 1",
    "{0}.v = 0",
    "v < PREV(v)",
    "v >= PREV(v, 2)",
    "v > NEXT(v)",
    "NEXT({0}.v, 2) IS NULL",
    "name = 'k'",
    "name <> 'k' OR v = 2",
    "NOT (v > 1 AND name = 'k')",
    "v IN (0, 2, NULL)",
    "NOT v IN (1, NULL)",
    "PREV(x) IS NULL OR x > PREV(x)",
    "true",
    "CASE WHEN v = 1 THEN name = 'k' ELSE v IS NULL END",
]
DEPENDENT = [
    "SUM({0}.v) < 4",
    "AVG({0}.x) <= 1.5",
    "COUNT(*) < 4",
    "COUNT({1}.*) >= COUNT({0}.*) - 1",
    "v >= FIRST({0}.v)",
    "v = LAST({1}.v)",
    "LAST({1}.v, 1) IS NULL",
    "MIN(v) = MIN({0}.v)",
    "MAX({1}.x) > 0 OR {1}.x IS NULL",
    "FIRST(CLASSIFIER()) = '{0}'",
    "PREV(LAST({1}.v), 1) < 2",
    "MATCH_NUMBER() < 3",
    "COUNT(DISTINCT {0}.v) < 3",
    "v > FIRST({1}.v, 1) AND name = 'k'",
    "SUM({0}.x) / COUNT({0}.*) < 2",
    "CLASSIFIER({1}) IS NULL OR v > 0",
    "upper(LAST({1}.name)) = 'K' OR v > 0",
]
MEASURES = [
    "MATCH_NUMBER()",
    "CLASSIFIER()",
    "FIRST(v)",
    "LAST(A.v)",
    "FINAL LAST(v)",
    "RUNNING LAST(B.v, 1)",
    "FIRST(A.x, 1)",
    "PREV(v)",
    "NEXT(LAST(A.v), 2)",
    "PREV(FIRST(B.v), 1)",
    "NEXT(CLASSIFIER())",
    "PREV(CLASSIFIER(A))",
    "SUM(v)",
    "FINAL SUM(A.v)",
    "AVG(B.x)",
    "MIN(name)",
    "MAX(A.v)",
    "COUNT(*)",
    "FINAL COUNT(B.*)",
    "COUNT(A.v)",
    "COUNT(DISTINCT v)",
    "SUM(DISTINCT A.v)",
    "array_agg(v)",
    "array_agg(CLASSIFIER())",
    "FINAL array_agg(DISTINCT B.name)",
    "LAST(v) - FIRST(v)",
    "COALESCE(SUM(B.v), -1)",
    "SUM(v + MATCH_NUMBER())",
    "MAX(x) > 1 AND MIN(v) = 0",
]
# Of numbers as large as they come: integers that no float has, sums and products beyond 64 bits, NaN and -0.0.
EXTREME_LOCAL = [
    "v = x",
    "v < x",
    "x >= v",
    "x = PREV(x)",
    "x <> x",
    "x < 1.5",
    "x IN (0.0, PREV(x))",
    "v > 9007199254740992",
    "v = 9007199254740993.0",
    "x > PREV(v)",
    "v IS DISTINCT FROM PREV(x)",
    "v % 3 = 1",
    "v + 1 > v",
    "-v < 0",
]
EXTREME_DEPENDENT = [
    "SUM({0}.v) > {1}.v",
    "AVG({0}.v) < {1}.x",
    "v = MAX({0}.x)",
    "MIN({0}.x) < MAX(v)",
    "FIRST({0}.v) * 2 < v",
    "FIRST({0}.x) = LAST({1}.x)",
    "SUM({0}.v) <> {1}.x",
]
EXTREME_MEASURES = [
    "LAST(v) + 1",
    "-FIRST(v)",
    "LAST(v) / 3",
    "LAST(v) % 2",
    "MAX(v) - MIN(v)",
    "MAX(x)",
    "MIN(x)",
    "AVG(v)",
    "COUNT(DISTINCT x)",
    "CAST(LAST(v) AS DOUBLE)",
]
EXTREME_V = [0, 1, 2, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, -(2**53) - 1, 2**62]
EXTREME_X = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 2.0**53, 2.0**63, -(2.0**63), 5e-324, 1.79e308]
BOUNDS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "{0,3}"]


def patterns() -> st.SearchStrategy[str]:
    """Patterns over A, B and C, as texts."""
    leaves = st.sampled_from([*VARIABLES, *VARIABLES, "()", "^", "$"])

    def bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            several.map(lambda parts: "(" + " ".join(parts) + ")"),
            several.map(lambda parts: "(" + " | ".join(parts) + ")"),
            several.map(lambda parts: "PERMUTE(" + ", ".join(parts) + ")"),
            st.tuples(inner, st.sampled_from(BOUNDS), st.sampled_from(["", "?"])).map(
                lambda parts: f"({parts[0]}){parts[1]}{parts[2]}"
            ),
            inner.map(lambda part: "{-" + part + "-}"),
        )

    return st.recursive(leaves, bigger, max_leaves=6).filter(lambda text: any(c in text for c in VARIABLES))


@st.composite
def clauses(draw: st.DrawFn, *, streaming: bool = False, extreme: bool = False) -> str:
    """What stands between the parentheses of a clause that is right; `extreme`: over the tables of extreme numbers."""
    pattern = draw(patterns())
    used = [name for name in VARIABLES if name in pattern.replace("PERMUTE", "")]
    if streaming:
        pattern = pattern.replace("$", "()")
    skips = ["PAST LAST ROW", "TO NEXT ROW", *(f"TO {way}{name}" for name in used for way in ("FIRST ", "LAST "))]
    modes = ["ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH OMIT EMPTY MATCHES"]
    if "{-" not in pattern and not streaming:
        modes.append("ALL ROWS PER MATCH WITH UNMATCHED ROWS")
    within = draw(st.sampled_from(["", "", "WITHIN INTERVAL '3' SECOND"]))
    every = [*MEASURES, *EXTREME_MEASURES * 2] if extreme else MEASURES
    known = [item for item in every if all(f"{name}." not in item or name in used for name in VARIABLES)]
    known = [item for item in known if "(A)" not in item or "A" in used]
    measures = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    named = ", ".join(f"{item} AS m{k}" for k, item in enumerate(measures))
    defines = ", ".join(
        f"{name} AS {draw(_conditions(name, used, extreme))}" for name in used if draw(st.integers(0, 3))
    )
    partition = draw(st.sampled_from(["PARTITION BY part", ""]))
    order = (
        "ts"
        if within or streaming
        else draw(st.sampled_from(["ts", "ts DESC", "v, ts", "ts NULLS LAST"] + ["x, v"] * extreme))
    )
    return (
        f"{partition} ORDER BY {order} MEASURES {named} {draw(st.sampled_from(modes))} "
        f"AFTER MATCH SKIP {draw(st.sampled_from(skips))} PATTERN ({pattern}) {within}"
        + (f" DEFINE {defines}" if defines else "")
    )


@st.composite
def _conditions(draw: st.DrawFn, name: str, used: list[str], extreme: bool) -> str:
    other = draw(st.sampled_from(used))
    every = LOCAL * 2 + DEPENDENT + (EXTREME_LOCAL * 3 + EXTREME_DEPENDENT * 4 if extreme else [])
    parts = draw(st.lists(st.sampled_from(every), min_size=1, max_size=2))
    return draw(st.sampled_from([" AND ", " OR "])).join(f"({part.format(name, other)})" for part in parts)


def tables(*, nulls: bool = True, largest: int = 12, extreme: bool = False) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows with few distinct values, so that they tie and match; `extreme`: numbers as large and small as they come."""
    absent = [st.none()] if nulls else []
    row = st.fixed_dictionaries(
        {
            "part": st.sampled_from(["p", "q", None] if nulls else ["p", "q"]),
            "ts": st.one_of(st.integers(0, 8), *absent),
            "v": st.one_of(st.sampled_from(EXTREME_V if extreme else range(4)), st.none()),
            "x": st.one_of(st.sampled_from(EXTREME_X if extreme else [0.0, 0.5, 1.5, 2.0]), st.none()),
            "name": st.one_of(st.sampled_from(["k", "m"]), st.none()),
        }
    )
    return st.lists(row, max_size=largest)


def compiled(text: str, *, extreme: bool = False) -> RowPattern:
    """A clause over the columns of `tables`."""
    source = SourceText(text)
    return compile_clause(source, whole_clause(source), COLUMNS | ({"v": "bigint"} if extreme else {}))[0]
