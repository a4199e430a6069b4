"""Syntax errors in the user's words: what is wrong, where, and what was probably meant.

`MISTAKES` is a table of typical mistakes, tried in order at the place where parsing stopped. Each entry
looks at that place and either recognises its mistake or passes. The last resort says what could have come.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from lark import Token, UnexpectedInput, UnexpectedToken

from weft.errors import Diagnostic
from weft.languages.ceql.stoppage import BRACKETS, CLAUSES, KEYWORDS, KNOWN_SYMBOLS, Stoppage, Word, stoppage_at
from weft.languages.ceql.wording import expected_words
from weft.source import SourceText, Span

Explained = tuple[str, Span, str | None]  # message, place, hint

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "INCREASING", "DECREASING")
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
    "ORDER": "matches come in order of their end; there is nothing to choose",
    "THEN": "a sequence is written A ; B",
    "FOLLOWED": "a sequence is written A ; B",
    "EVERY": "every combination is found by default; SELECT NEXT or LAST keeps one per end",
}


def explain_mistake(source: SourceText, unexpected: UnexpectedInput) -> Diagnostic:
    """The error that stopped the parser, explained."""
    stop = stoppage_at(source.text, _offset(source.text, unexpected), _accepted(unexpected))
    for mistake in MISTAKES:
        explained = mistake(stop)
        if explained is not None:
            message, span, hint = explained
            return Diagnostic("syntax", message, source, span, hint)
    raise AssertionError("the last entry of the table explains everything")


def _offset(text: str, unexpected: UnexpectedInput) -> int:
    if isinstance(unexpected, UnexpectedToken) and unexpected.token.type == "$END":
        return len(text)
    if isinstance(unexpected, UnexpectedToken) and isinstance(unexpected.token, Token):
        return unexpected.token.start_pos or 0
    return unexpected.pos_in_stream or 0


def _accepted(unexpected: UnexpectedInput) -> frozenset[str]:
    if isinstance(unexpected, UnexpectedToken):
        return frozenset(unexpected.accepts or unexpected.expected)
    return frozenset(getattr(unexpected, "allowed", None) or ())


# ---------------------------------------------------------------- quotes and brackets


def _unclosed_quote(stop: Stoppage) -> Explained | None:
    opening = stop.unclosed
    if opening is None:
        return None
    if opening.text == "/*":
        return "this comment is never closed", opening.span, "close it with */"
    if opening.text == "`":
        return "this back-quote is never closed", opening.span, "close it with ` on the same line"
    hint = f"close it with {opening.text} on the same line; {opening.text} inside a text is written twice"
    return "this quote is never closed", opening.span, hint


def _unclosed_bracket(stop: Stoppage) -> Explained | None:
    if not stop.open_brackets:
        return None
    opening = stop.open_brackets[-1]
    closing = BRACKETS[opening.text]
    if stop.found is None or (stop.found.upper in CLAUSES and stop.found.upper not in stop.expected):
        return f"this {opening.text!r} is never closed", opening.span, f"close it with {closing!r}"
    if stop.found.text in BRACKETS.values() and stop.found.text != closing:
        message = f"{stop.found.text!r} does not match the {opening.text!r} in line {stop.line_of(opening)}"
        return message, stop.span, f"that one is closed with {closing!r}"
    return None


def _closing_without_opening(stop: Stoppage) -> Explained | None:
    if stop.open_brackets or stop.found is None or stop.found.text not in BRACKETS.values():
        return None
    return f"this {stop.found.text!r} closes nothing", stop.span, "remove it, or add the opening one"


# ---------------------------------------------------------------- keywords


def _keyword_as_name(stop: Stoppage) -> Explained | None:
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


def _semicolon_at_the_end(stop: Stoppage) -> Explained | None:
    before = stop.word(-1)
    if stop.found is not None and stop.found.text == ";" and stop.clause not in ("WHERE", "FILTER"):
        return _stray_semicolon(stop.found)
    if stop.found is None and before is not None and before.text == ";":
        return _stray_semicolon(before)
    return None


def _misspelt_keyword(stop: Stoppage) -> Explained | None:
    if stop.found is None or not stop.found.is_name:
        return None
    keywords = stop.expected & KEYWORDS
    near = get_close_matches(stop.found.upper, sorted(keywords), n=1, cutoff=0.7)
    return (f"{stop.found.text!r} is not expected here", stop.span, f"did you mean {near[0]}?") if near else None


def _unknown_strategy(stop: Stoppage) -> Explained | None:
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


def _foreign(stop: Stoppage) -> Explained | None:
    if stop.found is None:
        return None
    hint = FOREIGN.get(stop.found.upper)
    return (f"{stop.found.text!r} is not CEQL", stop.span, hint) if hint else None


# ---------------------------------------------------------------- clauses


def _missing_where(stop: Stoppage) -> Explained | None:
    if "WHERE" not in stop.expected:
        return None
    if stop.found is None:
        return "the query ends without a pattern", stop.span, "add WHERE and a pattern: WHERE A ; B"
    before = stop.word(-1)
    if stop.found.is_name or stop.found.text == "(":
        if before is not None and before.upper in KEYWORDS:
            return None
        if stop.clause == "SELECT" and before is not None and before.text != "*" and stop.found.is_name:
            message = f"a comma, FROM or WHERE is missing between {before.text!r} and {stop.found.text!r}"
            return message, stop.span, None
        return "WHERE is missing", stop.span, f"write WHERE before the pattern: WHERE {stop.found.text} …"
    return None


def _filter_too_late(stop: Stoppage) -> Explained | None:
    if stop.found is None or stop.found.upper != "FILTER" or stop.clause in ("WHERE", "FILTER"):
        return None
    hint = "FILTER belongs to the pattern: put it before PARTITION BY, WITHIN, CONSUME BY and LIMIT"
    return "FILTER comes too late", stop.span, hint


def _statement_brackets(stop: Stoppage) -> Explained | None:
    if stop.found is None or stop.found.text not in "({" or stop.clause not in ("CREATE", "DECLARE"):
        return None
    if stop.found.text == "(" and "LBRACE" in stop.expected:
        return "CREATE STREAM takes braces", stop.span, "write CREATE STREAM S { EVENT A { x:int } }"
    if stop.found.text == "{" and "LPAR" in stop.expected:
        return "DECLARE takes parentheses", stop.span, "write DECLARE EVENT A(x int) and DECLARE STREAM S(A)"
    return None


# ---------------------------------------------------------------- patterns


def _comma_in_pattern(stop: Stoppage) -> Explained | None:
    if stop.found is None or stop.found.text != "," or stop.clause not in ("WHERE", "FILTER"):
        return None
    if stop.clause == "FILTER":
        return "filters are not separated by commas", stop.span, "join them with AND or OR"
    return (
        "events are not separated by commas",
        stop.span,
        "write A ; B for A followed by B, A : B for A and B in a row",
    )


def _and_in_pattern(stop: Stoppage) -> Explained | None:
    if stop.found is None or stop.found.upper != "AND" or stop.clause != "WHERE":
        return None
    return "AND joins filters, not events", stop.span, "events are joined by ; (followed by), : (in a row) and OR"


def _quantifier(stop: Stoppage) -> Explained | None:
    if stop.found is None or stop.clause != "WHERE" or stop.found.text not in ("*", "?", "{"):
        return None
    message = f"there is no {stop.found.text!r} after an event"
    return message, stop.span, "A+ is one or more with gaps, A:+ one or more in a row; choices are written with OR"


def _not_without_parentheses(stop: Stoppage) -> Explained | None:
    before = stop.word(-1)
    if before is None or before.upper != "NOT" or stop.expected != {"LPAR"}:
        return None
    found = stop.found.text if stop.found else "A"
    return "NOT takes an event in parentheses", stop.span, f"write NOT({found})"


def _missing_operator(stop: Stoppage) -> Explained | None:
    before = stop.word(-1)
    if stop.found is None or before is None or stop.clause != "WHERE" or "SEMICOLON" not in stop.expected:
        return None
    if not stop.found.is_name and stop.found.text != "(":
        return None
    after = stop.word(1)
    if after is not None and after.text == "[":
        return "FILTER is missing", stop.span, f"write FILTER {stop.found.text}[…]"
    message = f"an operator is missing between {before.text!r} and {stop.found.text!r}"
    return message, stop.span, "events are joined by ; (followed by), : (in a row) and OR; AS names what is before it"


# ---------------------------------------------------------------- filters


def _dotted_attribute(stop: Stoppage) -> Explained | None:
    before, after = stop.word(-1), stop.word(1)
    if stop.found is None or stop.found.text != "." or before is None or stop.clause not in ("WHERE", "FILTER"):
        return None
    attribute = after.text if after else "attribute"
    return "attributes are not written with a dot", stop.span, f"write {before.text}[{attribute}]"


def _unknown_function(stop: Stoppage) -> Explained | None:
    before = stop.word(-1)
    if stop.found is None or stop.found.text != "(" or before is None or not before.is_name or stop.clause != "FILTER":
        return None
    if before.upper == "IN":
        return "IN takes its values in braces", stop.span, "write IN {1, 2}, or IN RANGE (low, high)"
    if before.upper in KEYWORDS:
        return None
    near = get_close_matches(before.upper, FUNCTIONS, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]}?" if near else f"functions are {', '.join(FUNCTIONS)}"
    return f"there is no function {before.text!r}", before.span, hint


def _missing_connective(stop: Stoppage) -> Explained | None:
    if stop.found is None or stop.clause != "FILTER" or "AND" not in stop.expected:
        return None
    if not stop.found.is_name and stop.found.text != "(":
        return None
    between = "AND, OR or a comparison" if "COMPARE" in stop.expected else "AND or OR"
    return f"{between} is missing before {stop.found.text!r}", stop.span, None


def _chained_comparison(stop: Stoppage) -> Explained | None:
    if stop.found is None or stop.found.text not in ("<", "<=", ">", ">=", "=", "==", "!=", "<>"):
        return None
    if stop.clause != "FILTER" or "COMPARE" in stop.expected or "AND" not in stop.expected:
        return None
    return "comparisons cannot be chained", stop.span, "write low < x AND x < high, or x IN RANGE (low, high)"


def _quotes_needed(stop: Stoppage) -> Explained | None:
    if stop.expected != {"STRING"} or stop.found is None:
        return None
    before = stop.word(-1)
    word = before.upper if before else "LIKE"
    return f"{word} needs a text in quotes", stop.span, f"write {word} '{stop.found.text}'"


# ---------------------------------------------------------------- the last resort


def _anything(stop: Stoppage) -> Explained:
    if stop.found is not None and stop.found.kind == "symbol" and stop.found.text not in KNOWN_SYMBOLS:
        return f"{stop.found.text!r} means nothing in CEQL", stop.span, None
    expected = expected_words(stop)
    if stop.found is None:
        return f"the text ends too early: {expected} is missing", stop.span, None
    return f"{stop.found.text!r} is not expected here; expected {expected}", stop.span, None


MISTAKES: tuple[Callable[[Stoppage], Explained | None], ...] = (
    _unclosed_quote,
    _keyword_as_name,
    _unclosed_bracket,
    _closing_without_opening,
    _semicolon_at_the_end,
    _filter_too_late,
    _unknown_strategy,
    _misspelt_keyword,
    _foreign,
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
