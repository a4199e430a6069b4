"""Every construct of CEQL, from text to syntax."""

from __future__ import annotations

import pytest

from weft.errors import ProgramError
from weft.languages.ceql import syntax
from weft.languages.ceql.parser import parse
from weft.languages.ceql.syntax import Amount, Attribute, Either, Event, Literal, Name, Named, Of, Repeated, Variable
from weft.source import SourceText, Span

A, B, C, D = (Event(Name(letter)) for letter in "ABCD")


def query(text: str) -> syntax.Query:
    (only,) = parse(SourceText(text)).queries
    return only


def formula(text: str) -> syntax.Formula:
    return query(f"SELECT * WHERE {text}").formula


def condition(text: str) -> syntax.Expression:
    filtered = formula(f"A FILTER {text}")
    assert isinstance(filtered, syntax.Filtered)
    return filtered.condition


def predicate(text: str) -> syntax.Expression:
    of = condition(f"A[{text}]")
    assert isinstance(of, Of)
    return of.body


def follow(left: syntax.Formula, right: syntax.Formula) -> syntax.Sequence:
    return syntax.Sequence(left, right)


def beside(left: syntax.Formula, right: syntax.Formula) -> syntax.Sequence:
    return syntax.Sequence(left, right, contiguous=True)


# ---------------------------------------------------------------- formulas

FORMULAS = {
    "A": A,
    "S>A": Event(Name("A"), Name("S")),
    "S > `odd name`": Event(Name("odd name"), Name("S")),
    "A ; B ; C": follow(follow(A, B), C),
    "A : B : C": beside(beside(A, B), C),
    "A : B ; C": beside(A, follow(B, C)),
    "A ; B : C": beside(follow(A, B), C),
    "A OR B OR C": Either(Either(A, B), C),
    "A ; B OR C": Either(follow(A, B), C),
    "A OR B : C": Either(A, beside(B, C)),
    "A ; (B OR C)": follow(A, Either(B, C)),
    "A+": Repeated(A),
    "A:+": Repeated(A, contiguous=True),
    "A : + ; B": follow(Repeated(A, contiguous=True), B),
    "A++": Repeated(Repeated(A)),
    "A ; B+": follow(A, Repeated(B)),
    "(A ; B)+": Repeated(follow(A, B)),
    "A AS x": Named(A, Name("x")),
    "A AS x AS y": Named(Named(A, Name("x")), Name("y")),
    "A:+ as x": Named(Repeated(A, contiguous=True), Name("x")),
    "A AS x +": Repeated(Named(A, Name("x"))),
    "A ; B AS x": follow(A, Named(B, Name("x"))),
    "NOT(A)": syntax.Negated(A),
    "NOT (A):+ ; B": follow(Repeated(syntax.Negated(A), contiguous=True), B),
    "((A))": A,
}


@pytest.mark.parametrize("text", FORMULAS)
def test_formula(text: str) -> None:
    assert formula(text) == FORMULAS[text]


def filtered(inner: syntax.Formula, letter: str = "A") -> syntax.Filtered:
    return syntax.Filtered(inner, Of(Variable(Name(letter)), Attribute(Name("x"))))


FILTERED = {
    "A FILTER A[x]": filtered(A),
    "A ; B FILTER A[x]": filtered(follow(A, B)),
    "A OR B FILTER A[x]": filtered(Either(A, B)),
    "A ; (B FILTER B[x])": follow(A, filtered(B, "B")),
    "A FILTER A[x] FILTER A[x]": filtered(filtered(A)),
    "A FILTER A[x] ; B": follow(filtered(A), B),
    "A OR B FILTER A[x] : C ; D": beside(filtered(Either(A, B)), follow(C, D)),
    "NOT(A FILTER A[x])": syntax.Negated(filtered(A)),
}


@pytest.mark.parametrize("text", FILTERED)
def test_filter_binds_loosest_and_may_go_on(text: str) -> None:
    assert formula(text) == FILTERED[text]


# ---------------------------------------------------------------- filters and predicates

x, y, z = (Attribute(Name(letter)) for letter in "xyz")
ONE, TWO = Literal(1), Literal(2)


def less(left: syntax.Expression, right: syntax.Expression) -> syntax.Comparison:
    return syntax.Comparison("<", left, right)


PREDICATES = {
    "x": x,
    "TRUE": Literal(True),
    "false": Literal(False),
    "NOT x": syntax.Not(x),
    "x AND y OR z": syntax.Or(syntax.And(x, y), z),
    "x AND (y OR z)": syntax.And(x, syntax.Or(y, z)),
    "NOT x < 1 AND y": syntax.And(syntax.Not(less(x, ONE)), y),
    "x + y * z < 1": less(syntax.Arithmetic("+", x, syntax.Arithmetic("*", y, z)), ONE),
    "x - y - z < 1": less(syntax.Arithmetic("-", syntax.Arithmetic("-", x, y), z), ONE),
    "(x - y) / z % 2 < 1": less(
        syntax.Arithmetic("%", syntax.Arithmetic("/", syntax.Arithmetic("-", x, y), z), TWO), ONE
    ),
    "x < -1": less(x, syntax.Negative(ONE)),
    "x - -y < 1": less(syntax.Arithmetic("-", x, syntax.Negative(y)), ONE),
    "x < 1.5": less(x, Literal(1.5)),
    "x < .5e3": less(x, Literal(500.0)),
    "x < 'it''s'": less(x, Literal("it's")),
    'x < "a ""b"" c"': less(x, Literal('a "b" c')),
    "x < ''": less(x, Literal("")),
    "x LIKE 'a%'": syntax.Like("LIKE", x, "a%"),
    "x not matches '^a'": syntax.Like("MATCHES", x, "^a", negated=True),
    "x IN {1, -2, 'a', TRUE}": syntax.In(x, (ONE, Literal(-2), Literal("a"), Literal(True))),
    "x NOT IN {}": syntax.In(x, (), negated=True),
    "x IN RANGE (1, y + 2)": syntax.InRange(x, ONE, syntax.Arithmetic("+", y, TWO)),
    "x + 1 NOT IN RANGE (1, 2)": syntax.InRange(syntax.Arithmetic("+", x, ONE), ONE, TWO, negated=True),
    "`not` < first": less(Attribute(Name("not")), Attribute(Name("first"))),
}


@pytest.mark.parametrize("text", PREDICATES)
def test_predicate(text: str) -> None:
    assert predicate(text) == PREDICATES[text]


@pytest.mark.parametrize(
    ("written", "kept"),
    [("=", "="), ("==", "="), ("!=", "<>"), ("<>", "<>"), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">=")],
)
def test_comparison_operator(written: str, kept: str) -> None:
    found = predicate(f"x{written}1")
    assert isinstance(found, syntax.Comparison)
    assert found.operator == kept


def of(variable: str, attribute: str) -> Of:
    return Of(Variable(Name(variable)), Attribute(Name(attribute)))


CONDITIONS = {
    "a[x]": of("a", "x"),
    "S>A[x]": Of(Variable(Name("A"), Name("S")), x),
    "a[x] < b[y]": less(of("a", "x"), of("b", "y")),
    "a[x] > b[y]": syntax.Comparison(">", of("a", "x"), of("b", "y")),
    "a[x]>b[y]": syntax.Comparison(">", of("a", "x"), of("b", "y")),
    "a[x] + b[y] * 2 < c[z]": less(
        syntax.Arithmetic("+", of("a", "x"), syntax.Arithmetic("*", of("b", "y"), TWO)), of("c", "z")
    ),
    "(a[x] OR b[y]) AND c[z]": syntax.And(syntax.Or(of("a", "x"), of("b", "y")), of("c", "z")),
    "COUNT(a) < 1": less(syntax.Call("COUNT", Variable(Name("a"))), ONE),
    "count (a[x]) < 1": less(syntax.Call("COUNT", Variable(Name("a")), Name("x")), ONE),
    "SUM(S>A[x]) < 1": less(syntax.Call("SUM", Variable(Name("A"), Name("S")), Name("x")), ONE),
    "COUNT(S>A) < 1": less(syntax.Call("COUNT", Variable(Name("A"), Name("S"))), ONE),
    "INCREASING(a[x])": syntax.Call("INCREASING", Variable(Name("a")), Name("x")),
    "max[x] < last[y]": less(of("max", "x"), of("last", "y")),
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_condition(text: str) -> None:
    assert condition(text) == CONDITIONS[text]


# ---------------------------------------------------------------- queries


@pytest.mark.parametrize("strategy", ["ALL", "ANY", "LAST", "MAX", "NEXT", "STRICT"])
@pytest.mark.parametrize("selection", ["*", "NONE", "a, b", "`all`"])
def test_strategy(strategy: str, selection: str) -> None:
    assert query(f"SELECT {strategy.lower()} {selection} WHERE A AS a ; B AS b").strategy == strategy


def test_variables_may_be_called_like_strategies() -> None:
    found = query("SELECT last, max[x], next.y WHERE A")
    assert found.strategy is None
    assert found.selected is not None
    assert [item.variable.text for item in found.selected] == ["last", "max", "next"]
    assert query("SELECT last FROM S WHERE A").selected == (syntax.Selected(Variable(Name("last"))),)


def test_selection() -> None:
    assert query("SELECT * WHERE A").selected is None
    assert query("SELECT NONE WHERE A").selected == ()
    assert query("SELECT a, b[x, y], S>C, t.id WHERE A").selected == (
        syntax.Selected(Variable(Name("a"))),
        syntax.Selected(Variable(Name("b")), (Name("x"), Name("y"))),
        syntax.Selected(Variable(Name("C"), Name("S"))),
        syntax.Selected(Variable(Name("t")), (Name("id"),)),
    )


def test_clauses() -> None:
    found = query("SELECT * FROM S, T WHERE A PARTITION BY [a, b], c WITHIN 5 EVENTS CONSUME BY ANY LIMIT 3")
    assert found.streams == (Name("S"), Name("T"))
    assert found.partition == syntax.Partition(((Name("a"), Name("b")), (Name("c"),)))
    assert found.within == syntax.Within((Amount(5, Name("EVENTS")),))
    assert found.consume == syntax.Consume(Name("ANY"))
    assert found.limit == syntax.Limit(3)


def test_clauses_may_come_in_any_order() -> None:
    usual = query("SELECT * WHERE A PARTITION BY [a] WITHIN 5 EVENTS CONSUME BY ANY LIMIT 3")
    assert query("SELECT * WHERE A LIMIT 3 CONSUME BY ANY WITHIN 5 EVENTS PARTITION BY [a]") == usual


def test_windows() -> None:
    assert query("SELECT * WHERE A WITHIN 1 HOUR 30.5 minutes").within == syntax.Within(
        (Amount(1, Name("HOUR")), Amount(30.5, Name("minutes")))
    )
    assert query("SELECT * WHERE A WITHIN 4 [t]").within == syntax.Within(amount=4, attribute=Name("t"))
    assert query("SELECT * WHERE A WITHIN 4 [t] JUMP 2.5").within == syntax.Within(
        amount=4, attribute=Name("t"), jump=2.5
    )
    assert query("SELECT * WHERE jump WITHIN 4 [jump] jump any LIMIT 3").within == syntax.Within(
        amount=4, attribute=Name("jump"), jump=Name("any")
    )


def test_statements_need_no_separator() -> None:
    text = """
        DECLARE EVENT A(x int, y string) DECLARE EVENT B() DECLARE STREAM S(A, B)
        CREATE STREAM T { EVENT C { x:int, t:primary_time }, EVENT D {} }
        CREATE QUARANTINE { BOUNDED_TIME 10 seconds {S} }
        SELECT * WHERE A ; B
        QUERY second AS SELECT * WHERE (C) SELECT * WHERE D WITHIN 3 EVENTS
    """
    program = parse(SourceText(text))
    kinds = [type(statement).__name__ for statement in program.statements]
    assert kinds == [*["EventDeclaration"] * 2, "DeclareStream", "CreateStream", "Quarantine", *["Query"] * 3]
    assert [found.name for found in program.queries] == [None, Name("second"), None]


def test_declarations() -> None:
    x_int = syntax.AttributeDeclaration(Name("x"), Name("int"))
    stream, event, declared = parse(
        SourceText("CREATE STREAM S { EVENT A { x:int }, } DECLARE EVENT A(x int) DECLARE STREAM S(A)")
    ).statements
    assert stream == syntax.CreateStream(Name("S"), (syntax.EventDeclaration(Name("A"), (x_int,)),))
    assert event == syntax.EventDeclaration(Name("A"), (x_int,))
    assert declared == syntax.DeclareStream(Name("S"), (Name("A"),))


def test_comments_and_letter_case() -> None:
    plain = query("SELECT * WHERE A ; B WITHIN 3 EVENTS")
    assert query("-- first\nselect /* all */ * Where A; -- it's\n B wItHiN 3 EVENTS /* end ; */") == plain
    assert formula("a") != formula("A")


def test_nodes_know_their_place() -> None:
    text = "SELECT * WHERE A AS a ; B FILTER a[price > 3]"
    found = query(text)
    assert isinstance(found.formula, syntax.Filtered)
    assert text[slice(*_ends(found.span))] == text
    assert text[slice(*_ends(found.formula.formula.span))] == "A AS a ; B"
    assert text[slice(*_ends(found.formula.condition.span))] == "a[price > 3]"


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


def test_keyword_needs_back_quotes_where_it_could_be_meant() -> None:
    with pytest.raises(ProgramError):
        predicate("not = 1")
    assert predicate("`not` = 1") == syntax.Comparison("=", Attribute(Name("not")), ONE)
