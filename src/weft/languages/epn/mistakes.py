"""What the messages about the syntax of patterns with policies know of it, and its typical mistakes."""

from __future__ import annotations

import re
from difflib import get_close_matches

from weft.algebra.situations import KINDS
from weft.languages.epn.policies import POLICIES, values_of
from weft.languages.stops import PHRASES, Dialect, Explained, Stop, bracketed_attribute, chained_comparison

KEYWORDS = frozenset(
    {
        *("PATTERN", "WHERE", "POLICIES", "CONTEXT", "DERIVE"),
        *("FIXED", "SLIDING", "EVERY", "FROM", "UNTIL", "FOR", "BY", "FORGET"),
        *("AND", "OR", "NOT", "TRUE", "FALSE"),
    }
)
OPENERS = frozenset({"PATTERN", "WHERE", "POLICIES", "CONTEXT", "DERIVE"})
VALUES = {policy: values_of(policy) for policy in POLICIES}

_WORDS = re.compile(
    r"""(?P<skip>\s+|--[^\n]*)
      |(?P<name>[^\W\d]\w*|`(?:[^`\n]|``)+`)
      |(?P<number>[0-9]+(?:\.[0-9]+)?)
      |(?P<string>'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*")
      |(?P<unclosed>['"`])
      |(?P<symbol><=|>=|==|!=|<>|&&|\|\||->|=>|/\*|//|.)""",
    re.VERBOSE | re.DOTALL,
)
_PHRASES = {
    **PHRASES,
    "EQUALS": "'='",
    "SEMICOLON": "';'",
    "PLUS": "'+'",
    **{word: repr(word.lower()) for word in KEYWORDS - {"TRUE", "FALSE"}},
}
_GROUPS = (
    (frozenset({"NUMBER", "STRING", "NAME", "OPEN", "MINUS"}), "a value"),
    (frozenset({"PLUS", "MINUS", "STAR", "SLASH"}), "an arithmetic operator"),
    (frozenset({"COMPARE", "EQUALS"}), "a comparison"),
    (OPENERS, "the next clause or pattern"),
)
_FOREIGN = {
    "&&": "write and",
    "||": "write or",
    "!": "write not",
    "->": "a sequence is written sequence(A a, B b)",
    "/*": "a comment begins with -- and ends with the line",
    "//": "a comment begins with -- and ends with the line",
    "AS": "the variable follows the type without a word: StockBuy b",
    "IF": "write where",
    "WHEN": "write where",
    "WITHIN": "write a context: context fixed 10 minutes",
    "WINDOW": "write a context: context fixed 10 minutes",
    "PARTITION": "write a context: context fixed 10 minutes by attribute",
    "GROUP": "write a context: context fixed 10 minutes by attribute",
    "SELECT": "write pattern name sequence(…), and derive for what it reports",
    "EMIT": "write derive name = value",
    "RETURN": "write derive name = value",
    "OUTPUT": "write derive name = value",
}


def _missing_kind(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.said(0) != "(" or stop.said(-2) != "PATTERN" or before is None:
        return None
    if before.text.lower() in KINDS:
        return "the pattern has no name", before.span, f"write pattern name {before.text}(…)"
    hint = f"write pattern {before.text} sequence(…); other kinds are all, any and absence"
    return f"what kind of pattern is {before.text!r}?", before.span, hint


def _missing_pattern_word(stop: Stop) -> Explained | None:
    if stop.index or stop.found is None or stop.found.kind != "name" or stop.expected - {"$END", "PATTERN"}:
        return None
    if stop.said(0).lower() in KINDS:
        return "a pattern begins with its name", stop.span, f"write pattern name {stop.found.text}(…)"
    return None


def _nested_pattern(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.said(0) != "(" or before is None or before.text.lower() not in KINDS or not stop.open_brackets:
        return None
    hint = f"give it a name before: pattern Inner {before.text}(…), and write Inner here"
    return "a pattern stands inside another", before.span, hint


def _no_participants(stop: Stop) -> Explained | None:
    if stop.said(0) != ")" or stop.said(-1) != "(" or stop.expected != {"NAME"}:
        return None
    return (
        "a pattern needs participants",
        stop.span,
        "name event types and variables: sequence(StockBuy b, StockSell s)",
    )


def _missing_comma(stop: Stop) -> Explained | None:
    if stop.found is None or stop.found.kind != "name" or not {"COMMA", "RPAR"} <= stop.expected:
        return None
    if stop.said(0) in OPENERS:
        return None
    before = stop.word(-1)
    if before is not None and stop.said(-1) == "AS":
        hint = f"write {stop.said(-2)} {stop.found.text}"
        return "the variable follows the type without a word", before.span, hint
    hint = "participants are separated by commas, each a type and a variable"
    return f"a comma is missing before {stop.found.text!r}", stop.span, hint


def _unseparated_override(stop: Stop) -> Explained | None:
    before = stop.word(-1)
    if stop.said(0) != ":" or stop.said(-2) != "," or before is None or before.kind != "name":
        return None
    hint = f"write a semicolon before it: ; {before.text}: repeated last"
    return f"the policies of {before.text!r} are not separated from those before", before.span, hint


def _assigned_policy(stop: Stop) -> Explained | None:
    before, after = stop.word(-1), stop.word(1)
    if stop.said(0) not in ("=", ":") or before is None or before.text.lower() not in VALUES:
        return None
    value = after.text if after is not None else VALUES[before.text.lower()][0]
    return "a policy and its value stand side by side", stop.span, f"write {before.text} {value}"


def _bare_policy(stop: Stop) -> Explained | None:
    """`policies immediate, single`: values without the policies that they are values of."""
    if not stop.expected & {"COLON", "NAME"} or stop.open_brackets:
        return None
    distance = -1
    while stop.said(distance - 1) == ",":
        distance -= 2
    before = stop.word(distance)
    if before is None or stop.said(distance - 1) not in ("POLICIES", ";"):
        return None
    owner = next((policy for policy, values in VALUES.items() if before.text.lower() in values), None)
    if owner is None:
        return None
    return f"{before.text!r} is a value of the policy {owner!r}", before.span, f"write {owner} {before.text}"


def _unfinished_context(stop: Stop) -> Explained | None:
    if "EVERY" in stop.expected and stop.expected <= {"EVERY", "NAME"}:
        return "how often a sliding context begins is missing", stop.span, "write sliding 10 minutes every 1 minute"
    if {"UNTIL", "FOR"} <= stop.expected:
        hint = "write from Open until Close, or from Open for 5 minutes"
        return "when this context ends is missing", stop.span, hint
    if stop.said(-1) == "CONTEXT" and "FIXED" in stop.expected and stop.found is not None and _is_foreign(stop):
        hint = "write fixed 10 minutes, sliding 10 minutes every 1 minute, from A until B, or from A for 5 minutes"
        return f"there is no context {stop.found.text!r}", stop.span, hint
    return None


def _is_foreign(stop: Stop) -> bool:
    return stop.found is not None and stop.found.kind in ("name", "number") and not _resembles(stop)


def _resembles(stop: Stop) -> bool:
    return any(stop.said(0)[:3] == word[:3] for word in ("FIXED", "SLIDING", "FROM", "BY"))


def _misspelt_keyword(stop: Stop) -> Explained | None:
    """Like the one that all languages share, in small letters."""
    if stop.found is None or stop.found.kind != "name":
        return None
    near = get_close_matches(stop.said(0), sorted(stop.expected & KEYWORDS), n=1, cutoff=0.7)
    if not near:
        return None
    return f"{stop.found.text!r} is not expected here", stop.span, f"did you mean {near[0].lower()!r}?"


def _missing_connective(stop: Stop) -> Explained | None:
    if stop.found is None or "OR" not in stop.expected or stop.said(0) in stop.dialect.foreign:
        return None
    if stop.said(0) == ",":
        return "conditions are not separated by commas", stop.span, "write and between them"
    if stop.found.kind not in ("name", "number", "string") or stop.said(0) in KEYWORDS:
        return None
    return f"an operator is missing before {stop.found.text!r}", stop.span, "join conditions by and, or"


def _unassigned_field(stop: Stop) -> Explained | None:
    if stop.expected != {"EQUALS"}:
        return None
    return "a derived field has a name and a value", stop.span, "write derive gain = s.price - b.price"


EPN = Dialect(
    name="EPN",
    keywords=KEYWORDS,
    openers=OPENERS,
    words=_WORDS,
    phrases=_PHRASES,
    groups=_GROUPS,
    foreign=_FOREIGN,
    mistakes=(
        _missing_kind,
        _missing_pattern_word,
        _nested_pattern,
        _no_participants,
        _unseparated_override,
        _assigned_policy,
        _bare_policy,
        bracketed_attribute,
        _unassigned_field,
        _missing_comma,
        _unfinished_context,
        _misspelt_keyword,
        _missing_connective,
        chained_comparison,
    ),
    ignores_case=True,
)
