"""What may be meant at a place of a text (`|`), in all languages: types, attributes, variables and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.workbench.checking import check
from weft.workbench.completion import CompletionWord, complete
from weft.workbench.service import ProgramSource, Workbench

UNITS = ["EVENTS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]
CEQL = "CREATE STREAM w { EVENT T { id: int, val: int }, EVENT H { id: int } }\n"
EQL = "SOURCE A(x: int, y: text)\nSELECT a.x FROM A a ; B b "
STEP = 'topology "t" external A(x: real) < "a" [1.0] external B(x: real, y: int) < "b" [1.0]\n'
TESLA = "define X(x: int) from B(n = $p) as bb and last A() within 5 min from bb "
EPN = "pattern P sequence(A a [x > 1], B b)\n"


def words_at(text: str, language: str, **more: object) -> list[CompletionWord]:
    place = text.index("|")
    return complete(text.replace("|", "", 1), language, place, **more).words  # type: ignore[arg-type]


CASES = [
    ("ceql", CEQL + "SELECT | FROM w WHERE T AS t1; H AS h1", "variable", ["t1", "h1"]),
    ("ceql", CEQL + "SELECT * FROM | WHERE T AS t1", "stream", ["w"]),
    ("ceql", CEQL + "SELECT * FROM w WHERE T AS t1; |", "type", ["T", "H"]),
    ("ceql", CEQL + "SELECT * FROM w WHERE T AS t1 FILTER t1[|", "attribute", ["id", "val"]),
    ("ceql", CEQL + "SELECT * FROM w WHERE H AS h FILTER h[|]\nSELECT * FROM w WHERE T AS z", "variable", ["h"]),
    ("ceql", "SELECT * WHERE T AS t WITHIN 5 m|", "unit", UNITS),
    ("ceql", "CREATE STREAM w { EVENT T { id: |", "type", ["int", "double", "string", "boolean"]),
    ("ceql", CEQL + "SELECT * FROM w WHERE T AS |", "variable", []),
    ("eql", EQL + "WHERE a.|", "attribute", ["x", "y"]),
    ("eql", EQL + "WHERE |", "variable", ["a", "b"]),
    ("eql", EQL + "; |", "type", ["A", "B"]),
    ("eql", "SELECT | FROM A a", "variable", ["a"]),
    ("step", STEP + "Q(|): A ; B", "variable", ["A", "B"]),
    ("step", STEP + "Q(A.x): A ; |", "type", ["A", "B", "Q"]),
    ("step", STEP + "Q(A.x): A ; B[|", "attribute", ["x", "y"]),
    ("step", STEP + "Q(A.x): A/k ; B[k.|", "attribute", ["x"]),
    ("step", STEP + "Q(A.x): A ; B\nR(Q.|): Q", "attribute", ["x"]),
    ("tesla", TESLA + "where x = |", "variable", ["B", "bb", "A", "$p"]),
    ("tesla", TESLA + "where x = bb.|", "attribute", ["n"]),
    ("tesla", TESLA + "and last |", "type", ["X", "B", "A"]),
    ("epn", EPN + "where |", "variable", ["a", "b"]),
    ("epn", EPN + "where a.|", "attribute", ["x"]),
    ("epn", EPN + "context from |", "type", ["P", "A", "B"]),
    ("epn", "pattern P |", "value", ["sequence", "all", "any", "absence"]),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "kind", "wanted"), CASES)
def test_names_in_scope_are_offered_where_they_can_stand(
    language: str, text: str, kind: str, wanted: list[str]
) -> None:
    assert [word.word for word in words_at(text, language) if word.kind == kind] == wanted


@pytest.mark.parametrize(
    ("language", "text", "there", "not_there"),
    [
        ("ceql", "|", "SELECT", "WHERE"),
        ("ceql", "SELECT * FROM S WHERE A AS a PART|", "PARTITION", "FROM"),
        ("eql", "SELECT a.x FROM A a |", "WHERE", "SOURCE"),
        ("step", "|", "topology", "dur"),
        ("tesla", "define X(x: int) |", "from", "where"),
        ("epn", EPN + "|", "context", "every"),
    ],
)
def test_only_words_that_the_grammar_allows_are_offered(language: str, text: str, there: str, not_there: str) -> None:
    keywords = {word.word for word in words_at(text, language) if word.kind == "keyword"}
    assert there in keywords
    assert not_there not in keywords


@pytest.mark.parametrize("text", ["-- SELECT |", "/* a | */", "SELECT * FROM S WHERE A AS a FILTER a[x = 'T|'"])
def test_nothing_is_offered_in_comments_and_texts(text: str) -> None:
    assert words_at(text, "ceql") == []


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", "SELECT * FROM S WHERE A AS a ; B AS b WITHIN 5 |"),
        ("ceql", "CREATE STREAM S { EVENT A { x: |} } SELECT * FROM S WHERE A AS a WITHIN 5 EVENTS"),
        ("eql", "SELECT a.x FROM A a ; B b WHERE (a, b) OCCURS WITHIN 5 |"),
        ("eql", "SOURCE A(x: |) SELECT a.x FROM A a"),
        ("step", 'topology "t" external A(x: |) < "a" [1.0] Q(A.x): A'),
        ("tesla", "define X(x: |) from B() where x = B.x"),
        ("tesla", "define X() from B() and last A() within 5 | from B"),
        ("epn", "pattern P |(A a, B b) context fixed 5 min"),
        ("epn", "pattern P sequence(A a, B b) context fixed 5 |"),
    ],
)
def test_units_kinds_and_shapes_that_are_offered_exist(language: str, text: str) -> None:
    offered = [word.word for word in words_at(text, language) if word.kind in ("unit", "value", "type")]
    assert len(offered) > 3
    for word in offered:
        found = check(text.replace("|", word), language).findings
        assert not [one for one in found if one.code.startswith("unknown") or "syntax" in one.code], (word, found)


def test_whose_an_attribute_is_and_where_the_word_begins() -> None:
    text = CEQL + "SELECT * FROM w WHERE T AS t1 FILTER t1[va"
    found = complete(text, "ceql", len(text))
    assert (text[found.start :], found.words[1]) == ("va", CompletionWord("val", "attribute", "T"))


@pytest.mark.parametrize("language", ["ceql", "eql", "step", "tesla", "epn", "sql"])
@pytest.mark.parametrize("text", ["", "([{", ")]}", "'", "AS AS AS", "a.b.c..", "`", "define (", "pattern", ";;;::"])
def test_any_text_can_be_asked_about(language: str, text: str) -> None:
    for place in range(len(text) + 1):
        assert complete(text, language, place).start <= place


def test_new_programs_are_right_in_every_language() -> None:
    pytest.importorskip("nicegui", reason="pages need weft[workbench]")
    from weft.workbench.pages.programs import NEW

    assert [*NEW] == ["ceql", "eql", "step", "tesla", "epn", "sql"]
    assert [finding for language, text in NEW.items() for finding in check(text, language).findings] == []


def test_types_of_the_events_beside_a_program_are_offered(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "orders.jsonl").write_text(
        '{"type": "Order", "ts": 1, "total": 4}\n{"type": "Cancel", "ts": 2}\n'
    )
    (tmp_path / "shop" / "odd.jsonl").write_text("[1\n")
    (tmp_path / "shop" / "sales.csv").write_text("type,ts,price\nSale,1,5\n")
    (tmp_path / "far.jsonl").write_text('{"type": "Far", "ts": 1}\n')
    bench = Workbench(tmp_path)
    text = "SELECT * FROM S WHERE Order AS o; "
    assert {word.word for word in bench.complete(ProgramSource(text, "ceql", "shop/q.ceql"), len(text)).words} >= {
        "Order",
        "Sale",
    }
    assert "Far" not in {
        word.word for word in bench.complete(ProgramSource(text, "ceql", "shop/q.ceql"), len(text)).words
    }
    text = "SELECT * FROM S WHERE Order AS o FILTER o["
    assert bench.complete(ProgramSource(text, "ceql", "shop/q.ceql"), len(text)).words[0] == CompletionWord(
        "total", "attribute", "Order"
    )
