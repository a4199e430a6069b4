"""Regular expressions and LIKE: what they find, what cannot be read, and that none takes for ever."""

from __future__ import annotations

import pytest

import weft
from weft.languages.limits import MOST_CHARACTERS
from weft.regexes import RegexError, finder, liker


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^A+", "AAb", True),
        ("b$", "AAb", True),
        ("b$", "b\n", False),
        (r"\d{2}", "a12", True),
        ("é.", "xé\U0001f600", True),
    ],
)
def test_an_expression_is_found_anywhere(pattern: str, text: str, found: bool) -> None:
    assert finder(pattern)(text) is found


@pytest.mark.parametrize(
    ("pattern", "text", "alike"),
    [
        ("a%", "a\nb", True),
        ("a_c", "abc", True),
        ("a_c", "a\nc", True),
        ("a_c", "abbc", False),
        ("%.", "x.", True),
        ("%.", "xy", False),
        ("", "", True),
    ],
)
def test_like_is_about_the_whole_text(pattern: str, text: str, alike: bool) -> None:
    assert liker(pattern)(text) is alike


@pytest.mark.parametrize("pattern", ["(a", "[", r"(a)\1", "(?<=a)b", "a{1,2000}"])
def test_what_cannot_be_read_is_said(pattern: str) -> None:
    with pytest.raises(RegexError):
        finder(pattern)
    with pytest.raises(weft.ProgramError, match="not a regular expression"):
        weft.compile(f"SELECT * WHERE A FILTER A[name MATCHES '{pattern}'] WITHIN 5 EVENTS")


@pytest.mark.parametrize("engine", ["local", "meaning"])
def test_an_expression_that_backtracks_elsewhere_ends_at_once(engine: str) -> None:
    program = "SELECT * WHERE A FILTER A[name MATCHES '^(([a-z])+.)+[A-Z]([a-z])+$'] WITHIN 5 EVENTS"
    events = [{"type": "A", "ts": 1, "name": "a" * 40}, {"type": "A", "ts": 2, "name": "abXy"}]
    assert weft.count(events, program, engine=engine) == {"q": 1}


@pytest.mark.parametrize("operator", ["LIKE", "MATCHES"])
def test_a_pattern_is_no_longer_than_it_may_be(operator: str) -> None:
    """The longest ones run, those that need most room among them; a longer one is refused."""
    program = "SELECT * WHERE A FILTER A[name {} '{}'] WITHIN 5 EVENTS"
    events = [{"type": "A", "ts": 1, "name": "a" * 100}]
    for part in ("%", "_", "a", "%_") if operator == "LIKE" else ("(a)?", "a?", "(", ".*", "[\\p{L}]?"):
        pattern = part * (MOST_CHARACTERS // len(part))
        pattern = pattern if part != "(" else "(" * 999 + "a" + ")" * 999
        assert set(weft.count(events, program.format(operator, pattern))) == {"q"}
    with pytest.raises(weft.ProgramError, match="2,001 characters; 2,000 is the limit"):
        weft.compile(program.format(operator, "a" * (MOST_CHARACTERS + 1)))


def test_like_with_many_parts_ends_at_once() -> None:
    program = f"SELECT * WHERE A FILTER A[name LIKE '{'%a' * 25}b'] WITHIN 5 EVENTS"
    assert weft.count([{"type": "A", "ts": 1, "name": "a" * 2000}], program) == {"q": 0}
