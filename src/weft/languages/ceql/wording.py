"""What could have come at a place, in the user's words."""

from __future__ import annotations

from weft.languages.ceql.clause_words import CLAUSES, clause_of
from weft.languages.stops import Stop

SYMBOLS = {
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RBRACKET": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "SEMICOLON": "';'",
    "COLON": "':'",
    "COLON_PLUS": "':+'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "STAR": "'*'",
    "DOT": "'.'",
    "MORETHAN": "'>'",
}
WORDS = {
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "COMPARE": "a comparison",
    "STRATEGY": "a strategy",
    "LIKE": "LIKE or MATCHES",
    "BLOCK": "'{'",
}

# Groups of terminals that are called by one phrase when they can all come.
GROUPS = (
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"}), "an arithmetic operator"),
    (frozenset({"NUMBER", "STRING", "NAME", "LPAR", "MINUS"}), "a value"),
    (frozenset({"SEMICOLON", "COLON", "AS", "PLUS", "COLON_PLUS"}), "an operator (; : OR AS + :+)"),
    (frozenset({"PARTITION", "WITHIN", "CONSUME", "LIMIT", "SESSION", "ORDER"}), "the next clause"),
    (frozenset({"SELECT", "QUERY", "CREATE", "DECLARE"}), "a query or declaration"),
)
_IMPLIED = frozenset(
    {
        *("QUALIFIED", "FUNCTION", "VALUE_FUNCTION", "TIMESTAMP", "TRUE", "FALSE", "$END", "SLASH", "PERCENT"),
        *("BETWEEN", "IS", "OPEN_COUNT", "QUESTION"),
    }
)


def expected_words(stop: Stop) -> str:
    """`a, b or c`: what could have come, most telling first."""
    before = stop.word(-1)
    if before is not None and before.upper == "FILTER":
        return "a filter such as x[price > 3]"
    left = set(stop.expected) - _IMPLIED
    said = []
    for group, phrase in GROUPS:
        if group <= stop.expected and group & left:
            said.append(phrase)
            left -= group
    if "an operator (; : OR AS + :+)" in said:
        left -= {"OR"}
    if "a query or declaration" in said and len(said) > 1:
        said.remove("a query or declaration")
    if "NUMBER" in left:
        left -= {"MINUS"}
    said = [*(_word(terminal, stop) for terminal in sorted(left, key=_telling)), *said]
    said = list(dict.fromkeys(said))[:7]
    if not said:
        return "the end of the text"
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


def _telling(terminal: str) -> tuple[int, str]:
    """Names and values first, then keywords, then symbols."""
    return (0 if terminal == "NAME" or terminal in WORDS else 2 if terminal in SYMBOLS else 1), terminal


def _word(terminal: str, stop: Stop) -> str:
    if terminal == "NAME":
        return _name_word(stop)
    return SYMBOLS.get(terminal) or WORDS.get(terminal) or terminal


def _name_word(stop: Stop) -> str:
    """What a name is at this place."""
    before = stop.word(-1)
    if before is not None and before.kind == "number" and clause_of(stop) == "WITHIN":
        return "a unit (EVENTS, SECONDS, MINUTES, HOURS, DAYS, MILLISECONDS)"
    if before is not None and before.upper == "BY" and clause_of(stop) == "CONSUME":
        return "ANY, PARTITION or NONE"
    if before is not None and before.upper in ("AS", "QUERY"):
        return "a name"
    if before is not None and before.upper == "FROM":
        return "a stream"
    if before is not None and before.text == "[" and clause_of(stop) in CLAUSES:
        return "an attribute"
    return {"WHERE": "an event type", "SELECT": "a variable", "FILTER": "an attribute or a variable"}.get(
        clause_of(stop), "a name"
    )
