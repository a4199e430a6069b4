"""Events that no query can use do not leave the JVM, and reports about them stay correct."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import weft
from weft import RejectedWarning

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER a[x > 3] AND b[x > 2] PARTITION BY [k] WITHIN 1 HOUR"


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    rows = [(n, "ABC"[n % 3], "uv"[n % 2], float(n % 5), f"note {n}") for n in range(90)]
    rows += [(None, "C", "u", 0.0, "no time"), (1, None, "u", 0.0, "no type")]  # type: ignore[list-item]
    path: Path = tmp_path_factory.mktemp("filters") / "events"
    columns = "ts long, type string, k string, x double, note string"
    spark.createDataFrame(rows, columns).coalesce(2).write.parquet(str(path))
    return spark.read.parquet(str(path))


def plan_of(matches: DataFrame) -> str:
    with_long_texts = matches.sparkSession.conf
    with_long_texts.set("spark.sql.maxMetadataStringLength", 1000)
    try:
        return str(matches._jdf.queryExecution().executedPlan().toString())
    finally:
        with_long_texts.unset("spark.sql.maxMetadataStringLength")


def ids(matches: DataFrame) -> list[str]:
    return sorted(row["id"] for row in matches.collect())


@pytest.mark.filterwarnings("ignore")
def test_filters_reach_the_scan_and_change_no_match(frame: DataFrame) -> None:
    matches = weft.match(frame, PAIRS, scan="spark")
    pushed = plan_of(matches).split("PushedFilters: ")[1]
    assert "EqualTo(type,A),GreaterThan(x,3.0)" in pushed.replace(" ", "")
    assert ids(matches) == ids(weft.match(frame, PAIRS)) != []
    assert matches.count() == len(ids(matches))


@pytest.mark.filterwarnings("ignore")
def test_attributes_that_are_only_shown_leave_the_jvm_for_events_in_matches(frame: DataFrame) -> None:
    text = "SELECT * WHERE A AS a : C AS b FILTER a[x > 3] AND b[x > 0] PARTITION BY [k] WITHIN 1 HOUR"
    matches = weft.match(frame, text, scan="spark")
    found = matches.orderBy("start", "end", "id").collect()
    assert found == weft.match(frame, text).orderBy("start", "end", "id").collect() != []
    assert all(row["variables"]["a"][0]["note"] == f"note {row['start']}" for row in found)
    conditions = re.findall(r"CASE WHEN ((?:(?!CASE WHEN).)*?) THEN note", plan_of(matches))
    assert conditions
    assert all("> 3.0" in condition for condition in conditions)


def test_unreadable_events_pass_the_filter(frame: DataFrame) -> None:
    matches = weft.match(frame, PAIRS, scan="spark")
    with pytest.warns(RejectedWarning, match="2 events could not be read"):
        assert matches.count() > 0
    rejects = weft.match(frame, PAIRS, scan="spark", rejects=True)
    assert rejects.where("reason is not null").count() == 2


@pytest.mark.filterwarnings("ignore::weft.RejectedWarning")
def test_counting_in_this_process_filters_too(frame: DataFrame) -> None:
    read = frame.where(F.length("type") > 0)  # which only Spark can
    wanted = "no event has the type 'AA' and the values that the program reads; did you mean 'A'"
    with pytest.warns(weft.DataWarning, match=wanted):
        assert weft.count(read, PAIRS.replace("A AS", "AA AS")) == {"q": 0}
    assert weft.count(read, PAIRS) == {"q": weft.match(read, PAIRS).count()} != {"q": 0}


@pytest.mark.filterwarnings("ignore::weft.RejectedWarning")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PAIRS.replace("A AS", "AA AS"), "no event has the type 'AA' and the values that the program reads; did you"),
        (PAIRS.replace("x > 3", "x > 99"), None),
        (PAIRS.replace("B AS", "(B OR Bb) AS"), None),
    ],
)
def test_types_are_doubted_if_no_event_has_them(frame: DataFrame, text: str, told: str | None) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        weft.match(frame, text, scan="spark").count()
    doubts = [str(each.message) for each in found if each.category is weft.DataWarning]
    assert [doubt for doubt in doubts if "no event" not in doubt] == []
    assert (told is None and not doubts) or (told is not None and doubts[0].startswith(told))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (PAIRS, {"positions": True}),
        (PAIRS, {"key": "note"}),
        (PAIRS.replace("; B", ": B"), {}),  # events between A and B matter
        (PAIRS.replace("1 HOUR", "30 EVENTS"), {}),
        (
            "DECLARE EVENT A(x double, k string, note string)\nDECLARE EVENT B(x double, k string, note string)\n"
            + PAIRS,
            {},
        ),  # other kinds of x are rejected
    ],
)
def test_where_all_events_matter_none_are_filtered(frame: DataFrame, text: str, options: dict[str, Any]) -> None:
    matches = weft.match(frame, text, scan="spark", **options)
    assert "GreaterThan(x" not in plan_of(matches)
    assert ids(matches) == ids(weft.match(frame, text, **options))


@pytest.mark.filterwarnings("ignore")
def test_columns_that_are_only_compared_travel_as_a_letter(frame: DataFrame) -> None:
    narrow = weft.match(frame, PAIRS, scan="spark", columns=["start", "end"])
    arrow = plan_of(narrow).split("weft_pack")[1]
    read = arrow.split("Project")[1].splitlines()[0]
    assert "AS weft_letters" in read
    assert "AS c1#" in read
    assert "AS c2#" not in read  # the time and the key are sent, and nothing else
    assert sorted(map(tuple, narrow.collect())) == sorted(
        map(tuple, weft.match(frame, PAIRS, scan="spark").select("start", "end").collect())
    )
    assert "weft_letters" not in plan_of(weft.match(frame, PAIRS, scan="spark"))  # ids are made of what is compared


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "condition",
    [
        "a[x > 1] AND b[x <> 0]",
        "a[k = 'u'] AND b[x IN {1, 2.5}]",
        "a[note IS NULL] OR b[k <> 'v']",
        "a[NOT x >= 2]",
        "a[x > 1] AND a[x] < b[x]",
        "a[note < 'note 5']",
    ],
)
@pytest.mark.parametrize("pattern", ["A AS a ; B AS b", "A AS a : B AS b"])
def test_letters_change_no_number(frame: DataFrame, condition: str, pattern: str) -> None:
    text = f"SELECT * WHERE {pattern} FILTER {condition} PARTITION BY [k] WITHIN 9 MILLISECONDS"
    assert weft.match(frame, text, scan="spark").count() == len(weft.match(frame, text).collect())
