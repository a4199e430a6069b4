"""What the messages about the syntax of MATCH_RECOGNIZE know of it, its typical mistakes, and what is left out."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import pairwise

from weft.errors import Diagnostic, ProgramError
from weft.languages.sql.clauses import LocatedClause
from weft.languages.sql.words import CLOSING, OPENING, WORDS, SqlWord, word_set
from weft.languages.stops import PHRASES, Dialect, Explained, Stop
from weft.source import SourceText, Span

SECTIONS = ("PARTITION", "ORDER", "MEASURES", "ROWS", "AFTER", "PATTERN", "WITHIN", "SUBSET", "DEFINE")
_SPELLED = {
    "PARTITION": "PARTITION BY",
    "ORDER": "ORDER BY",
    "ROWS": "ONE ROW or ALL ROWS PER MATCH",
    "AFTER": "AFTER MATCH SKIP",
}
KEYWORDS = word_set(
    """PARTITION BY ORDER ASC DESC NULLS FIRST LAST MEASURES AS ONE ALL ROW ROWS PER MATCH SHOW OMIT EMPTY MATCHES WITH
    UNMATCHED AFTER SKIP PAST TO NEXT PATTERN PERMUTE WITHIN SUBSET DEFINE"""
)
OPENERS = frozenset({"MEASURES", "PATTERN", "SUBSET", "DEFINE"})
_PHRASES = {
    **PHRASES,
    **{word: word for word in KEYWORDS},
    **{"EXPRESSION": "an expression", "QUANTIFIER": "a quantifier", "VBAR": "'|'", "EQUAL": "'='"},
    **{"CLOSE": "')'", "OPEN": "'('", "START": "", "END": "", "OPEN_EXCLUSION": "", "CLOSE_EXCLUSION": "'-}'"},
    **{"PARTITION": "PARTITION BY", "ORDER": "ORDER BY", "AFTER": "AFTER MATCH SKIP", "PERMUTE": ""},
    **{"ONE": "ONE ROW PER MATCH", "ALL": "ALL ROWS PER MATCH"},
}
_GROUPS = (
    (frozenset({"NAME", "OPEN", "OPEN_EXCLUSION", "PERMUTE", "START", "END"}), "a variable"),
    (frozenset({"PATTERN", "AFTER", "ONE", "ALL"}), "ONE ROW or ALL ROWS PER MATCH, AFTER MATCH SKIP, PATTERN"),
)
_FOREIGN = {
    "WHERE": "conditions on variables stand in DEFINE; conditions on the result after the closing parenthesis",
    "SELECT": "write the columns of the result in MEASURES",
    "->": "variables follow each other without a symbol: PATTERN (A B)",
    "&&": "write AND in a condition; in PATTERN, variables follow each other",
    "HAVING": "conditions on the result stand after the closing parenthesis, in WHERE",
}


def refuse_foreign(words: tuple[SqlWord, ...], source: SourceText, clause: LocatedClause) -> None:
    """Refuse what the standard or a product has and weft has not, and subclauses that are twice or in another order."""
    depth = 0
    last: tuple[int, SqlWord] | None = None
    for index, word in enumerate(words):
        if word.kind == "symbol":
            depth += (word.text in OPENING) - (word.text in CLOSING)
        if (
            depth
            or word.kind != "name"
            or (index and words[index - 1].says("BY", ",", "AS", "TO", ".", "FIRST", "LAST"))
        ):
            continue
        after = words[index + 1] if index + 1 < len(words) else None
        _refuse_left_out(word, after, source)
        section = _section(words, index)
        if section is None:
            continue
        if last is not None and last[0] >= section:
            _refuse_order(word, section, last, source)
        last = section, word
    if last is None or not any(word.says("PATTERN") for word in words):
        _refuse_misspelt(words, source)
        hint = "write PATTERN (A B+) and say in DEFINE which rows are A and B"
        raise _error("no-pattern", "MATCH_RECOGNIZE has no PATTERN", clause.keyword, source, hint)


def _refuse_misspelt(words: tuple[SqlWord, ...], source: SourceText) -> None:
    """Point at a word before a parenthesis that looks like PATTERN."""
    for word, after in pairwise(words):
        if after.text == "(" and get_close_matches(word.upper, ["PATTERN"], cutoff=0.7):
            raise _error("syntax", f"{word.text!r} is not expected here", word.span, source, "did you mean PATTERN?")


def refuse_window(words: tuple[SqlWord, ...], source: SourceText) -> None:
    """Refuse row patterns in windows: `WINDOW w AS (… PATTERN (…))`."""
    if not any(word.says("WINDOW", "OVER") for word in words):
        return
    for word, after in pairwise(words):
        if word.says("PATTERN") and after.text == "(":
            hint = "write the pattern in FROM: SELECT … FROM t MATCH_RECOGNIZE (… ALL ROWS PER MATCH PATTERN (…) …)"
            raise _error("left-out", "row patterns in windows are not supported", word.span, source, hint)


def _section(words: tuple[SqlWord, ...], index: int) -> int | None:
    """Which subclause begins with a word, by its place in the order of the standard."""
    word, after = words[index], words[index + 1] if index + 1 < len(words) else None
    if after is None:
        return None
    pairs = {"PARTITION": ("BY",), "ORDER": ("BY",), "AFTER": ("MATCH",), "PATTERN": ("(",)}
    if word.says("ONE", "ALL") and after.says("ROW", "ROWS"):
        return SECTIONS.index("ROWS")
    if word.upper in pairs:
        return SECTIONS.index(word.upper) if after.says(*pairs[word.upper]) else None
    if word.says("WITHIN"):
        return SECTIONS.index("WITHIN") if words[index - 1].text == ")" else None
    return SECTIONS.index(word.upper) if word.says("MEASURES", "SUBSET", "DEFINE") else None


def _refuse_order(word: SqlWord, section: int, last: tuple[int, SqlWord], source: SourceText) -> None:
    name = _SPELLED.get(SECTIONS[section], SECTIONS[section])
    if last[0] == section:
        raise _error("clause-twice", f"a second {name}", word.span, source, "a clause has one of each")
    other = _SPELLED.get(SECTIONS[last[0]], SECTIONS[last[0]])
    hint = "the order is PARTITION BY, ORDER BY, MEASURES, ONE ROW or ALL ROWS, AFTER MATCH, PATTERN, SUBSET, DEFINE"
    raise _error("clause-order", f"{name} stands before {other}", word.span, source, hint)


def _refuse_left_out(word: SqlWord, after: SqlWord | None, source: SourceText) -> None:
    if word.says("SEEK", "INITIAL"):
        hint = "remove it: in MATCH_RECOGNIZE a match may start at every row"
        raise _error("left-out", f"{word.upper} belongs to row patterns in windows", word.span, source, hint)
    if after is not None and word.says("ALL") and after.says("MATCHES"):
        hint = "overlapping matches that start at different rows: AFTER MATCH SKIP TO NEXT ROW"
        span = word.span.to(after.span)
        raise _error("left-out", "ALL MATCHES is not part of the standard", span, source, hint)
    if after is not None and word.says("INCLUDE", "RUN") and after.says("TIMER", "TIMEOUT"):
        hint = "say how long a match may be after the pattern: PATTERN (A B) WITHIN INTERVAL '10' MINUTE"
        raise _error("left-out", f"{word.upper} {after.upper} is not supported", word.span, source, hint)
    if word.says("DURATION"):
        hint = "say how long a match may be after the pattern: PATTERN (A B) WITHIN INTERVAL '10' MINUTE"
        raise _error("left-out", "DURATION is not part of the standard", word.span, source, hint)


def _error(code: str, message: str, span: Span, source: SourceText, hint: str) -> ProgramError:
    return ProgramError([Diagnostic(code, message, source, span, hint)])


# ---------------------------------------------------------------- where the grammar stopped


def _comma_in_pattern(stop: Stop) -> Explained | None:
    if stop.said(0) != "," or "CLOSE" not in stop.expected or "COMMA" in stop.expected:
        return None
    return "variables in PATTERN are not separated by commas", stop.span, "write PATTERN (A B C), or PERMUTE(A, B)"


def _second_quantifier(stop: Stop) -> Explained | None:
    if stop.said(0) not in ("*", "+", "?", "{") or "QUANTIFIER" in stop.expected:
        return None
    if stop.said(-1) in ("(", "|") or not {"NAME", "OPEN"} & stop.expected:
        hint = "a quantifier follows a variable or a group: A+, (A B)*"
        return "there is nothing to quantify here", stop.span, hint
    return "a second quantifier", stop.span, "put the first one in parentheses: (A+){2}"


def _wrong_quantifier(stop: Stop) -> Explained | None:
    if stop.said(0) != "{" or "QUANTIFIER" not in stop.expected:
        return None
    return "this is not a quantifier", stop.span, "write {3}, {2,}, {,5} or {2,5} with whole numbers"


def _expression_as_key(stop: Stop) -> Explained | None:
    if stop.said(0) not in ("(", ".", "+", "-", "*", "/") or "QUANTIFIER" in stop.expected:
        return None
    if "COMMA" not in stop.expected or "NAME" in stop.expected:
        return None
    hint = "compute it in a sub-query before the clause: (SELECT *, upper(x) AS key FROM t) MATCH_RECOGNIZE (…)"
    return "PARTITION BY and ORDER BY take columns only", stop.span, hint


def _negated_variable(stop: Stop) -> Explained | None:
    if stop.said(0) not in ("!", "~", "[") or "OPEN" not in stop.expected:
        return None
    hint = "define a variable by the opposite condition: DEFINE NOT_A AS NOT (…)"
    return f"PATTERN has no {stop.said(0)!r}", stop.span, hint


def _dotted_variable(stop: Stop) -> Explained | None:
    if stop.said(0) != "." or "QUANTIFIER" not in stop.expected:
        return None
    return "PATTERN names variables, not columns", stop.span, "conditions on columns stand in DEFINE"


def _skip_target(stop: Stop) -> Explained | None:
    if stop.said(0) == "ROWS" and stop.said(-1) in ("LAST", "NEXT"):
        return "'ROWS' is not expected here", stop.span, f"write {stop.said(-1)} ROW"
    if stop.said(-1) == "SKIP":
        hint = "write SKIP PAST LAST ROW, SKIP TO NEXT ROW, SKIP TO FIRST A or SKIP TO LAST A"
        return "where to go on after a match is missing", stop.span, hint
    return None


SQL = Dialect(
    name="part of MATCH_RECOGNIZE",
    keywords=KEYWORDS,
    openers=OPENERS,
    words=WORDS,
    phrases=_PHRASES,
    groups=_GROUPS,
    foreign=_FOREIGN,
    mistakes=(
        _comma_in_pattern,
        _expression_as_key,
        _wrong_quantifier,
        _second_quantifier,
        _negated_variable,
        _dotted_variable,
        _skip_target,
    ),
    ignores_case=True,
)
