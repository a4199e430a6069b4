"""What FlinkCEP answers where it is easily got wrong: until, greedy steps, absences, groups, counts and skipping."""

from __future__ import annotations

import re
from typing import Any

import pytest

import weft
from weft import AfterMatch, Pattern, e

PAST_LAST = AfterMatch.skip_past_last_event()


def named(name: str) -> Any:
    return e.name == name


def begin(name: str, step: str = "start") -> Pattern:
    return Pattern.begin(step).where(named(name))


def pair(one: str, other: str, step: str = "m") -> Pattern:
    return begin(one, step + "1").followed_by(step + "2").where(named(other))


def to(pattern: Pattern, name: str) -> Pattern:
    return pattern.followed_by("end").where(named(name))


C = begin("c")
NEXT, THEN, ANY = (p.where(named("a")) for p in (C.next("m"), C.followed_by("m"), C.followed_by_any("m")))
HIGH = e.price > 3
BROKEN = "c a1 a2 A:5 a3"  # capital letters are events that something else looks for
CASES: dict[str, tuple[Pattern, str, str]] = {
    # until
    "until": (THEN.one_or_more().until(HIGH).followed_by("e").where(HIGH), BROKEN, "c a1 a2 A, c a1 A"),
    "until, combinations": (
        THEN.one_or_more().allow_combinations().until(HIGH).followed_by("e").where(HIGH),
        "c a1 a2 a3 A:5 a4",
        "c a1 a2 a3 A, c a1 a2 A, c a1 a3 A, c a1 A",
    ),
    "until, none or more": (
        THEN.one_or_more().optional().consecutive().until(HIGH).followed_by("e").where(HIGH),
        BROKEN,
        "c a1 a2 A, c a1 A, c A",
    ),
    "until, from any": (ANY.one_or_more().until(HIGH), BROKEN, "c a1 a2, c a1, c a2, c a3"),
    "until, without where": (C.followed_by("m").one_or_more().until(HIGH), "c a b A:5 d", "c a b, c a"),
    # greedy
    "greedy until, after": (
        to(THEN.one_or_more().optional().greedy().until(HIGH), "d"),
        "c a1 a2 a3 a4:4 d",
        "c a1 a2 a3 d",
    ),
    "greedy until, before": (to(THEN.one_or_more().optional().greedy().until(HIGH), "d"), "c a4:4 a1 a2 d", "c d"),
    "greedy, one or more until, before": (to(THEN.one_or_more().greedy().until(HIGH), "d"), "c a4:4 a1 a2 d", ""),
    "greedy before an optional step": (
        THEN.one_or_more()
        .optional()
        .greedy()
        .followed_by("x")
        .where(named("d"))
        .optional()
        .followed_by("y")
        .where(named("e")),
        "c a1 a2 d e",
        "c a1 a2 e, c a1 a2 d e",
    ),
    "greedy before a group": (
        to(THEN.one_or_more().optional().greedy().followed_by(pair("d", "e", "g")).times(2), "f"),
        "c a1 a2 x a3 d1 e1 d2 e2 f",
        "c a1 a2 a3 d1 e1 d2 e2 f",
    ),
    "greedy range": (THEN.times(2, 5).greedy(), "c a1 a2 a3 a4 x", "c a1 a2, c a1 a2 a3, c a1 a2 a3 a4"),
    # absences
    "not next, at the end": (
        to(THEN, "d").not_next("x").where(named("b")),
        "c a d b",
        "",
    ),
    "not before an optional end": (
        begin("a").not_followed_by("x").where(named("b")).followed_by_any("e").where(named("c")).optional(),
        "a c1 b c2",
        "a, a c1",
    ),
    "not, while events are taken": (
        to(ANY.times(2).not_followed_by("x").where(named("b")), "d"),
        "c a1 b a2 d",
        "",
    ),
    "not after any": (
        to(ANY.one_or_more().not_followed_by("x").where(named("b")), "d"),
        "c a1 a2 b a3 a4 d",
        "c a3 a4 d, c a3 d, c a4 d",
    ),
    "not before a loop": (
        to(C.not_followed_by("x").where(named("b")).followed_by("m").where(named("a")).one_or_more().optional(), "d"),
        "c a1 b a2 a3 d",
        "c a1 a2 a3 d, c a1 a2 d, c a1 d",
    ),
    "not within, at the end": (
        begin("a").not_followed_by("x").where(named("b")).within(3),
        "a1@1 b1@2 a2@4 c@5 b2@10 a3@11 b3@13",
        "a2",
    ),
    "not before a range within": (
        begin("a").not_followed_by("x").where(named("b")).followed_by("y").where(named("c")).times(0, 2).within(3),
        "a1@1 b1@2 a2@10 c1@11 c2@12 a3@20 c3@21 c4@24",
        "a1, a2, a2 c1, a2 c1 c2, a3, a3 c3",
    ),
    "not within, skipping": (
        to(begin("a").one_or_more().allow_combinations(), "c")
        .not_followed_by("x")
        .where(named("b"))
        .within(5)
        .after_match(PAST_LAST),
        "a1@1 a2@2 a3@3 c1@4 c2@10",
        "a1 a2 a3 c1",
    ),
    # groups
    "group, any, combinations": (
        to(C.followed_by_any(pair("a", "b")).times(2).allow_combinations(), "d"),
        "c a1 b1 a2 b2 a3 b3 d",
        "c a1 b1 a2 b2 d, c a1 b1 a3 b3 d, c a2 b2 a3 b3 d",
    ),
    "group, any, optional": (
        to(C.followed_by_any(pair("a", "b")).times(2).optional(), "d"),
        "c a1 b1 a2 b2 a3 b3 d",
        "c d, c a1 b1 a2 b2 d, c a2 b2 a3 b3 d",
    ),
    "group, next, none or more": (
        to(C.next(pair("a", "b")).one_or_more().optional().consecutive(), "d"),
        "c a1 b1 a2 b2 d",
        "c d, c a1 b1 d, c a1 b1 a2 b2 d",
    ),
    "group in a group": (
        to(
            begin("d").followed_by(begin("a", "x").followed_by(pair("b", "c")).one_or_more().optional()).optional(), "e"
        ),
        "d a b1 c1 b2 c2 e",
        "d e, d a e, d a b1 c1 e, d a b1 c1 b2 c2 e",
    ),
    "group in a group, consecutive": (
        to(
            begin("d")
            .followed_by_any(begin("a", "x").followed_by(pair("b", "c")).times(2).consecutive())
            .times(0, 2)
            .consecutive(),
            "e",
        ),
        "d a1 b1 c1 b2 c2 a2 b3 c3 x b4 c4 e",
        "d e, d a1 b1 c1 b2 c2 e",
    ),
    "group first": (
        to(Pattern.begin(pair("a", "b")).times(1, 2), "d"),
        "a1 b1 a2 b2 d",
        "a1 b1 d, a2 b2 d, a1 b1 a2 b2 d",
    ),
    "group, then not": (
        to(C.followed_by_any(pair("a", "b")).not_followed_by("x").where(named("d")), "e"),
        "c a1 b1 d a2 b2 e",
        "c a2 b2 e",
    ),
    "group until": (
        to(C.followed_by(pair("a", "b")).one_or_more().until(named("d")), "d"),
        "c a1 b1 a2 b2 d",
        "c a1 b1 d, c a1 b1 a2 b2 d",
    ),
    "group with an optional step first": (
        begin("a").next(begin("b", "x").optional().next("y").where(named("c"))).next("z").where(named("d")),
        "a c d",
        "a c d",
    ),
    "group with a range first": (
        to(C.next(begin("a", "x").times(1, 2).next("y").where(named("b"))), "d"),
        "c a b d",
        "c a b d",
    ),
    "group with none or more first, twice": (
        to(C.next(begin("a", "x").one_or_more().optional().next("y").where(named("b"))).times(2), "d"),
        "c b1 a b2 d",
        "c b1 a b2 d",
    ),
    "group that is optional": (
        begin("a").followed_by(begin("b", "x").next("y").where(named("c"))).optional().next("z").where(named("d")),
        "a d1 d2",
        "a d1",
    ),
    # counts
    "twice, next, combinations": (
        to(NEXT.times(2).allow_combinations(), "b"),
        "c a1 f a2 a3 b",
        "c a1 a2 b, c a1 a3 b",
    ),
    "twice, optional": (to(ANY.times(2).optional(), "b"), "c f a1 f a2 a3 b", "c a1 a2 b, c a2 a3 b, c b"),
    "twice, consecutive, optional": (
        to(ANY.times(2).consecutive().optional(), "b"),
        "c f a1 f a2 a3 b",
        "c a2 a3 b, c b",
    ),
    "none or more, consecutive": (
        to(ANY.one_or_more().consecutive().optional(), "b"),
        "c f a1 f a2 a3 b",
        "c a2 a3 b, c a1 b, c a2 b, c a3 b, c b",
    ),
    "nothing but none or more": (
        begin("a").one_or_more().optional(),
        "c a1 a2 a3 d",
        "a1 a2 a3, a1 a2, a1, a2 a3, a2, a3",
    ),
    "within": (
        begin("s").followed_by_any("m").where(named("t")).followed_by_any("e").where(named("u")).within(10),
        "s1@1 s2@2 t@3 x@4 u1@11 u2@13",
        "s2 t u1",
    ),
    # skipping
    "skip to next, from any": (
        to(begin("a"), "b").after_match(AfterMatch.skip_to_next()),
        "a1 b1 a2 b2",
        "a1 b1, a2 b2",
    ),
    "skip past last, two ways": (
        to(begin("a").followed_by_any("x").where(named("b")).followed_by_any("y").where(named("c")), "d").after_match(
            PAST_LAST
        ),
        "a1 a2 b1 b2 c1 c2 d1 d2",
        "a1 b1 c1 d1",
    ),
    "skip to a step that is not there": (
        begin("a")
        .next("x")
        .where(named("b"))
        .one_or_more()
        .optional()
        .next("y")
        .where(named("c"))
        .after_match(AfterMatch.skip_to_first("x")),
        "a c",
        "a c",
    ),
    "skip to the last of a greedy step": (
        begin("a")
        .one_or_more()
        .consecutive()
        .greedy()
        .next("b")
        .where(named("b"))
        .after_match(AfterMatch.skip_to_last("start")),
        "a1 a2 a3 b",
        "a1 a2 a3 b, a3 b",
    ),
    "skip to first, discarding": (
        to(
            Pattern.begin("x")
            .where(named("a") | named("c"))
            .followed_by("y")
            .where(named("b") | named("c"))
            .followed_by("z")
            .where(named("c"))
            .one_or_more()
            .greedy(),
            "d",
        ).after_match(AfterMatch.skip_to_first("z")),
        "a b c1 c2 c3 d",
        "a b c1 c2 c3 d, c1 c2 c3 d",
    ),
}


@pytest.mark.parametrize("engine", ["meaning", "local"])
@pytest.mark.parametrize("name", CASES)
def test_patterns_find_what_flinkcep_finds(name: str, engine: str) -> None:
    pattern, stream, expected = CASES[name]
    tokens = [re.fullmatch(r"((\w)\d*)(?::(\d+))?(?:@(\d+))?", token) for token in stream.split()]
    parts = [token.groups() for token in tokens if token]
    assert len(parts) == len(tokens)
    events: list[dict[str, object]] = [
        {"type": "Event", "ts": int(time or n), "name": kind.lower(), "price": float(price or 0)}
        for n, (_, kind, price, time) in enumerate(parts)
    ]
    found = [
        " ".join(parts[position][0] for position in match.positions) for match in weft.detect(events, pattern, engine)
    ]
    assert sorted(found) == sorted(part for part in expected.split(", ") if part)
    assert eval(str(pattern), dict(vars(weft))) == pattern
