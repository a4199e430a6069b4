"""Programs and matches as pictures: what is in them, what is left out, and that nothing of a user's becomes markup."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weft
from weft.drawing.highlighting import highlighted
from weft.drawing.layout import Arrow, Box, graph_svg
from weft.drawing.scene import MOST_EVENTS, MOST_MATCHES
from weft.drawing.timeline import timeline_svg
from weft.inputs import reads_once
from weft.pattern.builder import BUILT

pytestmark = pytest.mark.filterwarnings("ignore::weft.ProgramWarning", "ignore::weft.DataWarning")
ROOT = Path(__file__).parents[3]
EVIL = "<script>alert(1)</script>"
SVG = "{http://www.w3.org/2000/svg}"
PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER a[x] = b[x]"
EVENTS = [{"type": kind, "ts": ts, "x": 1} for ts, kind in enumerate("ACBB")]


def pictures(html: str) -> list[ElementTree.Element]:
    """The pictures in HTML, all of which must be well-formed."""
    whole = ElementTree.fromstring(f"<all>{html}</all>")
    return list(whole.iter(f"{SVG}svg"))


def texts(picture: ElementTree.Element) -> list[str]:
    return [item.text or "" for item in picture.iter(f"{SVG}text")]


def shown(program: weft.Program) -> tuple[ElementTree.Element, ElementTree.Element]:
    """The text of a program in a notebook, and the picture of its plan."""
    html = program._repr_html_()
    (picture,) = pictures(html)
    pre = ElementTree.fromstring(html).find("pre")
    assert pre is not None
    return pre, picture


def coloured(pre: ElementTree.Element) -> dict[str, str]:
    return {span.text or "": span.get("style", "") for span in pre.iter("span")}


# -- programs ---------------------------------------------------------------------------------------


PROGRAMS = {
    "ceql": "-- why\nSELECT * WHERE A AS a ; B AS b FILTER a[name = 'x -- y'] WITHIN 10 EVENTS /* end */",
    "eql": "SOURCE A(x: int) -- why\nSELECT a.x FROM A a WHERE a.x > 10, a.name = 'x -- y' /* end */",
    "step": 'topology "x -- y" // why\nexternal A(id: int) < "a.jsonl" [10]\nOut(A.id): A ;[A.id = 10] A/B /* end */',
    "epn": "-- why\npattern P all(A a, B b) where a.x = 10 and b.name = 'x -- y'",
    "tesla": "define D(n: int) from A(x = 10) -- why\nand each B(name = 'x -- y') within 5 sec from A where n = 1",
}


@pytest.mark.parametrize("language", [*PROGRAMS])
def test_words_are_coloured_by_what_they_are_in_the_language(language: str) -> None:
    schema = {"A": {"x": "int", "id": "int", "name": "string"}, "B": {"x": "int", "name": "string"}}
    declared = None if language in ("eql", "step") else schema
    text = PROGRAMS[language] if language != "eql" else PROGRAMS["eql"].replace("x: int", "x: int, name: string")
    pre, _ = shown(weft.compile(text, language=language, schema=declared))
    assert "".join(pre.itertext()) == text
    styles = coloured(pre)
    named = {text.strip("'\"").lstrip("-/ "): style for text, style in styles.items()}
    assert {named["why"]} == {"color:#6e7781;font-style:italic"}
    assert named["x -- y"] == "color:#0a3069"
    assert named["10"] == "color:#0550ae"
    word = {"ceql": "SELECT", "eql": "SOURCE", "step": "topology", "epn": "pattern", "tesla": "define"}[language]
    assert "font-weight" in styles[word]
    assert "A" not in styles


def test_programs_of_several_languages_are_coloured_each_in_its_own() -> None:
    rule = "define D(n: int) from A(x = 10) where n = 1"
    query = "-- then\nQUERY Two AS SELECT * WHERE D AS d1 ; D AS d2 WITHIN 20 EVENTS"
    more = "pattern P all(Two t, B b) where b.x = 30"
    whole = weft.compile(rule).extended(weft.compile(query)).extended(weft.compile(more))
    pre, _ = shown(whole)
    assert "".join(pre.itertext()) == whole.text
    assert {"define", "10", "-- then", "QUERY", "SELECT", "20", "pattern", "30"} <= coloured(pre).keys()


@pytest.mark.parametrize("text", ["", "no program", "SELECT * WHERE\n\n'", "SELECT\n\nSELECT\n\n", "\n\n\n", "'"])
@pytest.mark.parametrize("language", [*PROGRAMS, BUILT])
def test_any_text_is_shown_whole(text: str, language: str) -> None:
    assert "".join(ElementTree.fromstring(f"<pre>{highlighted(text, language)}</pre>").itertext()) == text


def test_a_pattern_built_in_python_is_coloured_as_python() -> None:
    pattern = weft.Pattern.begin("a").subtype("A").where(weft.e.x == 10).followed_by("b").subtype("B")
    pre, _ = shown(pattern.program())
    assert coloured(pre)["10"] == "color:#0550ae"
    assert coloured(pre)["'a'"] == "color:#0a3069"


def test_a_plan_has_each_operator_once_and_each_query() -> None:
    program = weft.compile("QUERY One AS SELECT * WHERE A AS a ; B AS b\nQUERY Two AS SELECT * WHERE One AS o ; C AS c")
    _, picture = shown(program)
    found = texts(picture)
    assert [found.count(name) for name in ("One", "Two", "a <- A", "o <- One")] == [1, 1, 1, 1]


def test_a_shared_operator_is_drawn_once_with_two_lines() -> None:
    text = (ROOT / "tests/golden/plans/step/overlap.txt").read_text().split("--------")[0]
    _, picture = shown(weft.compile(text, language="step"))
    assert texts(picture).count("event A 0") == 1
    box = next(group for group in picture.iter(f"{SVG}g") if "event A 0" in texts(group))
    assert len(box.findall(f"{SVG}rect")) == 2


def test_a_plan_tells_rates_work_and_how_it_is_shared_out() -> None:
    text = "SOURCE A(x: int) RATE 100\nSOURCE B(x: int)\nSELECT a.x FROM A a ; B b WHERE a.x = b.x"
    found = " | ".join(texts(shown(weft.compile(text, language="eql"))[1]))
    assert "100/s |" in found  # declared
    assert "1/s?" in found  # assumed
    assert re.search(r"strategy \w+, load of each of 8 lanes: 0\.\d+", found)
    assert re.search(r"100/s, work [\d.]+/s", found)
    chain = text.replace("WHERE a.x = b.x", "WHERE FILTER(a.x = b.x)")
    assert {"A", "100/s", "B", "1/s?"} <= set(texts(shown(weft.compile(chain, language="eql"))[1]))


def test_a_mistake_does_not_take_the_colours_away() -> None:
    found = highlighted("SELECT * FROM S WHERE A AS a FILTER FILTER a[x] = 'y' WITHIN 10 EVENTS -- why", "ceql")
    for word in ("SELECT", "WITHIN", "10", "&#x27;y&#x27;", "-- why"):
        assert f">{word}</span>" in found


def test_circles_are_drawn() -> None:
    boxes = [Box((name,)) for name in "abc"]
    picture = ElementTree.fromstring(graph_svg(boxes, [Arrow(0, 1), Arrow(1, 2), Arrow(2, 0), Arrow(1, 1)], "circle"))
    assert len(picture.findall(f"{SVG}path")) == 4


def test_very_many_operators_are_a_sentence() -> None:
    queries = "\n".join(f"QUERY Q{n} AS SELECT * WHERE A{n} AS a ; B{n} AS b" for n in range(60))
    html = weft.compile(queries)._repr_html_()
    assert not pictures(html)
    assert "too many to draw" in html


def test_what_a_program_says_does_not_become_markup() -> None:
    text = f"QUERY `q{EVIL}` AS SELECT * WHERE `{EVIL}` AS `{EVIL}` FILTER `{EVIL}`[name = '{EVIL}'] -- {EVIL}"
    html = weft.compile(text)._repr_html_()
    assert "<script" not in html
    assert EVIL in "".join(ElementTree.fromstring(html).itertext())


# -- matches ----------------------------------------------------------------------------------------


def test_a_timeline_shows_events_of_matches_and_those_between() -> None:
    found = weft.detect(EVENTS, PAIRS)
    picture = ElementTree.fromstring(found.timeline())
    titles = [item.text or "" for group in picture.iter(f"{SVG}g") for item in group.findall(f"{SVG}title")]
    assert [title.split("\n")[:2] for title in titles] == [[kind, f"position {n}"] for n, kind in enumerate("ACBB")]
    written = texts(picture)
    assert [written.count(name) for name in ("A", "B", "C", "q", "a", "b")] == [1, 1, 1, 2, 2, 2]


def test_a_notebook_takes_nothing_away() -> None:
    found = weft.detect(EVENTS, PAIRS)
    first = next(found)
    html = found._repr_html_()
    assert "2 matches" in html
    assert [first, *found] == list(weft.detect(EVENTS, PAIRS))


def test_events_that_can_be_read_once_are_not_read_to_be_shown() -> None:
    def events() -> Iterator[dict[str, object]]:
        yield from EVENTS

    found = weft.detect(events(), PAIRS)
    assert "can be read once" in found._repr_html_()
    with pytest.raises(weft.UsageError, match="can be read once"):
        found.timeline()
    table = found.to_arrow()
    assert len(table) == 2
    assert "2 matches" in found._repr_html_()


def test_a_table_that_is_kept_shows_what_was_found_in_an_iterator() -> None:
    found = weft.detect(iter(EVENTS), PAIRS)
    assert weft.timeline(found.to_arrow()) == found.timeline()


def test_what_could_not_be_read_is_said_and_not_collected_twice() -> None:
    rejects: list[weft.Rejected] = []
    found = weft.detect([*EVENTS, {"type": "B", "ts": EVIL}], PAIRS, rejects=rejects)
    html = found._repr_html_()
    assert "1 event could not be read" in html
    assert "<script" not in html
    assert rejects == []


def test_doubts_about_the_events_are_said() -> None:
    html = weft.detect([{"type": "A", "ts": 1, "x": 1}], PAIRS)._repr_html_()
    assert "no matches" in html
    assert "'B'" in "".join(ElementTree.fromstring(html).itertext())


def test_live_sources_are_not_read_to_be_shown() -> None:
    found = weft.detect({"quotes": iter(EVENTS)}, PAIRS)
    assert "can be read once" in found._repr_html_()
    assert len(list(found)) == 2


def test_a_pipe_is_not_read_to_be_shown(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert reads_once(str(tmp_path / "pipe.jsonl"))
    assert not reads_once([str(ROOT / "examples/fire/sensors.jsonl"), tmp_path])


def test_many_matches_and_events_are_bounded_and_counted() -> None:
    many = [{"type": "A", "ts": n, "x": 1} for n in range(30)] + [{"type": "B", "ts": 30, "x": 1}]
    html = weft.detect(many, PAIRS)._repr_html_()
    assert "30 matches; 10 more are not shown" in html
    picture, _ = pictures(html)
    assert "10 more matches" in " ".join(texts(picture))
    assert texts(picture).count("q") == MOST_MATCHES
    long = [{"type": "A", "ts": n, "x": 1} for n in range(500)] + [{"type": "B", "ts": 500, "x": 1}]
    picture = ElementTree.fromstring(weft.detect(long, "SELECT MAX * WHERE A+ AS a ; B AS b").timeline())
    assert "301 more events of these matches" in " ".join(texts(picture))
    assert len([g for g in picture.iter(f"{SVG}g") if g.get("class", "").startswith("weft-at-")]) == MOST_EVENTS


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", "SELECT * WHERE A AS a ; B AS b FILTER a[x] = b[x] WITHIN 900 EVENTS"),
        ("eql", "SELECT a.x FROM A a ; B b WHERE a.x = b.x AND (a, b) OCCURS WITHIN 10 sec"),
        ("step", 'topology "t" external A(x: int) < "a" [1.0] external B(x: int) < "b" [1.0] Q(A.x): A ;[dur < 900] B'),
        ("tesla", "define X(x: int) from B() and each A() within 5 min from B where x = A.x"),
        ("epn", "pattern P\n  sequence(A a, B b)\n  policies repeated every\n  context fixed 1 min\n"),
    ],
)
def test_results_of_every_language_have_a_timeline_and_a_plan(language: str, text: str) -> None:
    many = [{"type": "A", "ts": n, "x": 1} for n in range(300)] + [{"type": "B", "ts": 300, "x": 1}]
    found = weft.detect(many, weft.compile(text, language))
    timeline, plan = pictures(found._repr_html_())
    assert f"{300 - MOST_MATCHES} more matches" in " ".join(texts(timeline))
    arcs = [g for g in timeline.iter(f"{SVG}g") if g.get("class", "").startswith("weft-match-")]
    assert len(arcs) == MOST_MATCHES
    assert {"A", "B"} <= set(re.findall(r"\w+", " ".join(texts(plan))))
    assert ElementTree.tostring(ElementTree.fromstring(found.plan())) == ElementTree.tostring(plan)
    assert len(list(found)) == 300  # to look at them takes nothing away


def test_no_matches_are_said() -> None:
    found = weft.detect([], PAIRS)
    assert "no matches" in found._repr_html_()
    assert "no matches" in " ".join(texts(ElementTree.fromstring(found.timeline())))


def test_events_are_on_the_timeline_also_if_none_of_them_match() -> None:
    rows = [{"type": "A", "ts": n, "x": n} for n in range(MOST_EVENTS + 9)]
    shown = ElementTree.fromstring(weft.detect(rows, PAIRS).timeline())
    assert len(list(shown.iter(f"{SVG}circle"))) == MOST_EVENTS
    assert "no matches" in " ".join(texts(shown))


def test_times_of_the_clock_are_written_as_such() -> None:
    noon = datetime(2024, 5, 1, 12)
    times = [noon + timedelta(minutes=n) for n in range(3)]
    table = pa.table({"type": ["A", "C", "B"], "ts": times, "x": [1, 1, 1]})
    found = weft.detect(table, PAIRS)
    for text in (found.timeline(), weft.timeline(found.to_arrow())):
        assert {"12:00", "12:02"} <= set(texts(ElementTree.fromstring(text)))


def test_events_that_last_are_bars() -> None:
    events = [{"type": "A", "start": 0, "end": 40, "x": 1}, {"type": "B", "start": 90, "end": 90, "x": 1}]
    picture = ElementTree.fromstring(weft.detect(events, PAIRS).timeline())
    assert len([line for group in picture.iter(f"{SVG}g") for line in group.findall(f"{SVG}line")]) == 1


@pytest.mark.spark
def test_results_on_spark_have_a_timeline(spark: SparkSession) -> None:
    frame = spark.createDataFrame(EVENTS)
    matches = weft.match(frame, PAIRS, positions=True)
    for text in (weft.timeline(matches), weft.detect(frame, PAIRS).timeline()):
        written = texts(ElementTree.fromstring(text))
        assert [written.count(name) for name in ("A", "B", "q", "a", "b")] == [1, 1, 2, 2, 2]


def test_every_kind_of_result_has_a_timeline() -> None:
    found = weft.detect(EVENTS, PAIRS)
    table = found.to_arrow()
    assert weft.timeline(found) == found.timeline()
    assert weft.timeline(found.to_pandas()) == weft.timeline(found.to_polars()) == weft.timeline(table)
    assert weft.timeline(list(found)) == weft.timeline([match.to_json() for match in found])
    with weft.live(PAIRS) as running:
        pushed = running.push(EVENTS)
        assert weft.timeline(pushed) == weft.timeline(list(found))
        assert "2 matches" in pushed._repr_html_()
    for wrong in (7, "fire.ceql", [7]):
        with pytest.raises(weft.UsageError, match="draws matches"):
            weft.timeline(wrong)


def test_matches_are_arcs_and_lanes_are_types_or_variables() -> None:
    scene = weft.detect(EVENTS, PAIRS)._shown()
    by_type, by_variable = (ElementTree.fromstring(timeline_svg(scene, lanes)) for lanes in ("type", "variable"))
    for picture in (by_type, by_variable):
        arcs = [
            g.findall(f"{SVG}path") for g in picture.iter(f"{SVG}g") if g.get("class", "").startswith("weft-match-")
        ]
        assert [len(own) for own in arcs] == [1, 1]
    assert {"A", "B", "C"} <= set(texts(by_type))
    assert {"A", "B", "C"}.isdisjoint(texts(by_variable))


def test_what_events_say_does_not_become_markup() -> None:
    events = [{"type": EVIL, "ts": n, EVIL: EVIL, "control": "\0\x1b\ud800"} for n in range(2)]
    program = f"QUERY `q{EVIL}` AS SELECT * WHERE `{EVIL}` AS `{EVIL}` ; `{EVIL}` AS b"
    found = weft.detect(events, program)
    for html in (found._repr_html_(), weft.timeline(found.to_arrow()), weft.timeline(list(found))):
        assert "<script" not in html
        ElementTree.fromstring(html)


def test_the_picture_in_the_documents_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = weft.detect("examples/fire/sensors.jsonl", "examples/fire/fire.ceql")
    assert (ROOT / "docs" / "timeline.svg").read_text(encoding="utf-8") == found.timeline()
