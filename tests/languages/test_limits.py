"""Programs that are far too large: each runs, or is refused with the limit and its place, and neither takes long."""

from __future__ import annotations

import pytest

import weft
from weft.languages import limits

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

STEP = 'topology "t"\nexternal A(x: int) < "a.jsonl" [1.0]\nQ(*): '
EVENTS = [{"type": "A", "ts": 1, "x": 1}, {"type": "B", "ts": 2, "x": 1}]


def many(part: str, joint: str, count: int) -> str:
    return joint.join(part.replace("#", str(number)) for number in range(count))


# By name: the language, what stands before, what is repeated (# is its number) and what joins it, what stands behind.
CHAINS = {
    "ceql ;": ("ceql", "SELECT * WHERE ", "A AS a#", " ; ", ""),
    "ceql :": ("ceql", "SELECT * WHERE ", "A AS a#", " : ", ""),
    "ceql OR": ("ceql", "SELECT * WHERE ", "A#", " OR ", ""),
    "ceql FILTER AND": ("ceql", "SELECT * WHERE A AS a FILTER ", "a[x > #]", " AND ", ""),
    "ceql FILTER OR": ("ceql", "SELECT * WHERE A AS a FILTER ", "a[x > #]", " OR ", ""),
    "ceql FILTER": ("ceql", "SELECT * WHERE A AS a ", "FILTER a[x > #]", " ", ""),
    "ceql joins": ("ceql", "SELECT * WHERE A AS a ; B AS b FILTER ", "a[x] < b[x#]", " AND ", ""),
    "ceql sum": ("ceql", "SELECT * WHERE A AS a FILTER a[1 < ", "x", " + ", "]"),
    "ceql NOT": ("ceql", "SELECT * WHERE A AS a FILTER a[", "NOT", " ", " x > 1]"),
    "ceql +": ("ceql", "SELECT * WHERE A", "+", " ", ""),
    "eql ;": ("eql", "SELECT * FROM ", "A a#", " ; ", ""),
    "eql |": ("eql", "SELECT * FROM ", "A a#", " | ", ""),
    "eql \\": ("eql", "SELECT * FROM ", "A a#", " \\ ", ""),
    "eql @": ("eql", "SELECT * FROM A", "@ 5", " ", ""),
    "eql +": ("eql", "SELECT * FROM A", "+", " ", ""),
    "step ;": ("step", STEP, "A/a#", " ; ", ""),
    "step ;?": ("step", STEP, "A/a#", " ;? ", ""),
    "step ,": ("step", STEP, "A/a#", " , ", ""),
    "step |": ("step", STEP, "A/a#", " | ", ""),
    "step !": ("step", STEP + "A/a[", "!", "", "(a.x > 1)]"),
    "tesla sum": ("tesla", "define X(a: int) from A() where a = ", "A.x", " + ", ""),
}
LISTS = {
    "ceql AND": ("ceql", "SELECT * WHERE A AS a FILTER a[", "x > #", " AND ", "]"),
    "ceql OR": ("ceql", "SELECT * WHERE A AS a FILTER a[", "x > #", " OR ", "]"),
    "eql AND": ("eql", "SELECT * FROM A a ; B b WHERE ", "a.x < b.x", " AND ", ""),
    "eql ,": ("eql", "SELECT * FROM A a ; B b WHERE ", "a.x < b.x", ", ", ""),
    "step &&": ("step", STEP + "A/a[", "a.x > #", " && ", "]"),
    "tesla constraints": ("tesla", "define X() from A(", "x > #", " and ", ")"),
    "tesla chain": ("tesla", "define X() from A() and ", "each A() as a# within 5 from A", " and ", ""),
    "tesla not": ("tesla", "define X() from A() and ", "not B#() within 5 from A", " and ", ""),
}


def text_of(case: tuple[str, ...], count: int) -> tuple[str, str]:
    language, before, part, joint, behind = case
    return language, before + many(part, joint, count) + behind


def refused(language: str, text: str) -> str:
    with pytest.raises(weft.ProgramError) as error:
        weft.compile(text, language)
    (finding,) = error.value.diagnostics
    assert finding.code == "too-large"
    assert finding.span.start > 0
    message = str(error.value)
    assert "is the limit" in message
    assert len(message) < 1_000
    return message


@pytest.mark.parametrize("name", [*CHAINS, *LISTS])
def test_many_operands_run_on_a_stack_as_small_as_it_is(name: str) -> None:
    chosen, count = (CHAINS[name], 100) if name in CHAINS else (LISTS[name], 500)
    language, text = text_of(chosen, count)
    program = weft.compile(text, language)
    for stage in ("syntax", "optimized", "plan"):
        assert weft.explain(program, stage)
    weft.count(EVENTS, program)


@pytest.mark.parametrize("name", CHAINS)
def test_too_many_operators_are_refused_where_they_are_too_many(name: str) -> None:
    refused(*text_of(CHAINS[name], 1_000))


@pytest.mark.parametrize("name", LISTS)
def test_too_many_parts_are_refused(name: str) -> None:
    refused(*text_of(LISTS[name], 2_000))


def test_the_caret_is_under_the_first_operand_too_many() -> None:
    text = "SELECT *\nWHERE " + many("A AS a#", " ;\n", 300)
    with pytest.raises(weft.ProgramError) as error:
        weft.compile(text)
    (finding,) = error.value.diagnostics
    assert limits.MOST_NESTED - 3 < finding.line < limits.MOST_NESTED + 3


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", "SELECT * WHERE A AS a FILTER a[x > #]"),
        ("ceql", "SELECT * WHERE A{#}"),
        ("ceql", "SELECT * WHERE A ; B WITHIN # EVENTS"),
        ("eql", "SELECT * FROM A a WHERE a.x < #"),
        ("eql", "SELECT * FROM A @ # sec"),
        ("step", STEP + "A/a +[len > #]"),
        ("step", STEP + "A/a +?[len < #]"),
        ("tesla", "define X() from A(x > #)"),
        ("tesla", "define X() from A() and #-last B() within 5 from A"),
        ("tesla", "define X() from A() and each B() within # from A"),
    ],
)
@pytest.mark.parametrize("digits", [4_400, 100_000])
def test_numbers_with_too_many_digits_are_refused(language: str, text: str, digits: int) -> None:
    assert f"{digits:,} digits" in refused(language, text.replace("#", "1" * digits))


def test_filters_that_multiply_are_refused_before_they_do() -> None:
    text = "SELECT * WHERE A AS a ; B AS b FILTER " + many("(a[x > #] OR b[x > #])", " AND ", 60)
    assert "patterns" in refused("ceql", text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ceql", "SELECT * WHERE «A»"),
        ("eql", "SELECT * FROM «A»"),
        ("eql", "SELECT * FROM A WHERE «A.x = 1»"),
        ("step", STEP + "«A»"),
        ("tesla", "define X() from A(x > «1»)"),
    ],
)
def test_brackets_that_change_nothing_may_be_many(language: str, text: str) -> None:
    weft.compile(text.replace("«", "(" * 5_000).replace("»", ")" * 5_000), language)


def test_a_set_may_have_any_number_of_constants() -> None:
    program = weft.compile("SELECT * WHERE A AS a FILTER a[x IN {" + many("#", ", ", 20_000) + "}]")
    assert weft.count(EVENTS, program) == {"q": 1}


@pytest.mark.parametrize(("symbol", "found"), [(">", 0), (">=", 0), ("=", 0), ("<", 1), ("<=", 1), ("!=", 1)])
def test_a_count_in_the_text_costs_nothing_until_events_come(symbol: str, found: int) -> None:
    program = weft.compile(f"{STEP}A/a +[len {symbol} 2000000000]")
    assert weft.count([{"type": "A", "ts": n} for n in range(50)], program) == {"Q": found}


@pytest.mark.parametrize("symbol", [">", ">=", "=", "<", "<=", "!="])
def test_lengths_that_no_run_has_are_refused(symbol: str) -> None:
    assert "not told apart" in refused("step", f"{STEP}A/a +[len {symbol} {'9' * 400}]")
    assert "not told apart" in refused("step", f"{STEP}A/a +?[len {symbol} 100000000]")
    assert weft.count(EVENTS[:1] * 3, weft.compile(f"{STEP}A/a +?[len {symbol} 9999]")).keys() == {"Q"}


def test_counts_that_no_run_has_are_refused() -> None:
    for count in ("{#}", "{#,}", "{1,#}"):
        with pytest.raises(weft.ProgramError, match="is the limit"):
            weft.compile(f"SELECT * FROM A a{count.replace('#', '9' * 400)}", "eql")
        program = weft.compile(f"SELECT * FROM A a{count.replace('#', str(10**9))}", "eql")
        assert weft.count([{"type": "A", "ts": n} for n in range(3)], program)["q"] == (6 if count == "{1,#}" else 0)


def test_filters_of_subscribers_have_the_same_limits() -> None:
    from weft.languages.content.lower import compile_filter

    compile_filter(many("x > #", " and ", 500))
    for text in (many("x > #", " and ", 5_000), f"x > {'1' * 5_000}", f"1 < {many('x', ' + ', 5_000)}"):
        with pytest.raises(weft.ProgramError, match="is the limit"):
            compile_filter(text)


def test_a_thousand_findings_are_all_there_and_fifty_are_shown() -> None:
    text = "SELECT " + many("z#[x]", ", ", 900) + " WHERE A AS a"
    with pytest.raises(weft.ProgramError) as error:
        weft.compile(text)
    assert len(error.value.diagnostics) == 900
    assert "and 850 more" in str(error.value)
    assert len(str(error.value)) < 40_000


def test_a_long_line_is_shown_around_the_place() -> None:
    text = "SELECT * WHERE A AS a FILTER a[" + many("x > #", " AND ", 500) + " AND x > 'a' AND y >]"
    with pytest.raises(weft.ProgramError) as error:
        weft.compile(text)
    line, caret = str(error.value).splitlines()[1:3]
    assert len(line) < 250
    assert line[caret.index("^")] == "]"


def test_deep_programs_can_be_sent_to_other_machines() -> None:
    from pyspark import cloudpickle

    from weft.runtime.spark.shipping import packed_up

    program = weft.compile(text_of(CHAINS["ceql sum"], 190)[1])
    assert cloudpickle.loads(packed_up(program)) == program
