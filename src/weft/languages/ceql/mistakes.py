"""Syntax errors in terms of the language: what is wrong, where, and what was probably meant.

`MISTAKES` is a table of typical mistakes, tried in order at the place where parsing stopped. Each entry
looks at that place and either recognises its mistake or declines. The fallback lists what was expected.
"""

from __future__ import annotations

from difflib import get_close_matches

from weft.languages.ceql.clause_words import CLAUSES, KEYWORDS, KNOWN_SYMBOLS, WORDS, clause_of, unclosed_at
from weft.languages.ceql.wording import expected_words
from weft.languages.stops import (
    Dialect,
    Explained,
    Stop,
    Word,
    closing_without_opening,
    foreign,
    misspelt_keyword,
    unclosed_bracket,
)

FUNCTIONS = (
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "INCREASING", "DECREASING"),
    *("ABS", "LOWER", "UPPER", "LENGTH", "COALESCE", "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"),
)
STRATEGIES = ("ALL", "ANY", "LAST", "MAX", "NEXT", "STRICT")
FOREIGN = {
    "&&": "write AND",
    "||": "write OR",
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT",
    "->": "a sequence is written A ; B, or A : B when nothing may come between",
    "=>": "a sequence is written A ; B, or A : B when nothing may come between",
    "GROUP": "write PARTITION BY [attribute]",
    "HAVING": "write FILTER after the pattern",
    "THEN": "a sequence is written A ; B",
    "FOLLOWED": "a sequence is written A ; B",
    "EVERY": "every combination is found by default; SELECT NEXT or LAST keeps one per end",
}


# ---------------------------------------------------------------- quotes and brackets


def _unclosed_quote(stop: Stop) -> Explained | None:
    opening = unclosed_at(stop)
    if opening is None:
        return None
    if opening.text == "/*":
        return "this comment is never closed", opening.span, "close it with */"
    if opening.text == "`":
        return "this back-quote is never closed", opening.span, "close it with ` on the same line"
    hint = f"close it with {opening.text} on the same line; {opening.text} inside a text is written twice"
    return "this quote is never closed", opening.span, hint


# ---------------------------------------------------------------- keywords


def _keyword_as_name(stop: Stop) -> Explained | None:
    """A clause began where a name was due, so its keyword was read as that name."""
    before, keyword = stop.word(-2), stop.word(-1)
    if before is None or keyword is None or keyword.upper not in KEYWORDS:
        return None
    where = keyword.upper in CLAUSES or keyword.upper in ("FILTER", "AS", "OR", "AND")
    if before.upper == "SELECT" and keyword.upper in ("FROM", "WHERE"):
        return "nothing is selected", keyword.span, "write SELECT * to select everything"
    if before.text == ";" and keyword.upper in ("SELECT", "QUERY", "CREATE", "DECLARE"):
        return _stray_semicolon(before)
    if before.upper in ("AS", "FROM", "WHERE", ";", ":", "OR", ",") and where:
        message = f"something is missing between {before.text!r} and {keyword.text!r}"
        return message, keyword.span, f"to use {keyword.text!r} as a name, put it in back-quotes: `{keyword.text}`"
    return None


def _stray_semicolon(semicolon: Word) -> Explained:
    hint = "leave it out: ';' joins events, and queries follow one another without a separator"
    return "this ';' joins nothing", semicolon.span, hint


def _semicolon_at_the_end(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.found is not None and stop.found.text == ";" and clause_of(stop) not in ("WHERE", "FILTER"):
        return _stray_semicolon(stop.found)
    if stop.found is None and before is not None and before.text == ";":
        return _stray_semicolon(before)
    return None


def _unknown_strategy_before_star(stop: Stop) -> Explained | None:
    """`SELECT NXT * WHERE …` was read as a product."""
    for select, strategy, star, after in zip(stop.words, stop.words[1:], stop.words[2:], stop.words[3:], strict=False):
        if select.upper == "SELECT" and star.text == "*" and strategy.is_name and after.upper in ("FROM", "WHERE"):
            near = get_close_matches(strategy.upper, STRATEGIES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"strategies are {', '.join(STRATEGIES)}"
            known = strategy.upper in STRATEGIES
            return None if known else (f"there is no strategy {strategy.text!r}", strategy.span, hint)
    return None


def _unknown_strategy(stop: Stop) -> Explained | None:
    select, strategy = stop.word(-2), stop.word(-1)
    if select is None or strategy is None or select.upper != "SELECT" or not strategy.is_name or stop.found is None:
        return None
    if stop.found.text != "*" and not stop.found.is_name:
        return None
    near = get_close_matches(strategy.upper, STRATEGIES, n=1)
    if not near and stop.found.is_name:
        return f"a comma is missing between {strategy.text!r} and {stop.found.text!r}", stop.span, None
    hint = (
        f"did you mean {near[0]}?" if near else f"strategies are {', '.join(STRATEGIES)}; names are listed with commas"
    )
    return f"there is no strategy {strategy.text!r}", strategy.span, hint


# ---------------------------------------------------------------- clauses


def _missing_where(stop: Stop) -> Explained | None:
    if "WHERE" not in stop.expected:
        return None
    if stop.found is None:
        return "the query ends without a pattern", stop.span, "add WHERE and a pattern: WHERE A ; B"
    before = stop.word(-1)
    if stop.found.is_name or stop.found.text == "(":
        if before is not None and before.upper in KEYWORDS:
            return None
        if clause_of(stop) == "SELECT" and before is not None and before.text != "*" and stop.found.is_name:
            message = f"a comma, FROM or WHERE is missing between {before.text!r} and {stop.found.text!r}"
            return message, stop.span, None
        return "WHERE is missing", stop.span, f"write WHERE before the pattern: WHERE {stop.found.text} …"
    return None


def _filter_too_late(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.upper != "FILTER" or clause_of(stop) in ("WHERE", "FILTER"):
        return None
    hint = "FILTER belongs to the pattern: put it before PARTITION BY, WITHIN, CONSUME BY and LIMIT"
    return "FILTER comes too late", stop.span, hint


def _statement_brackets(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.text not in "({" or clause_of(stop) not in ("CREATE", "DECLARE"):
        return None
    if stop.found.text == "(" and "LBRACE" in stop.expected:
        return "CREATE STREAM takes braces", stop.span, "write CREATE STREAM S { EVENT A { x:int } }"
    if stop.found.text == "{" and "LPAR" in stop.expected:
        return "DECLARE takes parentheses", stop.span, "write DECLARE EVENT A(x int) and DECLARE STREAM S(A)"
    return None


# ---------------------------------------------------------------- patterns


def _comma_in_pattern(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.text != "," or clause_of(stop) not in ("WHERE", "FILTER"):
        return None
    if clause_of(stop) == "FILTER":
        return "filters are not separated by commas", stop.span, "join them with AND or OR"
    return (
        "events are not separated by commas",
        stop.span,
        "write A ; B for A followed by B, A : B for A and B in a row",
    )


def _and_in_pattern(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.upper != "AND" or clause_of(stop) != "WHERE":
        return None
    return "AND joins filters, not events", stop.span, "events are joined by ; (followed by), : (in a row) and OR"


def _quantifier(stop: Stop) -> Explained | None:
    if stop.found is None or clause_of(stop) != "WHERE" or stop.found.text not in ("*", "?", "{"):
        return None
    if stop.found.text == "{":
        return "a count is a number in braces", stop.span, "A{3} is three, A{2,4} two to four, A{2,} two or more"
    message = f"there is no {stop.found.text!r} after an event"
    return message, stop.span, "A+ is one or more, A{0,} none or more, A? one or none; A:+ and A:{2} are in a row"


def _not_without_parentheses(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if before is None or before.upper != "NOT" or stop.expected != {"LPAR"}:
        return None
    found = stop.found.text if stop.found else "A"
    return "NOT takes an event in parentheses", stop.span, f"write NOT({found})"


def _missing_operator(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.found is None or before is None or clause_of(stop) != "WHERE" or "SEMICOLON" not in stop.expected:
        return None
    if not stop.found.is_name and stop.found.text != "(":
        return None
    after = stop.word(1)
    if after is not None and after.text == "[":
        return "FILTER is missing", stop.span, f"write FILTER {stop.found.text}[…]"
    message = f"an operator is missing between {before.text!r} and {stop.found.text!r}"
    return message, stop.span, "events are joined by ; (followed by), : (in a row) and OR; AS names what is before it"


# ---------------------------------------------------------------- filters


def _dotted_attribute(stop: Stop) -> Explained | None:
    before, after = stop.word(-1), stop.word(1)
    if stop.found is None or stop.found.text != "." or before is None or clause_of(stop) not in ("WHERE", "FILTER"):
        return None
    attribute = after.text if after else "attribute"
    return "attributes are not written with a dot", stop.span, f"write {before.text}[{attribute}]"


def _unknown_function(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if (
        stop.found is None
        or stop.found.text != "("
        or before is None
        or not before.is_name
        or clause_of(stop) not in ("FILTER", "SELECT")
    ):
        return None
    if before.upper == "IN":
        return "IN takes its values in braces", stop.span, "write IN {1, 2}, or IN RANGE (low, high)"
    if before.upper in KEYWORDS:
        return None
    near = get_close_matches(before.upper, FUNCTIONS, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]}?" if near else f"functions are {', '.join(FUNCTIONS)}"
    return f"there is no function {before.text!r}", before.span, hint


def _missing_connective(stop: Stop) -> Explained | None:
    if stop.found is None or clause_of(stop) != "FILTER" or "AND" not in stop.expected:
        return None
    if not stop.found.is_name and stop.found.text != "(":
        return None
    between = "AND, OR or a comparison" if "COMPARE" in stop.expected else "AND or OR"
    return f"{between} is missing before {stop.found.text!r}", stop.span, None


def _chained_comparison(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.text not in ("<", "<=", ">", ">=", "=", "==", "!=", "<>"):
        return None
    if clause_of(stop) != "FILTER" or "COMPARE" in stop.expected or "AND" not in stop.expected:
        return None
    return "comparisons cannot be chained", stop.span, "write low < x AND x < high, or x IN RANGE (low, high)"


def _quotes_needed(stop: Stop) -> Explained | None:
    if stop.expected != {"STRING"} or stop.found is None:
        return None
    before = stop.word(-1)
    word = before.upper if before else "LIKE"
    return f"{word} needs a text in quotes", stop.span, f"write {word} '{stop.found.text}'"


# ---------------------------------------------------------------- the last resort


def _anything(stop: Stop) -> Explained:
    if stop.found is not None and stop.found.kind == "symbol" and stop.found.text not in KNOWN_SYMBOLS:
        return f"{stop.found.text!r} means nothing in CEQL", stop.span, None
    expected = expected_words(stop)
    if stop.found is None:
        return f"the text ends too early: {expected} is missing", stop.span, None
    return f"{stop.found.text!r} is not expected here; expected {expected}", stop.span, None


MISTAKES = (
    _keyword_as_name,
    unclosed_bracket,
    closing_without_opening,
    _semicolon_at_the_end,
    _filter_too_late,
    _unknown_strategy_before_star,
    _unknown_strategy,
    misspelt_keyword,
    foreign,
    _quotes_needed,
    _missing_where,
    _statement_brackets,
    _comma_in_pattern,
    _and_in_pattern,
    _quantifier,
    _not_without_parentheses,
    _dotted_attribute,
    _unknown_function,
    _missing_operator,
    _missing_connective,
    _chained_comparison,
    _anything,
)

CEQL = Dialect(
    name="CEQL",
    keywords=KEYWORDS,
    openers=CLAUSES,
    words=WORDS,
    phrases={},  # the last resort has words of its own
    groups=(),
    foreign=FOREIGN,
    mistakes=MISTAKES,
    ignores_case=True,
    quotes=_unclosed_quote,
)
